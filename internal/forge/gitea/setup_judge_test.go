package gitea

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	sdk "code.gitea.io/sdk/gitea"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

// What Gitea answers to a trial shows the right. Only a refusal says that it is missing.
func TestJudgeOfATrial(t *testing.T) {
	t.Parallel()
	write := trial{forge.ManageHooks, http.MethodPost, "/x", "write:repository", "the right to administer"}
	read := trial{forge.ReadCode, http.MethodGet, "/x", "read:repository", "the right to read"}
	for _, c := range []struct {
		trial  trial
		status int
		said   string
		state  forge.RightState
		given  string
	}{
		{write, 422, "[]: Deserialization", forge.RightGiven, "the scope write:repository, and the right to administer"},
		{write, 201, "", forge.RightUnknown, ""}, // which cannot be
		{write, 413, "", forge.RightUnknown, ""},
		{write, 403, "token does not have at least one of required scope(s), required=[write:repository]", forge.RightMissing, "the scope write:repository"},
		{write, 403, "user should be an owner", forge.RightMissing, "the right to administer"},
		{write, 403, "webhooks disabled by administrator", forge.RightMissing, "DISABLE_WEBHOOKS"},
		{write, 423, "x is archived", forge.RightMissing, "archived"},
		{read, 200, "", forge.RightGiven, "read:repository"},
		{read, 404, "", forge.RightMissing, "the right to read"},
		{read, 422, "", forge.RightUnknown, ""},
	} {
		got := c.trial.judge(c.status, c.said)
		if got.State != c.state || !strings.Contains(got.Given, c.given) || got.Right != c.trial.right {
			t.Errorf("%d %s: %+v", c.status, c.said, got)
		}
	}
}

// The trials are in the order in which rights are checked, and a write names nothing that can be.
func TestTrialsAreInOrder(t *testing.T) {
	t.Parallel()
	var want, got []forge.Right
	for _, needed := range forge.NeededRights {
		if needed.Right != forge.PushWorkflows {
			want = append(want, needed.Right)
		}
	}
	for _, one := range trials("/repos/o/n") {
		got = append(got, one.right)
	}
	if !slices.Equal(got, want) {
		t.Errorf("the trials are of %q, want %q", got, want)
	}
}

// A webhook that is enabled for everything has other names for reviews.
func TestHookForEverything(t *testing.T) {
	t.Parallel()
	events := []string{
		"create", "delete", "fork", "push", "issues", "issue_assign", "issue_label", "issue_milestone", "issue_comment",
		"pull_request", "pull_request_assign", "pull_request_label", "pull_request_milestone", "pull_request_comment",
		"pull_request_review_approved", "pull_request_review_rejected", "pull_request_review_comment", "pull_request_sync",
		"pull_request_review_request", "wiki", "repository", "release", "package", "status", "workflow_run", "workflow_job",
	}
	made := hook{Events: events}.port()
	if missing := made.MissingEvents(WebhookEvents); len(missing) != 0 || !slices.Contains(made.Events, "status") {
		t.Errorf("it is not enabled for %q: %q", missing, made.Events)
	}
	// Forgejo has no event for statuses: no webhook there could ever be right.
	events = slices.DeleteFunc(events, func(event string) bool { return event == "status" })
	if missing := (hook{Events: events}).port().MissingEvents(WebhookEvents); len(missing) != 0 {
		t.Errorf("on Forgejo it is not enabled for %q", missing)
	}
}

