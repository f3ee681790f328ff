package phase

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/toryo-dev/toryo/internal/environment"
	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/phase/mcp"
	"github.com/toryo-dev/toryo/internal/phase/turn"
	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

// Options say how runs go. Model, Setup with its table, engine, wait and log, and
// Log are needed; everything else has a default.
type Options struct {
	// Model gives the model of a phase.
	Model func(phase task.Phase) llm.Model
	// Summarizer writes the summaries of long conversations; nil means that old
	// tool outputs are masked only.
	Summarizer llm.Model
	// Setup makes the environment. Its repairer, its teller, its post and its
	// language are the run's own.
	Setup environment.Setup
	// Spec is what every sandbox has: its owner, variables, limits and image.
	Spec sandbox.Spec
	// Language of what people read: auto, ja or en; see [task.Language].
	Language string
	// Prompts has files that replace the embedded prompts of the same names, which
	// are in the folder prompts. May be nil.
	Prompts fs.FS
	Role    Role
	// Servers are MCP servers whose tools the model can use. OnHost starts those
	// that are configured to run outside of the sandbox; nil forbids it.
	Servers  []mcp.Server
	OnHost   mcp.Launcher
	Limits   Limits
	Comments CommentChecks
	Storage  Storage
	Redactor llm.Redactor
	// Draft opens pull requests as drafts even when everything passed.
	Draft bool
	// Sink shows a model's answers as they come; may be nil.
	Sink func(phase task.Phase, delta llm.Delta)
	// Progress renders the progress comment from what the journal was given; it
	// is asked after each entry that people care about. May be nil.
	Progress func() string
	// AfterEntry is called after each journal entry, with its number in the run.
	// Tests cut a run off there. May be nil.
	AfterEntry func(number int, kind task.EventKind)
	Log        *slog.Logger
}

// Role is what a role asks of the agent.
type Role struct {
	Description string   // what the role is
	Prompt      string   // what it is told besides the task
	Tools       []string // names of the tools that it may use in execution; empty means all
}

// Text is what the model is told of the role that it has for a task.
func (r Role) Text(name task.Role) string {
	var text strings.Builder
	text.WriteString("## Your role: " + string(name))
	for _, part := range []string{r.Description, r.Prompt} {
		if part = strings.TrimSpace(part); part != "" {
			text.WriteString("\n\n" + part)
		}
	}
	return text.String()
}

// Storage says when a conversation is made shorter. Zeros mean the defaults.
type Storage struct {
	Threshold  float64
	KeepRecent int
}

// Limits bound a run. Zeros mean the defaults.
type Limits struct {
	Turn         turn.Limits   // of every conversation
	SaveEvery    int           // steps between two saves of work in progress; 1
	ReflectEvery int           // actions between two reflections; 20
	ReflectAfter int           // failed actions since the last reflection after which there is one; 1
	ReflectRest  int64         // steps between two reflections at least; 3
	Reflections  int           // at most in a run; 5; negative means none
	Rounds       int           // how often execution begins at most; 12: comments that never end do not keep a run from its end
	Repairs      int           // rounds of repair after verification; 2; negative means none
	Saving       time.Duration // for saving the work when the run is cut off; 8 s
}

func (l Limits) orDefaults() Limits {
	for _, limit := range []struct {
		value    *int
		fallback int
	}{{&l.SaveEvery, 1}, {&l.ReflectEvery, 20}, {&l.ReflectAfter, 1}, {&l.Reflections, 5}, {&l.Rounds, 12}, {&l.Repairs, 2}} {
		if *limit.value == 0 {
			*limit.value = limit.fallback
		}
	}
	if l.ReflectRest == 0 {
		l.ReflectRest = 3
	}
	if l.Saving == 0 {
		l.Saving = 8 * time.Second
	}
	return l
}

// Job is one task, with all that its run works with.
type Job struct {
	Work       Work
	Repository Repository
	Forge      Forge
	Journal    Journal
}

// Outcome is how a run ended.
type Outcome struct {
	// State is done, failed, paused or stopped. Failed with a pull request means
	// that the work is there for people to look at and did not pass.
	State   task.State
	Reason  task.Reason
	Pull    *Pulled
	Comment string // for people, in the language of the item; empty if the state says it all
	Detail  string // what went wrong, or what is asked, without the words around it
	Summary string // for a later run on the item
	Kept    string // the last commit of the work in progress
	// CutAfter is how long after a signal had arrived the work was cut.
	CutAfter time.Duration
	Scripted bool // a script answered in place of a model
	Steps    int64
	Usage    llm.Usage
	Cost     llm.Money
}

// Runner carries tasks through the phases. It may run several at a time.
type Runner struct {
	options Options
}

// NewRunner makes a runner. BadConfig says which option is missing.
func NewRunner(options Options) (*Runner, error) {
	switch {
	case options.Model == nil:
		return nil, task.Errorf(task.BadConfig, "a run needs a model")
	case options.Setup.Table == nil, options.Setup.Engine == nil, options.Setup.Wait == nil, options.Setup.Log == nil:
		return nil, task.Errorf(task.BadConfig, "a run needs a table of environments, a sandbox engine, a way to wait and a log for set-up")
	case options.Log == nil:
		return nil, task.Errorf(task.BadConfig, "a run needs a log")
	}
	options.Limits = options.Limits.orDefaults()
	return &Runner{options: options}, nil
}

