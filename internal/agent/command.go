package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/messages"
	"github.com/toryo-dev/toryo/internal/notice"
	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
	"github.com/toryo-dev/toryo/internal/wire"
)

// Command is the executor that lets a program do the work, in a sandbox with the
// prepared workspace. What it changes becomes the branch; what it writes becomes
// the review.
type Command struct {
	Words    []string // with places to be filled in, such as {{.Prompt}}
	Engine   sandbox.Engine
	Owner    string // of the sandboxes
	Image    string // for engines that have images
	Env      map[string]string
	Network  func(role task.Role) sandbox.Policy
	Limits   sandbox.Limits
	Timeout  time.Duration // of the whole command
	Output   int           // bytes of output that are kept
	Language task.Language
}

const (
	// saveWithin is how long a run that was cut has to save its work.
	saveWithin = time.Minute
	// stopWithin is how long a sandbox has to end.
	stopWithin = 30 * time.Second
	// longestWord is how long a word may be that a program is given; Linux sets
	// this limit, a little above.
	longestWord = 127 << 10
	// shownOutput is how much output people are shown.
	shownOutput = 4000
	// promptPath is where a command finds the prompt as a file.
	promptPath = "/tmp/toryo-prompt.md"
)

var _ Executor = Command{}

// Execute implements Executor.
func (c Command) Execute(ctx context.Context, run Run) (wire.Result, error) {
	if run.Work.Approval.Required {
		return wire.Result{}, task.Errorf(task.Unsupported, "the plan has to be approved, and a program of your own makes none").
			WithHint("set planning.approval: never, or remove executors.development")
	}
	in := c.Language.OfItem(run.Assignment.Title, run.Assignment.Body)
	result, err := c.execute(ctx, &run)
	unmerged, is := errors.AsType[*unmergedError](err)
	switch {
	case ctx.Err() != nil && err != nil:
		return c.cut(ctx, run)
	case is:
		return wire.Result{
			Outcome: task.OutcomeFailed, Reason: string(unmerged.reason), Comment: unmerged.comment(in, run),
			Detail: ending(textfmt.Plain(strings.Join(unmerged.files, "\n"))),
		}, nil
	case task.CodeOf(err) == task.Unsafe:
		said := notice.Notice{Reason: task.ReasonUnsafeChange}
		return wire.Result{
			Outcome: task.OutcomeFailed, Reason: string(task.ReasonUnsafeChange),
			Comment: said.Failed(in) + "\n\n" + quoted(err.Error()) + "\n\n" + said.Next(in), Detail: err.Error(),
		}, nil
	}
	return result, err
}

// execute runs the command until its work is published, or is not going to be.
func (c Command) execute(ctx context.Context, run *Run) (wire.Result, error) {
	if merges, err := c.mergeFirst(ctx, run); err != nil || merges {
		in := c.Language.OfItem(run.Assignment.Title, run.Assignment.Body)
		return wire.Result{Outcome: task.OutcomeDone, Reason: string(task.ReasonCompleted), Comment: messages.Text(in, "run.merges_again", run.Work.Base)}, err
	}
	again, moved := false, 0 // it was told what was found in its work; others have pushed so often
	for {
		ended, err := c.work(ctx, *run)
		if err == nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return wire.Result{}, err
		}
		result, err := c.judge(ctx, *run, ended, again)
		withheld, isWithheld := errors.AsType[*withheldError](err)
		_, isMoved := errors.AsType[*movedError](err)
		switch {
		case isWithheld && !again:
			again = true // once; the server sees to it that it is not more often
			run.Assignment.Prompt += "\n\n" + phase.WithheldText(withheld.findings)
		case isMoved && moved == phase.MostMoved:
			return wire.Result{}, &unmergedError{reason: task.ReasonBranchMoved}
		case isMoved:
			moved++
			if err := c.takeBranch(ctx, run, moved); err != nil {
				return wire.Result{}, err
			}
		default:
			return result, err
		}
	}
}

// withheldError says that the work was not published, and that the program may change it.
type withheldError struct{ findings []task.Finding }

func (*withheldError) Error() string { return "the work was not published" }

// work runs the command in a sandbox of its own.
func (c Command) work(ctx context.Context, run Run) (ended sandbox.Result, err error) {
	words := fill(c.Words, run.Assignment)
	for _, word := range words {
		if len(word) > longestWord {
			return ended, task.Errorf(task.TooLarge, "a word of the command has %d bytes; %d are allowed", len(word), longestWord).
				WithHint("give the prompt as a file with {{.PromptFile}}")
		}
	}
	if err := enter(ctx, run, phase.PhaseActive); err != nil {
		return ended, err
	}
	box, err := c.Engine.Start(ctx, sandbox.Spec{
		Owner: c.Owner, Task: run.Assignment.TaskID, Generation: run.Assignment.Generation, Image: c.Image,
		Workspace: run.Repository.Workspace(), Env: c.Env, Network: c.Network(run.Work.Role), Limits: c.Limits,
		Progress: func(message string) { run.Log.InfoContext(ctx, "starting the sandbox", "step", message) },
	})
	if err != nil {
		return ended, errors.Join(errNotPrepared, sandbox.StartError(err))
	}
	defer func() {
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
		defer cancel()
		if failed := box.Stop(stopping); failed != nil {
			run.Log.WarnContext(ctx, "failed to stop the sandbox", "error", failed)
		}
	}()
	if err := c.givePrompt(ctx, box, run.Assignment); err != nil {
		return ended, err
	}
	return c.runCommand(ctx, run, box, words)
}

