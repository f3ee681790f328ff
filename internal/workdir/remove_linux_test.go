package workdir_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/workdir"
)

// wideTree makes folders deeper than are removed at once, each with siblings, files and a folder that may
// not be entered.
func wideTree(t *testing.T, dir string) {
	t.Helper()
	var closed []string
	for branch := range 3 {
		for depth := range 90 {
			at := filepath.Join(dir, strings.Repeat(fmt.Sprintf("b%d/", branch), depth+1))
			for _, name := range []string{"sibling/deep", "closed/deep"} {
				if err := os.MkdirAll(filepath.Join(at, name), 0o700); err != nil {
					t.Fatal(err)
				}
				touch(t, filepath.Join(at, name), "file")
			}
			closed = append(closed, filepath.Join(at, "closed", "deep"), filepath.Join(at, "closed"))
			for i := range 3 {
				touch(t, at, fmt.Sprint("file", i))
			}
		}
	}
	for i := range 500 {
		touch(t, dir, fmt.Sprint("file", i))
	}
	for _, name := range closed {
		if err := os.Chmod(name, 0); err != nil {
			t.Fatal(err)
		}
	}
}

//nolint:paralleltest // the number of processors is that of the process
func TestATreeIsRemovedByAnyNumberOfProcessors(t *testing.T) {
	for _, processors := range []int{1, 2, 8} {
		dir := filepath.Join(t.TempDir(), "top")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		wideTree(t, dir)
		before := runtime.GOMAXPROCS(processors)
		err := workdir.Remove(dir)
		runtime.GOMAXPROCS(before)
		if err != nil {
			t.Errorf("%d processors: %v", processors, err)
		}
		if _, err := os.Lstat(dir); !os.IsNotExist(err) {
			t.Errorf("%d processors: it is still there: %v", processors, err)
		}
	}
}

// A program that goes on making files does not hold a removal.
func TestARemovalEndsWhileFilesAreMade(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "top")
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for i := range 200_000 { // should the removal be slower, it ends all the same
			select {
			case <-stop:
				return
			default:
			}
			for _, at := range []string{dir, filepath.Join(dir, "below")} {
				_ = os.MkdirAll(at, 0o700) // it is removed meanwhile
				_ = os.WriteFile(filepath.Join(at, fmt.Sprint(i)), nil, 0o600)
			}
		}
	}()
	for range 20 {
		_ = workdir.Remove(dir) // that it returns is all that counts
	}
	close(stop)
	<-stopped
	if err := workdir.Remove(dir); err != nil {
		t.Error(err)
	}
}
