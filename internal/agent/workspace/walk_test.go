package workspace_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/task"
)

// changes are what a save has besides what was checked out.
func (s *site) changes(t *testing.T, commit string) string {
	t.Helper()
	return s.Mirrored(t, "diff", "--no-renames", "--name-status", "main", commit)
}

// Patterns count for what was not checked out only, whether or not there are files of the history in the
// same folder, or in one that is ignored.
func TestIgnoredBesideFilesOfTheHistory(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]string{
		"mixed/.gitignore": "*.log\n!kept.log\n", "mixed/a.txt": "a\n", "mixed/old.log": "old\n", "mixed/deep/er/b.txt": "b\n",
		".gitignore": "build/\n", "build/in.txt": "in\n", "build/sub/c.txt": "c\n",
	})
	w := s.prepare(t, nil)
	for _, name := range []string{
		"mixed/new.log", "mixed/kept.log", "mixed/new.txt", "mixed/old.log", "mixed/deep/er/new.log", "mixed/deep/er/new.txt", "mixed/fresh/new.log",
		"mixed/fresh/new.txt", "build/in.txt", "build/new.txt", "build/sub/c.txt", "build/sub/new.txt", "build/other/new.txt",
	} {
		put(t, w.Workspace(), name, "changed\n")
	}
	want := "M\tbuild/in.txt\nM\tbuild/sub/c.txt\nA\tmixed/deep/er/new.txt\nA\tmixed/fresh/new.txt\nA\tmixed/kept.log\nA\tmixed/new.txt\nM\tmixed/old.log"
	if got := s.changes(t, save(t, w)); got != want {
		t.Errorf("the save changes\n%s\nwant\n%s", got, want)
	}
}

// A folder that came with a merge is one of the history from then on.
func TestAFolderThatCameWithAMerge(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]string{"a.txt": "a\n", ".gitignore": "new/\n"})
	w := s.prepare(t, nil)
	put(t, w.Workspace(), "mine.txt", "mine\n")
	save(t, w)
	s.Commit(t, "main", "theirs", map[string]string{"a.txt": "a\n", ".gitignore": "new/\n", "new/theirs.txt": "theirs\n"})
	s.Seed(t)
	if conflicts, err := w.Merge(t.Context()); err != nil || len(conflicts) != 0 {
		t.Fatal(conflicts, err)
	}
	put(t, w.Workspace(), "new/theirs.txt", "changed\n")
	put(t, w.Workspace(), "new/ignored.txt", "i\n")
	if got := s.Mirrored(t, "diff", "--name-status", s.Mirrored(t, "rev-parse", "main"), save(t, w)); got != "A\tmine.txt\nM\tnew/theirs.txt" {
		t.Errorf("the save changes\n%s", got)
	}
}

// What is in an excluded folder counts only if the history has it.
func TestAnExcludedFolderOfTheHistory(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]string{"apart/a.txt": "a\n", "apart/b.txt": "b\n", "apart/deep/c.txt": "c\n", "d.txt": "d\n"})
	w := s.prepare(t, nil)
	if err := w.Exclude(t.Context(), []string{"apart"}); err != nil {
		t.Fatal(err)
	}
	put(t, w.Workspace(), "apart/a.txt", "changed\n")
	put(t, w.Workspace(), "apart/new.txt", "n\n")
	put(t, w.Workspace(), "apart/deep/new.txt", "n\n")
	put(t, w.Workspace(), "apart/fresh/new.txt", "n\n")
	if err := errors.Join(os.Remove(filepath.Join(w.Workspace(), "apart", "b.txt")), os.Remove(filepath.Join(w.Workspace(), "apart", "deep", "c.txt"))); err != nil {
		t.Fatal(err)
	}
	if got := s.changes(t, save(t, w)); got != "M\tapart/a.txt\nD\tapart/b.txt\nD\tapart/deep/c.txt" {
		t.Errorf("the save changes\n%s", got)
	}
}

// However long it takes to look at the files of the history, they are saved. What was not checked out
// has a limit.
func TestTheTimeToListIsThatOfWhatWasNotCheckedOut(t *testing.T) {
	t.Parallel()
	files := map[string]string{}
	for i := range 20 {
		files[fmt.Sprintf("folder%d/a.txt", i)] = "a\n"
	}
	s := newSite(t, files)
	w := s.prepare(t, nil)
	now := time.Now()
	w.SetClock(func() time.Time { now = now.Add(time.Minute); return now })
	put(t, w.Workspace(), "folder1/a.txt", "changed\n")
	if got := s.changes(t, save(t, w)); got != "M\tfolder1/a.txt" {
		t.Errorf("the save changes\n%s", got)
	}
	for name, made := range map[string]string{"files of a folder of the history": "folder2/new%d", "files of a new folder": "new/%d", "new folders": "other%d/a/b"} {
		for i := range 20 {
			put(t, w.Workspace(), fmt.Sprintf(made, i), "n\n")
		}
		if _, err := w.Save(t.Context(), "work in progress"); task.CodeOf(err) != task.TooLarge {
			t.Errorf("%s: %v", name, err)
		}
		for i := range 20 {
			if err := os.RemoveAll(filepath.Join(w.Workspace(), fmt.Sprintf(made, i))); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// An export that waits for the removal of another one ends with its context.
func TestAnExportThatWaitsEnds(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]string{"a.txt": "a\n"})
	w := s.prepare(t, nil)
	put(t, w.Workspace(), "b.txt", "b\n")
	saved := save(t, w)
	release := make(chan struct{})
	w.BeginRemoval(func() { <-release })
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := errors.New("the run ended")
	cancel(ended)
	if _, err := w.Export(ctx, saved); !errors.Is(err, ended) {
		t.Errorf("it is %v", err)
	}
	close(release)
	files, err := w.Export(t.Context(), saved)
	if err != nil {
		t.Fatal(err)
	}
	if err := files.Remove(); err != nil {
		t.Error(err)
	}
}
