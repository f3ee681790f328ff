package gitlab_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/gitlab"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
	"github.com/toryo-dev/toryo/internal/testkit/forgeworld"
)

// scene is a project with an issue and a merge request, behind a proxy.
type scene struct {
	*forgeworld.Fixture
	server      *server
	proxy       *testkit.FaultProxy
	name        string
	author      string
	issue, pull task.Key
}

func newScene(t *testing.T) *scene {
	t.Helper()
	s := newServer(t)
	proxy := testkit.Faults(t, s.URL)
	made := &scene{Fixture: newFixture(t, s, proxy.URL), server: s, proxy: proxy}
	made.name = made.Repository(t)
	made.author = made.Person(t, made.name, forge.WriteAccess)
	made.issue = made.Issue(t, made.name, made.author, "An issue", "")
	made.Commit(t, made.name, "topic", map[string]string{"five": "1\n2\n3\n4\n5\n"})
	made.pull = made.Pull(t, made.name, made.author, "topic", "main", "A merge request", "")
	return made
}

// in does something to an item in the world.
func (s *scene) in(key task.Key, do func(*forgeworld.Item)) {
	s.server.world.Lock()
	defer s.server.world.Unlock()
	do(s.server.world.Repo(key.Repository).Item(key.Kind, key.Number))
}

func text(raw string) forge.Text { return forge.Neutraliser{}.Text(raw) }

func TestNew(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]gitlab.Options{
		"no token":                {},
		"an address without host": {URL: "https:///x", Token: "t"},
		"an address of files":     {URL: "file:///etc", Token: "t"},
	} {
		if _, err := gitlab.New(options); task.CodeOf(err) != task.BadConfig {
			t.Errorf("%s: %v", name, err)
		}
	}
	for address, want := range map[string]string{
		"":                               "https://gitlab.com/g/s/n.git",
		"https://git.example":            "https://git.example/g/s/n.git",
		"https://git.example/gitlab/":    "https://git.example/gitlab/g/s/n.git",
		"https://git.example/api/v4":     "https://git.example/g/s/n.git",
		"http://user:pw@127.0.0.1:8080/": "http://127.0.0.1:8080/g/s/n.git",
	} {
		made, err := gitlab.New(gitlab.Options{URL: address, Token: "t"})
		if err != nil {
			t.Fatal(err)
		}
		if remote, err := made.Remote(t.Context(), "g/s/n"); err != nil || remote.URL != want {
			t.Errorf("%q: %v, %v, want %s", address, remote, err, want)
		}
	}
}

// TestOneRequest makes sure that the SDK repeats nothing by itself and does not
// wait.
func TestOneRequest(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	for _, status := range []int{301, 401, 403, 429, 500, 502, 503} {
		before := len(s.proxy.Requests())
		header := map[string]string{"Retry-After": "3600", "RateLimit-Limit": "1", "RateLimit-Remaining": "0"}
		s.proxy.Next(http.MethodGet, "/issues/", testkit.Respond(status, header, `Retry later`))
		if _, err := s.Forge().Item(t.Context(), s.issue); err == nil {
			t.Errorf("%d is no error", status)
		}
		if got := len(s.proxy.Requests()) - before; got != 1 {
			t.Errorf("%d: %d requests", status, got)
		}
	}
}