// Run carries a task to its end, or on from where its journal stops. When the
// context ends with a [Halt] as its cause, what is going on is cut at once, the
// work is saved, and the outcome says so. An error means that the run cannot go
// on for a reason outside of it: the context ended for another cause, which is
// then returned, or the journal, the repository, the forge or the model cannot be
// reached. The run can then be carried on later. The outcome has in any case what
// was kept.
func (r *Runner) Run(ctx context.Context, job Job) (Outcome, error) {
	this := &run{Options: r.options, Job: job, state: newState(job.Work), language: languageOf(job.Work, r.options.Language), resumed: len(job.Work.Past) > 0, firstLook: len(job.Work.Past) > 0, wentBackAt: -1, images: images{log: r.options.Log}}
	if this.Redactor != nil {
		this.Forge = redactingForge{job.Forge, this.Redactor}
	}
	this.setAside()
	if err := this.state.recall(job.Work.Past); err != nil {
		return Outcome{}, err
	}
	outcome, err := this.runPhases(ctx)
	if err != nil {
		outcome, err = this.interrupted(ctx, err)
	}
	outcome.Comment, outcome.Summary = this.clean(outcome.Comment), this.clean(outcome.Summary)
	outcome.Detail = textfmt.Clip(this.clean(outcome.Detail), task.LongestDetail)
	outcome.Scripted, outcome.Steps = this.state.scripted, this.state.step
	outcome.Usage, outcome.Cost, outcome.Kept = this.state.usage, this.state.cost, this.state.saved
	return outcome, err
}

// run is one run of a task.
type run struct {
	Options
	Job
	language task.Language
	resumed  bool // the model was not told yet that the run goes on
	// firstLook says that the run goes on, and has not looked for comments yet.
	firstLook bool
	savedAt   int64 // the step of the last save at a checkpoint
	// wentBackAt is the position of the comments at which execution went on for newer
	// ones the last time; -1 if it has not.
	wentBackAt int64
	refused    []task.CommentEntry // what people said before it began and that does not count
	writing    sync.Mutex          // the order of the journal
	untold     bool                // the progress comment does not tell of the last entries yet
	calls      liveCalls           // that are under way
	state      *state
	workbench  *workbench
	project    *project
	images     images
	rebased    *SetupEntry // the tests before the change, on what the base has got since
}

func (r *run) sink(phase task.Phase) llm.Sink {
	if r.Sink == nil {
		return nil
	}
	return func(delta llm.Delta) { r.Sink(phase, delta) }
}

// runPhases opens the workbench, runs the phases, and closes it in any case.
func (r *run) runPhases(ctx context.Context) (outcome Outcome, err error) {
	if r.workbench, err = newWorkbench(r); err != nil {
		return Outcome{}, err
	}
	defer func() {
		// The sandbox has to go even if the run was cut off.
		err = errors.Join(err, r.workbench.close(context.WithoutCancel(ctx)))
	}()
	return r.flow(ctx)
}

// interrupted decides what an error makes of the run.
func (r *run) interrupted(ctx context.Context, err error) (Outcome, error) {
	var over *overError
	halt, halted := errors.AsType[*Halt](context.Cause(ctx))
	switch {
	case halted:
		return r.halt(ctx, halt)
	case ctx.Err() != nil:
		return Outcome{}, errors.Join(context.Cause(ctx), r.keep(ctx))
	case llm.KindOf(err) == llm.BudgetExhausted || task.CodeOf(err) == task.OverBudget:
		return Outcome{State: task.Paused, Reason: task.ReasonBudgetExhausted, Detail: detailOf(err.Error())}, r.keep(ctx)
	case errors.As(err, &over):
		return r.fail(ctx, givenUp{over.reason, over.text, over.said})
	}
	return Outcome{}, errors.Join(err, r.keep(ctx))
}

// halt answers a stop or a pause. The work is cut already.
func (r *run) halt(ctx context.Context, halt *Halt) (Outcome, error) {
	outcome := Outcome{State: task.Stopped, Reason: halt.Reason, CutAfter: time.Since(halt.Since)}
	if halt.Signal == task.SignalPause {
		outcome.State = task.Paused
	}
	if err := r.keep(ctx); err != nil {
		// The signal is answered all the same: what was saved before is there.
		r.Log.ErrorContext(ctx, "failed to save the work in progress", "error", err)
	}
	ctx, cancel := r.bounded(ctx)
	defer cancel()
	err := r.append(ctx, task.SignalTaken, Entry{Step: r.step(), Signal: &SignalEntry{Signal: halt.Signal, Reason: halt.Reason}})
	if err != nil {
		r.Log.ErrorContext(ctx, "failed to write the signal to the journal", "error", err)
	}
	return outcome, nil
}

// keep saves what there is, with a context of its own.
func (r *run) keep(ctx context.Context) error {
	ctx, cancel := r.bounded(ctx)
	defer cancel()
	return r.save(ctx)
}

func (r *run) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), r.Limits.Saving)
}
