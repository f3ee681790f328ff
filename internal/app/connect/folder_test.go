package connect_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toryo-dev/toryo/internal/app/connect"
	"github.com/toryo-dev/toryo/internal/task"
)

// What is in the data directory belongs to the user of the server. Root runs toryo init, and must
// not be led to other files of the machine by it.

// victim is a file elsewhere on the machine, in an open folder.
func victim(t *testing.T) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "etc")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(folder, "shadow")
	if err := os.WriteFile(file, []byte("root:x\n"), 0o640); err != nil {
		t.Fatal(err)
	}
	return file
}

// wantUntouched makes sure that a victim and its folder are as they were.
func wantUntouched(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil || string(text) != "root:x\n" {
		t.Errorf("the file elsewhere is %q, %v", text, err)
	}
	entries, err := os.ReadDir(filepath.Dir(file))
	if err != nil || len(entries) != 1 {
		t.Errorf("the folder elsewhere has %v, %v", entries, err)
	}
	for path, want := range map[string]os.FileMode{file: 0o640, filepath.Dir(file): 0o755} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("the mode of %s has changed: %v, %v", path, info, err)
		}
	}
}

func (h *installation) data(names ...string) string {
	return filepath.Join(append([]string{h.folder, "data"}, names...)...)
}

// editRecord changes what the record says.
func (h *installation) editRecord(edit func(map[string]any)) {
	h.Helper()
	said := map[string]any{}
	text, err := os.ReadFile(h.data(connect.RecordFile))
	if err == nil {
		err = json.Unmarshal(text, &said)
	}
	if err != nil {
		h.Fatal(err)
	}
	edit(said)
	if text, err = json.Marshal(said); err == nil {
		err = os.WriteFile(h.data(connect.RecordFile), text, 0o600)
	}
	if err != nil {
		h.Fatal(err)
	}
}

// link puts a link in the place of what is there.
func (h *installation) link(target, path string) {
	h.Helper()
	if err := os.RemoveAll(path); err != nil {
		h.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		h.Fatal(err)
	}
	if err := os.Symlink(target, path); err != nil {
		h.Fatal(err)
	}
}

func TestRemoveRemovesNoFileElsewhere(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	h.apply()
	file := victim(t)
	h.link(file, h.data("secrets", "linked"))
	h.editRecord(func(said map[string]any) {
		said["secrets"] = append(said["secrets"].([]any), file, "linked", "..", ".", "/")
	})
	if err := h.installer().Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantUntouched(t, file)
	h.wantStep("secret "+h.data("secrets", "linked"), connect.LeftOut, "link")
	if got := h.secrets(); !cmp.Equal(got, []string{"linked"}) {
		t.Errorf("left are %v", got)
	}
}

// A folder for secrets that is a link is refused before anything is written, also one that leads to
// a folder in the data directory.
func TestTheFolderOfSecretsIsALink(t *testing.T) {
	t.Parallel()
	for name, remove := range map[string]bool{"connecting": false, "removing": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newInstallation(t)
			if remove {
				h.apply()
			}
			file := victim(t)
			inside := h.data("other")
			if err := os.MkdirAll(inside, 0o700); err != nil {
				t.Fatal(err)
			}
			written := len(h.forge.Written())
			for _, target := range []string{filepath.Dir(file), "other"} {
				h.link(target, h.data("secrets"))
				run := func() error { return h.installer().Apply(t.Context(), h.answers()) }
				if remove {
					run = func() error { return h.installer().Remove(t.Context()) }
				}
				if err := run(); task.CodeOf(err) != task.DataDir || !strings.Contains(err.Error(), h.data("secrets")+" is a link") {
					t.Errorf("the error is %v", err)
				}
				wantUntouched(t, file)
				if left, err := os.ReadDir(inside); err != nil || len(left) > 0 {
					t.Errorf("written were %v, %v", left, err)
				}
			}
			if _, err := os.Stat(h.file()); (err == nil) != remove || len(h.forge.Written()) > written {
				t.Errorf("the configuration: %v; on the forge: %v", err, h.forge.Written()[written:])
			}
		})
	}
}

