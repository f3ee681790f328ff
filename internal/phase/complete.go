package phase

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/lifecycle"
	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/phase/conversation"
	"github.com/toryo-dev/toryo/internal/phase/tool"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

// completion is the outcome of the last phase, as the journal has it.
type completion struct {
	State  task.State      `json:"state"`
	Reason task.Reason     `json:"reason"`
	Pull   *Pulled         `json:"pull,omitempty"`
	Text   pullRequestText `json:"letter"`
	// Withheld is what was found in work that was not published. The model is told,
	// and the work goes on.
	Withheld []task.Finding `json:"withheld,omitempty"`
	// Returned says that people had said something in the meantime, and that the work
	// goes on with it.
	Returned bool `json:"returned,omitempty"`
	// Moved says that others had pushed to the branch, and that the work continues on top
	// of that.
	Moved bool `json:"moved,omitempty"`
	// Idle says that nothing was to be changed, and nothing was published.
	Idle bool `json:"idle,omitempty"`
}

// pullRequestText is what a model writes for the people who review the work.
type pullRequestText struct {
	CommitMessage string        `json:"commit_message"`
	Title         string        `json:"title"`
	Summary       string        `json:"summary"`
	Replies       []ThreadReply `json:"replies,omitempty"`
}

// complete hands the work over: commit, pull request, answers to reviewers. Again
// says that execution goes on: with what people have said in the last moment, with what was
// found in the work before it was published, or on top of what others have pushed.
func (r *run) complete(ctx context.Context) (outcome Outcome, again bool, err error) {
	if r.state.handed {
		outcome, err = r.handedOver()
		return outcome, false, err
	}
	if r.state.returned {
		return Outcome{}, true, r.begin(ctx, task.Execution)
	}
	var verdict Verdict
	if err := r.state.outcome(task.Verification, &verdict); err != nil {
		return Outcome{}, false, err
	}
	if !r.state.active(task.Complete) {
		waiting, err := r.lastComments(ctx)
		if err == nil && waiting {
			err = r.begin(ctx, task.Execution)
		}
		if err != nil || waiting {
			return Outcome{}, waiting, err
		}
	}
	switch {
	case verdict.conflicts():
		outcome, err = r.fail(ctx, givenUp{Reason: task.ReasonMergeConflict, Detail: r.fileNames(slices.Concat(verdict.Conflicts, verdict.Undecided))})
		return outcome, false, err
	case len(verdict.loses()) > 0:
		outcome, err = r.fail(ctx, givenUp{Reason: task.ReasonWorkLost, Detail: r.fileNames(verdict.loses())})
		return outcome, false, err
	case verdict.Idle:
		outcome, err = r.answer(ctx)
		return outcome, false, err
	case !verdict.Changed:
		outcome, err = r.fail(ctx, givenUp{Reason: task.ReasonNothingChanged, Said: r.lastText()})
		return outcome, false, err
	}
	outcome, err = r.handOver(ctx, verdict)
	if task.CodeOf(err) == task.Unsafe {
		outcome, err = r.fail(ctx, givenUp{Reason: task.ReasonUnsafeChange, Detail: err.Error()})
	}
	return outcome, r.state.returned, err
}

// answer ends a run that was to change nothing: with what the model says, in the thread of the
// comment that led to the run, or as the last comment if that is in none.
func (r *run) answer(ctx context.Context) (Outcome, error) {
	if err := r.begin(ctx, task.Complete); err != nil {
		return Outcome{}, err
	}
	handed := completion{State: task.Done, Reason: task.ReasonCompleted, Text: pullRequestText{Summary: r.lastText()}, Idle: true}
	if thread, found := r.Work.CommentThread(); found {
		handed.Text.Replies = []ThreadReply{{Thread: thread, Text: handed.Text.Summary}}
		if err := r.reply(ctx, handed.Text); err != nil {
			return Outcome{}, err
		}
	}
	if err := r.append(ctx, task.Summed, Entry{Text: r.summarize(&handed, handed.Reason)}); err != nil {
		return Outcome{}, err
	}
	if err := r.end(ctx, task.Complete, PhaseCompleted, handed); err != nil {
		return Outcome{}, err
	}
	return r.handedOver()
}

// mayGoBack reports whether execution may go on once more for comments.
func (r *run) mayGoBack() bool {
	t := chat{run: r, name: string(task.Execution)}
	return r.state.phase(task.Execution).begun < r.Limits.Rounds && t.turnsLeft() > 0
}

// lastLooks is how often the last look for comments is tried.
const lastLooks = 5

