package phase

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/phase/conversation"
	"github.com/toryo-dev/toryo/internal/phase/tool"
	"github.com/toryo-dev/toryo/internal/task"
)

// shown are the entries after which the progress comment is brought up to date.
var shown = map[task.EventKind]bool{
	task.PhaseChanged: true, task.ModelUsed: true, task.Planned: true, task.Prepared: true,
	task.SignalTaken: true, task.NoteTaken: true,
}

// append writes an entry to the journal. When it returns, the entry has happened. The
// progress comment tells of one that is followed only when it is durable.
func (r *run) append(ctx context.Context, kind task.EventKind, entry Entry) error {
	entry, err := r.cleanEntry(kind, entry)
	if err != nil {
		return err
	}
	r.writing.Lock()
	defer r.writing.Unlock()
	if err := r.Journal.Append(ctx, kind, entry); err != nil {
		return fmt.Errorf("write the journal: %w", err)
	}
	r.state.apply(kind, entry)
	if r.AfterEntry != nil {
		r.AfterEntry(r.state.entries, kind)
	}
	r.untold = r.untold || shown[kind] && entry.Status != NoteOutput
	if r.Progress != nil && r.untold && !entry.Followed {
		r.untold = false
		if err := r.Forge.Progress(ctx, r.Progress()); err != nil {
			r.Log.WarnContext(ctx, "failed to update the progress comment", "error", err)
		}
	}
	return nil
}

// step is the number of the model's last turn. Tools that run at the same time
// ask for it.
func (r *run) step() int64 {
	r.writing.Lock()
	defer r.writing.Unlock()
	return r.state.step
}

// begin enters a phase, unless the run is in it already.
func (r *run) begin(ctx context.Context, phase task.Phase) error {
	if r.state.active(phase) {
		return nil
	}
	return r.append(ctx, task.PhaseChanged, Entry{Phase: phase, Status: PhaseActive})
}

// end leaves a phase with what it came to.
func (r *run) end(ctx context.Context, phase task.Phase, status string, outcome any) error {
	data, err := json.Marshal(outcome)
	if err != nil {
		return fmt.Errorf("write the outcome of %s: %w", phase, err)
	}
	return r.append(ctx, task.PhaseChanged, Entry{Phase: phase, Status: status, Outcome: data})
}

// note writes something for people to read.
func (r *run) note(ctx context.Context, text string) error {
	return r.append(ctx, task.NoteTaken, Entry{Text: text})
}

// warn writes something that people have to see at the end too, once.
func (r *run) warn(ctx context.Context, text string) error {
	if slices.Contains(r.state.warnings, text) {
		return nil
	}
	return r.append(ctx, task.NoteTaken, Entry{Text: text, Status: noteWarning})
}

// notifyOnce calls do, which writes something for people, once for each name.
func (r *run) notifyOnce(ctx context.Context, name, what string, do func(name string) error) error {
	if r.state.notified[name] {
		return nil
	}
	if err := do(r.unique(name)); err != nil {
		return err
	}
	return r.append(ctx, task.NoteTaken, Entry{Text: what, Name: name})
}

// unique is a name for something that is written for people, which no other run of the task
// has. A run that goes on after a loss has the same.
func (r *run) unique(name string) string { return fmt.Sprintf("%d-%s", r.state.first, name) }

// save keeps the work in progress where it outlasts this machine.
func (r *run) save(ctx context.Context) error { return r.saveBefore(ctx, false) }

// saveBefore is save, with what is said of its entry; see [Entry.Followed].
func (r *run) saveBefore(ctx context.Context, followed bool) error {
	// Before set-up there is no work. After a verdict the work is what that is about,
	// whatever still goes on in the workspace.
	if r.state.setup == nil || r.state.timesEnded(task.Verification) > 0 && !r.state.active(task.Execution) && !r.state.active(task.Verification) {
		return nil
	}
	if err := r.exclude(ctx); err != nil {
		return err
	}
	commit, err := r.Repository.Save(ctx, "Work in progress")
	if err != nil {
		return fmt.Errorf("save the work in progress: %w", err)
	}
	if err := r.remark(ctx); err != nil {
		return err
	}
	if commit == r.state.saved { // without a commit, nothing is changed, or what an earlier run has saved is lost
		return nil
	}
	return r.append(ctx, task.Saved, Entry{Step: r.step(), Commit: commit, Followed: followed})
}

// remark tells people what the repository has left out or left alone, once.
func (r *run) remark(ctx context.Context) error {
	for _, text := range r.Repository.Remarks() {
		if err := r.warn(ctx, text); err != nil {
			return err
		}
	}
	return nil
}

// journal is the run's journal as a conversation sees it.
type journal struct {
	run          *run
	conversation string
	phase        task.Phase
	// signal goes with the next entry, in one.
	signal *SignalEntry
}

