package workspace_test

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"testing"

	"github.com/toryo-dev/toryo/internal/agent/workspace"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
)

// onDisk is a workspace of the files that will be on a disk of its own; nil if there can be none.
func onDisk(t *testing.T, bytes int, files map[string]string) (*testkit.Disk, workspace.Options) {
	t.Helper()
	s := newSite(t, files)
	s.Seed(t)
	options := s.options(t)
	disk := testkit.NewDisk(t, bytes, 1000)
	if disk != nil {
		options.Dir = filepath.Join(disk.Dir, "run")
	}
	return disk, options
}

// A disk that is full, can only be read or is too small for the repository is a matter of the
// machine. What was written of the workspace is removed: it may be what fills the disk.
func TestWorkspaceOnADiskWithoutRoom(t *testing.T) {
	t.Parallel()
	noise := make([]byte, 3<<20) // which cannot be compressed
	_, _ = rand.Read(noise)
	disk, options := onDisk(t, 2<<20, map[string]string{"noise.bin": string(noise)})
	if disk == nil {
		return
	}
	prepare := func(what string) {
		t.Helper()
		if _, err := workspace.Prepare(t.Context(), options); task.CodeOf(err) != task.DataDir {
			t.Errorf("%s: %v", what, err)
		}
	}
	prepare("too small")
	if _, err := os.Lstat(options.Dir); err == nil {
		t.Error("something was left of it")
	}
	disk.Fill(t)
	prepare("full")
	disk.Free(t)
	disk.ReadOnly(t, true)
	prepare("read-only")
}

// So is a disk that is full when the work is saved, committed or verified: the task has not failed.
func TestWorkIsSavedOnAFullDisk(t *testing.T) {
	t.Parallel()
	disk, options := onDisk(t, 4<<20, map[string]string{"a.txt": "a\n"})
	if disk == nil {
		return
	}
	w, err := workspace.Prepare(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	put(t, w.Workspace(), "b.txt", "b\n")
	saved := save(t, w)
	put(t, w.Workspace(), "b.txt", "c\n")
	disk.Fill(t)
	if _, err := w.Export(t.Context(), saved); task.CodeOf(err) != task.DataDir {
		t.Errorf("the files of a commit: %v", err)
	}
	if _, _, err := w.Commit(t.Context(), "work", ""); task.CodeOf(err) != task.DataDir {
		t.Errorf("a commit: %v", err)
	}
	if _, err := w.Save(t.Context(), "work in progress"); task.CodeOf(err) != task.DataDir {
		t.Errorf("a save: %v", err)
	}
	disk.Free(t)
	if _, changed, err := w.Commit(t.Context(), "work", ""); err != nil || !changed {
		t.Errorf("a commit when there is room again: %v, %v", changed, err)
	}
}
