package board_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/board"
	"github.com/toryo-dev/toryo/internal/forge/forgetest"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	forgetest.Run(t, newFixture(t), forgetest.Options{
		Without: map[string]string{
			"Moved":          "repositories on the board are not renamed",
			"WrittenChanges": "reviews on the board are not changed",
			"Dismissed":      "nor dismissed",
			"CheckLog":       "the board has no jobs that print logs",
		},
	})
}

func wantCode(t *testing.T, what string, err error, code task.Code) {
	t.Helper()
	if got := task.CodeOf(err); got != code {
		t.Errorf("%s: %v has the code %q, want %q", what, err, got, code)
	}
}

func TestImport(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.git(t, f.source, "branch", "other")
	f.git(t, f.source, "tag", "v1")
	made, err := f.board.Import(t.Context(), "owner/name", "file://"+f.source)
	check(t, err)
	if made.Name != "owner/name" || made.DefaultBranch != "main" || made.URL != "http://127.0.0.1:8080/board/owner/name" {
		t.Errorf("imported %+v", made)
	}
	remote, err := f.bot.Remote(t.Context(), "owner/name")
	check(t, err)
	if got := f.git(t, remote.URL, "for-each-ref", "--format=%(refname)"); got != "refs/heads/main\nrefs/heads/other\nrefs/tags/v1" {
		t.Errorf("references %q", got)
	}
	config, err := os.ReadFile(filepath.Join(remote.URL, "config"))
	check(t, err)
	if strings.Contains(string(config), f.source) {
		t.Errorf("the configuration has the source's address: %s", config)
	}

	_, err = f.board.Import(t.Context(), "owner/name", f.source)
	wantCode(t, "a name that is taken", err, task.Conflict)
	for _, name := range []string{"name", "../../etc", "a/b/c", "a/b.git", "-a/b", "a/.b", "a/b\n", "a//b", "a/b.lock", ""} {
		_, err = f.board.Import(t.Context(), name, f.source)
		wantCode(t, fmt.Sprintf("the name %q", name), err, task.Invalid)
	}
	for _, source := range []string{filepath.Join(f.folder, "nothing"), "--upload-pack=touch /tmp/x", "ext::sh -c true", ""} {
		_, err = f.board.Import(t.Context(), "owner/other", source)
		wantCode(t, fmt.Sprintf("the source %q", source), err, task.Invalid)
	}
	left, err := filepath.Glob(filepath.Join(f.folder, "repositories", "importing-*"))
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	// After failures the name is still free.
	_, err = f.board.Import(t.Context(), "owner/other", f.source)
	check(t, err)
}

func TestImportAfterACrash(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	// An import that ended between the clone and the note of it.
	check(t, os.MkdirAll(filepath.Join(f.folder, "repositories", "owner", "name.git", "objects"), 0o700))
	made, err := f.board.Import(t.Context(), "owner/name", f.source)
	check(t, err)
	if made.DefaultBranch != "main" {
		t.Errorf("the default branch is %q", made.DefaultBranch)
	}
}

func TestImportOfAnEmptyRepository(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	empty := filepath.Join(f.folder, "empty")
	check(t, os.Mkdir(empty, 0o700))
	f.git(t, empty, "init", "-q", "-b", "trunk")
	made, err := f.board.Import(t.Context(), "owner/empty", empty)
	check(t, err)
	if made.DefaultBranch != "" {
		t.Errorf("a repository without a commit has the default branch %q", made.DefaultBranch)
	}
	branches, err := f.bot.Branches(t.Context(), "owner/empty")
	check(t, err)
	if len(branches) != 0 {
		t.Errorf("a repository without a commit has the branches %q", branches)
	}
}

