package endtoend

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/phase/phasetest"
	"github.com/toryo-dev/toryo/internal/task"
)

// TestApproval lets plans wait for people before anything is built.
func TestApproval(t *testing.T) {
	t.Parallel()
	h := build(t, plan{agents: 2, settings: "planning: {approval: always}\n"})
	board, err := openBoard(t.Context(), h)
	must(t, err)
	h.approve(t, board)
}

// approve lets the scenarios of approvals happen.
func (h *house) approve(t *testing.T, at site) {
	t.Helper()
	for _, scenario := range load(t, "testdata/approval/*.txtar") {
		t.Run(scenario.Name, func(t *testing.T) {
			t.Parallel()
			var s *story
			scenario.Labels = append(scenario.Labels, "approve-plan")
			scenario.Events = append(scenario.Events, phasetest.Event{When: phasetest.When{Start: true, Run: 2}, Do: func(ctx context.Context) error {
				return s.thumbsUp(ctx)
			}})
			s = h.begin(t, at, scenario)
			s.await(t, "in nobody's hands", func(is task.Task) bool { return is.AwaitsApproval() && is.Lease.Agent == "" })
			s.seeThrough(t)
			s.check(t)
			s.checkProgress(t)
			asked := 0
			for _, record := range s.model.Records() {
				if record.Request.Phase == task.Planning {
					asked++
				}
			}
			if plans := scenario.Expect.Runs - 1; asked != plans {
				t.Errorf("the model has planned %d times, want %d", asked, plans)
			}
			if t.Failed() {
				t.Log(s.journal(t))
			}
		})
	}
}

// thumbsUp lets people react to the first plan, of whom one may approve it. Nothing has been
// built.
func (s *story) thumbsUp(ctx context.Context) error {
	prepared, err := s.house.store.EventsOf(ctx, s.taskID(ctx), task.Prepared)
	if err != nil || len(prepared) > 0 {
		return fmt.Errorf("something was built: %d, %w", len(prepared), err)
	}
	comments, err := s.site.look().Comments(ctx, s.item)
	if err != nil {
		return err
	}
	for _, comment := range comments {
		if !strings.HasPrefix(comment.Body, "**Paused.** Plan 1 is waiting for approval.") {
			continue
		}
		plan := forge.Target{Key: s.item, Comment: comment.ID}
		for _, login := range []string{"mallory", "alice"} {
			if err := s.site.as(login).React(ctx, plan, forge.ThumbsUp); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("there is no plan among %d comments", len(comments))
}