// givePrompt writes the prompt to a file inside, if the command wants it there.
func (c Command) givePrompt(ctx context.Context, box sandbox.Sandbox, a wire.Assignment) error {
	if !needsPromptFile(c.Words) {
		return nil
	}
	result, err := box.Run(ctx, sandbox.Command{Text: "printf %s " + shellText([]string{a.Prompt}) + " >" + promptPath})
	if err == nil && result.ExitCode != 0 {
		err = task.Errorf(task.Unavailable, "the prompt cannot be written into the sandbox")
	}
	return err
}

// runCommand runs the command, with its output streamed into the journal.
func (c Command) runCommand(ctx context.Context, run Run, box sandbox.Sandbox, words []string) (sandbox.Result, error) {
	call := &llm.Call{ID: "command", Name: c.Words[0], Arguments: "{}"}
	if err := run.Journal.Append(ctx, task.ToolCalled, phase.Entry{Phase: task.Execution, Call: call}); err != nil {
		return sandbox.Result{}, err
	}
	live := &phase.LiveOutput{Journal: run.Journal, Phase: task.Execution}
	defer live.Stop()
	begun := time.Now()
	ended, err := box.Run(ctx, sandbox.Command{
		Text: shellText(words), Timeout: c.Timeout, OutputLimit: c.Output,
		Output: func(_ sandbox.Stream, data []byte) { live.Write(ctx, data) },
	})
	if err != nil {
		return ended, err
	}
	if err := live.Flush(ctx); err != nil {
		return ended, err
	}
	shown := ending(strings.ToValidUTF8(string(ended.Log), "\uFFFD"))
	return ended, run.Journal.Append(ctx, task.ToolCalled, phase.Entry{Phase: task.Execution, Call: call, Result: &phase.CallResult{
		Text: fmt.Sprintf("exit code %d\n%s", ended.ExitCode, shown), Failed: ended.ExitCode != 0 || ended.Exceeded != sandbox.NoLimit,
		Exit: &phase.CallExit{Code: ended.ExitCode, TimedOut: ended.Exceeded == sandbox.TimeLimit}, Milliseconds: time.Since(begun).Milliseconds(),
	}})
}

// judge makes the result of a command that has ended.
func (c Command) judge(ctx context.Context, run Run, ended sandbox.Result, again bool) (wire.Result, error) {
	in := c.Language.OfItem(run.Assignment.Title, run.Assignment.Body)
	output := strings.ToValidUTF8(string(ended.Log), "\uFFFD")
	switch {
	case failedForRoom(ctx, run, ended):
		return wire.Result{}, errNoRoom
	case ended.Exceeded != sandbox.NoLimit:
		return failed(run.Work.Type, in, messages.Text(in, "command.limit", ended.Exceeded), output), nil
	case ended.ExitCode != 0:
		return failed(run.Work.Type, in, messages.Text(in, "command.exit", ended.ExitCode), output), nil
	case run.Work.Type == task.Review:
		return c.review(in, run, strings.ToValidUTF8(string(ended.Stdout), "\uFFFD"))
	default:
		return c.handOver(ctx, in, run, output, again)
	}
}

// failedForRoom reports whether a program has failed, and the disk was full. A program says that it
// could not write in words of its own, if at all; and its time goes on while its output cannot be
// written. One that went over another limit has failed for that.
func failedForRoom(ctx context.Context, run Run, ended sandbox.Result) bool {
	failed := ended.Exceeded == sandbox.TimeLimit || ended.Exceeded == sandbox.NoLimit && ended.ExitCode != 0
	return failed && run.lackedRoom != nil && run.lackedRoom(ctx)
}

// failed is the result of a run that came to nothing.
func failed(kind task.Type, in task.Language, text, output string) wire.Result {
	said := notice.Notice{Detail: text, Review: kind == task.Review}
	detail := text
	text = said.Broke(in)
	if shown := ending(output); strings.TrimSpace(shown) != "" {
		text += "\n\n" + messages.Text(in, "command.output") + "\n\n" + quoted(shown)
		detail += "\n\n" + strings.TrimSpace(textfmt.Plain(textfmt.StripEscapes(shown)))
	}
	text += "\n\n" + said.Next(in)
	return wire.Result{Outcome: task.OutcomeFailed, Reason: string(task.ReasonRunFailed), Comment: text, Detail: detail}
}