// Append implements [conversation.Journal].
func (j *journal) Append(ctx context.Context, entry conversation.Entry) error {
	kind, written := task.MessageSent, Entry{Phase: j.phase, Conversation: j.conversation, Message: &entry}
	if j.signal != nil {
		kind, written.Signal, written.Step = task.SignalTaken, j.signal, j.run.step()
	} else if entry.Message != nil && len(entry.Message.Calls()) > 0 {
		written.Followed = true // by the begin of the first call, or the message with all results
	}
	return j.run.append(ctx, kind, written)
}

// Answered implements turn.Recorder.
func (j *journal) Answered(ctx context.Context, response llm.Response) error {
	if err := j.tellFallback(ctx, response.Standin); err != nil {
		return err
	}
	used := Usage{Model: response.Model, Scripted: response.Scripted, Usage: response.Usage, Cost: response.Cost}
	return j.run.append(ctx, task.ModelUsed, Entry{Phase: j.phase, Step: j.run.step() + 1, Usage: &used, Followed: true}) // by a message, or the end of the phase
}

// tellFallback says that another model answers than the one that is configured, once for each outage.
func (j *journal) tellFallback(ctx context.Context, by *llm.Standin) error {
	if by == nil {
		return nil
	}
	name := "fallback " + by.Instead + " " + by.SinceText()
	if j.run.state.notified[name] {
		return nil
	}
	return j.run.append(ctx, task.NoteTaken, Entry{Phase: j.phase, Name: name, Text: by.Text(j.run.language)})
}

// Done implements turn.Recorder.
func (j *journal) Done(ctx context.Context, done tool.Done) error {
	whole := done.Output.Whole
	if whole == done.Result.Text {
		whole = ""
	}
	result := &CallResult{Text: done.Result.Text, Whole: whole, Failed: done.Result.Error, Milliseconds: done.Took.Milliseconds()}
	if exit := done.Output.Exit; exit != nil {
		result.Exit = &CallExit{Code: exit.Code, TimedOut: exit.TimedOut}
	}
	return j.run.append(ctx, task.ToolCalled, Entry{
		Phase: j.phase, Conversation: j.conversation, Step: j.run.step(), Call: &done.Call, Result: result,
		Followed: true, // by the message with all results
	})
}

// Compacted implements turn.Recorder. The conversation itself has written what it
// came to.
func (j *journal) Compacted(ctx context.Context, compaction conversation.Compaction) error {
	if err := j.tellFallback(ctx, compaction.Standin); err != nil {
		return err
	}
	if compaction.Usage == (llm.Usage{}) {
		return nil
	}
	used := Usage{Model: "summary", Usage: compaction.Usage, Cost: compaction.Cost}
	if j.run.Summarizer != nil {
		info := j.run.Summarizer.Info()
		used.Model, used.Scripted = cmp.Or(info.Model, used.Model), info.Scripted
	}
	return j.run.append(ctx, task.ModelUsed, Entry{Phase: j.phase, Step: j.run.step(), Usage: &used})
}

// noted is a tool whose calls are in the journal before they begin.
type noted struct {
	tool.Tool
	journal *journal
}

// Call implements [tool.Tool].
func (n noted) Call(ctx context.Context, call llm.Call, arguments json.RawMessage) (tool.Output, error) {
	kept := call
	if n.journal.run.Redactor != nil {
		kept.Arguments = n.journal.run.Redactor.String(call.Arguments)
	}
	entry := Entry{Phase: n.journal.phase, Conversation: n.journal.conversation, Step: n.journal.run.step(), Call: &kept}
	if err := n.journal.run.append(ctx, task.ToolCalled, entry); err != nil {
		return tool.Output{}, err
	}
	calls := &n.journal.run.calls
	calls.begin(call, n.journal.run.newCallOutput(call, n.journal.phase))
	output, err := n.Tool.Call(ctx, call, arguments)
	calls.end(call)
	if err == nil && !n.ReadOnly() && n.journal.phase == task.Execution {
		n.journal.run.saveNow(ctx)
	}
	return output, err
}

// saveNow saves the work at a checkpoint. It comes before the result of the call
// is in the journal: a change that the journal knows of is then never lost. That
// it fails is not the end: the next one may work, and the one at the end of the
// phase has to.
func (r *run) saveNow(ctx context.Context) {
	if step := r.step(); step-r.savedAt >= int64(r.Limits.SaveEvery) {
		if err := r.saveBefore(ctx, true); err != nil { // by the result of the call, or the begin of the next
			r.Log.WarnContext(ctx, "failed to save the work in progress", "error", err)
			return
		}
		r.savedAt = step
	}
}
