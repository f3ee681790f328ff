package workdir_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toryo-dev/toryo/internal/workdir"
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

func TestCopyTreeKeepsModesTimesAndLinks(t *testing.T) {
	t.Parallel()
	from, to, outside := t.TempDir(), t.TempDir(), t.TempDir()
	fill(t, outside, map[string]string{"secret": "s"})
	fill(t, from, map[string]string{"a/b/c/run": "#!/bin/sh\n", "closed/f": "f"})
	old := time.Unix(1_000_000_000, 0)
	for _, err := range []error{
		os.Chmod(filepath.Join(from, "a", "b", "c", "run"), 0o755), os.Chtimes(filepath.Join(from, "a", "b", "c", "run"), old, old),
		os.Symlink(outside, filepath.Join(from, "a", "out")), os.Symlink("nowhere", filepath.Join(from, "dangling")),
		syscall.Mkfifo(filepath.Join(from, "a", "pipe"), 0o644), os.Chmod(filepath.Join(from, "closed"), 0o555),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	bytes, err := workdir.CopyTree(t.Context(), from, to, workdir.CopyOptions{})
	if err != nil || bytes != int64(len("#!/bin/sh\n")+1) {
		t.Fatalf("copied %d bytes, %v", bytes, err)
	}
	t.Cleanup(func() {
		_ = workdir.Remove(filepath.Join(to, "closed"))
		_ = workdir.Remove(filepath.Join(from, "closed"))
	})
	info, err := os.Stat(filepath.Join(to, "a", "b", "c", "run"))
	if err != nil || info.Mode().Perm() != 0o755 || !info.ModTime().Equal(old) {
		t.Errorf("the file is %v, %v, %v", info.Mode(), info.ModTime(), err)
	}
	if closed, err := os.Stat(filepath.Join(to, "closed")); err != nil || closed.Mode().Perm() != 0o555 {
		t.Errorf("the closed folder is %v, %v", closed.Mode(), err)
	}
	for name, points := range map[string]string{"a/out": outside, "dangling": "nowhere"} {
		if got, err := os.Readlink(filepath.Join(to, name)); err != nil || got != points {
			t.Errorf("%s points to %q, %v", name, got, err)
		}
	}
	if _, err := os.Lstat(filepath.Join(to, "a", "pipe")); !os.IsNotExist(err) {
		t.Errorf("the pipe was copied: %v", err)
	}
}

func TestCopyTreeLeavesWhatIsThere(t *testing.T) {
	t.Parallel()
	from := t.TempDir()
	fill(t, from, map[string]string{"src/main": "new", "src/made/f": "made", "file/x": "x", "link/y": "y", "deep": "file"})
	for _, keep := range []bool{true, false} {
		to, elsewhere := t.TempDir(), t.TempDir()
		fill(t, to, map[string]string{"src/main": "old", "file": "a file", "deep/z": "z"})
		if err := os.Symlink(elsewhere, filepath.Join(to, "link")); err != nil {
			t.Fatal(err)
		}
		if _, err := workdir.CopyTree(t.Context(), from, to, workdir.CopyOptions{KeepExisting: keep}); err != nil {
			t.Fatal(err)
		}
		if left, err := os.ReadDir(elsewhere); err != nil || len(left) != 0 {
			t.Errorf("a link was followed: %v, %v", left, err)
		}
		if got := content(t, filepath.Join(to, "src", "made", "f")); got != "made" {
			t.Errorf("what is new is %q", got)
		}
		if keep {
			for name, want := range map[string]string{"src/main": "old", "file": "a file", "deep/z": "z"} {
				if got := content(t, filepath.Join(to, name)); got != want {
					t.Errorf("%s became %q, though it was there", name, got)
				}
			}
			continue
		}
		for name, want := range map[string]string{"src/main": "new", "file/x": "x", "link/y": "y", "deep": "file"} {
			if got := content(t, filepath.Join(to, name)); got != want {
				t.Errorf("%s is %q, want %q", name, got, want)
			}
		}
	}
}

func TestCopyTreeCopiesManyFoldersAndSkips(t *testing.T) {
	t.Parallel()
	from, to := t.TempDir(), t.TempDir()
	files := map[string]string{}
	for i := range 300 {
		files[fmt.Sprintf("m/%d/%d/%d/f", i%7, i%13, i)] = fmt.Sprint(i)
	}
	fill(t, from, files)
	fill(t, from, map[string]string{"left/out": "", "m/left/in": ""})
	if _, err := workdir.CopyTree(t.Context(), from, to, workdir.CopyOptions{Skip: func(name string) bool { return name == "left" }}); err != nil {
		t.Fatal(err)
	}
	files["m/left/in"] = ""
	got := map[string]string{}
	listed, err := workdir.List(to)
	if err != nil {
		t.Fatal(err)
	}
	for name := range listed {
		if info, err := os.Stat(filepath.Join(to, name)); err == nil && info.Mode().IsRegular() {
			got[name] = content(t, filepath.Join(to, name))
		}
	}
	if diff := cmp.Diff(files, got); diff != "" {
		t.Errorf("copied (-want +got):\n%s", diff)
	}
}

// A copy stops where there is no room left for it, whatever holes the files have, and keeps to the room that
// several copies share.
func TestCopyTreeKeepsToItsRoom(t *testing.T) {
	t.Parallel()
	const files, size = 4, 1 << 20
	from := t.TempDir()
	for i := range files {
		sparse := filepath.Join(from, fmt.Sprint(i))
		if err := errors.Join(os.WriteFile(sparse, nil, 0o600), os.Truncate(sparse, size)); err != nil {
			t.Fatal(err)
		}
	}
	for bytes, want := range map[int64]error{0: workdir.ErrNoRoom, files*size - 1: workdir.ErrNoRoom, files * size: nil} {
		to := t.TempDir()
		room := workdir.NewRoom(bytes)
		if _, err := workdir.CopyTree(t.Context(), from, to, workdir.CopyOptions{Room: room}); !errors.Is(err, want) {
			t.Errorf("with room for %d bytes it gave %v", bytes, err)
		}
		if written := workdir.TreeSize(to); written > bytes+workdir.MinSize { // and the folder itself
			t.Errorf("with room for %d bytes it wrote %d", bytes, written)
		}
		if want == nil {
			if _, err := workdir.CopyTree(t.Context(), from, t.TempDir(), workdir.CopyOptions{Room: room}); !errors.Is(err, workdir.ErrNoRoom) {
				t.Errorf("a second copy gave %v", err)
			}
		}
	}
}

// ended is a context that ends after it was asked so many times.
type ended struct {
	context.Context //nolint:containedctx // it is one

	asked *atomic.Int64
}

func (e ended) Err() error {
	if e.asked.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

// A copy stops also within a large file when the context ends.
func TestCopyTreeStopsWithTheContext(t *testing.T) {
	t.Parallel()
	const size = 1 << 30 // of holes, of which hardly any is to be written
	from, to := t.TempDir(), t.TempDir()
	large := filepath.Join(from, "large")
	if err := errors.Join(os.WriteFile(large, nil, 0o600), os.Truncate(large, size)); err != nil {
		t.Fatal(err)
	}
	ctx := ended{t.Context(), &atomic.Int64{}}
	ctx.asked.Store(3)
	if _, err := workdir.CopyTree(ctx, from, to, workdir.CopyOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("it gave %v", err)
	}
	if written := workdir.TreeSize(to); written > size/8 {
		t.Errorf("%d bytes were written", written)
	}
}

func BenchmarkCopyTree(b *testing.B) {
	from := b.TempDir()
	for i := range 2000 {
		at := filepath.Join(from, fmt.Sprintf("node_modules/p%d/lib/inner/f%d", i%60, i))
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(at, make([]byte, 3000), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		if _, err := workdir.CopyTree(b.Context(), from, b.TempDir(), workdir.CopyOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}

func TestWhatWasAddedIsNamedAndRemoved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fill(t, dir, map[string]string{"src/a.py": "a"})
	before, err := workdir.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	fill(t, dir, map[string]string{"src/__pycache__/a.pyc": "x", "build.log": "x", ".venv/bin/python": "x"})
	added, err := workdir.Added(dir, before)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{".venv", "build.log", "src/__pycache__"}, added); diff != "" {
		t.Error(diff)
	}
	if err := workdir.RemoveAdded(dir, before); err != nil {
		t.Fatal(err)
	}
	after, err := workdir.List(dir)
	if diff := cmp.Diff(before, after); err != nil || diff != "" {
		t.Error(diff, err)
	}
}