func TestUsers(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, login := range []string{"", "ghost", "Ghost", "-a", "a b", "a/b", "a@b", strings.Repeat("a", 40), "é"} {
		wantCode(t, fmt.Sprintf("the login %q", login), f.board.AddUser(t.Context(), login, forge.ReadAccess), task.Invalid)
	}
	check(t, f.board.AddUser(t.Context(), "alice", forge.ReadAccess))
	wantCode(t, "a login that is taken", f.board.AddUser(t.Context(), "ALICE", forge.ReadAccess), task.Conflict)
	users, err := f.board.Users(t.Context())
	if err != nil || !slices.Equal(users, []board.User{{Login: "Toryo-Bot", Access: forge.WriteAccess}, {Login: "alice", Access: forge.ReadAccess}}) {
		t.Errorf("users %v, %v", users, err)
	}
	check(t, f.board.RemoveUser(t.Context(), "alice"))
	wantCode(t, "a login that was taken", f.board.AddUser(t.Context(), "alice", forge.ReadAccess), task.Conflict)
}

func TestWhatEachMayDo(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	name := f.Repository(t)
	f.Commit(t, name, "topic", map[string]string{"x": "x\n"})
	writer := f.Person(t, name, forge.WriteAccess)
	issue := f.Issue(t, name, writer, "An issue", "")
	pull := f.Pull(t, name, writer, "topic", "main", "A pull request", "")
	theirs := f.Comment(t, issue, writer, "Mine.")

	type call struct {
		name   string
		needed forge.Access
		do     func(*board.Forge) error
	}
	ctx := t.Context()
	calls := []call{
		{"read", forge.ReadAccess, func(b *board.Forge) error { _, err := b.Item(ctx, issue); return err }},
		{"list", forge.ReadAccess, func(b *board.Forge) error { _, err := b.List(ctx, forge.Query{Repository: name}); return err }},
		{"comment", forge.ReadAccess, func(b *board.Forge) error { _, err := b.AddComment(ctx, issue, "hi"); return err }},
		{"open an issue", forge.ReadAccess, func(b *board.Forge) error { _, err := b.CreateIssue(ctx, name, forge.NewIssue{Title: "t"}); return err }},
		{"remark", forge.ReadAccess, func(b *board.Forge) error {
			_, err := b.SubmitReview(ctx, pull, forge.ReviewPost{Verdict: forge.Remark, Text: forge.Neutraliser{}.Text("hm")})
			return err
		}},
		{"approve", forge.WriteAccess, func(b *board.Forge) error {
			_, err := b.SubmitReview(ctx, pull, forge.ReviewPost{Verdict: forge.Approve, Text: forge.Neutraliser{}.Text("ok")})
			return err
		}},
		{"label", forge.WriteAccess, func(b *board.Forge) error { return b.AddLabel(ctx, issue, "x") }},
		{"assign", forge.WriteAccess, func(b *board.Forge) error { return b.Assign(ctx, issue, writer) }},
		{"import", forge.WriteAccess, func(b *board.Forge) error {
			_, err := b.Import(ctx, f.freeName(), f.source)
			return err
		}},
		{"reach with git", forge.WriteAccess, func(b *board.Forge) error { _, err := b.Remote(ctx, name); return err }},
		{"close", forge.WriteAccess, func(b *board.Forge) error { return b.SetState(ctx, issue, forge.Closed) }},
		{"remove a comment of someone else", forge.AdminAccess, func(b *board.Forge) error { return b.DeleteComment(ctx, issue, theirs) }},
		{"merge", forge.WriteAccess, func(b *board.Forge) error { _, err := b.Merge(ctx, pull); return err }},
	}
	for _, access := range []forge.Access{forge.NoAccess, forge.ReadAccess, forge.WriteAccess, forge.AdminAccess} {
		who := f.board.As(f.Person(t, name, access))
		for _, call := range calls {
			want := task.Code("")
			if access == forge.NoAccess {
				want = task.NotFound
			} else if access < call.needed {
				want = task.Forbidden
			}
			if call.name == "merge" && access == forge.AdminAccess {
				want = task.Conflict // the writer has merged it
			}
			wantCode(t, fmt.Sprintf("with %s access: %s", access, call.name), call.do(who), want)
		}
	}
	_, err := f.board.As("nobody").Item(ctx, issue)
	wantCode(t, "someone without an account", err, task.Unauthorized)
	_, err = f.board.As(writer).ChangeComment(ctx, issue, f.Comment(t, issue, f.Person(t, name, forge.ReadAccess), "Hers."), "his")
	wantCode(t, "editing someone else's comment", err, task.Forbidden)
}

