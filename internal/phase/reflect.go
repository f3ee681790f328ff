package phase

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/phase/conversation"
	"github.com/toryo-dev/toryo/internal/phase/tool"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

// reflection is the outcome of the phase of that name.
type reflection struct {
	Assessment string   `json:"assessment"`
	Decision   string   `json:"decision"` // continue or revise
	Advice     string   `json:"advice"`
	Actions    []Action `json:"actions,omitempty"` // of a revised plan
	Revision   int      `json:"revision,omitempty"`
	// Repeats says that the revision is a plan that there was before. It is not
	// taken.
	Repeats bool `json:"repeats,omitempty"`
}

// The decisions of a reflection.
const (
	decisionContinue = "continue"
	decisionRevise   = "revise"
)

// repeatedRevisions is how many revisions to an earlier plan end the phase.
const repeatedRevisions = 2

// reflectionDue reports whether it is time to look at the plan again: after a
// failure, or after many actions, but not all the time.
func (r *run) reflectionDue() bool {
	s := r.state
	switch {
	case s.active(task.Reflection):
		return true // it was cut off
	case s.phase(task.Reflection).begun >= r.Limits.Reflections:
		return false
	case s.reflectedAt > 0 && s.step-s.reflectedAt < r.Limits.ReflectRest:
		return false
	}
	return s.failures >= r.Limits.ReflectAfter || s.actions >= r.Limits.ReflectEvery
}

// reflect has the model look at the plan again when that is due, and revises it.
func (r *run) reflect(ctx context.Context, working *chat) error {
	if r.reflectionDue() && working.ended() == nil {
		if err := r.begin(ctx, task.Reflection); err != nil {
			return err
		}
		reflected, err := r.askReflection(ctx, working)
		if err != nil {
			return err
		}
		if err := r.end(ctx, task.Reflection, PhaseCompleted, reflected); err != nil {
			return err
		}
	}
	if r.state.timesEnded(task.Reflection) == 0 {
		return nil
	}
	return r.takeReflection(ctx, working)
}

// takeReflection makes what the last reflection decided so. It is in the journal;
// doing it again changes nothing.
func (r *run) takeReflection(ctx context.Context, working *chat) error {
	number := r.state.timesEnded(task.Reflection)
	var reflected reflection
	if err := r.state.outcome(task.Reflection, &reflected); err != nil {
		return err
	}
	if reflected.Revision > r.state.plan.Revision {
		plan := *r.state.plan
		plan.Revision = reflected.Revision
		plan.ActionPlan.Actions = reflected.Actions
		if err := r.append(ctx, task.Planned, Entry{Plan: &plan}); err != nil {
			return err
		}
	}
	if err := working.conversation.Pin(ctx, conversation.Block{Name: planBlock, Text: r.state.plan.checklist()}); err != nil {
		return err
	}
	text := fmt.Sprintf("Reflection %d: %s", number, reflected.Assessment)
	if reflected.Advice != "" {
		text += "\nAdvice: " + reflected.Advice
	}
	if reflected.Repeats {
		text += "\nThe plan was not changed: the new one was a plan that there was before, and it did not work."
	}
	if err := working.send(ctx, text); err != nil {
		return err
	}
	if err := working.catchUp(ctx); err != nil {
		return err
	}
	if r.repeats() >= repeatedRevisions {
		return &overError{reason: task.ReasonModelLoops, text: r.text("run.revised_back")}
	}
	return nil
}

// repeats counts the revisions to plans that there were before.
func (r *run) repeats() int {
	count := 0
	for _, data := range r.state.phase(task.Reflection).outcomes {
		if strings.Contains(string(data), `"repeats":true`) {
			count++
		}
	}
	return count
}

func (r *run) askReflection(ctx context.Context, working *chat) (reflection, error) {
	system, err := r.system(task.Reflection)
	if err != nil {
		return reflection{}, err
	}
	name := fmt.Sprintf("%s-%d", task.Reflection, r.state.phase(task.Reflection).begun)
	t, err := r.open(ctx, opening{name: name, phase: task.Reflection, system: system, tools: []tool.Tool{r.readComments(task.Reflection)}, pinned: r.blocks(task.Reflection,
		conversation.Block{Name: planBlock, Text: r.state.plan.checklist()},
		conversation.Block{Name: "last_steps", Text: lastSteps(working)},
	)})
	if err != nil {
		return reflection{}, err
	}
	var reflected reflection
	err = t.object(ctx, func(object map[string]any) (wrong error) {
		reflected, wrong = r.readReflection(object)
		return wrong
	})
	if errors.Is(err, errNoAnswer) {
		return reflection{Assessment: "no reflection that can be used was made", Decision: decisionContinue}, nil
	}
	return reflected, err
}

// readReflection reads what a model decided. Ticks stay with the actions whose
// ids and words stay.
func (r *run) readReflection(object map[string]any) (reflection, error) {
	var reflected reflection
	if err := into(object, &reflected); err != nil {
		return reflected, err
	}
	reflected.Revision, reflected.Repeats = 0, false
	switch reflected.Decision {
	case decisionContinue:
		reflected.Actions = nil
		return reflected, nil
	case decisionRevise:
	default:
		return reflected, fmt.Errorf("%q has to be %q or %q", "decision", decisionContinue, decisionRevise)
	}
	if len(reflected.Actions) == 0 || len(reflected.Actions) > 100 {
		return reflected, errors.New("a revised plan has from 1 to 100 actions")
	}
	if err := checkActions(reflected.Actions, r.state.plan.TaskDecomposition); err != nil {
		return reflected, err
	}
	for i := range reflected.Actions {
		action := &reflected.Actions[i]
		action.Done = slices.ContainsFunc(r.state.plan.ActionPlan.Actions, func(old Action) bool {
			return old.Done && old.ID == action.ID && textfmt.OneLine(old.What) == textfmt.OneLine(action.What)
		})
	}
	revised := Plan{ActionPlan: Actions{reflected.Actions}}
	if revised.fingerprint() == r.state.plan.fingerprint() {
		reflected.Decision, reflected.Actions = decisionContinue, nil // nothing is different
		return reflected, nil
	}
	if slices.Contains(r.state.plans, revised.fingerprint()) {
		reflected.Repeats, reflected.Actions = true, nil
		return reflected, nil
	}
	reflected.Revision = r.state.plan.Revision + 1
	return reflected, nil
}

// lastSteps shows the end of a conversation.
func lastSteps(working *chat) string {
	const most, messages = 12_000, 8
	all := working.conversation.Request().Messages
	var parts []string
	for _, message := range all[max(1, len(all)-messages):] {
		for _, part := range message.Parts {
			switch {
			case part.Call != nil:
				parts = append(parts, "The agent calls "+part.Call.Name+" "+llm.QuoteEntry(tool.Shorten(part.Call.Arguments, 1000)))
			case part.Result != nil:
				parts = append(parts, part.Result.Name+" answers: "+llm.QuoteEntry(tool.Shorten(part.Result.Text, 3000)))
			case part.Text != "" && message.Role == llm.Assistant:
				parts = append(parts, "The agent says: "+llm.QuoteEntry(tool.Shorten(part.Text, 1000)))
			}
		}
	}
	return llm.Quote(llm.Origin{Source: "transcript"}, tool.Shorten(strings.Join(parts, "\n"), most))
}
