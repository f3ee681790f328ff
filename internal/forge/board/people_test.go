package board_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/board"
	"github.com/toryo-dev/toryo/internal/store/sqlite"
	"github.com/toryo-dev/toryo/internal/task"
)

func TestLoginOf(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"alice":                             "alice",
		"Night shift":                       "Night-shift",
		`DOMAIN\bob`:                        "DOMAIN-bob",
		"bob@example.com":                   "bob-example.com",
		"  .hidden ":                        "hidden",
		"夜勤 A":                              "A",
		strings.Repeat("a", 50):             strings.Repeat("a", 39),
		strings.Repeat("a", 38) + " second": strings.Repeat("a", 38),
	} {
		login, ok := new(board.Board).LoginOf(name)
		if login != want || !ok {
			t.Errorf("%q becomes %q, %v, want %q", name, login, ok, want)
		}
	}
	for _, name := range []string{"", "夜勤", "---", "Ghost", "\x00"} {
		if login, ok := new(board.Board).LoginOf(name); ok {
			t.Errorf("%q becomes %q", name, login)
		}
	}
}

func TestWelcome(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var group sync.WaitGroup
	var made atomic.Int64
	for range 8 {
		group.Go(func() {
			first, err := f.board.EnsureUser(t.Context(), "alice", forge.ReadAccess)
			if err != nil {
				t.Error(err)
			}
			if first {
				made.Add(1)
			}
		})
	}
	group.Wait()
	if made.Load() != 1 {
		t.Errorf("the account was made %d times", made.Load())
	}
	// What an administrator decided about an account stays.
	if _, err := f.board.EnsureUser(t.Context(), "ALICE", forge.AdminAccess); err != nil {
		t.Error(err)
	}
	users, err := f.board.Users(t.Context())
	if err != nil || users[len(users)-1] != (board.User{Login: "alice", Access: forge.ReadAccess}) {
		t.Errorf("users %v, %v", users, err)
	}
	check(t, f.board.RemoveUser(t.Context(), "alice"))
	_, err = f.board.EnsureUser(t.Context(), "alice", forge.ReadAccess)
	wantCode(t, "an account that was removed", err, task.Forbidden)
	_, err = f.board.EnsureUser(t.Context(), "ghost", forge.ReadAccess)
	wantCode(t, "what cannot be a login", err, task.Invalid)
}

