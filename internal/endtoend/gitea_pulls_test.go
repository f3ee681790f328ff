package endtoend

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
)

// TestOnGiteaPullsAreFollowed lets happen on a real Gitea what happens to pull requests of the
// bot, and to plans before them: checks that people or programs set fail and pass, the base is
// changed, a plan is approved or is not.
func TestOnGiteaPullsAreFollowed(t *testing.T) {
	t.Parallel()
	server := testkit.Gitea(t)
	giteaPeople(t, server)
	settings := "review: {own_pulls: false}\nplanning: {approval: label}\n"
	t.Run("webhooks", func(t *testing.T) {
		t.Parallel()
		h, site := giteaHouse(t, server, "alice", "hook-secret-of-the-test", plan{agents: 2, settings: settings})
		t.Run("a check fails", func(t *testing.T) {
			t.Parallel()
			s, pull := aFailedCheckIsFixed(t, h, site)
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			before := site.statusReads(pull.HeadCommit)
			must(t, site.look().SetStatus(ctx, s.item.Repository, forge.CommitStatus{Commit: pull.HeadCommit, Context: "CI / test", State: forge.StatusSuccess}))
			for site.statusReads(pull.HeadCommit) == before { // the webhook tells of it
				if !pause(ctx) {
					t.Fatal("the checks of the new head are not read")
				}
			}
			for range 20 { // nothing follows
				pause(ctx)
			}
			is, err := h.store.TaskOf(ctx, s.item, task.Development)
			if err != nil || is.State != task.Done || h.assigned(t, is) != 1 {
				t.Errorf("when the checks pass, the fix-up is %+v, %v", is, err)
			}
		})
		t.Run("a check fails in the base too", func(t *testing.T) {
			t.Parallel()
			aFailureOfTheBaseIsLeftAlone(t, h, site)
		})
		t.Run("the base is changed", func(t *testing.T) {
			t.Parallel()
			theBaseIsMerged(t, h, site)
		})
	})
	t.Run("polling", func(t *testing.T) {
		t.Parallel()
		h, site := giteaHouse(t, server, "carol", "", plan{agents: 2, settings: settings})
		t.Run("a check fails", func(t *testing.T) {
			t.Parallel()
			aFailedCheckIsFixed(t, h, site)
		})
		h.approve(t, site)
	})
}

// aFailureOfTheBaseIsLeftAlone lets a job of Gitea's own fail for the push to the base, and for
// the pull request of the bot. Gitea calls it by another name then.
func aFailureOfTheBaseIsLeftAlone(t *testing.T, h *house, at *giteaSite) {
	t.Helper()
	scenario := load(t, "testdata/loop/checks.txtar")[0]
	scenario.Name = "checks_base"
	s := h.begin(t, at, scenario)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	fail := func(commit, event string, run int) {
		t.Helper()
		must(t, at.look().SetStatus(ctx, s.item.Repository, forge.CommitStatus{
			Commit: commit, Context: "CI / test (" + event + ")", State: forge.StatusFailure,
			URL: fmt.Sprintf("/%s/actions/runs/%d/jobs/%d", s.item.Repository, run, run),
		}))
	}
	fail(s.main, "push", 1)
	pull := s.published(ctx, t, "")
	fail(pull.HeadCommit, "pull_request", 2)
	told := func(c task.Comment) bool {
		return strings.Contains(c.Body, "`CI / test`") && strings.Contains(c.Body, "also fail in the base branch")
	}
	for comments := []task.Comment(nil); !slices.ContainsFunc(comments, told); {
		if !pause(ctx) {
			t.Fatalf("nobody is told: %+v", comments)
		}
		var err error
		comments, err = at.look().Comments(ctx, pull.Key)
		must(t, err)
	}
	if is, err := h.store.TaskOf(ctx, pull.Key, task.Development); task.CodeOf(err) != task.NotFound {
		t.Errorf("there is a task: %+v, %v", is, err)
	}
}

// statusReads is how often the server has asked for the statuses of a commit.
func (g *giteaSite) statusReads(commit string) int {
	count := 0
	for _, request := range g.proxy.Requests() {
		if strings.HasSuffix(request, "/commits/"+commit+"/status") {
			count++
		}
	}
	return count
}
