package phase

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"

	"github.com/toryo-dev/toryo/internal/environment"
	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/phase/conversation"
	"github.com/toryo-dev/toryo/internal/phase/mcp"
	"github.com/toryo-dev/toryo/internal/phase/tool"
	"github.com/toryo-dev/toryo/internal/phase/turn"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

// execution is the outcome of the phase of that name.
type execution struct {
	Reason  task.Reason `json:"reason"`
	Summary string      `json:"summary,omitempty"` // the model's own
	Detail  string      `json:"detail,omitempty"`  // of why it ended early
	Proof   []string    `json:"proof,omitempty"`   // the tests that show it, as the model says
}

// planBlock is the pinned block with the plan and what is done of it.
const planBlock = "plan"

// execute has the model do the work, or fix what verification has found.
func (r *run) execute(ctx context.Context) error {
	if err := r.begin(ctx, task.Execution); err != nil {
		return err
	}
	t, err := r.openExecution(ctx)
	if err != nil {
		return err
	}
	if err := r.sendFindings(ctx, t); err != nil {
		return err
	}
	if err := r.takeBranch(ctx, t); err != nil {
		return err
	}
	if err := r.sendWithheld(ctx, t); err != nil {
		return err
	}
	outcome, err := r.work(ctx, t)
	detail := t.detail(outcome.Reason)
	if over, is := errors.AsType[*overError](err); is {
		outcome, detail, err = turn.Outcome{Reason: over.reason, Text: over.said}, over.text, nil
	}
	if err != nil {
		return err
	}
	if outcome.Reason == task.ReasonAwaitingAnswer {
		return &askedError{outcome.End.Question}
	}
	executed := execution{Reason: outcome.Reason, Summary: outcome.Text, Detail: detail}
	if outcome.End != nil {
		executed.Summary, executed.Proof = outcome.End.Summary, outcome.End.Proof[:min(len(outcome.End.Proof), mostNamed)]
	}
	if err := r.save(ctx); err != nil {
		return err
	}
	status := PhaseCompleted
	if executed.Reason != task.ReasonCompleted {
		status = PhaseFailed
	}
	return r.end(ctx, task.Execution, status, executed)
}

// work goes on with the conversation, if it is not over.
func (r *run) work(ctx context.Context, t *chat) (turn.Outcome, error) {
	if err := r.reflect(ctx, t); err != nil { // one that was cut off is finished first
		return turn.Outcome{}, err
	}
	t.takeComments(ctx, true)
	if ended := t.ended(); ended != nil {
		if ended.Reason != task.ReasonAwaitingAnswer || r.state.waitedAt != r.state.step {
			return *ended, nil
		}
		// The run has waited for the answer. Had one come, it would be a comment.
		if err := t.send(ctx, fmt.Sprintf("Nobody has answered the question of step %d. Decide by yourself what is most likely wanted, say so in your summary, and go on.", r.state.step)); err != nil {
			return turn.Outcome{}, err
		}
	} else if r.resumed && r.state.turns(t.name) > 0 {
		r.resumed = false
		if err := t.send(ctx, fmt.Sprintf("The run was interrupted after step %d and goes on now, perhaps on another machine. The files are as they were last saved: look at the diff before you rely on them.", r.state.step)); err != nil {
			return turn.Outcome{}, err
		}
	}
	return t.goOn(ctx)
}

func (r *run) openExecution(ctx context.Context) (*chat, error) {
	system, err := r.system(task.Execution, r.state.setup.Handover.Prompt())
	if err != nil {
		return nil, err
	}
	if err := r.workbench.connect(ctx); err != nil {
		return nil, err
	}
	var t *chat
	pin := func(ctx context.Context, name, text string) error {
		return t.conversation.Pin(ctx, conversation.Block{Name: name, Text: text})
	}
	t, err = r.open(ctx, opening{name: string(task.Execution), phase: task.Execution, system: system, mustFinish: true,
		tools: r.tools(ctx, pin), pinned: r.blocks(task.Execution,
			conversation.Block{Name: "references", Text: r.project.references},
			conversation.Block{Name: planBlock, Text: r.state.plan.checklist()},
		)})
	if err != nil {
		return nil, err
	}
	t.afterResults = func(ctx context.Context) error { return r.reflect(ctx, t) }
	return t, pin(ctx, planBlock, r.state.plan.checklist())
}

