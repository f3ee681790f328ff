package connect

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/redact"
	"github.com/toryo-dev/toryo/internal/task"
)

// Step is something that was done, or not.
type Step struct {
	What   string    `json:"what"`
	State  StepState `json:"state"`
	Detail string    `json:"detail,omitempty"`
}

// StepState says what became of a step.
type StepState string

// The states of a step.
const (
	Done      StepState = "done"
	Unchanged StepState = "unchanged" // it was so already
	Planned   StepState = "planned"   // it would be done, but for a dry run
	LeftOut   StepState = "left_out"  // for a reason that the detail gives
)

// Installer connects one installation.
type Installer struct {
	ConfigFile string
	DataDir    string
	Addr       string // at which the server listens
	Environ    []string
	Overrides  map[string]string // values of flags that go over the configuration
	Open       Opener
	// Receive waits for webhooks, to see whether they arrive. Without it they are not tried.
	Receive Receive
	// Wait is how long a webhook may take to arrive.
	Wait time.Duration
	// Import puts a repository on the board, and reports whether it was not there.
	Import func(ctx context.Context, name, source string) (made bool, err error)
	// Used reports whether tasks have been done in a repository, so that items of it that
	// are closed may have our labels. Without it that is not known.
	Used   func(ctx context.Context, of task.Forge, repository string) (bool, error)
	Random io.Reader
	// Shared says that other servers with this address and database may be there: they have a
	// data directory of their own, and webhooks may be theirs, or be delivered to them.
	Shared bool
	DryRun bool
	// Local says that Remove leaves what is on forges, such as one that is gone for good.
	Local  bool
	Report func(Step)
}

// newFile is what a configuration that was not there begins with.
const newFile = "# Configuration of Toryo, begun by toryo init.\n# Every key with its default and what it is for: toryo config init -\n"

// work is one Apply.
type work struct {
	*Installer
	answers Answers
	record  *record
	text    []byte        // of the configuration file
	loaded  config.Config // as it is before
	kind    Kind
	changes config.Changes // of the configuration file
	files   []secretFile   // that hold secrets which are nowhere else
	secret  redact.Secret  // of webhooks

	named  map[string]string // files with secrets that the configuration names before, by key
	willBe map[string]string // those that it names then
}