// TestNonsense gives answers that are valid JSON and not what was asked for.
func TestNonsense(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	f, ctx := s.Forge(), t.Context()
	if _, err := f.Self(ctx); err != nil {
		t.Fatal(err)
	}
	for _, body := range []string{"", " ", "{}", "null", "[]", `"x"`, `[null]`, `{"id":"x"}`} {
		nonsense := testkit.Respond(200, map[string]string{"Content-Type": "application/json"}, body)
		title := text("t")
		calls := map[string]func() error{
			"GET /issues/":         func() error { _, err := f.Item(ctx, s.issue); return err },
			"GET /merge_requests/": func() error { _, err := f.Item(ctx, s.pull); return err },
			"POST /notes":          func() error { _, err := f.CreateComment(ctx, s.issue, forge.Post{Text: text("x")}); return err },
			"PUT /issues/":         func() error { return f.AddLabel(ctx, s.issue, "x") },
			"PUT /merge_requests/": func() error { _, err := f.EditPull(ctx, s.pull, forge.PullEdit{Title: &title}); return err },
			"POST /draft_notes": func() error {
				_, err := f.SubmitReview(ctx, s.pull, forge.ReviewPost{Verdict: forge.Remark})
				return err
			},
			"GET /projects/" + s.name: func() error { _, err := f.Repository(ctx, s.name); return err },
		}
		for name, call := range calls {
			method, part, _ := strings.Cut(name, " ")
			s.proxy.Next(method, part, nonsense)
			err := call()
			if task.CodeOf(err) != task.Unavailable {
				t.Errorf("%s: %q: %v", name, body, err)
			}
		}
		if body != "[]" && body != "null" { // those are a listing of nothing
			s.proxy.Next(http.MethodGet, "/notes", nonsense)
			if comments, err := f.Comments(ctx, s.issue); task.CodeOf(err) != task.Unavailable {
				t.Errorf("comments: %q: %v, %v", body, comments, err)
			}
		}
	}
	if left := s.proxy.Left(); left != 0 {
		t.Errorf("%d answers were not asked for", left)
	}
}

// GitLab leaves an issue behind, closed, when it is moved to another project.
func TestMovedIssue(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.in(s.issue, func(item *forgeworld.Item) {
		item.Events = append(item.Events, &forgeworld.Event{ID: s.server.world.NextID(), Kind: "moved", Label: "other/project#12", Actor: item.Author, At: forgeworld.Now()})
	})
	if _, err := s.Forge().Item(t.Context(), s.issue); task.CodeOf(err) != task.NotFound {
		t.Errorf("a moved issue: %v", err)
	}
}

// TestRedirectedAway makes sure that our token goes to its forge only.
func TestRedirectedAway(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("%s was followed to another host, with %q", r.URL, r.Header.Get("Private-Token"))
	}))
	t.Cleanup(elsewhere.Close)
	for _, location := range []string{elsewhere.URL + "/api/v4/projects/1/issues/1", "//other.example/api/v4/x", ""} {
		s.proxy.Next(http.MethodGet, "/issues/", testkit.Respond(301, map[string]string{"Location": location}, "moved"))
		if _, err := s.Forge().Item(t.Context(), s.issue); task.CodeOf(err) != task.NotFound {
			t.Errorf("%q: %v", location, err)
		}
	}
}

// TestFreeTier has one assignee at most: whoever is assigned stays.
func TestFreeTier(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.server.freeTier = true
	f, ctx := s.Forge(), t.Context()
	self := s.Bot.Login
	for _, key := range []task.Key{s.issue, s.pull} {
		if err := f.Assign(ctx, key, self); err != nil {
			t.Fatal(err)
		}
		s.in(key, func(item *forgeworld.Item) { item.Assign(item.Author, s.Owner) })
		err := f.Assign(ctx, key, s.author)
		if task.CodeOf(err) != task.Invalid {
			t.Errorf("a second assignee: %v", err)
		}
		item, err := f.Item(ctx, key)
		if err != nil || !slices.Equal(item.Assignees, []string{s.Owner.Login}) {
			t.Errorf("assigned to %q, %v", item.Assignees, err)
		}
	}
}

// TestInternalNotes are not for everyone who can read the item.
func TestInternalNotes(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.server.secret = "under the mat"
	for _, key := range []task.Key{s.issue, s.pull} {
		s.Comment(t, key, s.author, "Where is the key?")
		s.Comment(t, key, s.author, "It is under the mat.")
		comments, err := s.Forge().Comments(t.Context(), key)
		if err != nil || len(comments) != 1 || comments[0].Body != "Where is the key?" {
			t.Errorf("%s has the comments %+v, %v", key, comments, err)
		}
	}
	at := forge.Anchor{Path: "five", Side: forge.NewSide, Line: 3}
	s.Review(t, s.pull, s.author, forge.Remark, "", map[forge.Anchor]string{at: "See under the mat."})
	if threads, err := s.Forge().ReviewThreads(t.Context(), s.pull); err != nil || len(threads) != 0 {
		t.Errorf("there are the threads %+v, %v", threads, err)
	}
}

