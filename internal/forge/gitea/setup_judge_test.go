package gitea

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
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
	all := trials("/repos/o/n")
	for i, one := range all {
		if one.right != forge.NeededRights[i].Right {
			t.Errorf("at %d is %s, want %s", i, one.right, forge.NeededRights[i].Right)
		}
	}
	if len(all) != len(forge.NeededRights) {
		t.Errorf("there are %d trials", len(all))
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
	if missing := (hook{Events: events}).port().MissingEvents(WebhookEvents); len(missing) != 0 {
		t.Errorf("it is not enabled for %q", missing)
	}
}

// A repository that can have no pull requests is told from one in which they are switched off.
func TestRepositoryWithoutPulls(t *testing.T) {
	t.Parallel()
	off := forge.RightCheck{Right: forge.OpenPulls, State: forge.RightMissing, Given: "switched on", Found: "not found"}
	for _, c := range []struct {
		check      forge.RightCheck
		repository sdk.Repository
		given      string
	}{
		{off, sdk.Repository{}, "switched on"},
		{off, sdk.Repository{Empty: true}, "a first commit in the repository"},
		{off, sdk.Repository{Mirror: true}, "a repository that is no mirror of another"},
		{forge.RightCheck{Right: forge.Push, State: forge.RightMissing, Given: "write"}, sdk.Repository{Empty: true}, "write"},
	} {
		if got := withoutPulls(c.check, c.repository); got.Given != c.given || got.State != forge.RightMissing {
			t.Errorf("%+v, want %s", got, c.given)
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
