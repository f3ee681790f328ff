package sandboxtest

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/workdir"
)

// testPlaces: the data folder may be anywhere on the host, also where the adapter has fixed
// paths of its own, and may have any name.
func testPlaces(t *testing.T, h Harness) {
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(t.TempDir(), link); err != nil {
		t.Fatal(err)
	}
	const odd = `two  words, 作業用 データ a:b,c=d'e"f\g%h$i`
	places := map[string]string{
		"odd names": filepath.Join(t.TempDir(), odd, strings.Repeat("l", 100), strings.Repeat("m", 100)),
		"a link":    filepath.Join(link, "below"),
	}
	for _, parent := range []string{"/mnt", "/workspace", "/run/toryo", "/home/toryo"} {
		if at, made := madeIn(t, parent); made {
			places["below "+parent] = at
		}
	}
	for name, at := range places {
		t.Run(name, func(t *testing.T) { testPlace(t, h, at) })
	}
}

// madeIn makes a folder below the parent, where this user may. What was made goes with the
// test.
func madeIn(t *testing.T, parent string) (string, bool) {
	t.Helper()
	if _, err := os.Stat(parent); os.IsNotExist(err) {
		if os.Mkdir(parent, 0o755) != nil {
			return "", false
		}
		t.Cleanup(func() { _ = os.Remove(parent) }) // not when the suite of another engine is in it
	}
	at, err := os.MkdirTemp(parent, "place") //nolint:usetesting // it has to be there
	if err != nil {
		return "", false
	}
	t.Cleanup(func() {
		if err := workdir.Remove(at); err != nil {
			t.Error(err)
		}
	})
	return at, true
}

func testPlace(t *testing.T, h Harness, at string) {
	t.Helper()
	engineDir, workspace := filepath.Join(at, "engine"), filepath.Join(at, "work")
	for _, dir := range []string{engineDir, workspace} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(workspace, "given"), []byte("by the host"), 0o600); err != nil {
		t.Fatal(err)
	}
	engine := h.New(t, engineDir, NoGate)
	spec := sandbox.Spec{Owner: owner, Image: h.Image, Workspace: workspace, Limits: limits}
	box := startWith(t, engine, spec)
	wantOutput(t, box, "cat given; echo made >made; echo kept >~/kept; echo x >/tmp/x 2>/dev/null || echo x >$TMPDIR/x", "by the host")
	if made, err := os.ReadFile(filepath.Join(workspace, "made")); err != nil || string(made) != "made\n" {
		t.Errorf("the host reads %q: %v", made, err)
	}
	if !h.Weak && strings.Contains(at, " ") {
		testSnapshotAt(t, engine, spec, box)
	}
}

// testSnapshotAt keeps a sandbox and starts another from what was kept.
func testSnapshotAt(t *testing.T, engine sandbox.Engine, spec sandbox.Spec, box sandbox.Sandbox) {
	t.Helper()
	const key = "suite-places"
	if _, err := box.Snapshot(t.Context(), key, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := engine.RemoveSnapshot(context.WithoutCancel(t.Context()), key); err != nil {
			t.Error(err)
		}
	})
	spec.Snapshot = key
	wantOutput(t, startWith(t, engine, spec), "cat ~/kept", "kept\n")
}