// A link that is put in the place of the folder meanwhile is not followed either.
func TestTheFolderOfSecretsBecomesALink(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	file := victim(t)
	installer := h.installer()
	report := installer.Report
	installer.Report = func(step connect.Step) {
		if report(step); len(h.steps) == 1 {
			h.link(filepath.Dir(file), h.data("secrets"))
		}
	}
	if err := installer.Apply(t.Context(), h.answers()); task.CodeOf(err) != task.DataDir {
		t.Errorf("the error is %v", err)
	}
	wantUntouched(t, file)
}

// A link with the name of a secret is not written through, and not taken for ours, whatever the
// record says.
func TestASecretIsALink(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	h.apply()
	file := victim(t)
	for _, name := range []string{"gitea-token-2", "gitea-webhook-secret-2"} {
		h.link(file, h.data("secrets", name))
	}
	h.editRecord(func(said map[string]any) {
		said["secrets"] = append(said["secrets"].([]any), h.data("secrets", "gitea-token-2"), h.data("secrets", "gitea-webhook-secret-2"))
	})
	h.forge.Token = otherToken
	installer := h.installer()
	installer.Random = strings.NewReader(strings.Repeat("another secret, ", 100))
	if err := installer.Apply(t.Context(), h.moved()); err != nil {
		t.Fatal(err)
	}
	wantUntouched(t, file)
	if c := h.load().Gitea; c.Token != otherToken {
		t.Errorf("the token is %s", c.Token.Reveal())
	}
	// One that is put there meanwhile is replaced, and not what it leads to.
	h = newInstallation(t)
	installer = h.installer()
	report := installer.Report
	installer.Report = func(step connect.Step) {
		if report(step); len(h.steps) == 1 {
			h.link(file, h.data("secrets", "llm-api-key"))
		}
	}
	if err := installer.Apply(t.Context(), h.answers()); err != nil {
		t.Fatal(err)
	}
	wantUntouched(t, file)
	if c := h.load(); c.LLM.APIKey != "k3y-k3y-k3y" {
		t.Errorf("the key is %s", c.LLM.APIKey.Reveal())
	}
}

// The record leads to no other configuration than the one that is in use.
func TestRemoveEditsNoOtherFile(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	h.apply()
	file := victim(t)
	h.editRecord(func(said map[string]any) {
		said["config"] = file
		said["keys"] = []any{map[string]any{"key": "root", "value": "x", "had": true, "before": "y"}}
	})
	before, written := h.content(), len(h.forge.Written())
	if err := h.installer().Remove(t.Context()); task.CodeOf(err) != task.Conflict || !strings.Contains(err.Error(), file) {
		t.Errorf("the error is %v", err)
	}
	wantUntouched(t, file)
	if diff := cmp.Diff(before, h.content()); diff != "" || len(h.forge.Written()) > written {
		t.Errorf("changed: %s, %v", diff, h.forge.Written()[written:])
	}
}

// A record that is a link is not read, nor is one that is larger than any.
func TestRecordsThatAreNotRead(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	h.apply()
	text, err := os.ReadFile(h.data(connect.RecordFile))
	if err != nil {
		t.Fatal(err)
	}
	h.write("data/"+connect.RecordFile, string(text)+strings.Repeat(" ", 1<<20))
	if err := h.installer().Remove(t.Context()); err == nil || !strings.Contains(err.Error(), "larger") {
		t.Errorf("the error is %v", err)
	}
	h.write("record", string(text))
	for _, target := range []string{"../record", "other.json"} {
		h.write("data/other.json", string(text))
		h.link(target, h.data(connect.RecordFile))
		if err := h.installer().Remove(t.Context()); task.CodeOf(err) != task.DataDir || !strings.Contains(err.Error(), "link") {
			t.Errorf("the error is %v", err)
		}
	}
}
