package board_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/board"
	"github.com/toryo-dev/toryo/internal/task"
)

// changed is what the watch finds to have changed.
func changed(t *testing.T, w *board.Watch) []task.Key {
	t.Helper()
	found, err := w.Items(t.Context())
	check(t, err)
	slices.SortFunc(found, func(a, b task.Key) int { return int(a.Number - b.Number) })
	return found
}

// Each change of an item is found once, also of one that was found before.
func TestWatchFindsItems(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	repository := f.Repository(t)
	alice := f.Person(t, repository, forge.WriteAccess)
	watch := f.board.Watch()
	first, second := f.Issue(t, repository, alice, "First", ""), f.Issue(t, repository, alice, "Second", "")
	for _, step := range []struct {
		name string
		do   func()
		want []task.Key
	}{
		{"two were opened", func() {}, []task.Key{first, second}},
		{"nothing has happened", func() {}, nil},
		{"a comment", func() { f.Comment(t, first, alice, "Yes") }, []task.Key{first}},
		{"a label and an assignee", func() {
			f.Label(t, second, alice, true, "bug")
			f.Assign(t, second, alice, alice)
		}, []task.Key{second}},
		{"one is closed", func() { f.Close(t, first, alice) }, []task.Key{first}},
		{"nothing has happened again", func() {}, nil},
	} {
		step.do()
		if got := changed(t, watch); !slices.Equal(got, step.want) {
			t.Errorf("%s: %v, want %v", step.name, got, step.want)
		}
	}
}

// settle makes everything that was pushed to a repository look as if it were old.
func (f *fixture) settle(t *testing.T, repository string) {
	t.Helper()
	long := time.Now().Add(-time.Hour)
	check(t, filepath.WalkDir(f.board.Path(repository), func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chtimes(path, long, long)
	}))
}

// A push into the folder of a repository is found, if it is to the branch or to the base of an
// open pull request. Only those are named whose branch it is.
func TestWatchFindsPushes(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	repository, quiet := f.Repository(t), f.Repository(t)
	alice := f.Person(t, repository, forge.WriteAccess)
	for _, name := range []string{repository, quiet} {
		f.Commit(t, name, "work/one", map[string]string{"one.txt": "1\n"})
	}
	f.Commit(t, repository, "work/two", map[string]string{"two.txt": "1\n"})
	f.settle(t, repository)
	pull := f.Pull(t, repository, alice, "work/one", "main", "One", "")
	other := f.Pull(t, repository, alice, "work/two", "main", "Two", "")
	watch, same := f.board.Watch(), false
	want := func(when string, moved bool, want ...task.Key) {
		t.Helper()
		pushed, unread, err := watch.Pushed(t.Context(), same)
		check(t, err)
		if len(unread) > 0 {
			t.Errorf("%s: not read: %v", when, unread)
		}
		same = true
		var got []task.Key
		for _, one := range pushed {
			got = append(got, one.Pulls...)
		}
		if !slices.Equal(got, want) || len(pushed) > 0 != moved {
			t.Errorf("%s: %+v, want %v and %v", when, pushed, moved, want)
		}
	}
	want("the pull requests are new to the watch", true, pull, other)
	want("nothing has happened", false)
	for _, push := range []struct {
		branch string
		moved  bool
		pulls  []task.Key
	}{{"work/one", true, []task.Key{pull}}, {"work/two", true, []task.Key{other}}, {"main", true, nil}, {"other", false, nil}} {
		f.Commit(t, repository, push.branch, map[string]string{push.branch + ".txt": "2\n"})
		want("a push to "+push.branch, push.moved, push.pulls...)
		f.settle(t, repository)
		want("which looks different when it is old", false)
	}
	f.git(t, f.board.Path(repository), "pack-refs", "--all")
	want("branches are packed", false)
	f.Commit(t, repository, "work/one", map[string]string{"again.txt": "3\n"})
	want("a push over a packed branch", true, pull)
	f.Commit(t, quiet, "work/one", map[string]string{"two.txt": "2\n"})
	want("a push elsewhere", false)
	f.git(t, f.board.Path(repository), "branch", "--quiet", "-D", "work/two")
	want("a branch is gone", true, other)
	main := f.git(t, f.board.Path(repository), "rev-parse", "refs/heads/main")
	f.git(t, f.board.Path(repository), "update-ref", "-d", "refs/heads/main")
	want("the base is gone", true)
	f.git(t, f.board.Path(repository), "update-ref", "refs/heads/main", strings.TrimSpace(main))
	want("the base is there again", true)
	f.Commit(t, repository, "work/three", map[string]string{"three.txt": "1\n"})
	want("a push to a branch without a pull request", false)
	third := f.Pull(t, repository, alice, "work/three", "main", "Three", "")
	same = false
	want("a pull request was opened", true, third)
	want("nothing has happened to it", false)
	f.Close(t, third, alice)
	f.Close(t, other, alice)
	f.Close(t, pull, alice)
	same = false
	f.Commit(t, repository, "main", map[string]string{"three.txt": "3\n"})
	want("nothing is open any more", false)
}