// A repository that can have no pull requests is told from one in which they are switched off, and one
// without issues from one with pull requests only.
func TestWhatARepositoryCanHave(t *testing.T) {
	t.Parallel()
	const noIssues = "issues that are switched on in the repository"
	read := forge.RightCheck{Right: forge.ReadItems, State: forge.RightGiven, Given: "read:issue"}
	comment := forge.RightCheck{Right: forge.CommentOn, State: forge.RightUnknown, Given: "write:issue", Found: "?"}
	off := forge.RightCheck{Right: forge.OpenPulls, State: forge.RightMissing, Given: "switched on", Found: "not found"}
	for _, c := range []struct {
		check      forge.RightCheck
		repository sdk.Repository
		given      string
	}{
		{off, sdk.Repository{}, "switched on"},
		{off, sdk.Repository{Empty: true}, "a first commit in the repository"},
		{off, sdk.Repository{Mirror: true}, "a repository that is no mirror of another"},
		{forge.RightCheck{Right: forge.Push, State: forge.RightMissing, Given: "write", Found: "no"}, sdk.Repository{Empty: true}, "write"},
		{read, sdk.Repository{ID: 1}, noIssues},
		{comment, sdk.Repository{ID: 1}, noIssues},
		{read, sdk.Repository{ID: 1, HasIssues: true, ExternalTracker: &sdk.ExternalTracker{}}, noIssues},
		{forge.RightCheck{Right: forge.CommentOn, State: forge.RightMissing, Given: "the scope write:issue", Found: "no"}, sdk.Repository{ID: 1}, "the scope write:issue"},
	} {
		if got := inRepository(c.check, c.repository); got.Given != c.given || got.State != forge.RightMissing || got.Found == "" {
			t.Errorf("%+v, want %s", got, c.given)
		}
	}
	for _, repository := range []sdk.Repository{{}, {ID: 1, HasIssues: true}} { // the first one may not be read
		if got := inRepository(read, repository); got != read {
			t.Errorf("%+v", got)
		}
	}
}

// Another address than that of Gitea is told from a missing right, and a redirection is not followed
// with the token.
func TestRightsAtAnotherAddress(t *testing.T) {
	t.Parallel()
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the token was sent on") }))
	t.Cleanup(other.Close)
	for name, answer := range map[string]http.HandlerFunc{
		"a redirection": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL+r.URL.Path, http.StatusMovedPermanently)
		},
		"something else": http.NotFound,
	} {
		server := httptest.NewServer(answer)
		t.Cleanup(server.Close)
		adapter, err := New(Options{URL: server.URL, Token: "token-of-the-test"})
		if err != nil {
			t.Fatal(err)
		}
		_, err = adapter.CheckRights(t.Context(), "o/n")
		coded, found := task.AsError(err)
		if !found || coded.Code != task.NotFound || !strings.Contains(err.Error(), "not the address of a Gitea") || !strings.Contains(coded.Hint, "URL") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A page of somebody else is no right, and an error has no secret in it.
func TestRightsOfNoGitea(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "<html>Sign in to the network</html>")
	}))
	t.Cleanup(server.Close)
	adapter, err := New(Options{URL: server.URL, Token: "token-of-the-test"})
	if err != nil {
		t.Fatal(err)
	}
	if checks, err := adapter.CheckRights(t.Context(), "o/n"); err == nil || strings.Contains(err.Error(), "token-of-the-test") {
		t.Errorf("%+v, %v", checks, err)
	}
	if _, err := adapter.CreateHook(t.Context(), "o/n", forge.HookPost{URL: "https://toryo.example/x", Secret: "secret-of-the-test"}); err == nil || strings.Contains(err.Error(), "secret-of-the-test") {
		t.Errorf("a webhook: %v", err)
	}
}

// A listing that never ends is read up to the limit.
func TestListingsWithoutEnd(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, `[{"id": %d, "type": "slack"}]`, asked.Add(1))
	}))
	t.Cleanup(server.Close)
	adapter, err := New(Options{URL: server.URL, Token: "token-of-the-test"})
	if err != nil {
		t.Fatal(err)
	}
	if hooks, err := adapter.Hooks(t.Context(), "o/n"); task.CodeOf(err) != task.TooLarge || asked.Load() > forge.MaxHooks+1 {
		t.Errorf("asked %d times for webhooks %+v, %v", asked.Load(), hooks, err)
	}
}

// hookServer is the webhooks of one repository, as Gitea serves them. What is refused is answered with
// what was sent.
type hookServer struct {
	mu      sync.Mutex
	hooks   map[string]string // bodies by id
	refuses string            // a method
}