func TestMerge(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx := t.Context()
	name := f.Repository(t)
	writer := f.Person(t, name, forge.WriteAccess)
	issue := f.Issue(t, name, writer, "To be closed", "")
	stays := f.Issue(t, name, writer, "To stay open", "")
	head := f.Commit(t, name, "topic", map[string]string{"README.md": "one\nTWO\nthree\n"})
	f.Commit(t, name, "main", map[string]string{"elsewhere.txt": "x\n"})
	pull := f.Pull(t, name, writer, "topic", "main", "Change", fmt.Sprintf("Closes #%d, see #%d", issue.Number, stays.Number))
	clashing := f.Commit(t, name, "clash", map[string]string{"README.md": "one\n2\nthree\n"})
	// The branch was cut from a later main; make the clash real.
	clash := f.Pull(t, name, writer, "clash", "main", "Clash", "")
	before, err := f.bot.Diff(ctx, pull)
	check(t, err)

	merged, err := f.bot.Merge(ctx, pull)
	if err != nil || merged.State != forge.Merged || merged.HeadCommit != head {
		t.Fatalf("merged %+v, %v", merged, err)
	}
	remote, err := f.bot.Remote(ctx, name)
	check(t, err)
	if got := f.git(t, remote.URL, "show", "main:README.md"); got != "one\nTWO\nthree" {
		t.Errorf("main has %q", got)
	}
	if got := f.git(t, remote.URL, "log", "-1", "--format=%an %s", "main"); got != fmt.Sprintf("Toryo-Bot Merge pull request #%d from topic", pull.Number) {
		t.Errorf("the merge is %q", got)
	}
	for key, want := range map[task.Key]forge.ItemState{issue: forge.Closed, stays: forge.Open} {
		if item, err := f.bot.Item(ctx, key); err != nil || item.State != want {
			t.Errorf("%s is %s, want %s (%v)", key, item.State, want, err)
		}
	}
	_, err = f.bot.Merge(ctx, pull)
	wantCode(t, "merging twice", err, task.Conflict)
	wantCode(t, "reopening what is merged", f.bot.SetState(ctx, pull, forge.Open), task.Conflict)

	// Its diff is still there when the branch is not.
	f.git(t, remote.URL, "branch", "-D", "topic")
	after, err := f.bot.Diff(ctx, pull)
	if err != nil || after != before {
		t.Errorf("diff afterwards %+v, %v, want %+v", after, err, before)
	}

	_, err = f.bot.Merge(ctx, clash)
	wantCode(t, "branches that contradict each other", err, task.Conflict)
	if item, err := f.bot.Item(ctx, clash); err != nil || item.State != forge.Open || item.HeadCommit != clashing {
		t.Errorf("after that it is %+v, %v", item, err)
	}
	f.git(t, remote.URL, "branch", "-D", "clash")
	_, err = f.bot.Diff(ctx, clash)
	wantCode(t, "the diff of a branch that is gone", err, task.NotFound)
	_, err = f.bot.Merge(ctx, clash)
	wantCode(t, "merging a branch that is gone", err, task.NotFound)
}

func TestPullsThatCannotBe(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx := t.Context()
	name := f.Repository(t)
	f.Commit(t, name, "topic", map[string]string{"x": "x\n"})
	text := forge.Neutraliser{}.Title("title")
	for what, post := range map[string]forge.PullPost{
		"nothing to merge": {Title: text, Head: "main", Base: "main"},
		"backwards":        {Title: text, Head: "main", Base: "topic"},
		"an option":        {Title: text, Head: "--output=/tmp/x", Base: "main"},
		"a range":          {Title: text, Head: "main..topic", Base: "main"},
		"no title":         {Head: "topic", Base: "main"},
		"upwards":          {Title: text, Head: "../../x", Base: "main"},
		"no head":          {Title: text, Base: "main"},
	} {
		_, _, err := f.bot.OpenPull(ctx, name, post)
		wantCode(t, what, err, task.Invalid)
	}
}

func TestPullsOpenedAtOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	name := f.Repository(t)
	f.Commit(t, name, "topic", map[string]string{"x": "x\n"})
	var group sync.WaitGroup
	var lock sync.Mutex
	keys, times := map[task.Key]bool{}, 0
	for range 6 {
		group.Go(func() {
			item, opened, err := f.bot.OpenPull(t.Context(), name, forge.PullPost{Title: forge.Neutraliser{}.Title("t"), Head: "topic", Base: "main"})
			lock.Lock()
			defer lock.Unlock()
			if err != nil {
				t.Error(err)
			}
			keys[item.Key] = true
			if opened {
				times++
			}
		})
	}
	group.Wait()
	if len(keys) != 1 || times != 1 {
		t.Errorf("opened %d times: %v", times, keys)
	}
}

func TestOutdatedThreads(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx := t.Context()
	name := f.Repository(t)
	writer := f.Person(t, name, forge.WriteAccess)
	f.Commit(t, name, "topic", map[string]string{"new.txt": "1\n2\n3\n"})
	pull := f.Pull(t, name, writer, "topic", "main", "Change", "")
	first := forge.Anchor{Path: "new.txt", Side: forge.NewSide, Line: 1}
	third := forge.Anchor{Path: "new.txt", Side: forge.NewSide, Line: 3}
	f.Review(t, pull, f.Person(t, name, forge.WriteAccess), forge.Remark, "Two.", map[forge.Anchor]string{first: "a", third: "b"})
	f.Commit(t, name, "topic", map[string]string{"new.txt": "1\n2\n"})
	threads, err := f.bot.ReviewThreads(ctx, pull)
	check(t, err)
	for _, thread := range threads {
		gone := thread.Comments[0].Body == "b"
		if thread.Outdated != gone || (thread.Anchor.Line == 0) != gone {
			t.Errorf("thread %+v", thread)
		}
	}
	_, err = f.bot.SubmitReview(ctx, pull, forge.ReviewPost{
		Verdict: forge.Remark, Comments: []forge.LineComment{{Anchor: third, Text: forge.Neutraliser{}.Text("c")}},
	})
	wantCode(t, "a comment on a line that is not there", err, task.Invalid)
	_, err = f.bot.SubmitReview(ctx, pull, forge.ReviewPost{Verdict: forge.Remark, Text: forge.Neutraliser{}.Text("c"), Commit: strings.Repeat("0", 40)})
	wantCode(t, "a review of another commit", err, task.Conflict)
}

// downStore is a store whose database has gone away.
type downStore struct{ board.Store }

func (downStore) BoardUser(context.Context, string) (store.BoardUser, error) {
	return store.BoardUser{Login: "bot", Access: store.BoardWrite}, nil
}

func (downStore) BoardRepository(context.Context, string) (store.BoardRepository, error) {
	return store.BoardRepository{Name: "owner/name"}, nil
}

func (downStore) BoardItem(context.Context, string, int64) (store.BoardItem, error) {
	return store.BoardItem{Kind: task.Issue}, nil
}

func (downStore) BoardComments(context.Context, string, int64) ([]store.BoardComment, error) {
	return nil, task.Errorf(task.DatabaseDown, "gone")
}

func (downStore) AddBoardComment(context.Context, store.BoardComment) (store.BoardComment, error) {
	return store.BoardComment{}, task.Errorf(task.DatabaseDown, "gone")
}

// A board without its database is a forge that does not answer.
func TestDatabaseDown(t *testing.T) {
	t.Parallel()
	made, err := board.Open(board.Options{Store: downStore{}, Folder: t.TempDir()})
	check(t, err)
	key := task.Key{Forge: task.Board, Repository: "owner/name", Kind: task.Issue, Number: 1}
	_, err = made.As("bot").Comments(t.Context(), key)
	wantCode(t, "reading", err, task.Unavailable)
	_, err = made.As("bot").AddComment(t.Context(), key, "hello")
	wantCode(t, "writing", err, task.Unavailable)
}

func TestOpen(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	check(t, os.WriteFile(file, nil, 0o600))
	_, err := board.Open(board.Options{Folder: filepath.Join(file, "folder")})
	var failure *task.Error
	if !errors.As(err, &failure) || failure.Code != task.DataDir {
		t.Errorf("a folder below a file: %v", err)
	}
}
