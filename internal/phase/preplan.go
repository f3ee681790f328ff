package phase

import (
	"context"
	"errors"
	"strings"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/phase/conversation"
	"github.com/toryo-dev/toryo/internal/phase/tool"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

// understanding is the outcome of pre-planning.
type understanding struct {
	Goal Goal `json:"goal"`
}

// prePlan has the model understand the request.
func (r *run) prePlan(ctx context.Context) error {
	if r.state.timesEnded(task.PrePlanning) > 0 {
		return nil
	}
	if err := r.begin(ctx, task.PrePlanning); err != nil {
		return err
	}
	system, err := r.system(task.PrePlanning)
	if err != nil {
		return err
	}
	earlier := r.Work.Earlier
	if earlier != "" {
		earlier = "The summary of an earlier run on the same item:\n" + llm.Quote(llm.Origin{Source: "summary of an earlier run"}, tool.Shorten(tool.Printable(earlier), longestEarlier))
	}
	t, err := r.open(ctx, opening{name: string(task.PrePlanning), phase: task.PrePlanning, system: system, tools: append(r.workbench.lookers(), r.readComments(task.PrePlanning)),
		pinned: r.blocks(task.PrePlanning,
			conversation.Block{Name: "earlier", Text: earlier},
			conversation.Block{Name: "files", Text: r.project.fileList()},
			conversation.Block{Name: "environment", Text: r.project.environmentText()},
			conversation.Block{Name: "references", Text: r.project.references},
		)})
	if err != nil {
		return err
	}
	var understood understanding
	err = t.object(ctx, func(object map[string]any) error {
		understood.Goal = Goal{}
		if err := into(object, &understood.Goal); err != nil {
			return err
		}
		return understood.Goal.check()
	})
	if errors.Is(err, errNoAnswer) {
		// The plan has to understand the request again anyway.
		understood.Goal = Goal{}
		if err := r.warn(ctx, "The model did not say how it understands the request: "+textfmt.FirstLine(err.Error())); err != nil {
			return err
		}
	} else if err != nil {
		return err
	}
	return r.end(ctx, task.PrePlanning, PhaseCompleted, understood)
}

// check says what is wrong with a goal.
func (g Goal) check() error {
	if strings.TrimSpace(g.Goal) == "" {
		return errors.New(`"goal" is missing or empty`)
	}
	for _, open := range g.Ambiguities {
		if open.Confidence < 0 || open.Confidence > 1 {
			return errors.New(`"confidence" has to be from 0 to 1`)
		}
	}
	return nil
}
