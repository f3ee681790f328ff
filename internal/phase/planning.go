package phase

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/toryo-dev/toryo/internal/phase/conversation"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

// makePlan has the model plan the work, or revise a plan that people were shown.
func (r *run) makePlan(ctx context.Context) error {
	if r.state.timesEnded(task.Planning) > 0 && !r.state.active(task.Planning) {
		return nil
	}
	if err := r.begin(ctx, task.Planning); err != nil {
		return err
	}
	if r.state.plan == nil || r.state.plan.Revision == r.state.proposed {
		if err := r.plan(ctx); err != nil {
			return err
		}
	}
	return r.end(ctx, task.Planning, PhaseCompleted, map[string]int{"actions": len(r.state.plan.ActionPlan.Actions)})
}

func (r *run) plan(ctx context.Context) error {
	system, err := r.system(task.Planning)
	if err != nil {
		return err
	}
	selection, err := r.Setup.Table.SelectionPrompt(r.project.withoutContents())
	if err != nil {
		return err
	}
	var understood understanding
	if err := r.state.outcome(task.PrePlanning, &understood); err != nil {
		return err
	}
	goal, err := json.MarshalIndent(understood.Goal, "", "  ")
	if err != nil {
		return err
	}
	t, err := r.open(ctx, opening{name: string(task.Planning), phase: task.Planning, system: system, tools: append(r.workbench.lookers(), r.readComments(task.Planning)),
		pinned: r.blocks(task.Planning,
			conversation.Block{Name: "understanding", Text: string(goal)},
			conversation.Block{Name: "files", Text: r.project.fileList()},
			conversation.Block{Name: "environment", Text: r.project.manifests()}, // what was detected is in the next
			conversation.Block{Name: "environment_setup", Text: selection},
			conversation.Block{Name: "references", Text: r.project.references},
		)})
	if err != nil {
		return err
	}
	if r.state.proposed > 0 {
		if err := r.discussPlan(ctx, t); err != nil {
			return err
		}
	}
	var plan *Plan
	err = t.object(ctx, func(object map[string]any) (wrong error) {
		plan, wrong = readPlan(object)
		return wrong
	})
	if errors.Is(err, errNoAnswer) {
		return &overError{reason: task.ReasonInvalidPlan, text: textfmt.FirstLine(err.Error())}
	}
	if err != nil {
		return err
	}
	plan.Revision += r.state.proposed
	return r.append(ctx, task.Planned, Entry{Plan: plan})
}
