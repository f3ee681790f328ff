package progress

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

// Options say what the comment is about. All but Work have defaults.
type Options struct {
	Work phase.Work
	// Language is auto, ja or en.
	Language task.Language
	// Limit is the size of the text in bytes; 0 means 50 kB, which every forge
	// takes.
	Limit int
	Now   func() time.Time
}

// Comment gathers what there is to show. Its methods may be called by several
// goroutines.
type Comment struct {
	options  Options
	language task.Language

	mu       sync.Mutex
	phases   map[task.Phase]string
	active   task.Phase
	step     int64
	plan     *phase.Plan
	setup    *phase.SetupEntry
	calls    int
	failed   int
	usage    llm.Usage
	cost     llm.Money
	scripted bool
	halt     *phase.SignalEntry // a stop or pause that the run has acted on
	ended    task.State         // done or failed once the run is over
	ledger   []ledgerRow
	notes    []string
	warnings []string
	history  []event
	dropped  int // events that the history has no room for
	saved    string
}

// ledgerRow is what became of one comment.
type ledgerRow struct {
	task.CommentEntry
	step int64
}

// event is one thing in the history.
type event struct {
	at   time.Time
	text string
}

// What is kept at most.
const (
	maxNotes    = 5
	maxWarnings = 20
	maxHistory  = 200
)

// New begins a comment with what the run has behind it. It fails with Invalid if
// an entry of the past cannot be read.
func New(options Options) (*Comment, error) {
	if options.Limit == 0 {
		options.Limit = 50_000
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	var texts []string
	for _, comment := range options.Work.Comments {
		texts = append(texts, comment.Body)
	}
	c := &Comment{options: options, language: options.Language.OfItem(options.Work.Title, options.Work.Body, texts...), phases: map[task.Phase]string{}}
	for _, past := range options.Work.Past {
		if past.Source == task.FromServer || past.Kind == task.StateChanged {
			continue
		}
		var entry phase.Entry
		if err := json.Unmarshal(past.Data, &entry); err != nil {
			return nil, task.Wrap(task.Invalid, err, fmt.Sprintf("entry %d of the journal cannot be read", past.Position))
		}
		c.add(past.At, past.Kind, entry)
	}
	return c, nil
}

// Journal passes entries on to next and takes those in that it has accepted.
func (c *Comment) Journal(next phase.Journal) phase.Journal { return &watched{c, next} }

type watched struct {
	comment *Comment
	next    phase.Journal
}

// Append implements [phase.Journal].
func (w *watched) Append(ctx context.Context, kind task.EventKind, entry phase.Entry) error {
	if err := w.next.Append(ctx, kind, entry); err != nil {
		return err
	}
	w.comment.Add(kind, entry)
	return nil
}

// Add takes in an entry that was written now.
func (c *Comment) Add(kind task.EventKind, entry phase.Entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.add(c.options.Now(), kind, entry)
}

// End says how the run ended, for the last text of the comment.
func (c *Comment) End(state task.State, reason task.Reason) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case task.Stopped:
		c.halt = &phase.SignalEntry{Signal: task.SignalStop, Reason: reason}
	case task.Paused:
		c.halt = &phase.SignalEntry{Signal: task.SignalPause, Reason: reason}
	default:
		c.halt, c.ended = nil, state
	}
}

func (c *Comment) add(at time.Time, kind task.EventKind, entry phase.Entry) {
	c.step = max(c.step, entry.Step)
	if kind != task.SignalTaken {
		c.halt = nil // the run went on
	}
	switch kind {
	case task.PhaseChanged:
		c.addPhase(at, entry)
	case task.ToolCalled:
		if entry.Result != nil {
			c.calls++
			if entry.Result.Failed {
				c.failed++
			}
		}
	case task.ModelUsed:
		if entry.Usage != nil {
			c.usage = c.usage.Add(entry.Usage.Usage)
			c.cost += entry.Usage.Cost
			c.scripted = c.scripted || entry.Usage.Scripted
		}
	case task.Planned:
		c.addPlan(at, entry.Plan)
	case task.Prepared:
		c.setup = entry.Setup
	case task.Saved:
		c.addSaved(at, entry.Commit)
	case task.SignalTaken:
		c.addSignal(at, entry)
	case task.NoteTaken:
		c.addNote(at, entry)
	}
}

func (c *Comment) addSaved(at time.Time, commit string) {
	if commit != c.saved && commit != "" { // that what was saved is lost is a warning
		c.remember(at, c.text("progress.saved", short(commit)))
	}
	c.saved = commit
}

func (c *Comment) addPhase(at time.Time, entry phase.Entry) {
	if !entry.Phase.Valid() {
		return
	}
	c.phases[entry.Phase] = entry.Status
	switch entry.Status {
	case phase.PhaseActive:
		c.active = entry.Phase
	case phase.PhaseCompleted, phase.PhaseFailed:
		if c.active == entry.Phase {
			c.active = ""
		}
		if around := entry.Phase.Now(false); c.phases[around] == phase.PhaseActive {
			c.active = around
		}
	default:
		return
	}
	c.remember(at, c.text("progress.phase_"+entry.Status, c.phaseName(entry.Phase)))
}

func (c *Comment) addPlan(at time.Time, plan *phase.Plan) {
	if plan == nil {
		return
	}
	if c.plan == nil || c.plan.Revision != plan.Revision {
		c.remember(at, c.text("progress.planned", plan.Revision, len(plan.ActionPlan.Actions)))
	}
	c.plan = plan
}

func (c *Comment) addSignal(at time.Time, entry phase.Entry) {
	signal := entry.Signal
	if signal == nil {
		return
	}
	switch signal.Signal {
	case task.SignalStop:
		c.halt = signal
		c.remember(at, c.text("progress.stopped"))
	case task.SignalPause:
		c.halt = signal
		c.remember(at, c.text("progress.paused"))
	case task.SignalComments:
		c.halt = nil
	}
	for _, comment := range signal.Comments {
		c.ledger = append(c.ledger, ledgerRow{comment, entry.Step})
	}
	if len(signal.Comments) > 0 {
		c.remember(at, c.text("progress.comments", len(signal.Comments)))
	}
}

// warning is the status of a note that stays in sight.
const warning = "warning"

func (c *Comment) addNote(at time.Time, entry phase.Entry) {
	text := inline(entry.Text, 500)
	if text == "" || entry.Status == phase.NoteOutput { // which is for those who watch the run
		return
	}
	c.remember(at, text)
	if entry.Status == warning {
		if len(c.warnings) < maxWarnings {
			c.warnings = append(c.warnings, text)
		}
		return
	}
	if c.notes = append(c.notes, text); len(c.notes) > maxNotes {
		c.notes = c.notes[1:]
	}
}

// remember puts a line of ours into the history.
func (c *Comment) remember(at time.Time, text string) {
	if c.history = append(c.history, event{at, text}); len(c.history) > maxHistory {
		c.history = c.history[1:]
		c.dropped++
	}
}

func short(commit string) string {
	return escape(textfmt.ShortCommit(commit))
}