// lastComments looks for comments before something is done that cannot be taken back, and
// reports whether there are any that count and execution is to take up. Those that it is
// not are left for the server, which names them at the end as too late.
func (r *run) lastComments(ctx context.Context) (bool, error) {
	if r.Comments.Disabled || !r.mayGoBack() {
		return false, nil
	}
	var waiting []task.CommentEntry
	var err error
	for range lastLooks { // there is no next look that could find what this one does not
		if waiting, err = r.waitingNow(ctx); err == nil {
			break
		}
	}
	if err != nil {
		r.Log.WarnContext(ctx, "failed to look for new comments", "error", err)
		return false, nil
	}
	if len(waiting) == 0 {
		return false, nil
	}
	if len(counted(waiting)) > 0 {
		again := r.state.position != r.wentBackAt // else execution could not take them up
		r.wentBackAt = r.state.position
		return again, nil
	}
	return false, r.append(ctx, task.SignalTaken, Entry{Step: r.step(), Signal: judge(waiting)})
}

// lastText is the model's own summary.
func (r *run) lastText() string {
	var executed execution
	if r.state.outcome(task.Execution, &executed) != nil {
		return ""
	}
	return executed.Summary
}

func (r *run) handOver(ctx context.Context, verdict Verdict) (Outcome, error) {
	if err := r.begin(ctx, task.Complete); err != nil {
		return Outcome{}, err
	}
	text, err := r.askPullRequestText(ctx, verdict)
	if err != nil {
		return Outcome{}, err
	}
	if err := r.commitBranch(ctx, text, verdict); err != nil {
		return Outcome{}, err
	}
	if returned, err := r.goBack(ctx, completion{Text: text}); err != nil || returned {
		return Outcome{}, err
	}
	pull, err := r.openPull(ctx, text, verdict)
	if err != nil {
		return Outcome{}, err
	}
	if pull.Withheld {
		if r.state.withheld != nil {
			return Outcome{}, task.Errorf(task.Unsafe, "the work was withheld a second time")
		}
		return Outcome{}, r.end(ctx, task.Complete, PhaseFailed, completion{Text: text, Withheld: pull.Findings})
	}
	if pull.Moved != "" {
		return r.branchMoved(ctx, text)
	}
	if err := r.reply(ctx, text); err != nil {
		return Outcome{}, err
	}
	handed := completion{State: task.Done, Reason: task.ReasonCompleted, Pull: &pull, Text: text}
	if !verdict.Passed {
		handed.State, handed.Reason = task.Failed, task.ReasonNotVerified
	}
	if err := r.append(ctx, task.Summed, Entry{Text: r.summarize(&handed, handed.Reason)}); err != nil {
		return Outcome{}, err
	}
	status := PhaseCompleted
	if handed.State != task.Done {
		status = PhaseFailed
	}
	if err := r.end(ctx, task.Complete, status, handed); err != nil {
		return Outcome{}, err
	}
	return r.handedOver()
}

// commitBranch makes the commit that is published, once.
func (r *run) commitBranch(ctx context.Context, text pullRequestText, verdict Verdict) error {
	if r.state.branch != "" {
		return nil
	}
	commit, _, err := r.Repository.Commit(ctx, r.clean(tool.Printable(text.CommitMessage)), verdict.Commit)
	if err != nil {
		return fmt.Errorf("commit the work: %w", err)
	}
	return r.append(ctx, task.Saved, Entry{Step: r.state.step, Commit: commit, Status: SavedBranch})
}

// goBack ends the phase if people have said something: the work goes on with it.
func (r *run) goBack(ctx context.Context, handed completion) (bool, error) {
	waiting, err := r.lastComments(ctx)
	if err != nil || !waiting {
		return false, err
	}
	handed.Returned = true
	return true, r.end(ctx, task.Complete, PhaseCompleted, handed)
}

// handedOver is the outcome of a run whose journal is complete.
func (r *run) handedOver() (Outcome, error) {
	var handed completion
	if err := r.state.outcome(task.Complete, &handed); err != nil {
		return Outcome{}, err
	}
	var verdict Verdict
	if err := r.state.outcome(task.Verification, &verdict); err != nil {
		return Outcome{}, err
	}
	detail := ""
	if handed.State != task.Done {
		detail = detailOf(strings.Join(r.verificationLines(verdict), "\n"))
	}
	return Outcome{State: handed.State, Reason: handed.Reason, Pull: handed.Pull, Detail: detail,
		Comment: strings.TrimSpace(r.doneComment(handed, verdict) + r.tooLate()), Summary: r.state.summary}, nil
}

