package workdir_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
	"github.com/toryo-dev/toryo/internal/workdir"
)

// hostile is a folder as code in a sandbox may leave it.
func hostile(t *testing.T) (string, *workdir.Dir) {
	t.Helper()
	dir := t.TempDir()
	outside := filepath.Join(t.TempDir(), "secret")
	if err := errors.Join(
		os.WriteFile(outside, []byte("secret"), 0o600),
		os.WriteFile(filepath.Join(dir, "plain"), []byte("content"), 0o600),
		syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600),
		os.Symlink("pipe", filepath.Join(dir, "link-to-pipe")),
		os.Symlink(outside, filepath.Join(dir, "out")),
		os.Symlink("plain", filepath.Join(dir, "in")),
		os.Symlink("/dev/zero", filepath.Join(dir, "device")),
		os.Truncate(touch(t, dir, "sparse"), 3<<30),
	); err != nil {
		t.Fatal(err)
	}
	opened, err := workdir.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = opened.Close() })
	return dir, opened
}

func touch(t *testing.T, dir, name string) string {
	t.Helper()
	at := filepath.Join(dir, name)
	if err := os.WriteFile(at, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return at
}

func TestOnlyRegularFilesAreRead(t *testing.T) {
	t.Parallel()
	_, in := hostile(t)
	for _, name := range []string{"plain", "in"} {
		if data, err := in.ReadFile(name, 7); err != nil || string(data) != "content" {
			t.Errorf("%s: %q, %v", name, data, err)
		}
		if _, err := in.ReadFile(name, 6); task.CodeOf(err) != task.TooLarge {
			t.Errorf("%s with a lower limit: %v", name, err)
		}
	}
	// An open of a pipe would wait for ever, and the test with it.
	for _, name := range []string{"pipe", "link-to-pipe", "out", "device", "../x", "/etc/passwd"} {
		if data, err := in.ReadFile(name, 100); err == nil {
			t.Errorf("%s was read: %q", name, data)
		}
		if err := in.WriteFile(name, []byte("bad")); err == nil {
			t.Errorf("%s was written", name)
		}
		if _, err := fs.ReadFile(in.FS(), name); err == nil {
			t.Errorf("%s was read from the file system", name)
		}
		if file, err := in.FS().Open(name); err == nil {
			t.Errorf("%s was opened", name)
			_ = file.Close()
		}
	}
	if _, err := in.ReadFile("pipe", 100); !errors.Is(err, workdir.ErrNotRegular) {
		t.Errorf("a pipe is %v", err)
	}
}

func TestAPipeWithAReaderIsNotWritten(t *testing.T) {
	t.Parallel()
	dir, in := hostile(t)
	reader, err := os.OpenFile(filepath.Join(dir, "pipe"), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reader.Close() }()
	if err := in.WriteFile("pipe", []byte("bad")); !errors.Is(err, workdir.ErrNotRegular) {
		t.Errorf("a pipe was written: %v", err)
	}
	if n, err := reader.Read(make([]byte, 10)); n != 0 || err != io.EOF && !errors.Is(err, syscall.EAGAIN) {
		t.Errorf("%d bytes came out, %v", n, err)
	}
}

//nolint:paralleltest // it measures memory
func TestALargeFileTakesNoMemory(t *testing.T) {
	_, in := hostile(t)
	taken := testkit.MemoryTaken(t, func() {
		if _, err := in.ReadFile("sparse", 1<<20); task.CodeOf(err) != task.TooLarge {
			t.Errorf("3 GB were read: %v", err)
		}
		if _, err := fs.ReadFile(in.FS(), "sparse"); task.CodeOf(err) != task.TooLarge {
			t.Errorf("3 GB were read from the file system: %v", err)
		}
	})
	if taken > 16<<20 {
		t.Errorf("it took %d bytes", taken)
	}
}

//nolint:paralleltest // it measures memory
func TestAFolderOfManyNamesIsReadInParts(t *testing.T) {
	dir := t.TempDir()
	const many = 30_000
	long := strings.Repeat("n", 200)
	for i := range many {
		if err := unix.Mknod(fmt.Sprintf("%s/%s%d", dir, long, i), unix.S_IFREG|0o600, 0); err != nil {
			t.Fatal(err)
		}
	}
	in, err := workdir.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	count := 0
	taken := testkit.MemoryTaken(t, func() {
		if err := in.Walk(func(string, fs.DirEntry) error { count++; return nil }); err != nil {
			t.Fatal(err)
		}
		entries, err := fs.ReadDir(in.FS(), ".")
		if err != nil || len(entries) != workdir.MostListed {
			t.Errorf("%d names were listed, %v", len(entries), err)
		}
	})
	if count != many+1 || taken > 32<<20 {
		t.Errorf("%d names took %d bytes", count, taken)
	}
}

// deepTree makes a chain of folders that no path can name.
func deepTree(t *testing.T, dir string, depth int) {
	t.Helper()
	at, err := unix.Open(dir, unix.O_DIRECTORY, 0)
	if err != nil {
		t.Fatal(err)
	}
	for range depth {
		if err := unix.Mkdirat(at, "deep", 0o500); err != nil {
			t.Fatal(err)
		}
		if err := unix.Fchmodat(at, "deep", 0o700, 0); err != nil {
			t.Fatal(err)
		}
		next, err := unix.Openat(at, "deep", unix.O_DIRECTORY, 0)
		if err != nil {
			t.Fatal(err)
		}
		_ = unix.Close(at)
		at = next
	}
	_ = unix.Close(at)
}

//nolint:paralleltest // it measures memory
func TestADeepTreeIsWalkedAndRemoved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "top")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	deepTree(t, dir, 5_000)
	taken := testkit.MemoryTaken(t, func() {
		count := 0
		if err := workdir.Walk(dir, func(string, fs.DirEntry) error { count++; return nil }); err != nil {
			t.Error(err)
		}
		if count < 500 || count > 1000 {
			t.Errorf("%d folders were visited", count)
		}
		if err := workdir.Remove(dir); err != nil {
			t.Error(err)
		}
	})
	if _, err := os.Lstat(dir); err == nil {
		t.Error("it is still there")
	}
	if taken > 32<<20 {
		t.Errorf("it took %d bytes", taken)
	}
	if err := workdir.Remove(dir); err != nil {
		t.Errorf("remove it again: %v", err)
	}
}

