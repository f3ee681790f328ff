package broker

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"log/slog"
	"slices"
	"time"

	"github.com/toryo-dev/toryo/internal/broker/assignment"
	"github.com/toryo-dev/toryo/internal/broker/comments"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/images"
	"github.com/toryo-dev/toryo/internal/items"
	"github.com/toryo-dev/toryo/internal/outbox"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// RunStore is what runs need of the database.
type RunStore interface {
	store.Tasks
	store.Leases
	store.Events
	store.Runs
	store.Halts
	store.CommentLog
	store.Outbox
}

// RunOptions is what Runs needs. Store, Sender, Snapshots, Notifier, Status, Own, Base,
// Steering and Gate have to be set.
type RunOptions struct {
	Store     RunStore
	Sender    *outbox.Sender
	Snapshots *items.Snapshots
	// Changes is told of commits that were published, so that their checks are looked at; nil
	// means that nobody is.
	Changes  *items.Feed
	Notifier *Notifier
	Status   *StatusText
	// MaxAttempts is how many runs a task gets that agents hand back because they cannot do it;
	// see [task.Reason.UsesAttempt].
	MaxAttempts int
	// Own tells whether a login on a forge is ours.
	Own func(of task.Forge, login string) bool
	// Base is the branch that the work of a task that is held started from.
	Base func(ctx context.Context, t task.Task) (string, error)
	// Forges are where the items are read that a task's text names; without one
	// that is not supported.
	Forges map[task.Forge]forge.Reader
	// Images reads the images of texts.
	Images images.Fetcher
	// Steering says whose words are a request.
	Steering *items.Steering
	// Comments keeps what people write. It is looked once more at the end of a run, so that
	// what came too late is named; nil means that it is not.
	Comments *comments.Log
	// Reviews are where the reviews of pull requests are read.
	Reviews map[task.Forge]items.ReviewSource
	Gate    Gate
	// Addresses are where it is asked under which address a person's commits are
	// theirs; without one nobody is named in commits.
	Addresses map[task.Forge]forge.Addresses

	// Watch is told of pull requests that were opened, so that something is learned from their reviews;
	// nil means that nothing is.
	Watch func(ctx context.Context, pull task.Key) error

	// Receipts signs what verification found; nil means that there are no receipts.
	Receipts *Receipts

	Lease time.Duration // how long a lease lasts after it was renewed; 0 means one minute
	// PullWait is how long a request waits for a pull request to be opened before
	// it says that it has to be asked again; 0 means 25 seconds.
	PullWait time.Duration
	// ReviewLabel is put on pull requests that are ready, so that they are reviewed
	// when people take too long; empty means that they get none.
	ReviewLabel string
	Now         func() time.Time // nil means the real time
	Log         *slog.Logger
}

// Runs is what an agent that holds a task may do. Its methods may be called by
// any number of goroutines; a caller has made sure that the lease is held.
type Runs struct{ options RunOptions }

