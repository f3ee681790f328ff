package local_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/sandbox/local"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/workdir"
)

const (
	snapshotKey = "test-0123456789abcdef"
	most        = 1 << 20 // bytes of a sandbox
)

func fill(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		at := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func content(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// What is downloaded and installed already need not be kept.
func TestSnapshotsLeaveOutCaches(t *testing.T) {
	t.Parallel()
	home, workspace, again := t.TempDir(), t.TempDir(), t.TempDir()
	fill(t, home, map[string]string{".npm/_cacache/x": "big", ".cache/pip/y": "big", ".cache/go-build/z": "kept", ".npm/other": "kept"})
	store := local.SnapshotStore{Dir: t.TempDir()}
	if _, err := store.Put(t.Context(), snapshotKey, local.Contents{Home: home, Workspace: workspace, Most: most}); err != nil {
		t.Fatal(err)
	}
	if err := store.Get(t.Context(), snapshotKey, again, t.TempDir()); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{".npm/_cacache/x": false, ".cache/pip/y": false, ".cache/go-build/z": true, ".npm/other": true} {
		if _, err := os.Stat(filepath.Join(again, name)); (err == nil) != want {
			t.Errorf("%s: %v, want it there: %v", name, err, want)
		}
	}
}

// The first sandbox takes the copy that is ready, the others make their own, and
// none sees what another does to it.
func TestSnapshotsAreEachSandboxsOwn(t *testing.T) {
	t.Parallel()
	home, workspace, store := t.TempDir(), t.TempDir(), local.SnapshotStore{Dir: t.TempDir()}
	fill(t, home, map[string]string{"cache": "c"})
	fill(t, workspace, map[string]string{"src/main": "one", "src/made/f": "made", "venv/bin/python": "p"})
	if _, err := store.Put(t.Context(), snapshotKey, local.Contents{Home: home, Workspace: workspace, Before: workdir.Listing{".": true, "src": true, "src/main": true}, Most: most}); err != nil {
		t.Fatal(err)
	}
	const sandboxes = 4
	starts := func() {
		var homes, projects [sandboxes]string
		var all sync.WaitGroup
		for i := range sandboxes {
			homes[i], projects[i] = t.TempDir(), t.TempDir()
			fill(t, projects[i], map[string]string{"src/main": "two"})
			all.Go(func() {
				if err := store.Get(t.Context(), snapshotKey, homes[i], projects[i]); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		for i, project := range projects {
			for name, want := range map[string]string{"src/main": "two", "src/made/f": "made", "venv/bin/python": "p"} {
				if got := content(t, filepath.Join(project, filepath.FromSlash(name))); got != want {
					t.Errorf("%s is %q, want %q", name, got, want)
				}
			}
			if got := content(t, filepath.Join(homes[i], "cache")); got != "c" {
				t.Errorf("the home has %q", got)
			}
			fill(t, project, map[string]string{"venv/bin/python": "spoilt"})
			fill(t, homes[i], map[string]string{"cache": "spoilt"})
		}
	}
	starts()
	if err := store.Prepare(t.Context(), snapshotKey); err != nil {
		t.Fatal(err)
	}
	starts()
	left, err := os.ReadDir(store.Dir)
	if err != nil || len(left) != 1 {
		t.Errorf("in the store are %v, %v", left, err)
	}
}

// A link in a project does not lead the restored files out of it.
func TestSnapshotsDoNotFollowLinks(t *testing.T) {
	t.Parallel()
	workspace, store := t.TempDir(), local.SnapshotStore{Dir: t.TempDir()}
	fill(t, workspace, map[string]string{"venv/bin/python": "p"})
	if _, err := store.Put(t.Context(), snapshotKey, local.Contents{Workspace: workspace, Most: most}); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the copy that is ready, and the snapshot itself
		project, outside := t.TempDir(), t.TempDir()
		if err := os.Symlink(outside, filepath.Join(project, "venv")); err != nil {
			t.Fatal(err)
		}
		if err := store.Get(t.Context(), snapshotKey, "", project); err != nil {
			t.Fatal(err)
		}
		if found, err := os.ReadDir(outside); err != nil || len(found) != 0 {
			t.Errorf("outside are %v, %v", found, err)
		}
	}
}

func TestSnapshotsRemoveWhatACrashLeft(t *testing.T) {
	t.Parallel()
	store := local.SnapshotStore{Dir: t.TempDir()}
	fill(t, store.Dir, map[string]string{".new-1/home/x": "", ".taken-1/home/x": "", ".new-2/home/x": ""})
	old := time.Now().AddDate(0, 0, -2)
	for _, name := range []string{".new-1", ".taken-1"} {
		if err := os.Chtimes(filepath.Join(store.Dir, name), old, old); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := store.Put(t.Context(), snapshotKey, local.Contents{Workspace: t.TempDir(), Most: most}); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(store.Dir)
	if err != nil || len(left) != 2 || left[0].Name() != ".new-2" {
		t.Errorf("in the store are %v, %v", left, err)
	}
}

// holes makes files that hardly take any of the disk until they are copied.
func holes(t *testing.T, dir string, count int, size int64) {
	t.Helper()
	for i := range count {
		fill(t, dir, map[string]string{fmt.Sprint("holes", i): ""})
		if err := os.Truncate(filepath.Join(dir, fmt.Sprint("holes", i)), size); err != nil {
			t.Fatal(err)
		}
	}
}

// What a sandbox may not take of the disk is not copied: files with holes, of which the free space of the
// disk says nothing, and many names of one file.
func TestSnapshotsOfTooMuchAreRefused(t *testing.T) {
	t.Parallel()
	for what, make := range map[string]func(home, workspace string){
		"a home with holes":      func(home, _ string) { holes(t, home, 4, most/2) },
		"a workspace with holes": func(_, workspace string) { holes(t, workspace, 4, most/2) },
		"both together":          func(home, workspace string) { holes(t, home, 1, most-1); holes(t, workspace, 1, most-1) },
		"names of one file": func(home, _ string) {
			fill(t, home, map[string]string{"one": strings.Repeat("x", most/4)})
			for i := range 8 {
				if err := os.Link(filepath.Join(home, "one"), filepath.Join(home, fmt.Sprint(i))); err != nil {
					t.Fatal(err)
				}
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			home, workspace, store := t.TempDir(), t.TempDir(), local.SnapshotStore{Dir: filepath.Join(t.TempDir(), "store")}
			make(home, workspace)
			_, err := store.Put(t.Context(), snapshotKey, local.Contents{Home: home, Workspace: workspace, Most: most})
			if task.CodeOf(err) != task.TooLarge {
				t.Errorf("it gave %v", err)
			}
			if written := workdir.TreeSize(store.Dir); written > 0 || store.Has(snapshotKey) {
				t.Errorf("%d bytes were written", written)
			}
		})
	}
	store := local.SnapshotStore{Dir: t.TempDir()}
	if _, err := store.Put(t.Context(), snapshotKey, local.Contents{Workspace: t.TempDir(), Elsewhere: most, Most: most}); task.CodeOf(err) != task.TooLarge {
		t.Errorf("with as much elsewhere it gave %v", err)
	}
}

func TestASnapshotIsNotMadeWhenTheContextEnds(t *testing.T) {
	t.Parallel()
	home, store := t.TempDir(), local.SnapshotStore{Dir: t.TempDir()}
	fill(t, home, map[string]string{"file": "content"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := store.Put(ctx, snapshotKey, local.Contents{Home: home, Workspace: t.TempDir(), Most: most}); !errors.Is(err, context.Canceled) {
		t.Errorf("it gave %v", err)
	}
	if left, err := os.ReadDir(store.Dir); err != nil || len(left) != 0 {
		t.Errorf("in the store are %v, %v", left, err)
	}
}

// calls is a context that does something when it is asked whether it has ended.
type calls struct {
	context.Context //nolint:containedctx // it is one

	do func()
}

func (c calls) Err() error {
	c.do()
	return nil
}

// What starts from a snapshot that is removed meanwhile does not take what it has got for the whole.
func TestASnapshotIsNotRestoredInPart(t *testing.T) {
	t.Parallel()
	workspace, store := t.TempDir(), local.SnapshotStore{Dir: t.TempDir()}
	fill(t, workspace, map[string]string{"file": "content"})
	if _, err := store.Put(t.Context(), snapshotKey, local.Contents{Workspace: workspace, Most: most}); err != nil {
		t.Fatal(err)
	}
	if err := store.Get(t.Context(), snapshotKey, "", t.TempDir()); err != nil { // takes the copy that is ready
		t.Fatal(err)
	}
	var once sync.Once
	removes := calls{t.Context(), func() {
		once.Do(func() {
			if err := store.Remove(snapshotKey); err != nil {
				t.Error(err)
			}
		})
	}}
	if err := store.Get(removes, snapshotKey, "", t.TempDir()); task.CodeOf(err) != task.NotFound {
		t.Errorf("it gave %v", err)
	}
}

// What a removal that was cut off has left is no snapshot: to prune it would remove the one that was made since.
func TestASnapshotThatIsBeingRemoved(t *testing.T) {
	t.Parallel()
	store := local.SnapshotStore{Dir: t.TempDir()}
	put := func() {
		t.Helper()
		if _, err := store.Put(t.Context(), snapshotKey, local.Contents{Workspace: t.TempDir(), Most: most}); err != nil {
			t.Fatal(err)
		}
	}
	put()
	if err := os.Rename(filepath.Join(store.Dir, snapshotKey), filepath.Join(store.Dir, ".old-x")); err != nil {
		t.Fatal(err)
	}
	put()
	if all, err := store.All(); err != nil || len(all) != 1 {
		t.Errorf("there are %+v, %v", all, err)
	}
}
