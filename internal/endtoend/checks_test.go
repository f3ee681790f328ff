package endtoend

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

// TestAFailedCheckIsFixed lets a check of the bot's own pull request fail. The bot makes it
// pass, and shows its verdict on each commit that it has published.
func TestAFailedCheckIsFixed(t *testing.T) {
	t.Parallel()
	h := build(t, plan{agents: 1, settings: "review: {own_pulls: false}\n"})
	board, err := openBoard(t.Context(), h)
	must(t, err)
	aFailedCheckIsFixed(t, h, board)
}

// aFailedCheckIsFixed returns the pull request when the check passes.
func aFailedCheckIsFixed(t *testing.T, h *house, at site) (*story, forge.Item) {
	t.Helper()
	s := h.begin(t, at, load(t, "testdata/loop/checks.txtar")[0])
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	first := s.published(ctx, t, "")
	check := forge.CommitStatus{
		Commit: first.HeadCommit, Context: "CI / comments", State: forge.StatusFailure, Description: "add.sh has no comment", URL: "https://ci.example/7",
	}
	began, requests := time.Now(), requestsTo(at)
	must(t, at.look().SetStatus(ctx, s.item.Repository, check))
	for is := (task.Task{}); is.State != task.Running && !is.State.Terminal(); is, _ = h.store.TaskOf(ctx, first.Key, task.Development) {
		if !pause(ctx) {
			t.Fatalf("the check leads to %+v", is)
		}
	}
	t.Logf("| %s | %s | %d |", t.Name(), time.Since(began).Round(100*time.Millisecond), requestsTo(at)-requests)
	second := s.published(ctx, t, first.HeadCommit)
	diff, err := at.look().Diff(ctx, second.Key)
	must(t, err)
	if !strings.Contains(diff.Patch, "+# Prints the sum.") || !strings.Contains(diff.Patch, "$1 + $2") {
		t.Errorf("the pull request changes:\n%s", diff.Patch)
	}
	check.Commit, check.State = second.HeadCommit, forge.StatusSuccess
	must(t, at.look().SetStatus(ctx, s.item.Repository, check))
	s.item = second.Key
	is := s.await(t, "over", func(is task.Task) bool { return is.State.Terminal() })
	if is.State != task.Done || is.Cause != task.ReasonChecksFailed || h.assigned(t, is) != 1 {
		t.Errorf("the fix-up is %+v\n%s", is, s.journal(t))
	}
	return s, second
}

// requestsTo counts what the server has asked a forge for, if that is on the network.
func requestsTo(at site) int {
	if on, is := at.(*giteaSite); is {
		return len(on.proxy.Requests())
	}
	return 0
}

// published waits until the bot has published a head of its pull request, other than the given
// one, and shows its verdict on it.
func (s *story) published(ctx context.Context, t *testing.T, not string) forge.Item {
	t.Helper()
	for pause(ctx) {
		listed, err := s.site.look().List(ctx, forge.Query{Repository: s.item.Repository, Kind: task.Pull})
		must(t, err)
		if len(listed) != 1 {
			continue
		}
		pull, err := s.site.look().Item(ctx, listed[0].Key)
		must(t, err)
		checks, err := s.site.look().Checks(ctx, s.item.Repository, pull.HeadCommit)
		must(t, err)
		if pull.HeadCommit == not || len(checks) == 0 {
			continue
		}
		if len(checks) != 1 || checks[0].Name != "toryo/verification" || checks[0].State != forge.StatusSuccess {
			t.Errorf("the checks of %s are %+v", pull.HeadCommit, checks)
		}
		return pull
	}
	t.Fatalf("nothing was published\n%s", s.journal(t))
	return forge.Item{}
}