// NewRuns makes Runs.
func NewRuns(options RunOptions) *Runs {
	if options.Lease == 0 {
		options.Lease = time.Minute
	}
	if options.PullWait == 0 {
		options.PullWait = 25 * time.Second
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	return &Runs{options}
}

// Lease is a task in the hands of an agent.
type Lease struct {
	task.Task
	TokenHash []byte // of the lease's token
}

func (h Lease) write(what string) outbox.Write {
	return outbox.Write{Item: h.Key, Task: h.ID, Generation: h.Generation, What: what}
}

// lasting is a write that is made although the run may be over by then.
func (h Lease) lasting(what string) outbox.Write {
	write := h.write(what)
	write.Lasting, write.Began = true, h.FirstGeneration
	return write
}

// Renew extends the lease and returns until when.
func (r *Runs) Renew(ctx context.Context, held Lease) (time.Time, error) {
	until := r.options.Now().Add(r.options.Lease)
	return until, r.options.Store.Renew(ctx, held.ID, held.Generation, held.TokenHash, until)
}

const (
	// maxEntry is how many bytes the data of one journal entry may have, and
	// maxReport how many entries come in one report.
	maxEntry  = 4 << 20
	maxReport = 1000
)

// reportable are the kinds of entry that a run may write. Moves are the server's.
var reportable = map[task.EventKind]bool{
	task.PhaseChanged: true, task.MessageSent: true, task.ToolCalled: true, task.ModelUsed: true, task.Planned: true,
	task.Prepared: true, task.Saved: true, task.SignalTaken: true, task.Summed: true, task.NoteTaken: true,
}

// Report stores entries of the journal, which the agent has numbered, and returns
// the sequence up to which all are stored. See [store.Runs].
func (r *Runs) Report(ctx context.Context, held Lease, entries []task.Event) (int64, error) {
	if len(entries) > maxReport {
		return 0, task.Errorf(task.TooLarge, "a report has %d entries; %d are allowed", len(entries), maxReport)
	}
	report := store.RunReport{Task: held.ID, Generation: held.Generation}
	for _, e := range entries {
		if !reportable[e.Kind] {
			return 0, task.Errorf(task.Invalid, "a run cannot write entries of the kind %q", string(e.Kind))
		}
		if len(e.Data) > maxEntry {
			return 0, task.Errorf(task.TooLarge, "entry %d has %d bytes; %d are allowed", e.Sequence, len(e.Data), maxEntry)
		}
		e.Task, e.Generation, e.Source = held.ID, held.Generation, task.FromAgent
		report.Events = append(report.Events, e)
		if e.Kind == task.PhaseChanged {
			phase, err := phaseOf(e.Data)
			if err != nil {
				return 0, err
			}
			report.Phase = phase
		}
	}
	acknowledged, err := r.options.Store.Report(ctx, report)
	if err != nil {
		return 0, err
	}
	return acknowledged, nil
}

// phaseOf reads which phase the run is in after an entry of that kind.
func phaseOf(data json.RawMessage) (task.Phase, error) {
	var entry struct {
		Phase  task.Phase `json:"phase"`
		Status string     `json:"status"`
	}
	if err := json.Unmarshal(data, &entry); err != nil {
		return "", task.Wrap(task.Invalid, err, "an entry about a phase cannot be read")
	}
	if !entry.Phase.Valid() {
		return "", task.Errorf(task.Invalid, "there is no phase %q", string(entry.Phase))
	}
	return entry.Phase.Now(entry.Status == task.PhaseActive), nil
}

// Journal returns entries of the task's journal after a position, since it was last
// assigned: at least one if there is one, and no more than fit into one answer.
// What came before that was other work, which no run goes on with.
func (r *Runs) Journal(ctx context.Context, held Lease, after int64, limit int) ([]task.Event, error) {
	var events []task.Event
	for len(events) == 0 {
		page, err := r.options.Store.EventsAfter(ctx, held.ID, after, limit)
		if err != nil || len(page) == 0 {
			return nil, err
		}
		after = page[len(page)-1].Position
		events = slices.DeleteFunc(page, func(e task.Event) bool { return e.Generation < held.FirstGeneration })
	}
	return events, nil
}

// Progress brings the run's progress comment up to date. A run that goes on after
// a pause or a loss keeps the comment that it had.
func (r *Runs) Progress(ctx context.Context, held Lease, text string) error {
	return r.put(ctx, held.write("progress/"+rand.Text()), outbox.Progress{Name: outbox.ProgressName(held.Task), Text: text})
}

// AddComment writes a comment. The same name is the same comment. What a run has written
// while it was held is posted, although the forge may take it only when the run is over.
func (r *Runs) AddComment(ctx context.Context, held Lease, name, text string) error {
	return r.put(ctx, held.lasting(outbox.ByRun+name), outbox.Comment{Text: text})
}

func (r *Runs) put(ctx context.Context, write outbox.Write, payload outbox.Payload) error {
	action, err := outbox.NewAction(write, payload)
	if err != nil {
		return err
	}
	_, err = r.options.Sender.Put(ctx, action)
	return err
}

// Images returns the images of the task's own item and its comments that the model may be shown.
func (r *Runs) Images(ctx context.Context, held Lease) ([]images.Image, error) {
	return assignment.Images{
		Snapshots: r.options.Snapshots, Forges: r.options.Forges, Reviews: r.options.Reviews, Comments: r.options.Store, Steering: r.options.Steering,
		Own: r.options.Own, Fetcher: r.options.Images, Log: r.options.Log,
	}.Of(ctx, held.Task)
}

// References returns the items that the text of the task's own item names.
func (r *Runs) References(ctx context.Context, held Lease) ([]forge.Item, error) {
	return assignment.References(ctx, r.options.Snapshots, r.options.Forges, held.Key)
}
