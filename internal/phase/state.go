package phase

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/phase/conversation"
	"github.com/toryo-dev/toryo/internal/task"
)

// state is what the journal says, and nothing else: a run that goes on folds the
// entries of the past into it, and then each entry that it writes itself. Every
// decision about what comes next is made from it, so that a run that was cut off
// anywhere decides as the other would have.
//
// An example. The journal of a run ends with
//
//	phase    execution active
//	message  the model calls shell, call c7
//	tool     call c7 began
//
// and then the machine was lost. The run that goes on folds these: phases[execution] is
// active, the conversation has the model's message, and calls[c7] has no result. So it does
// not ask the model again. It answers c7 with [tool.Interrupted], because the
// command may have run, and goes on with the next turn. Had the journal ended after the
// result of c7, the result would be in the fold, and the command would not run twice.
//
// This is why an entry is written before its effect counts, and why nothing is decided from
// variables that the fold does not have.
type state struct {
	first         int64 // the generation in which the run began
	entries       int
	step          int64
	phases        map[task.Phase]*phaseState
	conversations map[string][]conversation.Entry
	calls         map[string]*callState // by conversation and ID
	plan          *Plan
	proposed      int      // the revision of the plan that people were shown last
	plans         []string // the actions of every plan so far, to see when one comes again
	setup         *SetupEntry
	saved         string              // the last commit of work in progress
	branch        string              // the commit of the finished work
	position      int64               // of the last comment that was taken up
	refused       map[string]bool     // comments that were not taken up, by ID
	newComments   []task.CommentEntry // what people said while the run went on, by position
	has           map[string]int64    // the position up to which a conversation has it
	answered      map[string]int64    // the position up to which the model has answered there since
	waitedAt      int64               // the step at which the run paused for an answer
	asking        bool                // it has not taken up an answer since
	notified      map[string]bool
	summary       string
	failed        *givenUp
	handed        bool           // the work is handed over
	withheld      []task.Finding // what was found in it before it was published
	returned      bool           // the last phase went back, and execution has not gone on since
	warnings      []string
	conflicts     []string // files in which merges have found conflicts, as far as they are named
	untold        []string // of which the model has not been told by the end of an execution
	moved         int      // how often others had pushed to the branch when it was to be published
	onTop         bool     // the work has to be put on top of that
	usage         llm.Usage
	cost          llm.Money
	scripted      bool
	actions       int // calls that ended since the last reflection
	failures      int // of which failed
	reflectedAt   int64
}

type phaseState struct {
	begun    int
	status   string
	outcomes []json.RawMessage // of each time that it was over
}

type callState struct {
	result *CallResult // nil while it is not known how it ended
}

func newState(work Work) *state {
	s := &state{
		first: work.Generation, phases: map[task.Phase]*phaseState{}, conversations: map[string][]conversation.Entry{},
		has: map[string]int64{}, answered: map[string]int64{}, calls: map[string]*callState{}, notified: map[string]bool{}, refused: map[string]bool{},
	}
	if len(work.Past) > 0 {
		s.first = work.Past[0].Generation
	}
	return s
}

// recall folds the journal of the run that goes on.
func (s *state) recall(past []task.Event) error {
	for _, event := range past {
		if event.Source == task.FromServer || event.Kind == task.StateChanged {
			continue
		}
		var entry Entry
		if err := json.Unmarshal(event.Data, &entry); err != nil {
			return task.Wrap(task.Invalid, err, fmt.Sprintf("entry %d of the journal cannot be read", event.Position))
		}
		if !entry.whole(event.Kind) {
			return task.Errorf(task.Invalid, "entry %d of the journal, a %s, is not whole", event.Position, event.Kind)
		}
		s.apply(event.Kind, entry)
	}
	return nil
}

// whole reports whether the entry has what one of its kind needs.
func (e Entry) whole(kind task.EventKind) bool {
	switch kind {
	case task.PhaseChanged:
		return e.Phase.Valid() && e.Status != ""
	case task.MessageSent:
		return e.Message != nil
	case task.ToolCalled:
		return e.Call != nil
	case task.ModelUsed:
		return e.Usage != nil
	case task.Planned:
		return e.Plan != nil
	case task.Prepared:
		return e.Setup != nil
	case task.SignalTaken:
		return e.Signal != nil
	case task.Saved, task.Summed, task.NoteTaken, task.StateChanged, task.Requested, task.Inspected, task.PlanApproved, task.Remembered:
	}
	return true
}

// apply takes one entry in.
func (s *state) apply(kind task.EventKind, entry Entry) {
	s.entries++
	s.step = max(s.step, entry.Step)
	if entry.Message != nil {
		s.applyMessage(entry.Conversation, *entry.Message)
	}
	switch kind {
	case task.PhaseChanged:
		s.applyPhase(entry)
	case task.ToolCalled:
		s.applyCall(entry)
	case task.ModelUsed:
		s.usage = s.usage.Add(entry.Usage.Usage)
		s.cost += entry.Usage.Cost
		s.scripted = s.scripted || entry.Usage.Scripted
	case task.Planned:
		s.applyPlan(entry)
	case task.Prepared:
		s.setup = entry.Setup
	case task.Saved:
		s.applySaved(entry)
	case task.SignalTaken:
		s.applySignal(entry)
	case task.Summed, task.NoteTaken:
		s.applyText(kind, entry)
	case task.MessageSent, task.StateChanged, task.Requested, task.Inspected, task.PlanApproved, task.Remembered:
	}
}

