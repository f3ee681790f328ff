package phase

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/toryo-dev/toryo/internal/environment"
	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/phase/conversation"
	"github.com/toryo-dev/toryo/internal/task"
)

// Journal is the record of a run, and is the run: what is in it has happened,
// and a run that was cut off goes on from it. An entry is durable on this machine
// when Append returns, or with the next that is not if it is [Entry.Followed], and reaches
// the server soon after, in order. Append may be called by several goroutines.
type Journal interface {
	Append(ctx context.Context, kind task.EventKind, entry Entry) error
}

// Entry is the data of one journal entry. Which fields are set follows from the
// kind of the event:
//
//	phase    Phase, Status; Outcome when the phase is over
//	message  Phase, Conversation, Message
//	tool     Phase, Conversation, Step, Call when a call begins; Result too when
//	         it has ended
//	usage    Phase, Step, Usage
//	plan     Plan
//	receipt  Setup
//	saved    Step, Commit; Status is branch for the commit of the finished work.
//	         Without a commit nothing is saved: what was is lost
//	signal   Step, Signal; Phase, Conversation and Message too when the model was
//	         told, which is then part of the conversation as any other message is:
//	         one entry, so that no crash can come between the two
//	summary  Text
//	note     Text; Name too when people were told, so that they are told once;
//	         Status is warning for what has to stay in sight, and output for what a
//	         program writes, as it comes, with Call if it is of one; Conflicts too when
//	         a merge has found some
type Entry struct {
	Phase  task.Phase `json:"phase,omitempty"`
	Step   int64      `json:"step,omitempty"` // counts the model's turns over the whole run
	Status string     `json:"status,omitempty"`
	// Outcome is what a phase came to, in a form of its own.
	Outcome json.RawMessage `json:"outcome,omitempty"`
	// Conversation names the conversation that the message is part of: each phase
	// that talks to a model has its own.
	Conversation string              `json:"conversation,omitempty"`
	Message      *conversation.Entry `json:"message,omitempty"`
	Call         *llm.Call           `json:"call,omitempty"`
	Result       *CallResult         `json:"result,omitempty"`
	Usage        *Usage              `json:"usage,omitempty"`
	Plan         *Plan               `json:"plan,omitempty"`
	Setup        *SetupEntry         `json:"setup,omitempty"`
	Commit       string              `json:"commit,omitempty"`
	Signal       *SignalEntry        `json:"signal,omitempty"`
	Text         string              `json:"text,omitempty"`
	Name         string              `json:"name,omitempty"`
	Conflicts    []string            `json:"conflicts,omitempty"` // files

	// Followed says that another entry follows soon: what makes that one durable does so with
	// this one. The machine may fail before, which takes this entry and those right before it
	// that are followed. So people are not told of it before, and the run can do again, or do
	// without, what it stands for. It is not written down.
	Followed bool `json:"-"`
}

// The statuses of a phase entry.
const (
	PhaseActive    = "active"
	PhaseCompleted = "completed"
	PhaseFailed    = "failed"
)

// SavedBranch is the status of the saved entry for the finished work.
const SavedBranch = "branch"

// CallResult is how a tool call ended.
type CallResult struct {
	Text   string `json:"text"`            // what the model was told
	Whole  string `json:"whole,omitempty"` // all of the output where Text is a part of it
	Failed bool   `json:"failed,omitempty"`
	// Exit is how the program ended that the tool ran; nil if it ran none.
	Exit *CallExit `json:"exit,omitempty"`
	// Milliseconds is how long the call took. Calls of one answer are written down when all of
	// them have ended, so that the times of the entries do not tell.
	Milliseconds int64 `json:"milliseconds,omitempty"`
}

// CallExit is how a program ended.
type CallExit struct {
	Code     int  `json:"code"`
	TimedOut bool `json:"timed_out,omitempty"`
}

// Usage is what one call to a model used.
type Usage struct {
	Model    string    `json:"model"`
	Scripted bool      `json:"scripted,omitempty"` // the answer came from a script
	Usage    llm.Usage `json:"usage"`
	Cost     llm.Money `json:"cost"`
}

// SetupEntry is what environment set-up came to.
type SetupEntry struct {
	Handover environment.Handover `json:"handover"`
	Receipt  environment.Receipt  `json:"receipt"`
	Result   environment.Result   `json:"result"`
	// Build is how building went before any change; nil if there is nothing to
	// build.
	Build *environment.Baseline `json:"build,omitempty"`
	// Base is the commit whose tests were run before any change.
	Base string `json:"base,omitempty"`
	// Made are the files that set-up made, with the hash of what they had then. They
	// are no part of the work before the work has changed them.
	Made map[string]string `json:"made_files,omitempty"`
	// Products are the files and folders that building and testing makes. They are no
	// part of the work either.
	Products []string `json:"products,omitempty"`
	// Restored are the first files of the project that set-up had changed. They were
	// put back as they were.
	Restored []string `json:"restored,omitempty"`
	// Unrepeatable says why the environment could not be set up a second time before
	// any change; then nothing can be verified.
	Unrepeatable string `json:"unrepeatable,omitempty"`
}

// SignalEntry is a signal that the run acted on.
type SignalEntry struct {
	Signal   task.Signal `json:"signal"`
	Reason   task.Reason `json:"reason,omitempty"`
	Position int64       `json:"position,omitempty"` // of the last comment that was taken up
	// Plan is the revision of the plan that people have to approve, and Posted the name of the
	// comment that has it.
	Plan   int    `json:"plan_revision,omitempty"`
	Posted string `json:"posted,omitempty"`
	// Comments are those that were taken up and those that were refused. The journal
	// leaves out the times, and of a refused comment also kind, place, access and text.
	Comments []task.CommentEntry `json:"comments,omitempty"`
}

// HasSaved reports whether the past of a run says that it has saved work, with which it goes on then.
func HasSaved(past []task.Event) bool {
	for _, event := range slices.Backward(past) {
		if event.Kind == task.Saved && event.Source == task.FromAgent {
			var entry Entry
			return json.Unmarshal(event.Data, &entry) == nil && entry.Commit != ""
		}
	}
	return false
}