// askPullRequestText has the model write to the reviewers. Without an answer that can be
// used, what is known has to do.
func (r *run) askPullRequestText(ctx context.Context, verdict Verdict) (pullRequestText, error) {
	system, err := r.system(task.Complete)
	if err != nil {
		return pullRequestText{}, err
	}
	diff, err := r.Repository.Diff(ctx, verdict.Commit)
	if err != nil {
		return pullRequestText{}, err
	}
	const longestDiff = 40_000
	name := string(task.Complete)
	if begun := r.state.phase(task.Complete).begun; begun > 1 { // it is other work, and another text
		name += fmt.Sprint("-", begun)
	}
	t, err := r.open(ctx, opening{name: name, phase: task.Complete, system: system, tools: []tool.Tool{r.readComments(task.Complete)}, pinned: r.blocks(task.Complete,
		conversation.Block{Name: planBlock, Text: r.state.plan.checklist()},
		conversation.Block{Name: "facts", Text: verdict.describe()},
		conversation.Block{Name: "summary", Text: llm.Quote(llm.Origin{Source: "summary of the work"}, r.lastText())},
		conversation.Block{Name: "diff", Text: llm.Quote(llm.Origin{Source: "diff"}, tool.Shorten(tool.Printable(diff.Text), longestDiff))},
	)})
	if err != nil {
		return pullRequestText{}, err
	}
	var text pullRequestText
	t.ignoreComments = true // what people say now is for the model that does the work
	err = t.object(ctx, func(object map[string]any) error {
		text = pullRequestText{}
		if err := into(object, &text); err != nil {
			return err
		}
		if strings.TrimSpace(text.CommitMessage) == "" || strings.TrimSpace(text.Title) == "" || strings.TrimSpace(text.Summary) == "" {
			return errors.New(`"commit_message", "title" and "summary" must not be empty`)
		}
		return nil
	})
	var over *overError
	if errors.Is(err, errNoAnswer) || errors.As(err, &over) {
		text = pullRequestText{CommitMessage: r.plainTitle(), Title: r.plainTitle(), Summary: r.lastText()}
		err = nil
	}
	text.Title = tool.Shorten(textfmt.OneLine(text.Title), 200)
	return text, err
}

func (r *run) plainTitle() string {
	if title := textfmt.OneLine(r.Work.Title); title != "" {
		return tool.Shorten(title, 72)
	}
	return "Work on " + cmp.Or(r.Work.ItemName(), "the project")
}

// conflictWait is how long a refused pull request waits for the signal that
// refused it.
const conflictWait = 5 * time.Second

// openPull publishes the work. A pull request that the work was about keeps its
// own words.
func (r *run) openPull(ctx context.Context, text pullRequestText, verdict Verdict) (Pulled, error) {
	open := OpenPull{Branch: r.Work.Branch, Commit: r.state.branch, Base: r.Work.Base, Title: text.Title,
		Body: r.pullBody(text, verdict), Again: r.state.withheld != nil, Verdict: r.attestation(verdict),
		Draft: r.Draft || !verdict.Passed || !r.state.setup.Handover.EnvironmentReady || r.state.setup.Unrepeatable != ""}
	if pull := r.Work.Pull; pull != nil {
		open.Title, open.Body, open.Draft = pull.Title, pull.Body, false
	}
	pulled, err := r.Forge.OpenPull(ctx, open)
	if task.CodeOf(err) == task.Conflict && ctx.Err() == nil {
		// A stop is on its way: it has won, and will end the context.
		if cut := lifecycle.Sleep(ctx, conflictWait); cut != nil {
			return Pulled{}, cut
		}
	}
	if err != nil {
		return Pulled{}, fmt.Errorf("open the pull request: %w", err)
	}
	return pulled, nil
}

// reply answers the review threads that the change deals with, when it is published.
func (r *run) reply(ctx context.Context, text pullRequestText) error {
	if r.Work.Pull == nil {
		return nil
	}
	for _, reply := range text.Replies {
		known := slices.ContainsFunc(r.Work.Pull.Threads, func(thread Thread) bool { return thread.ID == reply.Thread })
		if !known || strings.TrimSpace(reply.Text) == "" {
			continue
		}
		reply.Text = tool.Shorten(reply.Text, longestComment) + r.scriptedLine()
		err := r.notifyOnce(ctx, "reply-"+reply.Thread, reply.Text, func(name string) error { return r.Forge.Reply(ctx, name, reply) })
		if err != nil {
			return err
		}
	}
	return nil
}