// TestTriage tells members who may label and assign from guests, who can do so only on
// what they open.
func TestTriage(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	f, can := s.Forge().(forge.Triage)
	if !can {
		t.Fatal("the adapter does not say who may label and assign")
	}
	ctx := t.Context()
	guest := s.Person(t, s.name, forge.ReadAccess)
	s.server.guest = guest
	reporter, stranger := s.Person(t, s.name, forge.ReadAccess), s.Person(t, s.name, forge.NoAccess)
	for login, want := range map[string]bool{s.author: true, reporter: true, guest: false, stranger: false, "no-such-person": false, forge.Ghost: false} {
		if may, err := f.MayTriage(ctx, s.name, login); err != nil || may != want {
			t.Errorf("%s may: %v, %v", login, may, err)
		}
	}
	wantBy := func(key task.Key, want string) {
		t.Helper()
		if by, err := f.AssignedBy(ctx, key, strings.ToUpper(s.Bot.Login)); err != nil || by != want {
			t.Errorf("%s was assigned by %q, %v; want %q", key, by, err, want)
		}
	}
	opened := s.Issue(t, s.name, guest, "Do as I say", "")
	s.in(opened, func(item *forgeworld.Item) { item.Assignees = []*forgeworld.User{s.Bot} }) // with the issue
	s.Comment(t, opened, guest, "assigned to @"+s.Bot.Login)                                 // which is not GitLab's
	wantBy(opened, guest)
	s.Assign(t, opened, s.author)
	s.Assign(t, opened, s.author, s.Bot.Login)
	wantBy(opened, s.author)
	s.Assign(t, opened, guest) // "unassigned" is no assignment
	wantBy(opened, s.author)
	s.RemovePerson(t, s.author)
	wantBy(opened, forge.Ghost)
}

// TestLostApproval publishes a review and fails to approve: repeated, only the
// approval is made up for.
func TestLostApproval(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	f, ctx := s.Forge(), t.Context()
	post := forge.ReviewPost{
		Verdict: forge.Approve, Text: text("Good."), Marker: forge.MarkerOf("review"),
		Comments: []forge.LineComment{{Anchor: forge.Anchor{Path: "five", Side: forge.NewSide, Line: 3}, Text: text("Nice.")}},
	}
	s.proxy.Next(http.MethodPost, "/approve", testkit.Respond(500, nil, `{}`))
	if _, err := f.SubmitReview(ctx, s.pull, post); task.CodeOf(err) != task.Unavailable {
		t.Fatalf("%v", err)
	}
	reviews, err := f.Reviews(ctx, s.pull)
	if err != nil || len(reviews) != 1 || !reviews[0].Dismissed {
		t.Errorf("without the approval: %+v, %v", reviews, err)
	}
	post.Repeat = true
	for range 2 {
		if _, err := f.SubmitReview(ctx, s.pull, post); err != nil {
			t.Fatal(err)
		}
	}
	reviews, err = f.Reviews(ctx, s.pull)
	if err != nil || len(reviews) != 1 || reviews[0].Dismissed || reviews[0].Verdict != forge.Approve || reviews[0].Body != post.Body() {
		t.Errorf("reviews %+v, %v", reviews, err)
	}
	threads, err := f.ReviewThreads(ctx, s.pull)
	if err != nil || len(threads) != 1 || len(threads[0].Comments) != 1 {
		t.Errorf("threads %+v, %v", threads, err)
	}
	if comments, err := f.Comments(ctx, s.pull); err != nil || len(comments) != 0 {
		t.Errorf("the review is in the conversation: %v, %v", comments, err)
	}
}

