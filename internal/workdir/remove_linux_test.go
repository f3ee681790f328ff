package workdir_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

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

// What is made beside the folders that are removed does not count them as new, however much is in these.
func TestARemovalGoesOnWhenAFileWasMade(t *testing.T) {
	t.Parallel()
	const folders, files = 500, 40
	dir := filepath.Join(t.TempDir(), "top")
	for i := range folders {
		at := filepath.Join(dir, fmt.Sprint(i))
		if err := os.MkdirAll(at, 0o700); err != nil {
			t.Fatal(err)
		}
		for j := range files {
			touch(t, at, fmt.Sprint(j))
		}
	}
	var maker sync.WaitGroup
	maker.Go(func() {
		for i := range folders { // fewer than would end the removal
			_ = os.WriteFile(filepath.Join(dir, fmt.Sprint("file", i)), nil, 0o600) // the folder may be gone
		}
	})
	err := workdir.Remove(dir)
	maker.Wait()
	if err := errors.Join(err, workdir.Remove(dir)); err != nil {
		t.Error(err)
	}
}

// makeFolders makes the same folders with a file in each again and again, until it is told to stop. That takes
// two calls of the system for each, and many more to remove it. It makes the folder above too, when that is gone.
func makeFolders(stop <-chan struct{}, begun func(), name, at string) {
	folder := -1
	for i := 0; ; i++ {
		select {
		case <-stop:
			_ = unix.Close(folder)
			return
		default:
		}
		if i == namesOfOne {
			begun()
		}
		made := fmt.Sprint(name, i%namesOfOne)
		err := unix.Mkdirat(folder, made, 0o700)
		_ = unix.Mknodat(folder, made+"/file", unix.S_IFREG|0o600, 0)
		if err != nil && !errors.Is(err, unix.EEXIST) {
			_ = unix.Close(folder)
			_ = os.MkdirAll(at, 0o700)
			folder, _ = unix.Open(at, unix.O_DIRECTORY, 0) // where it went again, the next round does this once more
		}
	}
}

const namesOfOne = 100

// Programs that go on making files do not hold a removal, at whatever depth they do.
//
//nolint:paralleltest // the makers keep the processors busy
func TestARemovalEndsWhileFilesAreMade(t *testing.T) {
	const makers = 8
	for what, below := range map[string]string{"at the top": ".", "below": "below", "deep": strings.Repeat("d/", 40)} {
		t.Run(what, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "top")
			if err := os.MkdirAll(filepath.Join(dir, below), 0o700); err != nil {
				t.Fatal(err)
			}
			stop, removed := make(chan struct{}), make(chan struct{})
			var all, begun sync.WaitGroup
			begun.Add(makers)
			for i := range makers {
				all.Go(func() { makeFolders(stop, begun.Done, fmt.Sprint(i, "-"), filepath.Join(dir, below)) })
			}
			begun.Wait()
			go func() {
				defer close(removed)
				_ = workdir.Remove(dir) // that it returns is all that counts
			}()
			select {
			case <-removed:
			case <-time.After(2 * time.Minute):
				t.Error("it goes on for as long as files are made")
			}
			close(stop)
			all.Wait()
			<-removed
			if err := workdir.Remove(dir); err != nil {
				t.Error(err)
			}
		})
	}
}
