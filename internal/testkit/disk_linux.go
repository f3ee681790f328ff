package testkit

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
)

// Disk is a small file system of its own that a test can fill.
type Disk struct {
	Dir  string
	fill string
}

// NewDisk mounts a file system with so many bytes and so many files. Only the superuser can:
// for others it says so and returns nil, upon which the test has to return.
func NewDisk(t testing.TB, bytes, files int) *Disk {
	t.Helper()
	if os.Getuid() != 0 {
		t.Log("nothing was tested: only the superuser can mount a small disk")
		return nil
	}
	d := &Disk{Dir: t.TempDir()}
	d.fill = filepath.Join(d.Dir, "fill")
	options := "size=" + strconv.Itoa(bytes) + ",nr_inodes=" + strconv.Itoa(files)
	if err := syscall.Mount("toryo-test", d.Dir, "tmpfs", 0, options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(d.Dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return d
}

// Fill takes all the room.
func (d *Disk) Fill(t testing.TB) {
	t.Helper()
	file, err := os.OpenFile(d.fill, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	for size := 1 << 16; size > 0; {
		if _, err := file.Write(make([]byte, size)); errors.Is(err, syscall.ENOSPC) {
			size /= 2
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
}

// Free gives the room back.
func (d *Disk) Free(t testing.TB) {
	t.Helper()
	// A process that is just being started by another test may have the file open for a moment. Then
	// only its contents can be removed.
	if err := errors.Join(os.Truncate(d.fill, 0), os.Remove(d.fill)); err != nil {
		t.Fatal(err)
	}
}

// FillFiles makes as many files as there can be, and returns how to remove them.
func (d *Disk) FillFiles(t testing.TB) (free func()) {
	t.Helper()
	dir, err := os.MkdirTemp(d.Dir, "files") //nolint:usetesting // it has to be there
	if err != nil {
		t.Fatal(err)
	}
	for n := 0; ; n++ {
		err := os.WriteFile(filepath.Join(dir, strconv.Itoa(n)), nil, 0o600)
		if errors.Is(err, syscall.ENOSPC) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	}
}

// ReadOnly makes the file system one that can only be read, or writable again.
func (d *Disk) ReadOnly(t testing.TB, only bool) {
	t.Helper()
	flags := uintptr(syscall.MS_REMOUNT)
	if only {
		flags |= syscall.MS_RDONLY
	}
	if err := syscall.Mount("toryo-test", d.Dir, "tmpfs", flags, ""); err != nil {
		t.Fatal(err)
	}
}
