package connect

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toryo-dev/toryo/internal/redact"
	"github.com/toryo-dev/toryo/internal/task"
)

// RecordFile is the file in the data directory that says what was made.
const RecordFile = "init.json"

// record says what Apply has made, or was about to make: what is in it may be there. It has
// no secrets.
type record struct {
	Version int `json:"version"`
	// Config is the configuration file, and NewConfig that there was none before.
	Config    string `json:"config,omitempty"`
	NewConfig bool   `json:"new_config,omitempty"`

	Keys     []recordedKey   `json:"keys,omitempty"`
	Sections []string        `json:"sections,omitempty"` // that the file did not have
	Secrets  []string        `json:"secrets,omitempty"`  // files
	Labels   []recordedLabel `json:"labels,omitempty"`
	Hooks    []recordedHook  `json:"hooks,omitempty"`
	// Signed are the webhooks that have got a secret of ours: no forge tells which one they have.
	Signed []signedHook `json:"signed,omitempty"`
	// Repositories are those that were chosen.
	Repositories []recordedRepository `json:"repositories,omitempty"`
	// Issues are the repositories in which a first issue was opened. They stay.
	Issues []recordedIssue `json:"issues,omitempty"`

	data folder // that it is in
}

// recordedKey is a key that was set, or taken out.
type recordedKey struct {
	Key     string `json:"key"`
	Value   string `json:"value,omitempty"`
	Removed bool   `json:"removed,omitempty"`
	// Before is how the value stood in the file, and Had that it did.
	Before string `json:"before,omitempty"`
	Had    bool   `json:"had,omitempty"`
}

// recordedLabel is a label that was missing.
type recordedLabel struct {
	Forge      task.Forge `json:"forge"`
	Address    string     `json:"address"`
	Repository string     `json:"repository"`
	Name       string     `json:"name"`
}

// recordedHook is a webhook that was missing, or one that was there and had another secret
// or other events.
type recordedHook struct {
	Forge      task.Forge `json:"forge"`
	Address    string     `json:"address"`
	Repository string     `json:"repository"`
	URL        string     `json:"url"`
	Edited     bool       `json:"edited,omitempty"`
}

// sameRepository reports whether two webhooks are of one repository.
func (h recordedHook) sameRepository(other recordedHook) bool {
	return h.Forge == other.Forge && h.Address == other.Address && h.Repository == other.Repository
}

// signedHook says which secret a webhook has.
type signedHook struct {
	Forge      task.Forge `json:"forge"`
	Address    string     `json:"address"`
	Repository string     `json:"repository"`
	URL        string     `json:"url"`
	ID         string     `json:"id,omitempty"` // empty until the forge has said it
	Secret     string     `json:"secret"`       // a hash of it
}

// recordedRepository is a repository that was chosen.
type recordedRepository struct {
	Forge   task.Forge `json:"forge"`
	Address string     `json:"address"`
	Name    string     `json:"name"`
}

// recordedIssue is a first issue; without a number it was about to be opened.
type recordedIssue struct {
	Forge      task.Forge `json:"forge"`
	Repository string     `json:"repository"`
	Number     int64      `json:"number,omitempty"`
}

// sameRepository reports whether two first issues are in one repository.
func (i recordedIssue) sameRepository(other recordedIssue) bool {
	return i.Forge == other.Forge && i.Repository == other.Repository
}

const recordVersion = 1

