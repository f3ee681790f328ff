package github_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
	"github.com/toryo-dev/toryo/internal/testkit/forgeworld"
)

// scene is a repository with an issue and a pull request, behind a proxy.
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
	made.pull = made.Pull(t, made.name, made.author, "topic", "main", "A pull request", "")
	return made
}

// in does something to an item in the world.
func (s *scene) in(key task.Key, do func(*forgeworld.Item)) {
	s.server.world.Lock()
	defer s.server.world.Unlock()
	do(s.server.world.Repo(key.Repository).Item(key.Kind, key.Number))
}

func text(raw string) forge.Text { return forge.Neutraliser{}.Text(raw) }

func TestSecondaryLimit(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	limits := map[string]struct {
		status int
		header map[string]string
		body   string
		wait   time.Duration
	}{
		"without a time": {403, map[string]string{"X-RateLimit-Remaining": "4999"},
			`{"message":"You have exceeded a secondary rate limit.","documentation_url":"https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api#about-secondary-rate-limits"}`, time.Minute},
		"with a time": {403, map[string]string{"Retry-After": "30"},
			`{"message":"You have exceeded a secondary rate limit.","documentation_url":"https://docs.github.com/free-pro-team@latest/rest/overview/resources-in-the-rest-api#secondary-rate-limits"}`, 30 * time.Second},
		"too many requests": {429, nil, `{"message":"slow down","documentation_url":"https://docs.github.com/#secondary-rate-limits"}`, time.Minute},
	}
	for name, limit := range limits {
		s.proxy.Next(http.MethodPost, "/comments", testkit.Respond(limit.status, limit.header, limit.body))
		_, err := s.Forge().CreateComment(t.Context(), s.issue, forge.Post{Text: text("x")})
		if task.CodeOf(err) != task.Unavailable || forge.RetryAfter(err) != limit.wait {
			t.Errorf("%s: %v has the code %s, wait %s", name, err, task.CodeOf(err), forge.RetryAfter(err))
		}
	}
}

// TestEmptyRepository has a default branch, as GitHub says, that is not there yet.
func TestEmptyRepository(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.proxy.Next(http.MethodGet, "/branches/", testkit.Respond(404, nil, `{"message":"Branch not found"}`))
	repository, err := s.Forge().Repository(t.Context(), s.name)
	if err != nil || repository.Name != s.name || repository.DefaultBranch != "" {
		t.Errorf("read %+v, %v", repository, err)
	}
	for _, body := range []string{"{}", "null", `{"name":"other"}`} {
		s.proxy.Next(http.MethodGet, "/branches/", testkit.Respond(200, map[string]string{"Content-Type": "application/json"}, body))
		if _, err := s.Forge().Repository(t.Context(), s.name); task.CodeOf(err) != task.Unavailable {
			t.Errorf("%s: %v", body, err)
		}
	}
}