func TestBrowse(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx := t.Context()
	one, other := f.Repository(t), f.Repository(t)
	writer := f.Person(t, one, forge.WriteAccess)
	hands := f.board.As(writer)
	open := f.Issue(t, one, writer, "Open", "")
	closed := f.Issue(t, one, writer, "Closed", "")
	elsewhere := f.Issue(t, other, writer, "Elsewhere", "")
	f.Label(t, closed, writer, true, "a", "b")
	f.Label(t, open, writer, true, "a")
	f.Assign(t, elsewhere, writer, "Toryo-Bot")
	f.Close(t, closed, writer)
	for name, c := range map[string]struct {
		listing forge.Listing
		want    []task.Key
	}{
		"everything":      {forge.Listing{}, []task.Key{open, closed, elsewhere}},
		"one repository":  {forge.Listing{Repository: one}, []task.Key{open, closed}},
		"what is closed":  {forge.Listing{State: forge.Closed}, []task.Key{closed}},
		"one label":       {forge.Listing{Labels: []string{"a"}}, []task.Key{open, closed}},
		"two labels":      {forge.Listing{Labels: []string{"a", "b"}}, []task.Key{closed}},
		"an assignee":     {forge.Listing{Assignee: "toryo-bot"}, []task.Key{elsewhere}},
		"only pulls":      {forge.Listing{Kind: task.Pull}, nil},
		"a label missing": {forge.Listing{Labels: []string{"c"}}, nil},
	} {
		items, err := hands.Browse(ctx, c.listing)
		check(t, err)
		var got []string
		for _, item := range items {
			got = append(got, item.Key.String())
		}
		var want []string
		for _, key := range c.want {
			want = append(want, key.String())
		}
		if strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	_, err := hands.Browse(ctx, forge.Listing{Repository: "no/such"})
	wantCode(t, "a repository that is not there", err, task.NotFound)
	_, err = f.board.As(f.Person(t, one, forge.NoAccess)).Browse(ctx, forge.Listing{})
	wantCode(t, "without access", err, task.NotFound)
}

// What a person writes is kept as it is, and a command in it is meant.
func TestPeopleMeanWhatTheyWrite(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx := t.Context()
	name := f.Repository(t)
	writer, reviewer := f.Person(t, name, forge.WriteAccess), f.Person(t, name, forge.WriteAccess)
	issue := f.Issue(t, name, writer, "To be closed", "")
	f.Commit(t, name, "topic", map[string]string{"new.txt": "1\n2\n"})
	text := "/done, @alice <!-- look --> closes #1"
	item, opened, err := f.board.As(writer).CreatePull(ctx, name, forge.NewPull{Title: " Change\nit\x07 ", Body: text, Head: "topic"})
	if err != nil || !opened || item.Body != text || item.Title != "Change it" || item.Base != "main" {
		t.Fatalf("opened %+v, %v, %v", item, opened, err)
	}
	again, opened, err := f.board.As(writer).CreatePull(ctx, name, forge.NewPull{Title: "Again", Head: "topic"})
	if err != nil || opened || again.Key != item.Key {
		t.Errorf("a second time: %+v, %v, %v", again, opened, err)
	}
	line := forge.Anchor{Path: "new.txt", Side: forge.NewSide, Line: 2}
	review, err := f.board.As(reviewer).AddReview(ctx, item.Key, forge.NewReview{
		Verdict: forge.RequestChanges, Body: text, Lines: []forge.LineRemark{{Anchor: line, Body: "@bob, why?"}},
	})
	if err != nil || review.Body != text || review.Verdict != forge.RequestChanges {
		t.Fatalf("reviewed %+v, %v", review, err)
	}
	threads, err := f.bot.ReviewThreads(ctx, item.Key)
	check(t, err)
	if _, err := f.board.As(writer).AddReply(ctx, item.Key, threads[0].ID, "Because, @"+reviewer); err != nil {
		t.Error(err)
	}
	_, err = f.board.As(writer).AddReply(ctx, item.Key, "none", "x")
	wantCode(t, "a thread that is not there", err, task.NotFound)
	_, err = f.board.As(writer).AddReply(ctx, item.Key, threads[0].ID, " \n")
	wantCode(t, "an empty answer", err, task.Invalid)
	threads, err = f.bot.ReviewThreads(ctx, item.Key)
	if err != nil || len(threads[0].Comments) != 2 || threads[0].Comments[0].Body != "@bob, why?" {
		t.Errorf("the thread is %+v, %v", threads, err)
	}
	if _, err := f.board.As(reviewer).AddReview(ctx, item.Key, forge.NewReview{Verdict: forge.Approve}); err != nil {
		t.Errorf("an approval needs no text: %v", err)
	}
	_, err = f.board.As(writer).AddReview(ctx, item.Key, forge.NewReview{Verdict: forge.Approve})
	wantCode(t, "approving one's own", err, task.Invalid)
	f.Merge(t, item.Key, writer)
	if closed, err := f.bot.Item(ctx, issue); err != nil || closed.State != forge.Closed {
		t.Errorf("the issue is %+v, %v", closed, err)
	}
}

func TestTitles(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	name := f.Repository(t)
	for _, title := range []string{"", " \t\n", "\x00\x07", strings.Repeat("é", 501)} {
		_, err := f.bot.CreateIssue(t.Context(), name, forge.NewIssue{Title: title})
		wantCode(t, "the title "+title, err, task.Invalid)
	}
	item, err := f.bot.CreateIssue(t.Context(), name, forge.NewIssue{Title: "one\r\n two"})
	if err != nil || item.Title != "one two" {
		t.Errorf("the title is %q, %v", item.Title, err)
	}
}

// An issue is there with its labels and assignees, or not at all.
func TestIssueWithLabelsAndAssignees(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx := t.Context()
	name := f.Repository(t)
	whole := forge.NewIssue{Title: "t", Labels: []string{"a", "b"}, Assignees: []string{"toryo-bot"}}
	_, err := f.board.As(f.Person(t, name, forge.ReadAccess)).CreateIssue(ctx, name, whole)
	wantCode(t, "a reader who labels", err, task.Forbidden)
	for _, bad := range []forge.NewIssue{{Title: "t", Labels: []string{"a", " b"}}, {Title: "t", Assignees: []string{"Toryo-Bot", "nobody"}}} {
		_, err := f.bot.CreateIssue(ctx, name, bad)
		wantCode(t, "a label or an assignee that cannot be", err, task.Invalid)
	}
	item, err := f.bot.CreateIssue(ctx, name, whole)
	check(t, err)
	if item.Key.Number != 1 || strings.Join(item.Labels, " ") != "a b" || strings.Join(item.Assignees, " ") != "Toryo-Bot" {
		t.Errorf("opened %+v", item)
	}
	timeline, err := f.bot.Timeline(ctx, item.Key)
	if err != nil || len(timeline) != 3 {
		t.Errorf("the timeline is %+v, %v", timeline, err)
	}
}

// second opens the same board as another process does.
func (f *fixture) second(t *testing.T) *board.Board {
	t.Helper()
	kept, err := sqlite.Open(t.Context(), filepath.Join(f.folder, "toryo.db"))
	check(t, err)
	t.Cleanup(func() { check(t, kept.Close()) })
	opened, err := board.Open(board.Options{Store: kept, Folder: filepath.Join(f.folder, "repositories")})
	check(t, err)
	return opened
}

// Two processes that work on one board do not make the same thing twice.
func TestTwoProcesses(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	boards := []*board.Board{f.board, f.second(t)}
	var group sync.WaitGroup
	var made, taken atomic.Int64
	for i := range 6 {
		group.Go(func() {
			_, err := boards[i%2].Import(t.Context(), "owner/name", f.source)
			switch task.CodeOf(err) {
			case "":
				made.Add(1)
			case task.Conflict:
				taken.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	group.Wait()
	if made.Load() != 1 || taken.Load() != 5 {
		t.Fatalf("imported %d times, refused %d times", made.Load(), taken.Load())
	}
	f.Commit(t, "owner/name", "topic", map[string]string{"x": "x\n"})
	var opened atomic.Int64
	for i := range 6 {
		group.Go(func() {
			_, first, err := boards[i%2].As("Toryo-Bot").CreatePull(t.Context(), "owner/name", forge.NewPull{Title: "t", Head: "topic"})
			if err != nil {
				t.Error(err)
			}
			if first {
				opened.Add(1)
			}
		})
	}
	group.Wait()
	if opened.Load() != 1 {
		t.Errorf("opened %d times", opened.Load())
	}
}

// A password in the address reaches the server that it is for, and no message.
func TestImportWithAPassword(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	given := make(chan string, 16)
	stranger := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("asked elsewhere with %q", r.Header.Get("Authorization"))
		w.WriteHeader(http.StatusNotFound)
	}))
	defer stranger.Close()
	asked := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		given <- user + " " + password
		http.Redirect(w, r, stranger.URL+r.URL.Path, http.StatusFound)
	}))
	defer asked.Close()
	address := strings.Replace(asked.URL, "http://", "http://alice:hunter2secret@", 1) + "/app"
	_, err := f.board.Import(t.Context(), "owner/app", address)
	wantCode(t, "a repository that is elsewhere", err, task.Invalid)
	if strings.Contains(err.Error(), "hunter2secret") || strings.Contains(err.Error(), "\n") {
		t.Errorf("the error says %v", err)
	}
	if got := <-given; got != "alice hunter2secret" {
		t.Errorf("the server was given %q", got)
	}
}