// readRecord reads what was made; nothing if there is no record. It keeps the data directory open.
func readRecord(dataDir string) (*record, error) {
	data, err := openFolder(dataDir)
	if err != nil {
		return nil, task.Wrap(task.DataDir, err, notRead)
	}
	r := &record{Version: recordVersion, data: data}
	if err := r.read(); err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

// notRead is that there may be a record, which cannot be read.
const notRead = "what toryo init has made cannot be read"

func (r *record) read() error {
	content, there, err := r.data.read(RecordFile)
	if err != nil {
		return task.Wrap(task.DataDir, err, notRead)
	}
	if !there {
		return nil
	}
	if err := json.Unmarshal(content, r); err != nil {
		return task.Wrap(task.DataDir, err, r.path()+" cannot be read").WithHint("remove it, if you do without toryo init --remove")
	}
	if r.Version != recordVersion {
		return task.Errorf(task.DataDir, "%s was written by another version of Toryo", r.path()).WithHint("use that version, or remove the file")
	}
	return nil
}

func (r *record) path() string { return filepath.Join(r.data.path, RecordFile) }

// close lets go of the data directory.
func (r *record) close() { r.data.close() }

// save writes the record down.
func (r *record) save() error {
	content, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if r.data.root == nil {
		made, err := makeFolder(r.data.path)
		if err != nil {
			made.close()
			return task.Wrap(task.DataDir, err, "the folder "+r.data.path+" cannot be made").WithHint("choose another data directory with --data")
		}
		r.data = made
	}
	if err := r.data.write(RecordFile, append(content, '\n')); err != nil {
		return task.Wrap(task.DataDir, err, "what is about to be made cannot be written down").WithHint("choose another data directory with --data")
	}
	return nil
}

// empty reports whether nothing is left of what was made.
func (r *record) empty() bool {
	return len(r.Keys)+len(r.Sections)+len(r.Secrets)+len(r.Labels)+len(r.Hooks) == 0 && !r.NewConfig
}

// addKey notes a key; what was there before the first time counts.
func (r *record) addKey(one recordedKey) {
	for i := range r.Keys {
		if r.Keys[i].Key == one.Key {
			r.Keys[i].Value, r.Keys[i].Removed = one.Value, one.Removed
			return
		}
	}
	r.Keys = append(r.Keys, one)
}

// sign notes that a webhook has a secret. An empty id stands for the one that is being created.
func (r *record) sign(hook recordedHook, id string, secret redact.Secret) {
	r.unsign(hook)
	r.Signed = append(r.Signed, signedHook{hook.Forge, hook.Address, hook.Repository, hook.URL, id, hashOf(hook, secret)})
}

// unsign notes that it is not known which secret a webhook has.
func (r *record) unsign(hook recordedHook) {
	r.Signed = slices.DeleteFunc(r.Signed, func(one signedHook) bool { return one.is(hook) })
}

// isSigned reports whether a webhook has a secret for sure.
func (r *record) isSigned(hook recordedHook, id string, secret redact.Secret) bool {
	return slices.ContainsFunc(r.Signed, func(one signedHook) bool {
		return one.is(hook) && (one.ID == "" || one.ID == id) && one.Secret == hashOf(hook, secret)
	})
}

func (s signedHook) is(hook recordedHook) bool {
	return s.Forge == hook.Forge && s.Address == hook.Address && s.Repository == hook.Repository && s.URL == hook.URL
}

// hashOf tells one secret of a webhook from another, and not what it is.
func hashOf(hook recordedHook, secret redact.Secret) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{string(hook.Forge), hook.Address, hook.Repository, hook.URL, secret.Reveal()}, "\n")))
	return hex.EncodeToString(sum[:16])
}

// hasHook reports whether a webhook was created or corrected by us.
func (r *record) hasHook(hook recordedHook) bool {
	return slices.ContainsFunc(r.Hooks, func(one recordedHook) bool { return one.sameRepository(hook) && sameHook(one.URL, hook.URL) })
}

// addOnce adds what is not there yet, and reports whether it was new.
func addOnce[T comparable](list *[]T, one T) bool {
	if slices.Contains(*list, one) {
		return false
	}
	*list = append(*list, one)
	return true
}

// drop takes one out of a list.
func drop[T comparable](list *[]T, one T) {
	*list = slices.DeleteFunc(*list, func(other T) bool { return other == one })
}