// TestOneRequest makes sure that the SDK repeats nothing by itself.
func TestOneRequest(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	for _, status := range []int{202, 301, 401, 403, 429, 500, 502, 503} {
		before := len(s.proxy.Requests())
		s.proxy.Next(http.MethodGet, "/issues/", testkit.Respond(status, map[string]string{"Retry-After": "0"}, `{}`))
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
	for _, body := range []string{"", " ", "{}", "null", "[]", `"x"`, `[null]`, `{"id":"x"}`} {
		for _, status := range []int{200, 201} {
			nonsense := testkit.Respond(status, map[string]string{"Content-Type": "application/json"}, body)
			calls := map[string]func() error{
				"GET /issues/":    func() error { _, err := f.Item(ctx, s.issue); return err },
				"GET /pulls/":     func() error { _, err := f.Item(ctx, s.pull); return err },
				"POST /comments":  func() error { _, err := f.CreateComment(ctx, s.issue, forge.Post{Text: text("x")}); return err },
				"POST /assignees": func() error { return f.Assign(ctx, s.issue, s.author) },
				"POST /reviews": func() error {
					_, err := f.SubmitReview(ctx, s.pull, forge.ReviewPost{Verdict: forge.Remark, Text: text("x")})
					return err
				},
				"PATCH /pulls/": func() error {
					title := text("t")
					_, err := f.EditPull(ctx, s.pull, forge.PullEdit{Title: &title})
					return err
				},
				"GET " + s.name: func() error { _, err := f.Repository(ctx, s.name); return err },
				"POST " + s.name + "/pulls": func() error {
					_, _, err := f.OpenPull(ctx, s.name, forge.PullPost{Title: text("t"), Head: "topic", Base: "main"})
					return err
				},
			}
			for name, call := range calls {
				method, part, _ := strings.Cut(name, " ")
				s.proxy.Next(method, part, nonsense)
				err := call()
				if task.CodeOf(err) != task.Unavailable {
					t.Errorf("%s: %d %q: %v", name, status, body, err)
				}
			}
			if body != "[]" && body != "null" { // those are a listing of nothing
				s.proxy.Next(http.MethodGet, "/comments", nonsense)
				if comments, err := f.Comments(ctx, s.issue); task.CodeOf(err) != task.Unavailable {
					t.Errorf("comments: %q: %v, %v", body, comments, err)
				}
			}
		}
	}
	if left := s.proxy.Left(); left != 0 {
		t.Errorf("%d answers were not asked for", left)
	}
}

// TestRedirectedAway makes sure that our token goes to its forge only.
func TestRedirectedAway(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("%s was followed to another host, with %q", r.URL, r.Header.Get("Authorization"))
	}))
	t.Cleanup(elsewhere.Close)
	for _, status := range []int{301, 302, 307, 308} {
		s.proxy.Next(http.MethodGet, "/issues/", testkit.Respond(status, map[string]string{"Location": elsewhere.URL + "/issues/1"}, `{}`))
		if _, err := s.Forge().Item(t.Context(), s.issue); task.CodeOf(err) != task.NotFound {
			t.Errorf("%d: %v", status, err)
		}
	}
}

func TestThreads(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	comments := map[forge.Anchor]string{}
	for line := 1; line <= 5; line++ { // three pages of two
		comments[forge.Anchor{Path: "five", Side: forge.NewSide, Line: line}] = "x"
	}
	s.Review(t, s.pull, s.author, forge.Remark, "", comments)
	threads := s.server.world.Repo(s.name).Item(task.Pull, s.pull.Number).Threads
	threads[1].Resolved, threads[4].Resolved = true, true

	got, err := s.Forge().ReviewThreads(t.Context(), s.pull)
	if err != nil || len(got) != 5 {
		t.Fatalf("%d threads, %v", len(got), err)
	}
	for i, thread := range got {
		if thread.Resolved != (i == 1 || i == 4) || thread.Outdated || thread.Anchor.Line != i+1 {
			t.Errorf("thread %d: %+v", i, thread)
		}
	}
	s.Commit(t, s.name, "topic", map[string]string{"five": "changed\n"})
	got, err = s.Forge().ReviewThreads(t.Context(), s.pull)
	if err != nil || len(got) != 5 || !got[0].Outdated || got[0].Anchor != (forge.Anchor{Path: "five", Side: forge.NewSide}) {
		t.Errorf("after a push: %+v, %v", got, err)
	}
}

