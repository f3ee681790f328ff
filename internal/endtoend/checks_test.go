package endtoend

import (
	"context"
	"strings"
	"testing"

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

func aFailedCheckIsFixed(t *testing.T, h *house, at site) {
	t.Helper()
	s := h.begin(t, at, load(t, "testdata/loop/checks.txtar")[0])
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	published := func(not string) forge.Item {
		for pause(ctx) {
			listed, err := at.look().List(ctx, forge.Query{Repository: s.item.Repository, Kind: task.Pull})
			must(t, err)
			if len(listed) != 1 {
				continue
			}
			pull, err := at.look().Item(ctx, listed[0].Key)
			must(t, err)
			checks, err := at.look().Checks(ctx, s.item.Repository, pull.HeadCommit)
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
	first := published("")
	must(t, at.look().SetStatus(ctx, s.item.Repository, forge.CommitStatus{
		Commit: first.HeadCommit, Context: "CI / comments", State: forge.StatusFailure, Description: "add.sh has no comment", URL: "https://ci.example/7",
	}))
	second := published(first.HeadCommit)
	diff, err := at.look().Diff(ctx, second.Key)
	must(t, err)
	if !strings.Contains(diff.Patch, "+# Prints the sum.") || !strings.Contains(diff.Patch, "$1 + $2") {
		t.Errorf("the pull request changes:\n%s", diff.Patch)
	}
	is, err := h.store.TaskOf(ctx, second.Key, task.Development)
	for err == nil && is.State == task.Running && pause(ctx) {
		is, err = h.store.TaskOf(ctx, second.Key, task.Development)
	}
	if err != nil || is.State != task.Done || is.Cause != task.ReasonChecksFailed || is.Generation != 1 {
		t.Errorf("the fix-up is %+v, %v", is, err)
	}
}