func TestWhatMayNotBeWrittenIsRemoved(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "top")
	outside := t.TempDir()
	touch(t, outside, "precious")
	if err := errors.Join(os.MkdirAll(filepath.Join(dir, "a", "b", "c"), 0o700), os.Symlink(outside, filepath.Join(dir, "a", "link")),
		os.Chmod(filepath.Join(dir, "a", "b", "c"), 0), os.Chmod(filepath.Join(dir, "a", "b"), 0o500), os.Chmod(dir, 0o500)); err != nil {
		t.Fatal(err)
	}
	if err := workdir.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(dir); err == nil {
		t.Error("it is still there")
	}
	if _, err := os.Lstat(filepath.Join(outside, "precious")); err != nil {
		t.Errorf("a link was followed: %v", err)
	}
}

// TestAFileThatBecomesAPipe swaps a file for a pipe and back while it is read.
func TestAFileThatBecomesAPipe(t *testing.T) {
	t.Parallel()
	dir, in := hostile(t)
	ctx, cancel := context.WithCancel(t.Context())
	swapped := make(chan error, 1)
	go func() {
		for ctx.Err() == nil {
			err := errors.Join(
				unix.Renameat2(unix.AT_FDCWD, filepath.Join(dir, "plain"), unix.AT_FDCWD, filepath.Join(dir, "pipe"), unix.RENAME_EXCHANGE))
			if err != nil {
				swapped <- err
				return
			}
		}
		swapped <- nil
	}()
	for range 2000 {
		if data, err := in.ReadFile("plain", 100); err == nil && string(data) != "content" {
			t.Errorf("it read %q", data)
		} else if err != nil && !errors.Is(err, workdir.ErrNotRegular) {
			t.Fatal(err)
		}
	}
	cancel()
	if err := <-swapped; err != nil {
		t.Fatal(err)
	}
}
