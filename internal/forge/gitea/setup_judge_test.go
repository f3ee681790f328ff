package gitea

import (
	"net/http"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/forge"
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