func TestRefusalsOfReviews(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	f, ctx := s.Forge(), t.Context()
	post := forge.ReviewPost{Verdict: forge.Remark, Text: text("x"), Commit: strings.Repeat("a", 40)}
	if _, err := f.SubmitReview(ctx, s.pull, post); task.CodeOf(err) != task.Conflict {
		t.Errorf("a review of an old head: %v", err)
	}
	post.Commit = ""
	post.Comments = []forge.LineComment{{Anchor: forge.Anchor{Path: "five", Side: forge.NewSide, Line: 99}, Text: text("x")}}
	if _, err := f.SubmitReview(ctx, s.pull, post); task.CodeOf(err) != task.Invalid {
		t.Errorf("a comment on a line that is not there: %v", err)
	}
	// The head moves between the publication and the approval.
	post = forge.ReviewPost{Verdict: forge.Approve, Text: text("x"), Marker: forge.MarkerOf("m")}
	s.proxy.Next(http.MethodPost, "/approve", testkit.Respond(409, nil, `{"message":"SHA does not match HEAD of source branch"}`))
	if _, err := f.SubmitReview(ctx, s.pull, post); task.CodeOf(err) != task.Conflict {
		t.Errorf("the head moved: %v", err)
	}
}

// TestTimesOfReviews tells reviews of one person apart: GitLab says of a reviewer only when
// they were made one.
func TestTimesOfReviews(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	f, ctx := s.Forge(), t.Context()
	reviewer, other := s.Person(t, s.name, forge.WriteAccess), s.Person(t, s.name, forge.WriteAccess)
	own, err := f.SubmitReview(ctx, s.pull, forge.ReviewPost{Verdict: forge.RequestChanges, Text: text("Not yet.")})
	if err != nil {
		t.Fatal(err)
	}
	last := func() forge.Review {
		t.Helper()
		reviews, err := f.Reviews(ctx, s.pull)
		if err != nil || len(reviews) == 0 {
			t.Fatalf("reviews %+v, %v", reviews, err)
		}
		return reviews[len(reviews)-1]
	}
	seen := map[string]bool{own.ID: true}
	at := own.At
	for _, verdict := range []forge.Verdict{forge.RequestChanges, forge.RequestChanges, forge.Remark, forge.Remark, forge.RequestChanges} {
		at = at.Add(time.Minute)
		s.Review(t, s.pull, reviewer, verdict, "", nil)
		s.in(s.pull, func(item *forgeworld.Item) { item.Reviews[len(item.Reviews)-1].At = at })
		got := last()
		if got.Author != reviewer || got.Verdict != verdict || !got.At.Equal(at) || seen[got.ID] {
			t.Errorf("a review at %s is %+v", at, got)
		}
		if again := last(); again != got {
			t.Errorf("%+v is %+v when it is read again", got, again)
		}
		seen[got.ID] = true
		// People can write the words of GitLab's notes, and others can decide alike.
		s.Comment(t, s.pull, reviewer, "requested changes")
		s.Review(t, s.pull, other, verdict, "", nil)
	}
	var opened time.Time
	s.in(s.pull, func(item *forgeworld.Item) { opened, s.server.noNotes = item.CreatedAt, true })
	reviews, err := f.Reviews(ctx, s.pull)
	is := func(r forge.Review) bool { return r.Author == reviewer && r.At.Equal(opened) && r.ID != "" }
	if err != nil || !slices.ContainsFunc(reviews, is) {
		t.Errorf("without notes: %+v, %v", reviews, err)
	}
}

// TestTimeOfApproval is when it was given, also on servers that do not say so with it.
func TestTimeOfApproval(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.server.noApprovedAt = true
	reviewer := s.Person(t, s.name, forge.WriteAccess)
	s.Review(t, s.pull, reviewer, forge.Approve, "", nil)
	var at time.Time
	s.in(s.pull, func(item *forgeworld.Item) {
		at = item.Reviews[0].At
		item.UpdatedAt = at.Add(time.Hour)
	})
	reviews, err := s.Forge().Reviews(t.Context(), s.pull)
	if err != nil || len(reviews) != 1 || !reviews[0].At.Equal(at) {
		t.Errorf("approved at %s: %+v, %v", at, reviews, err)
	}
}

