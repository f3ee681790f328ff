package workspace_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/agent/workspace"
	"github.com/toryo-dev/toryo/internal/task"
)

// local makes a repository as a person has it on the machine.
func local(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "with space%20")
	run(t, "", "init", "--quiet", "--initial-branch=main", dir)
	for _, text := range []string{"one\n", "two\n", "three\n"} {
		put(t, dir, "a.txt", text)
		run(t, dir, "add", "--all")
		run(t, dir, "commit", "--quiet", "-m", text)
	}
	return dir
}

func TestALocalRepositoryIsLeftWithABranch(t *testing.T) {
	t.Parallel()
	dir := local(t)
	mark := filepath.Join(t.TempDir(), "mark")
	for _, hook := range []string{"pre-receive", "update", "post-receive", "reference-transaction", "post-update", "pre-push"} {
		put(t, dir, ".git/hooks/"+hook, "#!/bin/sh\ntouch '"+mark+"'\n")
		if err := os.Chmod(filepath.Join(dir, ".git", "hooks", hook), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	put(t, dir, "a.txt", "uncommitted\n")
	put(t, dir, "untracked.txt", "u\n")
	w, err := workspace.Local(t.Context(), workspace.Options{Dir: filepath.Join(t.TempDir(), "run"), URL: dir, Branch: "toryo/1"})
	if err != nil {
		t.Fatal(err)
	}
	if got := read(t, w.Workspace(), "a.txt"); got != "three\n" {
		t.Errorf("it begins with %q", got)
	}
	put(t, w.Workspace(), "b.txt", "b\n")
	save(t, w)
	if refs := run(t, dir, "for-each-ref", "--format=%(refname)"); refs != "refs/heads/main" {
		t.Errorf("work in progress is in the repository: %s", refs)
	}
	commitAll(t, w)
	put(t, w.Workspace(), "b.txt", "better\n")
	commit := commitAll(t, w)
	if got := run(t, dir, "rev-parse", "toryo/1"); got != commit {
		t.Errorf("the branch is at %s, want %s", got, commit)
	}
	if got := run(t, dir, "log", "--format=%s", "toryo/1"); got != "work\nthree\ntwo\none" {
		t.Errorf("the branch has %q", got)
	}
	if got := run(t, dir, "symbolic-ref", "HEAD"); got != "refs/heads/main" || read(t, dir, "a.txt") != "uncommitted\n" {
		t.Error("what the person had checked out was changed")
	}
	if _, err := os.Stat(filepath.Join(dir, ".git", "shallow")); !os.IsNotExist(err) {
		t.Error("the repository was made shallow")
	}
	if _, err := os.Stat(mark); !os.IsNotExist(err) {
		t.Error("a hook was run")
	}
	run(t, dir, "fsck", "--strict")

	// A later run goes on with the branch.
	again, err := workspace.Local(t.Context(), workspace.Options{Dir: filepath.Join(t.TempDir(), "run"), URL: dir, Branch: "toryo/1"})
	if err != nil {
		t.Fatal(err)
	}
	put(t, again.Workspace(), "c.txt", "c\n")
	commitAll(t, again)
	if got := run(t, dir, "log", "--format=%s", "toryo/1"); got != "work\n"+"work\nthree\ntwo\none" {
		t.Errorf("the branch has %q", got)
	}
	// Someone else's commit is not written over.
	run(t, dir, "update-ref", "refs/heads/toryo/1", "main")
	put(t, again.Workspace(), "c.txt", "more\n")
	if _, _, err := again.Commit(t.Context(), "late", ""); task.CodeOf(err) != task.Conflict {
		t.Errorf("a branch that someone moved: %v", err)
	}
}

func TestALocalBranchThatIsCheckedOut(t *testing.T) {
	t.Parallel()
	dir := local(t)
	tree := filepath.Join(t.TempDir(), "tree")
	run(t, dir, "worktree", "add", "--quiet", "-b", "other", tree)
	for _, branch := range []string{"main", "other"} {
		if _, err := workspace.Local(t.Context(), workspace.Options{Dir: filepath.Join(t.TempDir(), "run"), URL: dir, Branch: branch}); task.CodeOf(err) != task.Conflict {
			t.Errorf("%s: %v", branch, err)
		}
	}
	// A work tree is as good as the repository.
	w, err := workspace.Local(t.Context(), workspace.Options{Dir: filepath.Join(t.TempDir(), "run"), URL: tree, Base: "other", Branch: "toryo/2"})
	if err != nil {
		t.Fatal(err)
	}
	put(t, w.Workspace(), "b.txt", "b\n")
	commitAll(t, w)
	if got := run(t, dir, "rev-parse", "toryo/2^"); got != run(t, dir, "rev-parse", "other") {
		t.Errorf("the branch is on top of %s", got)
	}
}

// What is taken of a repository on this machine is complete, whichever form its objects have, and has
// nothing of the history. Both the workspace and the repository for the sandbox have it.
func TestALocalRepositoryIsTakenWithoutItsHistory(t *testing.T) {
	t.Parallel()
	dir := local(t)
	for _, err := range []error{os.Symlink("a.txt", filepath.Join(dir, "link")), os.WriteFile(filepath.Join(dir, "run.sh"), []byte("echo\n"), 0o700)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	put(t, dir, "deep/down/ü \n.txt", "odd\n")
	run(t, dir, "add", "--all")
	run(t, dir, "commit", "--quiet", "-m", "four")
	run(t, dir, "gc", "--quiet")
	run(t, dir, "checkout", "--quiet", "-b", "toryo/1")
	put(t, dir, "loose.txt", "loose\n")
	run(t, dir, "add", "--all")
	run(t, dir, "commit", "--quiet", "-m", "five")
	run(t, dir, "checkout", "--quiet", "main")
	root := filepath.Join(t.TempDir(), "run")
	w, err := workspace.Local(t.Context(), workspace.Options{Dir: root, URL: dir, Branch: "toryo/1"})
	if err != nil {
		t.Fatal(err)
	}
	files := w.Workspace()
	if got := run(t, files, "status", "--porcelain") + run(t, files, "rev-list", "HEAD"); got != run(t, dir, "rev-parse", "toryo/1") {
		t.Errorf("the sandbox finds %q", got)
	}
	for _, at := range []string{files, filepath.Join(root, "git")} {
		run(t, at, "fsck", "--strict")
	}
	if got := read(t, files, "deep/down/ü \n.txt") + read(t, files, "loose.txt") + read(t, files, "link"); got != "odd\nloose\nthree\n" {
		t.Errorf("the files have %q", got)
	}
	if info, err := os.Stat(filepath.Join(files, "run.sh")); err != nil || info.Mode()&0o100 == 0 {
		t.Errorf("the program is %v, %v", info, err)
	}
}

// Nothing is written to a repository on this machine before there is a branch to leave. So one that may
// only be read, or that is on another disk, can be taken too. Its path may have any characters, and its
// objects may be elsewhere.
func TestALocalRepositoryThatMayOnlyBeRead(t *testing.T) {
	t.Parallel()
	const name = `a:b "c" \d`
	dir := filepath.Join(t.TempDir(), name)
	if err := os.Rename(local(t), dir); err != nil {
		t.Fatal(err)
	}
	tree, borrower := filepath.Join(t.TempDir(), "#tree"), filepath.Join(t.TempDir(), "clone:2")
	run(t, dir, "worktree", "add", "--quiet", "--detach", tree)
	run(t, "", "clone", "--quiet", "--shared", dir, borrower)
	before := objectsOf(t, dir, 0o500)
	t.Cleanup(func() { objectsOf(t, dir, 0o700) })
	for _, from := range []string{dir, tree, borrower} {
		w, err := workspace.Local(t.Context(), workspace.Options{Dir: filepath.Join(t.TempDir(), "run"), URL: from, Base: "main", Branch: "toryo/1"})
		if err != nil {
			t.Fatalf("%s: %v", from, err)
		}
		if got := read(t, w.Workspace(), "a.txt"); got != "three\n" {
			t.Errorf("%s: it begins with %q", from, got)
		}
		run(t, w.Workspace(), "fsck", "--strict")
	}
	if after := objectsOf(t, dir, 0o500); after != before {
		t.Errorf("its objects were\n%s\nand are\n%s", before, after)
	}
}

// objectsOf lists the folders of the objects of a repository and what is in them, with the times of
// their last changes, and gives the folders the mode.
func objectsOf(t *testing.T, dir string, mode fs.FileMode) string {
	t.Helper()
	var all strings.Builder
	if err := filepath.WalkDir(filepath.Join(dir, ".git", "objects"), func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		fmt.Fprintln(&all, name, info.ModTime().UnixNano())
		if !entry.IsDir() {
			return nil
		}
		return os.Chmod(name, mode)
	}); err != nil {
		t.Fatal(err)
	}
	return all.String()
}

// An object that is broken is found while it is taken.
func TestABrokenLocalRepository(t *testing.T) {
	t.Parallel()
	for name, pack := range map[string]bool{"packed": true, "loose": false} {
		dir := local(t)
		hash := run(t, dir, "rev-parse", "main:a.txt")
		broken, at, length := filepath.Join(dir, ".git", "objects", hash[:2], hash[2:]), 0, 16
		if pack {
			run(t, dir, "gc", "--quiet")
			all, err := filepath.Glob(filepath.Join(dir, ".git", "objects", "pack", "*.pack"))
			if err != nil || len(all) != 1 {
				t.Fatal(all, err)
			}
			broken = all[0]
			_, about, _ := strings.Cut(run(t, dir, "verify-pack", "-v", broken), hash)
			var kind string
			var size int
			if _, err := fmt.Sscan(about, &kind, &size, &length, &at); err != nil {
				t.Fatal(about, err)
			}
		}
		content, err := os.ReadFile(broken)
		if err != nil {
			t.Fatal(err)
		}
		content[at+length/2] ^= 0xff
		if err := errors.Join(os.Chmod(broken, 0o600), os.WriteFile(broken, content, 0o600)); err != nil {
			t.Fatal(err)
		}
		if _, err := workspace.Local(t.Context(), workspace.Options{Dir: filepath.Join(t.TempDir(), "run"), URL: dir, Branch: "toryo/1"}); err == nil {
			t.Errorf("%s: nobody has noticed", name)
		}
	}
}