// tools are what the model works with, while the context lasts. The role may allow only some.
func (r *run) tools(ctx context.Context, pin func(ctx context.Context, name, text string) error) []tool.Tool {
	w := r.workbench.workspace()
	options := tool.RunOptions{Watch: r.watchCalls(ctx), Excerpt: func(output []byte, most int) string { return environment.LongExcerpt(output, most, most) }}
	all := append(r.workbench.lookers(),
		tool.Run(w, options), tool.Edit(w), tool.Patch(w), tool.Diff(w, r.diffText),
		tool.Test(r.tests(), options), tool.TaskList(pin), r.tick(pin))
	all = append(all, r.workbench.servers.Tools()...)
	if len(r.Role.Tools) > 0 {
		all = slices.DeleteFunc(all, func(one tool.Tool) bool { return !slices.Contains(r.Role.Tools, one.Definition().Name) })
	}
	return append(all, r.readComments(task.Execution), tool.Ask(), tool.Finish(r.fits))
}

// fits lets the model correct what a commit would refuse.
func (r *run) fits(ctx context.Context) error {
	err := r.Repository.Fits(ctx)
	if task.CodeOf(err) == task.TooLarge {
		return tool.Mistake("the work cannot be finished like this: %v", err)
	}
	return err
}

func (r *run) diffText(ctx context.Context) (string, error) {
	diff, err := r.Repository.Diff(ctx, "")
	return diff.Text, err
}

// tests are the tests of the main project against the baseline.
func (r *run) tests() projectTests {
	main := r.state.setup.Receipt.Main()
	return projectTests{workbench: r.workbench, command: main.Command(main.TestCommand), baseline: r.state.setup.Receipt.Baseline}
}

// connect starts the MCP servers, once. One that cannot be had is a warning.
func (b *workbench) connect(ctx context.Context) error {
	if b.servers != nil {
		return nil
	}
	connections, err := mcp.Connect(ctx, b.run.Servers, mcp.Launchers{Sandbox: b, Host: b.run.OnHost}, b.run.Log)
	b.servers = connections
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return b.run.warn(ctx, "MCP servers that cannot be used: "+textfmt.OneLine(err.Error()))
	}
	return nil
}

//go:embed tick.md
var tickDescription string

type tickInput struct {
	Action string `json:"action" jsonschema:"its id"`
}

// tick is the tool that marks an action of the plan as done.
func (r *run) tick(pin func(ctx context.Context, name, text string) error) tool.Tool {
	return tool.Define("tick", tickDescription, false, func(ctx context.Context, _ llm.Call, in tickInput) (tool.Output, error) {
		plan := *r.state.plan
		plan.ActionPlan.Actions = slices.Clone(plan.ActionPlan.Actions)
		at := slices.IndexFunc(plan.ActionPlan.Actions, func(a Action) bool { return a.ID == in.Action })
		if at < 0 {
			return tool.Output{}, tool.Mistake("the plan has no action %q", in.Action)
		}
		if !plan.ActionPlan.Actions[at].Done {
			plan.ActionPlan.Actions[at].Done = true
			if err := r.append(ctx, task.Planned, Entry{Plan: &plan}); err != nil {
				return tool.Output{}, err
			}
		}
		if err := pin(ctx, planBlock, plan.checklist()); err != nil {
			return tool.Output{}, err
		}
		return tool.Output{Text: "The action " + in.Action + " is marked as done."}, nil
	})
}