// TestForgedReview has someone else write what we hide in our reviews.
func TestForgedReview(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	id := s.Comment(t, s.pull, s.author, "Look.\n\n<!-- toryo-review: approve aaaa -->")
	reviews, err := s.Forge().Reviews(t.Context(), s.pull)
	if err != nil || len(reviews) != 0 {
		t.Errorf("reviews %+v, %v", reviews, err)
	}
	comments, err := s.Forge().Comments(t.Context(), s.pull)
	if err != nil || len(comments) != 1 || comments[0].ID != id {
		t.Errorf("comments %+v, %v", comments, err)
	}
}

func TestThreads(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	comments := map[forge.Anchor]string{}
	for line := 1; line <= 3; line++ {
		comments[forge.Anchor{Path: "five", Side: forge.NewSide, Line: line}] = "x"
	}
	s.Review(t, s.pull, s.author, forge.Remark, "", comments)
	s.in(s.pull, func(item *forgeworld.Item) { item.Threads[1].Resolved = true })
	got, err := s.Forge().ReviewThreads(t.Context(), s.pull)
	if err != nil || len(got) != 3 {
		t.Fatalf("%d threads, %v", len(got), err)
	}
	for i, thread := range got {
		if thread.Resolved != (i == 1) || thread.Outdated || thread.Anchor.Line != i+1 {
			t.Errorf("thread %d: %+v", i, thread)
		}
	}
	s.Commit(t, s.name, "topic", map[string]string{"five": "changed\n"})
	got, err = s.Forge().ReviewThreads(t.Context(), s.pull)
	if err != nil || len(got) != 3 || !got[0].Outdated || got[0].Anchor != (forge.Anchor{Path: "five", Side: forge.NewSide}) {
		t.Errorf("after a push: %+v, %v", got, err)
	}
}

// TestUnchangedLine comments on a line that the diff shows and does not change:
// GitLab wants both of its numbers.
func TestUnchangedLine(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.Commit(t, s.name, "shifted", map[string]string{"README.md": "zero\none\ntwo\nthree\n"})
	pull := s.Pull(t, s.name, s.author, "shifted", "main", "Shift", "")
	var sent string
	s.proxy.Next(http.MethodPost, "/draft_notes", func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
		sent = bodyOf(t, r)
		forward.ServeHTTP(w, r)
	})
	anchor := forge.Anchor{Path: "README.md", Side: forge.NewSide, Line: 3}
	_, err := s.Forge().SubmitReview(t.Context(), pull, forge.ReviewPost{Verdict: forge.Remark, Text: text("x"), Comments: []forge.LineComment{{Anchor: anchor, Text: text("y")}}})
	if err != nil || !strings.Contains(sent, `"old_line":2`) || !strings.Contains(sent, `"new_line":3`) {
		t.Errorf("sent %s, %v", sent, err)
	}
}

func TestStatusAgain(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	f, ctx := s.Forge(), t.Context()
	pull, err := f.Item(ctx, s.pull)
	if err != nil {
		t.Fatal(err)
	}
	status := forge.CommitStatus{Commit: pull.HeadCommit, Context: "toryo/tests", State: forge.StatusPending, Description: "at work"}
	for range 2 { // GitLab refuses the second
		if err := f.SetStatus(ctx, s.name, status); err != nil {
			t.Error(err)
		}
	}
	status.State = forge.StatusSuccess
	if err := f.SetStatus(ctx, s.name, status); err != nil {
		t.Error(err)
	}
	s.proxy.Next(http.MethodPost, "/statuses/", testkit.Respond(400, nil, `{"message":"Cannot transition status via :drop from :success"}`))
	status.State = forge.StatusFailure
	if err := f.SetStatus(ctx, s.name, status); task.CodeOf(err) != task.Invalid {
		t.Errorf("a status that GitLab does not take: %v", err)
	}
}

func TestForgottenLabel(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.Label(t, s.issue, s.author, true, "gone", "there")
	s.in(s.issue, func(item *forgeworld.Item) { item.Repo.Labels = []string{"there"} })
	events, err := s.Forge().LabelEvents(t.Context(), s.issue)
	if err != nil || len(events) != 1 || events[0].Label != "there" {
		t.Errorf("events %+v, %v", events, err)
	}
}

