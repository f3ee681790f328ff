package board_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/board"
	"github.com/toryo-dev/toryo/internal/store/sqlite"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
)

// fixture is a board in the hands of its people.
type fixture struct {
	board  *board.Board
	bot    *board.Forge
	folder string
	source string
	names  atomic.Int64
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	database := testkit.SQLite(t, sqlite.Open)
	folder := filepath.Dir(database)
	kept, err := sqlite.Open(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := kept.Close(); err != nil {
			t.Error(err)
		}
	})
	made, err := board.Open(board.Options{Store: kept, Folder: filepath.Join(folder, "repositories"), URL: "http://127.0.0.1:8080/"})
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{board: made, bot: made.As("Toryo-Bot"), folder: folder, source: filepath.Join(folder, "source")}
	check(t, made.AddUser(t.Context(), "Toryo-Bot", forge.WriteAccess))
	check(t, os.Mkdir(f.source, 0o700))
	f.git(t, f.source, "init", "-q", "-b", "main")
	f.write(t, f.source, map[string]string{"README.md": "one\ntwo\nthree\n"})
	f.git(t, f.source, "commit", "-q", "-m", "Begin")
	return f
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (f *fixture) git(t testing.TB, folder string, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "git", args...)
	command.Dir = folder
	command.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

func (f *fixture) write(t testing.TB, folder string, files map[string]string) {
	t.Helper()
	for path, content := range files {
		target := filepath.Join(folder, filepath.FromSlash(path))
		check(t, os.MkdirAll(filepath.Dir(target), 0o700))
		check(t, os.WriteFile(target, []byte(content), 0o600))
		f.git(t, folder, "add", "--", path)
	}
}

func (f *fixture) Forge() forge.Forge { return f.bot }

func (f *fixture) freeName() string { return fmt.Sprint("owner/repository", f.names.Add(1)) }

func (f *fixture) Repository(t testing.TB) string {
	t.Helper()
	name := f.freeName()
	if _, err := f.board.Import(t.Context(), name, f.source); err != nil {
		t.Fatal(err)
	}
	return name
}

func (f *fixture) Person(t testing.TB, _ string, access forge.Access) string {
	t.Helper()
	login := fmt.Sprint("Person", f.names.Add(1))
	check(t, f.board.AddUser(t.Context(), login, access))
	return login
}

func (f *fixture) RemovePerson(t testing.TB, login string) {
	t.Helper()
	check(t, f.board.RemoveUser(t.Context(), login))
}

func (f *fixture) RenameRepository(t testing.TB, _ string) string {
	t.Helper()
	t.Fatal("repositories on the board are not renamed")
	return ""
}

func (f *fixture) Issue(t testing.TB, repository, author, title, body string) task.Key {
	t.Helper()
	item, err := f.board.As(author).CreateIssue(t.Context(), repository, forge.NewIssue{Title: title, Body: body})
	check(t, err)
	return item.Key
}

func (f *fixture) Comment(t testing.TB, key task.Key, author, body string) string {
	t.Helper()
	comment, err := f.board.As(author).AddComment(t.Context(), key, body)
	check(t, err)
	return comment.ID
}

func (f *fixture) EditComment(t testing.TB, key task.Key, author, id, body string) {
	t.Helper()
	_, err := f.board.As(author).ChangeComment(t.Context(), key, id, body)
	check(t, err)
}

func (f *fixture) RemoveComment(t testing.TB, key task.Key, author, id string) {
	t.Helper()
	if author == "" {
		author = f.Person(t, key.Repository, forge.AdminAccess)
	}
	check(t, f.board.As(author).DeleteComment(t.Context(), key, id))
}

func (f *fixture) Label(t testing.TB, key task.Key, actor string, on bool, labels ...string) {
	t.Helper()
	for _, label := range labels {
		if on {
			check(t, f.board.As(actor).AddLabel(t.Context(), key, label))
		} else {
			check(t, f.board.As(actor).RemoveLabel(t.Context(), key, label))
		}
	}
}