// handOver makes the branch and the pull request of what was changed.
func (c Command) handOver(ctx context.Context, in task.Language, run Run, output string, again bool) (wire.Result, error) {
	message := fmt.Sprintf("%s\n\nFor #%d", run.Work.Title, run.Work.Item.Number)
	if err := errors.Join(checkMarks(ctx, run), checkLost(ctx, run)); err != nil {
		return wire.Result{}, err
	}
	commit, changed, err := run.Repository.Commit(ctx, message, "")
	if err != nil {
		return wire.Result{}, fmt.Errorf("commit the changes: %w", err)
	}
	if !changed {
		// An earlier run may have made the branch, and ended before it was opened.
		if changed, err = differs(ctx, run); err != nil {
			return wire.Result{}, err
		}
	}
	if !changed {
		return unchanged(ctx, in, run, output)
	}
	open := phase.OpenPull{
		Branch: run.Work.Branch, Commit: commit, Base: run.Work.Base, Title: run.Work.Title,
		Body: messages.Text(in, "command.pull", run.Work.Item.Number, c.Words[0]), Again: again,
	}
	if run.Work.Pull != nil { // it stays what its author made of it
		open.Title, open.Body = run.Work.Pull.Title, run.Work.Pull.Body
	}
	pulled, err := run.Forge.OpenPull(ctx, open)
	if err != nil {
		return wire.Result{}, fmt.Errorf("open the pull request: %w", err)
	}
	if pulled.Withheld {
		if again {
			return wire.Result{}, task.Errorf(task.Unsafe, "the work was withheld a second time")
		}
		return wire.Result{}, &withheldError{pulled.Findings}
	}
	if pulled.Moved != "" {
		return wire.Result{}, &movedError{}
	}
	if err := answerThreads(ctx, in, run, cmp.Or(pulled.Commit, commit)); err != nil {
		return wire.Result{}, err
	}
	if err := enter(ctx, run, phase.PhaseCompleted); err != nil {
		return wire.Result{}, err
	}
	sent := wire.Pulled(pulled)
	return wire.Result{
		Outcome: task.OutcomeDone, Reason: string(task.ReasonCompleted), Comment: notice.Notice{Pull: pulled.URL}.Handed(in),
		Summary: ending(output), Kept: commit, Pull: &sent,
	}, nil
}

// unchanged is the result of a command that has changed nothing. A comment may ask for nothing:
// then what the command printed is the answer.
func unchanged(ctx context.Context, in task.Language, run Run, output string) (wire.Result, error) {
	answer := strings.TrimSpace(ending(output))
	if !run.Work.Commented() || answer == "" {
		return failed(run.Work.Type, in, messages.Text(in, "command.unchanged"), output), nil
	}
	done := wire.Result{Outcome: task.OutcomeDone, Reason: string(task.ReasonCompleted), Summary: answer}
	text := messages.Text(in, "run.idle") + "\n\n" + quoted(answer)
	if thread, found := run.Work.CommentThread(); found {
		if err := run.Forge.Reply(ctx, "thread-"+thread, phase.ThreadReply{Thread: thread, Text: text}); err != nil {
			return wire.Result{}, fmt.Errorf("answer a review thread: %w", err)
		}
	} else {
		done.Comment = text
	}
	return done, enter(ctx, run, phase.PhaseCompleted)
}

// differs says whether there is something in the branch that the base has not. On
// a pull request that is there already that says nothing about this run.
func differs(ctx context.Context, run Run) (bool, error) {
	if run.Work.Pull != nil {
		return false, nil
	}
	diff, err := run.Repository.Diff(ctx, "")
	return len(diff.Files) > 0, err
}

// answerThreads tells every reviewer whose request the command was given. Whether it has done
// what each asked for is not known, so the threads stay open.
func answerThreads(ctx context.Context, in task.Language, run Run, commit string) error {
	if run.Work.Pull == nil {
		return nil
	}
	for _, thread := range run.Work.Pull.Threads {
		if err := run.Forge.Reply(ctx, "thread-"+thread.ID, phase.ThreadReply{Thread: thread.ID, Text: messages.Text(in, "command.thread", commit)}); err != nil {
			return fmt.Errorf("answer a review thread: %w", err)
		}
	}
	return nil
}

// cut saves the work of a run that has to end, and returns why it ended.
func (c Command) cut(ctx context.Context, run Run) (wire.Result, error) {
	cause := context.Cause(ctx)
	result := wire.Result{}
	if halt, is := errors.AsType[*phase.Halt](cause); is {
		result.CutAfter = max(time.Since(halt.Since).Milliseconds(), 1)
	}
	if errors.Is(cause, ErrLeaseLost) || run.Work.Type == task.Review {
		return result, cause // there is nothing to save, or nobody to save it for
	}
	saving, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveWithin)
	defer cancel()
	commit, err := run.Repository.Save(saving, "Work in progress")
	if err != nil {
		run.Log.WarnContext(ctx, "failed to save the work in progress", "error", err)
		return result, cause
	}
	if result.Kept = commit; commit == "" {
		return result, cause // nothing is changed
	}
	if err := run.Journal.Append(saving, task.Saved, phase.Entry{Commit: commit}); err != nil {
		run.Log.WarnContext(ctx, "failed to continue the journal", "error", err)
	}
	return result, cause
}

func enter(ctx context.Context, run Run, status string) error {
	return run.Journal.Append(ctx, task.PhaseChanged, phase.Entry{Phase: task.Execution, Status: status})
}