func TestLinksMadeByHand(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.server.world.Lock()
	repo := s.server.world.Repo(s.name)
	issue, pull := repo.Item(task.Issue, s.issue.Number), repo.Item(task.Pull, s.pull.Number)
	issue.Events = append(issue.Events, &forgeworld.Event{ID: 1, Kind: "connected", Actor: issue.Author, Source: pull, At: forgeworld.Now()})
	s.server.world.Unlock()
	got, err := s.Forge().LinkedPulls(t.Context(), s.issue)
	want := []forge.LinkedPull{{Key: s.pull, State: forge.Open, URL: "https://github.example/p"}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
}

func TestGraphRefusals(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	ready := true
	tests := map[string]task.Code{
		`{"data":null,"errors":[{"type":"NOT_FOUND","message":"no"}]}`:     task.NotFound,
		`{"data":null,"errors":[{"type":"FORBIDDEN","message":"no"}]}`:     task.Forbidden,
		`{"data":null,"errors":[{"type":"RATE_LIMITED","message":"no"}]}`:  task.Unavailable,
		`{"data":null,"errors":[{"type":"UNPROCESSABLE","message":"no"}]}`: task.Invalid,
		`{"data":null,"errors":[{"message":"timeout"}]}`:                   task.Unavailable,
		`{"data":`: task.Unavailable,
	}
	for body, want := range tests {
		s.proxy.Next(http.MethodPost, "/graphql", testkit.Respond(200, nil, body))
		_, err := s.Forge().EditPull(t.Context(), s.pull, forge.PullEdit{Draft: &ready})
		if task.CodeOf(err) != want {
			t.Errorf("%s: %v has the code %s, want %s", body, err, task.CodeOf(err), want)
		}
	}
	item, err := s.Forge().EditPull(t.Context(), s.pull, forge.PullEdit{Draft: &ready})
	if err != nil || !item.Draft {
		t.Errorf("made a draft: %+v, %v", item, err)
	}
}

func TestRefusalsOfPulls(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	f, ctx := s.Forge(), t.Context()
	s.Commit(t, s.name, "other", map[string]string{"x": "x\n"})
	s.proxy.Next(http.MethodPost, "/pulls", testkit.Respond(422, nil, `{"message":"Draft pull requests are not supported in this repository."}`))
	_, _, err := f.OpenPull(ctx, s.name, forge.PullPost{Title: text("t"), Head: "other", Base: "main", Draft: true})
	if task.CodeOf(err) != task.Unsupported {
		t.Errorf("a draft where there are none: %v", err)
	}
	s.proxy.Next(http.MethodGet, "/pulls/", func(w http.ResponseWriter, r *http.Request, forward http.Handler) { forward.ServeHTTP(w, r) })
	s.proxy.Next(http.MethodGet, "/pulls/", testkit.Respond(406, nil, `{"message":"Sorry, the diff exceeded the maximum number of lines (20000)"}`))
	if _, err := f.Diff(ctx, s.pull); task.CodeOf(err) != task.TooLarge {
		t.Errorf("a diff that is too large: %v", err)
	}
	post := forge.ReviewPost{Verdict: forge.Remark, Text: text("x"), Commit: strings.Repeat("a", 40)}
	if _, err := f.SubmitReview(ctx, s.pull, post); task.CodeOf(err) != task.Conflict {
		t.Errorf("a review of an old head: %v", err)
	}
	post.Commit = ""
	post.Comments = []forge.LineComment{{Anchor: forge.Anchor{Path: "five", Side: forge.NewSide, Line: 99}, Text: text("x")}}
	if _, err := f.SubmitReview(ctx, s.pull, post); task.CodeOf(err) != task.Invalid {
		t.Errorf("a comment on a line that is not there: %v", err)
	}
	if reviews, err := f.Reviews(ctx, s.pull); err != nil || len(reviews) != 0 {
		t.Errorf("reviews %v, %v", reviews, err)
	}
	s.server.world.Repo(s.name).Item(task.Pull, s.pull.Number).Fork = true
	if item, err := f.Item(ctx, s.pull); err != nil || !item.Fork || item.Head != "" {
		t.Errorf("from a fork: %+v, %v", item, err)
	}
	if _, found, err := f.FindPull(ctx, s.name, "topic", "main"); err != nil || found {
		t.Errorf("the pull request of a fork was found: %v", err)
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
	found, err := on.Dependencies(t.Context(), s.issue)
	if err != nil || !cmp.Equal(found, want) {
		t.Errorf("it waits for %d issues, %v", len(found), err)
	}
	if found, err := on.Dependencies(t.Context(), s.pull); err != nil || len(found) != 0 {
		t.Errorf("a pull request waits for %v, %v", found, err)
	}
	s.proxy.Next(http.MethodGet, "/dependencies/", testkit.Respond(http.StatusServiceUnavailable, nil, "{}"))
	if _, err := on.Dependencies(t.Context(), s.issue); task.CodeOf(err) != task.Unavailable {
		t.Errorf("when the forge is down: %v", err)
	}
}