func (f *fixture) Assign(t testing.TB, key task.Key, actor string, logins ...string) {
	t.Helper()
	for _, login := range logins {
		check(t, f.board.As(actor).Assign(t.Context(), key, login))
	}
}

func (f *fixture) Close(t testing.TB, key task.Key, actor string) {
	t.Helper()
	check(t, f.board.As(actor).SetState(t.Context(), key, forge.Closed))
}

func (f *fixture) React(t testing.TB, key task.Key, actor string, reaction forge.Reaction) {
	t.Helper()
	check(t, f.board.As(actor).React(t.Context(), forge.Target{Key: key}, reaction))
}

func (f *fixture) Commit(t testing.TB, repository, branch string, files map[string]string) string {
	t.Helper()
	remote, err := f.bot.Remote(t.Context(), repository)
	check(t, err)
	clone := t.TempDir()
	f.git(t, clone, "clone", "-q", remote.URL, ".")
	branches, err := f.bot.Branches(t.Context(), repository)
	check(t, err)
	if slices.Contains(branches, branch) {
		f.git(t, clone, "checkout", "-q", branch)
	} else {
		f.git(t, clone, "checkout", "-q", "-b", branch)
	}
	f.write(t, clone, files)
	f.git(t, clone, "commit", "-q", "-m", "Change files")
	f.git(t, clone, "push", "-q", "origin", branch)
	return f.git(t, clone, "rev-parse", "HEAD")
}

func (f *fixture) Pull(t testing.TB, repository, author, head, base, title, body string) task.Key {
	t.Helper()
	anything := forge.Neutraliser{Repository: repository, Closes: f.closable(t, repository)}
	item, opened, err := f.board.As(author).OpenPull(t.Context(), repository, forge.PullPost{
		Title: anything.Title(title), Text: anything.Text(body), Head: head, Base: base,
	})
	check(t, err)
	if !opened {
		t.Fatalf("%s is open already", item.Key)
	}
	return item.Key
}

// closable returns all issues: a person may close what they like.
func (f *fixture) closable(t testing.TB, repository string) []task.Key {
	t.Helper()
	items, err := f.bot.List(t.Context(), forge.Query{Repository: repository, Kind: task.Issue})
	check(t, err)
	var keys []task.Key
	for _, item := range items {
		keys = append(keys, item.Key)
	}
	return keys
}

func (f *fixture) Review(t testing.TB, key task.Key, author string, verdict forge.Verdict, body string, comments map[forge.Anchor]string) {
	t.Helper()
	post := forge.ReviewPost{Verdict: verdict, Text: forge.Neutraliser{}.Text(body)}
	for anchor, text := range comments {
		post.Comments = append(post.Comments, forge.LineComment{Anchor: anchor, Text: forge.Neutraliser{}.Text(text)})
	}
	_, err := f.board.As(author).SubmitReview(t.Context(), key, post)
	check(t, err)
}

func (f *fixture) Reply(t testing.TB, key task.Key, author string, thread forge.ReviewThread, body string) string {
	t.Helper()
	made, err := f.board.As(author).AddReply(t.Context(), key, thread.ID, body)
	check(t, err)
	return made.ID
}

func (f *fixture) EditReview(t testing.TB, _ task.Key, _, _, _ string) {
	t.Helper()
	t.Fatal("reviews on the board are not changed")
}

func (f *fixture) Dismiss(t testing.TB, _ task.Key, _, _ string) {
	t.Helper()
	t.Fatal("reviews on the board are not dismissed")
}

func (f *fixture) Merge(t testing.TB, key task.Key, actor string) {
	t.Helper()
	_, err := f.board.As(actor).Merge(t.Context(), key)
	check(t, err)
}

func (f *fixture) Check(t testing.TB, _, _, _ string, _ forge.StatusState, _ string) {
	t.Helper()
	t.Fatal("the board has no jobs that print logs")
}