// An import uses the proxy that everything else uses, and none to this machine itself.
func TestImportThroughAProxy(t *testing.T) {
	asked := make(chan string, 16)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Host
		w.WriteHeader(http.StatusNotFound)
	}))
	defer proxy.Close()
	for _, name := range []string{"http_proxy", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY"} {
		t.Setenv(name, "")
	}
	t.Setenv("HTTP_PROXY", proxy.URL)
	f := newFixture(t)
	_, err := f.board.Import(t.Context(), "owner/app", "http://git.example.com/app")
	wantCode(t, "a repository that is not there", err, task.Invalid)
	_, err = f.board.Import(t.Context(), "owner/app", "http://127.0.0.1:1/app")
	wantCode(t, "a server that is not there", err, task.Invalid)
	if len(asked) == 0 {
		t.Error("the proxy was not asked")
	}
	close(asked)
	for host := range asked {
		if host != "git.example.com" {
			t.Errorf("the proxy was asked for %s", host)
		}
	}
}

func TestImportThatIsBrokenOff(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx, cancel := context.WithCancel(t.Context())
	hangs := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	}))
	defer hangs.Close()
	_, err := f.board.Import(ctx, "owner/app", hangs.URL)
	if err == nil {
		t.Error("imported from a server that does not answer")
	}
	left, err := os.ReadDir(filepath.Join(f.folder, "repositories"))
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestUnassign(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx := t.Context()
	name := f.Repository(t)
	writer, reader := f.Person(t, name, forge.WriteAccess), f.Person(t, name, forge.ReadAccess)
	key := f.Issue(t, name, writer, "An issue", "")
	f.Assign(t, key, writer, writer, "Toryo-Bot")
	wantCode(t, "by someone who may only read", f.board.As(reader).Unassign(ctx, key, writer), task.Forbidden)
	for range 2 {
		check(t, f.board.As(writer).Unassign(ctx, key, "TORYO-BOT"))
	}
	check(t, f.board.As(writer).Unassign(ctx, key, "no-such-person-here"))
	item, err := f.bot.Item(ctx, key)
	check(t, err)
	if len(item.Assignees) != 1 || !item.AssignedTo(writer) {
		t.Errorf("assigned to %q, want %q", item.Assignees, writer)
	}
}

// Who may only read neither merges nor resolves the threads of others' pull requests.
func TestReadersNeitherMergeNorResolve(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx := t.Context()
	name := f.Repository(t)
	head := f.Commit(t, name, "topic", map[string]string{"x": "x\n"})
	key := f.Pull(t, name, f.Person(t, name, forge.WriteAccess), "topic", "main", "A change", "")
	reader := f.Person(t, name, forge.ReadAccess)
	f.Review(t, key, reader, forge.Remark, "", map[forge.Anchor]string{{Path: "x", Side: forge.NewSide, Line: 1}: "Why?"})
	threads, err := f.bot.ReviewThreads(ctx, key)
	check(t, err)
	wantCode(t, "a reader who resolves", f.board.As(reader).ResolveThread(ctx, key, threads[0].ID), task.Forbidden)
	wantCode(t, "a reader who merges", f.board.As(reader).MergePull(ctx, key, head), task.Forbidden)
	check(t, f.bot.ResolveThread(ctx, key, threads[0].ID))
	if reviews, err := f.bot.Reviews(ctx, key); err != nil || len(reviews) != 0 {
		t.Errorf("that a thread was resolved shows as a review: %+v, %v", reviews, err)
	}
}