func (s *state) applyMessage(name string, entry conversation.Entry) {
	s.conversations[name] = append(s.conversations[name], entry)
	switch {
	case entry.Kind == conversation.BeginEntry:
		s.has[name] = s.position // it begins with all that was taken up
	case entry.Kind == conversation.PinEntry && entry.Block != nil:
		if after, is := strings.CutPrefix(entry.Block.Name, commentsBlock); is {
			if position, err := strconv.ParseInt(after, 10, 64); err == nil {
				s.has[name] = max(s.has[name], position)
			}
		}
	case entry.Message != nil && entry.Message.Role == llm.Assistant:
		s.answered[name] = s.has[name]
	}
}

func (s *state) applyPhase(entry Entry) {
	phase := s.phase(entry.Phase)
	phase.status = entry.Status
	if entry.Status == PhaseActive {
		phase.begun++
		switch entry.Phase {
		case task.Reflection:
			s.actions, s.failures, s.reflectedAt = 0, 0, s.step
		case task.Execution:
			s.returned, s.branch = false, "" // what was committed is no longer the finished work
		default:
		}
		return
	}
	phase.outcomes = append(phase.outcomes, entry.Outcome)
	if entry.Phase == task.Execution {
		s.onTop, s.untold = false, nil
	}
	if entry.Phase == task.Complete {
		s.applyHanded(entry)
	}
	var given givenUp
	if entry.Status == PhaseFailed && json.Unmarshal(entry.Outcome, &given) == nil && given.Reason != "" {
		s.failed = &given
	}
}

// applyHanded takes in how the last phase ended.
func (s *state) applyHanded(entry Entry) {
	var handed completion
	if json.Unmarshal(entry.Outcome, &handed) != nil {
		return
	}
	s.handed = handed.State != ""
	s.returned = handed.Returned
	if len(handed.Withheld) > 0 {
		s.withheld, s.returned = handed.Withheld, true
	}
	if handed.Moved {
		s.moved++
		s.onTop, s.returned = true, true
	}
}

func (s *state) applyCall(entry Entry) {
	key := callKey(entry.Conversation, entry.Call.ID)
	s.calls[key] = &callState{result: entry.Result}
	if entry.Result != nil && entry.Phase == task.Execution {
		s.actions++
		if entry.Result.Failed {
			s.failures++
		}
	}
}

func (s *state) applySignal(entry Entry) {
	s.position = max(s.position, entry.Signal.Position)
	s.proposed = max(s.proposed, entry.Signal.Plan)
	whole := false // earlier versions kept the text of comments in the block only
	for _, comment := range entry.Signal.Comments {
		if comment.Refused != "" {
			s.refused[comment.ID] = true
		} else {
			s.newComments = append(s.newComments, comment)
			whole = whole || comment.Body != "" || comment.Change == "deleted"
		}
	}
	if block := entry.Message; !whole && block != nil && block.Block != nil && len(s.newComments) > 0 {
		s.newComments[len(s.newComments)-1].Body = block.Block.Text
	}
	if entry.Signal.Reason == task.ReasonAwaitingAnswer {
		s.waitedAt, s.asking = entry.Step, true
	}
	if entry.Signal.Position > 0 && slices.ContainsFunc(entry.Signal.Comments, func(c task.CommentEntry) bool { return c.Refused == "" }) {
		s.asking = false
	}
}

func (s *state) applyPlan(entry Entry) {
	if s.plan == nil || s.plan.Revision != entry.Plan.Revision {
		s.plans = append(s.plans, entry.Plan.fingerprint())
	}
	s.plan = entry.Plan
}

func (s *state) applySaved(entry Entry) {
	if s.saved = entry.Commit; entry.Status == SavedBranch {
		s.branch = entry.Commit
	}
}

func (s *state) applyText(kind task.EventKind, entry Entry) {
	if kind == task.Summed {
		s.summary = entry.Text
		return
	}
	if entry.Name != "" {
		s.notified[entry.Name] = true
	}
	if len(entry.Conflicts) > 0 {
		s.conflicts, s.untold = entry.Conflicts, entry.Conflicts
	}
	if entry.Status == noteWarning {
		s.warnings = append(s.warnings, entry.Text)
	}
}

// noteWarning marks a note that people have to see at the end too.
const noteWarning = "warning"

func callKey(conversation, id string) string { return conversation + "\x00" + id }

func (s *state) phase(name task.Phase) *phaseState {
	if s.phases[name] == nil {
		s.phases[name] = &phaseState{}
	}
	return s.phases[name]
}

// timesEnded is how often the phase has ended.
func (s *state) timesEnded(name task.Phase) int { return len(s.phase(name).outcomes) }

// active reports whether the phase has begun and not ended.
func (s *state) active(name task.Phase) bool { return s.phase(name).status == PhaseActive }

// outcome reads what the phase came to the last time.
func (s *state) outcome(name task.Phase, into any) error {
	outcomes := s.phase(name).outcomes
	if len(outcomes) == 0 {
		return task.Errorf(task.Internal, "the phase %s has no outcome", name)
	}
	return json.Unmarshal(outcomes[len(outcomes)-1], into)
}

// wasSent reports whether the text was ever sent in a conversation.
func (s *state) wasSent(name, text string) bool {
	return slices.ContainsFunc(s.conversations[name], func(entry conversation.Entry) bool {
		return entry.Message != nil && entry.Message.Role == llm.User && strings.Contains(entry.Message.Text(), text)
	})
}

// turns is how often the model has answered in a conversation.
func (s *state) turns(name string) int {
	turns := 0
	for _, entry := range s.conversations[name] {
		if entry.Message != nil && entry.Message.Role == llm.Assistant {
			turns++
		}
	}
	return turns
}
