package phase

import (
	"context"
	"fmt"
	"strings"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/phase/tool"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

// approvePlan lets the run go on if people have approved the plan, or need not. Otherwise the
// run shows them the plan and ends; see [run.propose]. When they have said something about the
// plan, it is revised first.
//
// Which revision is approved comes with the assignment, and not from the journal: whoever
// hands the task out decides that. Once set-up has begun nothing is asked any more.
func (r *run) approvePlan(ctx context.Context) error {
	plan := r.state.plan
	if !r.Work.Approval.Required || r.Work.Approval.Approved == plan.Revision || r.state.phase(task.EnvironmentSetup).begun > 0 {
		return nil
	}
	if r.state.proposed == plan.Revision && r.Work.Approval.Discuss {
		comments, err := r.waiting(ctx)
		if err != nil {
			return err
		}
		if len(counted(comments)) > 0 {
			if err := r.begin(ctx, task.Planning); err != nil {
				return err
			}
			if err := r.makePlan(ctx); err != nil {
				return err
			}
		}
	}
	return errNotApproved
}

// errNotApproved is what a run ends with whose plan people have to approve first.
var errNotApproved = task.Errorf(task.Conflict, "the plan is not approved")

// propose shows the plan to people and ends the run until they have approved it. Each revision
// has a comment of its own, so that a reaction to one says nothing about another.
func (r *run) propose(ctx context.Context) (Outcome, error) {
	plan := r.state.plan
	outcome := Outcome{State: task.Paused, Reason: task.ReasonAwaitingApproval}
	if r.state.proposed == plan.Revision {
		return outcome, nil
	}
	name := r.unique(fmt.Sprintf("plan-%d", plan.Revision))
	if err := r.Forge.AddComment(ctx, name, r.planText(plan)); err != nil {
		return Outcome{}, err
	}
	signal := &SignalEntry{Signal: task.SignalPause, Reason: outcome.Reason, Plan: plan.Revision, Posted: name}
	return outcome, r.append(ctx, task.SignalTaken, Entry{Step: r.state.step, Signal: signal})
}

// discussPlan tells the model what people have said about the plan that they were shown.
func (r *run) discussPlan(ctx context.Context, t *chat) error {
	t.takeWaiting(ctx)
	return t.send(ctx, fmt.Sprintf("Plan %d was shown to people. It is not approved: see what they say. "+
		"Answer with the whole plan as they want it, as one JSON object and nothing else.", r.state.proposed))
}

// What is shown of a plan at most.
const (
	mostListed = 60
	longestRow = 300
)

// planText is the plan as people read it.
func (r *run) planText(plan *Plan) string {
	row := func(text string) string { return textfmt.Shorten(textfmt.OneLine(tool.Printable(text)), longestRow) }
	list := func(heading, mark string, count int, of func(i int) string) string {
		if count == 0 {
			return ""
		}
		lines := []string{r.text(heading), ""}
		for i := range min(count, mostListed) {
			lines = append(lines, mark+row(of(i)))
		}
		if more := count - mostListed; more > 0 {
			lines = append(lines, "", r.text("run.plan_more", more))
		}
		return strings.Join(lines, "\n")
	}
	goal, actions := plan.GoalUnderstanding, plan.ActionPlan.Actions
	parts := []string{
		r.text("run.plan_heading", plan.Revision),
		r.text("run.plan_goal", row(goal.Goal)),
		list("run.plan_deliverables", "- ", len(goal.Deliverables), func(i int) string { return goal.Deliverables[i] }),
		list("run.plan_steps", "1. ", len(actions), func(i int) string { return actions[i].What }),
		list("run.plan_open", "- ", len(goal.Ambiguities), func(i int) string {
			return goal.Ambiguities[i].Question + " → " + goal.Ambiguities[i].Assumption
		}),
		r.proofText(plan.Proof, row),
		r.environmentText(plan, row),
		r.usageText(),
		r.text("run.plan_how"),
	}
	var said []string
	for _, part := range parts {
		if part != "" {
			said = append(said, part)
		}
	}
	return strings.Join(said, "\n\n")
}

// proofText says which tests will show that the request is fulfilled.
func (r *run) proofText(proof Proof, row func(string) string) string {
	switch {
	case len(proof.Tests) > 0:
		return r.text("run.plan_tests", row(strings.Join(proof.Tests, ", ")))
	case proof.NoneBecause != "":
		return r.text("run.plan_no_tests", row(proof.NoneBecause))
	}
	return ""
}

// environmentText says where the work will be done, and what is run to set that up.
func (r *run) environmentText(plan *Plan, row func(string) string) string {
	selected := plan.SelectedEnvironment
	if selected.Name == "" {
		return ""
	}
	text := r.text("run.plan_environment", row(selected.Name))
	var commands []string
	for _, command := range selected.SetupCommands[:min(len(selected.SetupCommands), mostListed)] {
		commands = append(commands, row(command))
	}
	if len(commands) > 0 {
		block := strings.Join(commands, "\n")
		fence := textfmt.Fence(block)
		text += "\n\n" + r.text("run.plan_commands") + "\n\n" + fence + "\n" + block + "\n" + fence
	}
	return text
}

// usageText says what the run has used, and what the whole task may use. Without earlier
// tasks nothing is known of that, and without prices nothing of money.
func (r *run) usageText() string {
	used, cost := r.state.usage.Total(), r.state.cost
	text := r.text("run.plan_used", used)
	if cost > 0 {
		text = r.text("run.plan_used_cost", used, cost)
	}
	switch estimate := r.Work.Approval.Estimate; {
	case estimate == nil:
		return text
	case estimate.Money > 0:
		return text + "  \n" + r.text("run.plan_estimate_cost", estimate.Tokens, llm.Money(estimate.Money), estimate.Tasks)
	default:
		return text + "  \n" + r.text("run.plan_estimate", estimate.Tokens, estimate.Tasks)
	}
}
