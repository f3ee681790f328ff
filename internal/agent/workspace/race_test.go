package workspace

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/workdir"
)

// What is a file when it is looked at may be a link when it is opened: something
// inside may swap it just then. The content of what it leads to is not read.
func TestALinkIsNotReadThrough(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "secret.txt"), []byte("the host's"), 0o600); err != nil {
		t.Fatal(err)
	}
	inside := t.TempDir()
	for name, target := range map[string]string{"file": filepath.Join(outside, "secret.txt"), "dir": outside, "up": "../" + filepath.Base(outside)} {
		if err := os.Symlink(target, filepath.Join(inside, name)); err != nil {
			t.Fatal(err)
		}
	}
	root, err := workdir.Open(inside)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	w := &Workspace{files: inside, root: root, seen: map[string]sight{}, now: time.Now}
	w.options.MaxFile = 1 << 20
	w.options.Log = slog.New(slog.DiscardHandler)
	for _, name := range []string{"file", "dir/secret.txt", "up/secret.txt"} {
		if opened, err := w.openFile(name); err != nil || opened != nil {
			t.Errorf("%s was opened: %v", name, err)
		}
		if seen, there, err := w.read(name); err != nil || there {
			t.Errorf("%s: %+v, %v", name, seen, err)
		}
		if err := makeWay(w.root, name); err != nil { // it removes the link and not what is behind it
			t.Error(err)
		}
	}
	if text, _ := os.ReadFile(filepath.Join(outside, "secret.txt")); string(text) != "the host's" {
		t.Errorf("the file outside has %q", text)
	}
}
