package crashes_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/phase/phasetest"
	"github.com/toryo-dev/toryo/internal/task"
)

// board has the comments of runs, each name once, as a forge has them.
type board struct {
	phase.Forge
	posted *[]string
	names  map[string]bool
}

func (b board) AddComment(ctx context.Context, name, text string) error {
	err := b.Forge.AddComment(ctx, name, text)
	if err == nil && !b.names[name] {
		b.names[name] = true
		*b.posted = append(*b.posted, text)
	}
	return err
}

// discussed makes a world in which a plan has to be approved. People want the first one
// changed.
func discussed(t *testing.T, cut phasetest.Cut) (world *phasetest.World, posted *[]string) {
	t.Helper()
	scenario, err := phasetest.Load("testdata/approval/plan.txtar")
	if err != nil {
		t.Fatal(err)
	}
	world, posted = phasetest.New(t, phasetest.Engine(t), scenario), new([]string)
	names := map[string]bool{}
	world.Around = func(forge phase.Forge) phase.Forge { return board{forge, posted, names} }
	world.Approval = task.PlanApproval{Required: true}
	world.CutAt(cut)
	return world, posted
}

// untilAsked runs the task until it waits for the approval of its plan.
func untilAsked(t *testing.T, world *phasetest.World) {
	t.Helper()
	for range 3 {
		outcome, err := world.Run(t.Context())
		if phasetest.Crashed(err) {
			continue
		}
		if err != nil || outcome.State != task.Paused || outcome.Reason != task.ReasonAwaitingApproval {
			t.Fatalf("the run ended as %s/%s, %v", outcome.State, outcome.Reason, err)
		}
		return
	}
	t.Fatal("the run does not come to its end")
}

const wish = "Please write a file CHANGES too."

// discuss lets the first plan be shown and changed.
func discuss(t *testing.T, world *phasetest.World) {
	t.Helper()
	untilAsked(t, world)
	untilAsked(t, world) // it waits again, and says nothing new
	world.AddComment(phasetest.Comment{Author: "bob", Access: "write", Body: wish})
	untilAsked(t, world) // nobody has said yet that this is about the plan
	world.Approval.Discuss = true
	untilAsked(t, world)
	world.Approval.Discuss = false
}

// The plan is shown before anything is built, revised when people want that, and shown again.
// Whenever the run is cut off, each plan is in one comment, and the model was told of what
// people want.
func TestApprovalIsAskedForAtEveryCrash(t *testing.T) {
	t.Parallel()
	whole, posted := discussed(t, phasetest.Cut{})
	whole.Approval.Estimate = &task.Estimate{Tasks: 3, Tokens: 12345, Money: 250_000}
	discuss(t, whole)
	cuts := whole.Cuts(1, 1)
	if asked := len(whole.Requests(task.Planning)); asked != 2 {
		t.Errorf("the model has planned %d times", asked)
	}
	for i, want := range [][]string{
		{"Plan 1 is waiting for approval.", "1. `fix add.sh`", "**Environment**: `shell`", "```\ntrue\n```", "**Used so far**", "about 12.3k tokens, cost 0.25 (average of the last 3 completed tasks", "👍"},
		{"Plan 2 is waiting for approval.", "- `CHANGES`", "1. `write CHANGES`"},
	} {
		for _, text := range want {
			if i < len(*posted) && !strings.Contains((*posted)[i], text) {
				t.Errorf("comment %d has no %q:\n%s", i, text, (*posted)[i])
			}
		}
	}
	for _, cut := range cuts {
		t.Run(fmt.Sprint(cut), func(t *testing.T) {
			t.Parallel()
			world, posted := discussed(t, cut)
			discuss(t, world)
			if len(*posted) != 2 || !strings.Contains((*posted)[0], "Plan 1 is waiting for approval.") || !strings.Contains((*posted)[1], "Plan 2 is waiting for approval.") {
				t.Errorf("%d comments:\n%s", len(*posted), strings.Join(*posted, "\n---\n"))
			}
			requests := world.Requests(task.Planning)
			if !strings.Contains(phasetest.TextOf(requests[len(requests)-1]), wish) {
				t.Error("the model was not told what people want")
			}
		})
	}
	// The run that goes on builds what was approved, without planning again.
	whole.Approval = task.PlanApproval{Required: true, Approved: 2}
	if outcome, err := whole.Run(t.Context()); err != nil || outcome.State != task.Done {
		t.Fatalf("the run ended as %s/%s, %v", outcome.State, outcome.Reason, err)
	}
	if asked := len(whole.Requests(task.Planning)); asked != 2 {
		t.Errorf("the model has planned %d times", asked)
	}
	whole.Check()
}

// An approval of another plan is none.
func TestAnApprovalOfAnotherPlan(t *testing.T) {
	t.Parallel()
	world, posted := discussed(t, phasetest.Cut{})
	discuss(t, world)
	world.Approval.Approved = 1
	untilAsked(t, world)
	if len(*posted) != 2 {
		t.Errorf("%d comments", len(*posted))
	}
}
