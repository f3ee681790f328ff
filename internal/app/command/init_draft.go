package command

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"strconv"

	"github.com/toryo-dev/toryo/internal/app/connect"
)

// draft is what a person has answered who was interrupted, by flag: the next toryo init offers
// it as the default. Secrets are not in it. It lies in the folder for caches of the user, apart
// from the installation, in which nothing is written before the last question.
type draft map[string]string

// maxDraft is far beyond any draft.
const maxDraft = 64 << 10

// draftFile is where the draft for a configuration is; empty for nowhere.
func (o *setup) draftFile(at place) string {
	if o.cache == "" || o.terminal == nil || o.yes {
		return ""
	}
	sum := sha256.Sum256([]byte(at.file))
	return filepath.Join(o.cache, "toryo", "init-"+hex.EncodeToString(sum[:8])+".json")
}

// readDraft reads what was answered before. One that cannot be read is as good as none.
func readDraft(file string) draft {
	found := draft{}
	if file == "" {
		return found
	}
	if info, err := os.Stat(file); err != nil || info.Size() > maxDraft {
		return found
	}
	content, err := os.ReadFile(file)
	if err != nil || json.Unmarshal(content, &found) != nil {
		return draft{}
	}
	return found
}

// keep notes an answer. A number in a list may mean something else the next time.
func (d draft) keep(q initQuestion, answer string) {
	if _, err := strconv.Atoi(answer); err == nil || q.hidden || q.flag == "yes" || d == nil {
		return
	}
	if at, err := url.Parse(answer); err != nil || at.User != nil { // a password may be in it
		return
	}
	d[q.flag] = answer
}

// save writes the draft down. That it cannot be is no reason to say more than that all is as
// it was.
func (d draft) save(file string, before draft) {
	all := maps.Clone(before)
	maps.Copy(all, d)
	content, err := json.MarshalIndent(all, "", "  ")
	if file == "" || len(d) == 0 || err != nil || os.MkdirAll(filepath.Dir(file), 0o700) != nil {
		return
	}
	_ = connect.WriteWhole(file, content, 0o600)
}

// removeDraft forgets the answers once they are used.
func removeDraft(file string) {
	if file != "" {
		_ = os.Remove(file) // none may be there
	}
}