// Apply makes the installation what the answers say. It can be repeated: what is there already
// is not made again. What it does is reported step by step; what it cannot do, and Toryo can
// do without, is left out and reported with the reason.
func (i *Installer) Apply(ctx context.Context, answers Answers) error {
	w, err := i.begin(answers)
	if err != nil {
		return err
	}
	defer w.record.close()
	if err := i.tidy(w.record.data); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{w.secrets, w.imports, w.repositories, w.labels, w.hooks} {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// begin reads what there is, and makes sure that the configuration will be right before
// anything is changed.
func (i *Installer) begin(answers Answers) (*work, error) {
	r, err := readRecord(i.DataDir)
	if err != nil {
		return nil, err
	}
	w, err := i.beginWith(r, answers)
	if err != nil {
		r.close()
	}
	return w, err
}

func (i *Installer) beginWith(r *record, answers Answers) (*work, error) {
	if err := i.checkConfig(r); err != nil {
		return nil, err
	}
	text, there, err := readBounded(i.ConfigFile)
	if err != nil {
		return nil, task.Wrap(task.BadConfig, err, i.ConfigFile+" cannot be read")
	}
	w := &work{Installer: i, answers: answers, record: r, text: text, kind: KindOf(answers.Forge)}
	var report config.Report
	w.loaded, report = config.LoadText(i.ConfigFile, text, i.Environ, i.Overrides)
	w.named = report.SecretFiles(w.loaded)
	if !there {
		w.text = []byte(newFile)
		r.NewConfig = true
	}
	r.Config = i.ConfigFile
	if err := w.plan(); err != nil {
		return nil, err
	}
	if err := w.check(); err != nil {
		return nil, err
	}
	return w, nil
}

// checkConfig makes sure that the record is of this configuration file, or of one that is not
// there any more: then it has another name now. The record belongs to who owns the data directory,
// and must not lead root to any other file.
func (i *Installer) checkConfig(r *record) error {
	if _, err := os.Lstat(r.Config); r.Config == i.ConfigFile || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return task.Errorf(task.Conflict, "the data directory %s belongs to %s", i.DataDir, r.Config).
		WithHint("name that with --config, or another data directory with --data")
}

// do does something, unless it is a dry run, and reports it.
func (w *work) do(what string, effect func() error) error {
	if w.DryRun {
		w.Report(Step{What: what, State: Planned})
		return nil
	}
	if err := w.record.save(); err != nil {
		return err
	}
	if err := effect(); err != nil {
		return err
	}
	w.Report(Step{What: what, State: Done})
	return nil
}

// secrets writes the files with secrets and the configuration that names them, and then removes
// the files that it named before. Cut short anywhere, the configuration names files that belong
// to it: a secret never comes together with the address of another.
func (w *work) secrets(context.Context) error {
	for _, file := range w.files {
		if err := w.writeSecret(file); err != nil {
			return err
		}
	}
	if err := w.writeConfig(); err != nil {
		return err
	}
	return w.removeFormerSecrets()
}

// removeFormerSecrets removes the files of ours that the configuration does not name any more:
// those that it named before, and those in whose place it names another of ours, which a run
// that was cut short has left.
func (w *work) removeFormerSecrets() error {
	var others []string
	for _, path := range w.willBe {
		if base := filepath.Base(path); w.record.hasSecret(path) {
			others = append(others, w.secretPaths(numbered.ReplaceAllString(base, ""))...)
		}
	}
	secrets, err := w.record.data.secrets()
	if err != nil {
		return err
	}
	defer secrets.close()
	for _, noted := range slices.Clone(w.record.Secrets) {
		name := filepath.Base(noted)
		path := filepath.Join(secrets.path, name)
		former := isOneOf(path, maps.Values(w.named)) || slices.Contains(others, path)
		if _, there, err := secrets.readSecret(name); err != nil || !there || !former || isOneOf(path, maps.Values(w.willBe)) {
			continue
		}
		err := w.do("secret in "+path+" removed", func() error {
			drop(&w.record.Secrets, noted)
			return errors.Join(w.record.data.removeSecret(name), w.record.save())
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// isOneOf reports whether a path leads to one of some files.
func isOneOf(path string, files iter.Seq[string]) bool {
	this, err := os.Stat(path)
	for file := range files {
		if file == path {
			return true
		}
		if other, missing := os.Stat(file); err == nil && missing == nil && os.SameFile(this, other) {
			return true
		}
	}
	return false
}

// writeSecret writes a file with a secret, unless it holds it.
func (w *work) writeSecret(file secretFile) error {
	if file.same {
		w.Report(Step{What: "secret in " + file.path, State: Unchanged})
		return nil
	}
	addOnce(&w.record.Secrets, file.path)
	return w.do("secret written to "+file.path, func() error {
		return w.record.data.writeSecret(filepath.Base(file.path), file.secret.Reveal())
	})
}

// TokenOf is the token that is configured.
func TokenOf(c config.Config, of task.Forge) redact.Secret {
	switch of {
	case task.GitHub:
		return c.GitHub.Token
	case task.GitLab:
		return c.GitLab.Token
	case task.Gitea:
		return c.Gitea.Token
	}
	return ""
}

// WebhookSecretOf is the secret of webhooks that is configured.
func WebhookSecretOf(c config.Config, of task.Forge) redact.Secret {
	switch of {
	case task.GitHub:
		return c.GitHub.WebhookSecret
	case task.GitLab:
		return c.GitLab.WebhookSecret
	case task.Gitea:
		return c.Gitea.WebhookSecret
	}
	return ""
}

// writeConfig changes keys in the configuration file.
func (w *work) writeConfig() error {
	edited, err := config.Edit(w.text, w.changes)
	if err != nil {
		return err
	}
	on, there, err := readBounded(w.ConfigFile)
	if err != nil {
		return err
	}
	if there && bytes.Equal(on, edited) {
		w.Report(Step{What: w.ConfigFile, State: Unchanged})
		return nil
	}
	changed, err := w.noteKeys(w.changes)
	if err != nil {
		return err
	}
	what := w.ConfigFile
	if len(changed) > 0 {
		what += ": " + strings.Join(changed, ", ")
	}
	return w.do(what, func() error {
		if err := WriteWhole(w.ConfigFile, edited, modeOf(w.ConfigFile, 0o644)); err != nil {
			return task.Wrap(task.Conflict, err, "cannot write "+w.ConfigFile).WithHint("let the user that runs this write to its folder, or choose another file with --config")
		}
		w.text = edited
		return nil
	})
}

// noteKeys notes what will be changed and what was there, and lists the keys.
func (w *work) noteKeys(changes config.Changes) ([]string, error) {
	var changed []string
	for _, key := range slices.Concat(slices.Sorted(maps.Keys(changes.Set)), changes.Remove) {
		value, given := changes.Set[key]
		one := config.Changes{Set: map[string]string{key: value}}
		if !given {
			one = config.Changes{Remove: []string{key}}
		}
		before, had, err := config.Written(w.text, key)
		if err != nil {
			return nil, err
		}
		after, err := config.Edit(w.text, one)
		if err != nil {
			return nil, err
		}
		if bytes.Equal(after, w.text) {
			continue
		}
		w.record.addKey(recordedKey{Key: key, Value: value, Removed: !given, Before: before, Had: had})
		if !given {
			key += " removed"
		}
		changed = append(changed, key)
		if section, _, nested := strings.Cut(key, "."); nested && !w.hasSection(section) {
			addOnce(&w.record.Sections, section)
		}
	}
	return changed, nil
}

// hasSection reports whether the configuration file has a section.
func (w *work) hasSection(name string) bool {
	_, had, err := config.Written(w.text, name)
	return err != nil || had
}

// repositories notes what was chosen, to offer it the next time.
func (w *work) repositories(context.Context) error {
	if len(w.answers.Repositories) == 0 {
		return nil
	}
	noted := slices.DeleteFunc(slices.Clone(w.record.Repositories), func(one recordedRepository) bool {
		return one.Forge == w.answers.Forge && one.Address == w.answers.URL
	})
	for _, name := range w.answers.Repositories {
		noted = append(noted, recordedRepository{w.answers.Forge, w.answers.URL, name})
	}
	if w.DryRun || slices.Equal(noted, w.record.Repositories) {
		return nil
	}
	w.record.Repositories = noted
	return w.record.save()
}

// Repositories are those that were chosen on a forge the last time.
func (i *Installer) Repositories(of task.Forge, address string) []string {
	r, err := readRecord(i.DataDir)
	if err != nil {
		return nil // Apply says so
	}
	defer r.close()
	var names []string
	for _, one := range r.Repositories {
		if one.Forge == of && one.Address == address {
			names = append(names, one.Name)
		}
	}
	return names
}

// imports puts the repository on the board.
func (w *work) imports(ctx context.Context) error {
	if w.answers.Forge != task.Board || w.answers.Import == "" || len(w.answers.Repositories) == 0 {
		return nil
	}
	name := w.answers.Repositories[0]
	what := "repository " + name + " on the board"
	if w.DryRun {
		w.Report(Step{What: what, State: Planned})
		return nil
	}
	made, err := w.Import(ctx, name, w.answers.Import)
	if err != nil {
		return err
	}
	state := Unchanged
	if made {
		state = Done
	}
	w.Report(Step{What: what, State: state})
	return nil
}