// TestRecordedAnswers reads what gitlab.com really answered.
func TestRecordedAnswers(t *testing.T) {
	t.Parallel()
	const name = "forgejo/test_repo"
	files := map[string]string{
		"":                            recordings["project"],
		"/issues":                     recordings["issue"],
		"/merge_requests/1":           recordings["request"],
		"/merge_requests/1/approvals": recordings["approvals"],
		"/issues/1/award_emoji":       recordings["award"],
	}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rest := strings.TrimPrefix(r.URL.Path, "/api/v4/projects/"+name)
		file, known := files[rest]
		if !known {
			t.Errorf("no recording of %s", r.URL)
			http.NotFound(w, r)
			return
		}
		_, body := recording(t, file)
		_, _ = w.Write(body)
	}))
	t.Cleanup(front.Close)
	f, err := gitlab.New(gitlab.Options{URL: front.URL, Token: "t"})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	repository, err := f.Repository(ctx, name)
	want := forge.Repository{Name: name, DefaultBranch: "master", URL: "https://gitlab.com/forgejo/test_repo"}
	if diff := cmp.Diff(want, repository); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	items, err := f.List(ctx, forge.Query{Repository: name, Kind: task.Issue})
	if err != nil || len(items) != 2 || items[0].Key.Number != 1 || items[0].Title != "Please add an animated gif icon to the merge button" ||
		items[0].State != forge.Closed || items[0].Author != "mkobel" || !items[0].HasLabel("discussion") || items[0].CreatedAt.Year() != 2024 {
		t.Errorf("issues %+v, %v", items, err)
	}
	pull, err := f.Item(ctx, task.Key{Forge: task.GitLab, Repository: name, Kind: task.Pull, Number: 1})
	if err != nil || pull.Title != "Test branch" || pull.Head != "feat/test" || pull.Base != "master" || pull.Fork || len(pull.HeadCommit) != 40 || pull.State != forge.Open {
		t.Errorf("merge request %+v, %v", pull, err)
	}
	reactions, err := f.Reactions(ctx, forge.Target{Key: items[0].Key})
	if diff := cmp.Diff([]forge.ReactionBy{{Reaction: forge.ThumbsUp, Login: "mkobel"}}, reactions); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
}

// What people have said that an issue waits for, apart from its text.
func TestDependencies(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	on, can := s.Forge().(forge.Dependent)
	if !can {
		t.Fatal("the adapter does not know what issues wait for")
	}
	if found, err := on.Dependencies(t.Context(), s.issue); err != nil || len(found) != 0 {
		t.Errorf("an issue that waits for nothing waits for %v, %v", found, err)
	}
	var want []task.Key
	for i := range 120 { // more than a page has
		on := s.Issue(t, s.name, s.author, fmt.Sprint("Before ", i), "")
		want = append(want, on)
		s.in(s.issue, func(item *forgeworld.Item) { item.WaitsFor = append(item.WaitsFor, item.Repo.Item(on.Kind, on.Number)) })
	}
	// Links of other kinds do not count.
	related := s.Issue(t, s.name, s.author, "Besides", "")
	s.in(s.issue, func(item *forgeworld.Item) {
		to := item.Repo.Item(related.Kind, related.Number)
		to.State = forge.Closed
		item.WaitsFor = append(item.WaitsFor, to)
	})
	found, err := on.Dependencies(t.Context(), s.issue)
	if err != nil || !cmp.Equal(found, want) {
		t.Errorf("it waits for %d issues, %v", len(found), err)
	}
	if found, err := on.Dependencies(t.Context(), s.pull); err != nil || len(found) != 0 {
		t.Errorf("a pull request waits for %v, %v", found, err)
	}
	s.proxy.Next(http.MethodGet, "/links", testkit.Respond(http.StatusServiceUnavailable, nil, "{}"))
	if _, err := on.Dependencies(t.Context(), s.issue); task.CodeOf(err) != task.Unavailable {
		t.Errorf("when the forge is down: %v", err)
	}
}