func (s *hookServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	id := path.Base(r.URL.Path)
	switch {
	case r.Method == s.refuses:
		w.WriteHeader(http.StatusUnprocessableEntity)
		_, _ = fmt.Fprintf(w, "%s %s", r.Method, body)
	case r.Method == http.MethodPost:
		made := fmt.Sprintf(`{"id": %d, %s`, len(s.hooks)+1, strings.TrimPrefix(string(body), "{"))
		s.hooks[strconv.Itoa(len(s.hooks)+1)] = made
		_, _ = io.WriteString(w, made)
	case r.Method == http.MethodDelete && s.hooks[id] != "":
		delete(s.hooks, id)
		w.WriteHeader(http.StatusNoContent)
	case s.hooks[id] != "":
		_, _ = io.WriteString(w, s.hooks[id])
	case id == "n": // the repository
		_, _ = io.WriteString(w, `{"id": 1, "full_name": "o/n"}`)
	default:
		http.NotFound(w, r)
	}
}

func newHookServer(t *testing.T, hooks map[string]string) (*hookServer, *Forge) {
	t.Helper()
	s := &hookServer{hooks: hooks}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	adapter, err := New(Options{URL: server.URL, Token: "token-of-the-test"})
	if err != nil {
		t.Fatal(err)
	}
	return s, adapter
}

// A webhook takes the place of another with what people have set on it. If the old one stays, both are
// there, and the new one is returned with the error.
func TestEditHookKeepsWhatPeopleHaveSet(t *testing.T) {
	t.Parallel()
	old := `{"id": 1, "type": "gitea", "config": {"url": "https://toryo.example/x"}, "branch_filter": "main", "authorization_header": "Bearer of-the-test"}`
	s, adapter := newHookServer(t, map[string]string{"1": old})
	s.refuses = http.MethodDelete
	post := forge.HookPost{URL: "https://toryo.example/x", Secret: "secret-of-the-test"}
	made, err := adapter.EditHook(t.Context(), "o/n", "1", post)
	if err == nil || made.ID != "2" || made.URL != post.URL {
		t.Errorf("the old one could not be deleted, and it is said: %+v, %v", made, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.hooks["2"]; !strings.Contains(now, `"branch_filter":"main"`) || !strings.Contains(now, `"authorization_header":"Bearer of-the-test"`) {
		t.Errorf("the webhook has become %s", now)
	}
}

// Secrets of a webhook are in no error, also if Gitea repeats what it was sent.
func TestErrorsHaveNoSecretOfAWebhook(t *testing.T) {
	t.Parallel()
	old := `{"id": 1, "type": "gitea", "config": {"url": "https://toryo.example/x"}, "authorization_header": "Bearer of-somebody"}`
	s, adapter := newHookServer(t, map[string]string{"1": old})
	s.refuses = http.MethodPost
	post := forge.HookPost{URL: "https://me:correct-horse@toryo.example/x", Secret: "very-secret"}
	_, created := adapter.CreateHook(t.Context(), "o/n", post)
	_, edited := adapter.EditHook(t.Context(), "o/n", "1", post)
	for _, err := range []error{created, edited} {
		if err == nil || !strings.Contains(err.Error(), "toryo.example") {
			t.Fatalf("refused: %v", err)
		}
		for _, secret := range []string{"very-secret", "correct-horse", "of-somebody"} {
			if strings.Contains(err.Error(), secret) {
				t.Errorf("%s is in %v", secret, err)
			}
		}
	}
}

// The webhook of a chat is not ours to delete.
func TestDeleteHookOfAChat(t *testing.T) {
	t.Parallel()
	s, adapter := newHookServer(t, map[string]string{
		"1": `{"id": 1, "type": "slack", "config": {"url": "https://chat.example/secret"}}`,
		"2": `{"id": 2, "type": "gitea", "config": {"url": "https://toryo.example/x"}}`,
	})
	for _, id := range []string{"1", "2", "3", "x"} {
		if err := adapter.DeleteHook(t.Context(), "o/n", id); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.hooks) != 1 || s.hooks["1"] == "" {
		t.Errorf("left are %q", s.hooks)
	}
}
