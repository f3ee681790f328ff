package phase

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

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
		if err := r.revisePlan(ctx); err != nil {
			return err
		}
	}
	return errNotApproved
}

// revisePlan makes another plan, after what people have said about the last one.
func (r *run) revisePlan(ctx context.Context) error {
	comments, err := r.waiting(ctx)
	if err != nil {
		return err
	}
	if len(counted(comments)) == 0 {
		// To wait again would have the run begin anew at once, without end.
		return task.Errorf(task.Unavailable, "plan %d is to be revised, but nobody has said anything about it", r.state.plan.Revision)
	}
	if err := r.begin(ctx, task.Planning); err != nil {
		return err
	}
	return r.makePlan(ctx)
}

// errNotApproved is what a run ends with whose plan people have to approve first.
var errNotApproved = task.Errorf(task.Conflict, "the plan is not approved")

// propose shows the plan to people and ends the run until they have approved it. Each revision
// has a comment of its own, so that a reaction to one says nothing about another.
func (r *run) propose(ctx context.Context) (Outcome, error) {
	plan := r.state.plan
	outcome := Outcome{State: task.Paused, Reason: task.ReasonAwaitingApproval, Detail: detailOf(plan.GoalUnderstanding.Goal)}
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
	if err := t.takeWaiting(ctx); err != nil {
		return fmt.Errorf("take up what people say about the plan: %w", err)
	}
	return t.send(ctx, fmt.Sprintf("Plan %d was shown to people. It is not approved: see what they say. "+
		"Answer with the whole plan as they want it, as one JSON object and nothing else.", r.state.proposed))
}

// What is shown of a plan at most: with all of it the comment has less than 30 kB. What is left
// out is said.
const (
	mostListed  = 60
	longestRow  = 300   // characters
	listRoom    = 3_500 // bytes of a list
	stepsRoom   = 8_000
	commandRoom = 8_000
)

// cutMark is at the end of what is not shown whole.
const cutMark = "… (cut)"

// planText is the plan as people read it. What the model wrote is code: there Markdown, HTML
// and mentions do nothing, so nothing of it can be hidden from who approves it.
func (r *run) planText(plan *Plan) string {
	goal, actions := plan.GoalUnderstanding, plan.ActionPlan.Actions
	steps, open := make([]string, len(actions)), make([]string, len(goal.Ambiguities))
	for i, action := range actions {
		steps[i] = action.What
	}
	for i, one := range goal.Ambiguities {
		open[i] = one.Question + " → " + one.Assumption
	}
	how := r.text("run.plan_how")
	if plan.Revision >= task.MostPlans {
		how = r.text("run.plan_how_last")
	}
	parts := []string{
		r.text("run.plan_heading", plan.Revision),
		r.text("run.plan_goal", codeRow(goal.Goal)),
		r.planList("run.plan_deliverables", "- ", listRoom, goal.Deliverables),
		r.planList("run.plan_steps", "1. ", stepsRoom, steps),
		r.planList("run.plan_open", "- ", listRoom, open),
		r.proofText(plan.Proof),
		r.environmentText(plan),
		r.usageText(),
		how,
	}
	parts = slices.DeleteFunc(parts, func(part string) bool { return part == "" })
	return strings.Join(parts, "\n\n")
}

// codeRow is a text as one line of code, without the characters that cannot be seen.
func codeRow(text string) string {
	text = textfmt.OneLine(strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cf, r) {
			return -1
		}
		return r
	}, tool.Printable(text)))
	if text == "" {
		return ""
	}
	mark := ""
	if utf8.RuneCountInString(text) > longestRow {
		text, mark = textfmt.Shorten(text, longestRow-1), " (cut)"
	}
	fence := textfmt.Fence(text)
	if !strings.Contains(text, "`") {
		return "`" + text + "`" + mark
	}
	return fence + " " + text + " " + fence + mark
}

// planList is a list with as many of the texts as there is room for.
func (r *run) planList(heading, mark string, room int, texts []string) string {
	if len(texts) == 0 {
		return ""
	}
	lines := []string{r.text(heading), ""}
	for i, text := range texts {
		row := mark + codeRow(text)
		if room -= len(row); i == mostListed || room < 0 {
			lines = append(lines, "", r.text("run.plan_more", len(texts)-i))
			break
		}
		lines = append(lines, row)
	}
	return strings.Join(lines, "\n")
}

// proofText says which tests will show that the request is fulfilled.
func (r *run) proofText(proof Proof) string {
	switch {
	case len(proof.Tests) > 0:
		return r.text("run.plan_tests", codeRow(strings.Join(proof.Tests, ", ")))
	case proof.NoneBecause != "":
		return r.text("run.plan_no_tests", codeRow(proof.NoneBecause))
	}
	return ""
}

// environmentText says where the work will be done, and what is run to set that up.
func (r *run) environmentText(plan *Plan) string {
	selected := plan.SelectedEnvironment
	if selected.Name == "" {
		return ""
	}
	text := r.text("run.plan_environment", codeRow(selected.Name))
	if len(selected.SetupCommands) == 0 {
		return text
	}
	shown, more := shownCommands(selected.SetupCommands)
	fence := textfmt.Fence(shown)
	text += "\n\n" + r.text("run.plan_commands") + "\n\n" + fence + "\n" + shown + "\n" + fence
	if more > 0 {
		text += "\n\n" + r.text("run.plan_more", more)
	}
	return text
}

// shownCommands are commands as they will be run, as far as there is room, and how many there
// are besides. A character that cannot be seen is named by its number: the shell gets it.
func shownCommands(commands []string) (shown string, more int) {
	const longest = 2_000
	var lines []string
	room := commandRoom
	for i, command := range commands {
		var text strings.Builder
		for _, c := range strings.ToValidUTF8(command, "\uFFFD") {
			if c != '\n' && c != '\t' && (unicode.IsControl(c) || unicode.Is(unicode.Cf, c)) {
				fmt.Fprintf(&text, "<%U>", c)
			} else {
				text.WriteRune(c)
			}
		}
		line := text.String()
		if len(line) > longest {
			line = textfmt.Clip(line, longest) + cutMark
		}
		if room -= len(line); i == mostListed || room < 0 {
			return strings.Join(lines, "\n"), len(commands) - i
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n"), 0
}

// usageText says what the run has used, and what the whole task may use. Without earlier
// tasks nothing is known of that, and without prices nothing of money.
func (r *run) usageText() string {
	used, cost := textfmt.Count(r.state.usage.Total()), r.state.cost
	text := r.text("run.plan_used", used)
	if cost > 0 {
		text = r.text("run.plan_used_cost", used, cost)
	}
	switch estimate := r.Work.Approval.Estimate; {
	case estimate == nil:
		return text
	case estimate.Money > 0:
		return text + "  \n" + r.text("run.plan_estimate_cost", textfmt.Count(estimate.Tokens), llm.Money(estimate.Money), estimate.Tasks)
	default:
		return text + "  \n" + r.text("run.plan_estimate", textfmt.Count(estimate.Tokens), estimate.Tasks)
	}
}
