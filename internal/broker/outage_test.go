package broker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toryo-dev/toryo/internal/broker"
	"github.com/toryo-dev/toryo/internal/broker/comments"
	"github.com/toryo-dev/toryo/internal/broker/intake"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/dummy"
	"github.com/toryo-dev/toryo/internal/inspect"
	"github.com/toryo-dev/toryo/internal/items"
	"github.com/toryo-dev/toryo/internal/outbox"
	"github.com/toryo-dev/toryo/internal/review/verdicts"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/store/sqlite"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
)

// outageLasts is how long the forge answers 500.
const outageLasts = time.Minute

// outage is a forge that fails from one of its calls on, for a while.
type outage struct {
	mu     sync.Mutex
	at     int  // the number of the call, from 1; 0 means never
	whole  bool // everything fails, and not only calls of the same method
	lost   bool // the call itself is carried out, and only its answer is lost
	calls  []string
	part   int // so many of the calls count
	method string
	until  time.Time
}

// over notes that the calls that come now are not part of the life.
func (o *outage) over() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.part = len(o.calls)
}

func (o *outage) fault(call dummy.Call) dummy.Fault {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.calls = append(o.calls, call.Method)
	if len(o.calls) == o.at {
		o.method, o.until = call.Method, time.Now().Add(outageLasts)
		if o.lost {
			return dummy.Lose
		}
	}
	if time.Now().Before(o.until) && (o.whole || call.Method == o.method) {
		return dummy.Refuse
	}
	return dummy.None
}

// life is a task with everything on the server that it needs, in a bubble of time. What
// its agent does, the test does.
type life struct {
	*testing.T
	store      store.Store
	forge      *dummy.Forge
	sender     *outbox.Sender
	controller *broker.Controller
	talk       *comments.Log
	runs       *broker.Runs
	intake     *intake.Intake
	changes    *items.Feed
	watcher    *broker.Watcher
	plans      *broker.Approvals
	snapshots  *items.Snapshots

	issue task.Key
	held  broker.Lease
	after int64 // position of the last comment that the run has taken up
	heard []string
	count int64 // entries of the run's journal
}

func newLife(t *testing.T, path string) *life {
	t.Helper()
	l := &life{T: t, store: opened(t, sqlite.Open, path), forge: dummy.New(task.Gitea, bot)}
	l.forge.AddRepository(team, forge.Remote{})
	l.forge.SetBranch(team, "main", "c0")
	l.forge.SetAccess(team, "ann", forge.WriteAccess)
	readers := map[task.Forge]forge.Reader{task.Gitea: l.forge}
	forges := map[task.Forge]forge.Forge{task.Gitea: l.forge}
	notifier := new(broker.Notifier)
	t.Cleanup(notifier.Follow(l.store))
	snapshots := items.NewSnapshots(readers, items.DefaultAges, nil)
	l.changes = items.NewFeed(snapshots)
	t.Cleanup(snapshots.Stop)
	own := func(_ task.Forge, login string) bool { return task.SameLogin(login, bot) }
	steering := &items.Steering{Accept: items.FromWriters, Access: items.NewRights(readers, time.Now).Access}
	words := &broker.StatusText{Labels: labels, Language: "en", Snapshots: snapshots}
	l.sender = outbox.NewSender(outbox.SenderOptions{
		Outbox: l.store, Tasks: l.store, Forges: forges, Snapshots: snapshots,
		Publish: func(_ context.Context, p outbox.Publication) (outbox.Published, error) {
			l.forge.SetBranch(team, p.Branch, p.Commit)
			return outbox.Published{Commit: p.Commit}, nil
		},
	})
	l.controller = broker.NewController(broker.ControllerOptions{Store: l.store, Sender: l.sender, Status: words})
	l.talk = comments.New(comments.Options{Store: l.store, Snapshots: snapshots, Own: own, Steering: steering})
	l.runs = broker.NewRuns(broker.RunOptions{
		Store: l.store, Sender: l.sender, Snapshots: snapshots, Notifier: notifier, Status: words, Own: own, Forges: readers, Steering: steering,
		Base:    func(context.Context, task.Task) (string, error) { return "main", nil },
		Reviews: map[task.Forge]items.ReviewSource{task.Gitea: l.forge},
		Gate:    broker.Gate{Inspect: func(context.Context, outbox.Publication) ([]inspect.Found, error) { return nil, nil }},
	})
	l.intake = intake.New(intake.Options{
		Tasks: l.store, Outbox: l.sender, Verdicts: verdicts.Reader{Own: l.store}, Changes: l.changes, Forges: forges, Snapshots: snapshots, Steering: steering, Labels: labels,
		Scope: func(task.Forge, string) bool { return true }, Bot: func(context.Context, task.Forge) (string, error) { return bot, nil },
		Rules: intake.Rules{DefaultRole: task.DefaultRole, ReviewLabel: "needs-review"}, Stop: l.controller.Unwanted, Now: time.Now, OutboxChanged: l.sender.Wake,
	})
	l.snapshots = snapshots
	l.plans = &broker.Approvals{
		Store: l.store, Snapshots: snapshots, Comments: l.talk, Forges: map[task.Forge]forge.Reactor{task.Gitea: l.forge}, Steering: steering, Own: own,
		Controller: l.controller, Always: true, Now: time.Now, Log: slog.New(slog.DiscardHandler),
	}
	l.watcher = broker.NewWatcher(broker.WatchOptions{
		Tasks: l.store, Changes: l.changes, Snapshots: snapshots, Comments: l.talk, Wanted: l.intake.Look, Answered: l.controller.Answered, Plan: l.plans.Decide,
	})
	l.start()
	return l
}

// start begins all that a server does in the background.
func (l *life) start() {
	l.Helper()
	l.sender.Start(l.Context())
	l.Cleanup(func() { l.sender.Stop(context.WithoutCancel(l.Context())) })
	l.controller.Start(l.Context())
	l.Cleanup(l.controller.Stop)
	l.intake.Start(l.Context())
	l.Cleanup(l.intake.Stop)
	l.watcher.Start(l.Context())
	l.Cleanup(l.watcher.Stop)
	ctx, cancel := context.WithCancel(l.Context())
	var background sync.WaitGroup
	every := func(pause time.Duration, do func()) {
		background.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case <-time.After(pause):
					do()
				}
			}
		})
	}
	every(time.Second, func() { _ = l.watcher.GoThrough(ctx) }) // what fails is looked at again
	every(time.Minute, func() { _ = l.intake.Sync(ctx, []task.Forge{task.Gitea}, time.Time{}) })
	l.Cleanup(func() { cancel(); background.Wait() })
}

// until does something again and again until it succeeds.
func (l *life) until(what string, try func() error) {
	l.Helper()
	var err error
	for range 600 {
		if err = try(); err == nil {
			return
		}
		<-time.After(time.Second)
	}
	l.Fatalf("%s: %v", what, err)
}

// webhook says that something happened to the issue.
func (l *life) webhook() {
	l.changes.Publish(items.Change{Items: []task.Key{l.issue}})
}

func (l *life) is(state task.State, reason task.Reason) func() error {
	return func() error {
		t, err := l.store.TaskOf(l.Context(), l.issue, task.Development)
		if err == nil && (t.State != state || reason != "" && t.Reason != reason) {
			err = fmt.Errorf("the task is %s (%s), want %s (%s)", t.State, t.Reason, state, reason)
		}
		return err
	}
}

// begin hands the task to the agent, which begins anew or goes on.
func (l *life) begin(anew bool) {
	l.Helper()
	var held []task.Task
	// Whether something blocks it may have to be read first.
	l.until("the task can be claimed", func() error {
		t, err := l.store.TaskOf(l.Context(), l.issue, task.Development)
		if err != nil {
			return err
		}
		held, err = l.store.Claim(l.Context(), []store.Claim{{
			Task: t.ID, Generation: t.Generation, Agent: "a", TokenHash: []byte("x"), ExpiresAt: time.Now().Add(24 * time.Hour),
		}}, outbox.Labels(labels).Effects)
		if err == nil && len(held) != 1 {
			err = fmt.Errorf("it is %s (%s)", t.State, t.Reason)
		}
		return err
	})
	l.sender.Wake()
	l.held, l.count = broker.Lease{Task: held[0], TokenHash: []byte("x")}, 0
	if anew {
		l.until("the comments that are there are read", func() error { _, err := l.talk.Begin(l.Context(), held[0]); return err })
	}
}

func (l *life) check(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

// listen waits for signals, and takes comments up, until there is one of the kind.
func (l *life) listen(what string, good func(broker.Signals) bool) {
	l.Helper()
	for range 120 {
		signals, err := l.runs.Signals(l.Context(), l.held, l.after, 10*time.Second)
		l.check(err)
		for _, entry := range signals.Comments {
			l.heard = append(l.heard, string(entry.Change)+": "+entry.Body)
			l.after = entry.Position
			l.count++
			data, err := json.Marshal(map[string]any{"signal": map[string]any{"signal": "comments", "position": l.after}})
			l.check(err)
			_, err = l.runs.Report(l.Context(), l.held, []task.Event{{Kind: task.SignalTaken, Sequence: l.count, At: time.Now(), Data: data}})
			l.check(err)
		}
		if good(signals) {
			return
		}
	}
	l.Fatalf("the run does not hear of %s; it has heard %q", what, l.heard)
}

func (l *life) hears(text string) {
	l.Helper()
	l.listen(text, func(broker.Signals) bool { return slices.Contains(l.heard, text) })
}

func (l *life) finish(result broker.RunResult) {
	l.Helper()
	l.until("the run ends", func() error { _, err := l.runs.Finish(l.Context(), l.held, result); return err })
}

// live lets everything happen: comments, a pause, a question and its answer, a pull
// request, and a stop by unassigning. People can do their part only while the forge is up,
// and do it whenever they like.
func (l *life) live() {
	l.Helper()
	l.issue = l.forge.AddItem(team, task.Issue, "ann", "Repair the gate")
	l.forge.AddComment(l.issue, "ann", "There before.")
	l.forge.Change(l.issue, func(i *forge.Item) { i.Assignees = []string{bot} })
	l.webhook()
	l.begin(true)

	first := l.forge.AddComment(l.issue, "ann", "During the work.")
	l.webhook()
	l.hears("new: During the work.")
	l.check(l.runs.Progress(l.Context(), l.held, "## Toryo is working\n\n10%"))
	l.check(l.runs.AddComment(l.Context(), l.held, "hello", "I begin."))

	_, err := l.controller.Pause(l.Context(), l.held.ID, task.ReasonPauseRequested)
	l.check(err)
	l.listen("the pause", func(s broker.Signals) bool { return s.Pause != nil })
	l.finish(broker.RunResult{Outcome: task.OutcomePaused, Kept: "wip1"})
	l.forge.AddComment(l.issue, "ann", "During the pause.")
	_, err = l.controller.Resume(l.Context(), l.held.ID)
	l.check(err)
	l.begin(false)
	l.hears("new: During the pause.")

	l.check(l.runs.AddComment(l.Context(), l.held, "1-question-7", "Green or red?"))
	l.finish(broker.RunResult{Outcome: task.OutcomePaused, Reason: task.ReasonAwaitingAnswer})
	l.until("the task waits for an answer", l.is(task.Paused, task.ReasonAwaitingAnswer))
	l.forge.AddComment(l.issue, "ann", "Green.")
	l.webhook()
	l.begin(false)
	l.hears("new: Green.")
	l.forge.Edit(l.issue, first.ID, "During the work, changed.")
	l.webhook()
	l.hears("edited: During the work, changed.")

	wish := broker.PullWish{Branch: l.held.Branch, Commit: "c1", Base: "main", Title: "Repair the gate", Text: "It is repaired."}
	l.until("the pull request is opened", func() error { _, err := l.runs.OpenPull(l.Context(), l.held, wish); return err })
	l.check(l.runs.Progress(l.Context(), l.held, "## Toryo is working\n\n90%"))

	l.forge.Change(l.issue, func(i *forge.Item) { i.Assignees = nil })
	l.webhook()
	l.listen("the stop", func(s broker.Signals) bool { return s.Stop != nil && s.Stop.Reason == task.ReasonUnassigned })
	l.finish(broker.RunResult{Outcome: task.OutcomeStopped, Kept: "wip2", Progress: "## Toryo is working\n\nend"})
	l.until("the task is stopped", l.is(task.Stopped, task.ReasonUnassigned))
	<-time.After(time.Second) // for what is written at once
}

// rest waits until everything is written, and a while longer in which nothing may happen.
func (l *life) rest() {
	l.Helper()
	l.until("everything is written", func() error {
		left, err := l.store.PendingActions(l.Context(), l.issue)
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("%d writes wait", len(left))
		}
		return err
	})
	<-time.After(2 * time.Minute)
	synctest.Wait()
}

// verify asserts what people see at the end, each thing exactly once.
func (l *life) verify() {
	l.Helper()
	item, err := l.forge.Item(l.Context(), l.issue)
	l.check(err)
	if diff := cmp.Diff([]string{labels(task.Gitea)[task.Stopped.Label()]}, item.Labels); diff != "" {
		l.Errorf("labels of the issue (-want +got):\n%s", diff)
	}
	var said, progress []string
	comments, err := l.forge.Comments(l.Context(), l.issue)
	l.check(err)
	for _, comment := range comments {
		text := forge.StripMarker(comment.Body)
		switch first, _, _ := strings.Cut(text, "\n"); {
		case !task.SameLogin(comment.Author, bot):
		case strings.HasPrefix(text, "## Toryo"):
			progress = append(progress, text)
		default:
			first, _, _ = strings.Cut(first, "** ")
			said = append(said, strings.Trim(first, "*"))
		}
	}
	if diff := cmp.Diff([]string{"I begin.", "Paused.", "Resumed.", "Green or red?", "Paused.", "Resumed.", "Stopped."}, said); diff != "" {
		l.Errorf("comments of the bot (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"## Toryo was stopped\n\nend"}, progress); diff != "" {
		l.Errorf("progress comments (-want +got):\n%s", diff)
	}
	want := []string{"new: During the work.", "new: During the pause.", "new: Green.", "edited: During the work, changed."}
	if diff := cmp.Diff(want, l.heard); diff != "" {
		l.Errorf("what the run has heard (-want +got):\n%s", diff)
	}
	pulls, err := l.forge.List(l.Context(), forge.Query{Repository: team, Kind: task.Pull})
	if err != nil || len(pulls) != 1 || pulls[0].Title != "Repair the gate" {
		l.Errorf("pull requests are %+v, %v", pulls, err)
	}
	for _, key := range []task.Key{l.issue, {Forge: task.Gitea, Repository: team, Kind: task.Pull, Number: 2}} {
		if left, err := l.store.PendingActions(l.Context(), key); err != nil || len(left) > 0 {
			l.Errorf("there is still something to be written to %s: %+v, %v", key, left, err)
		}
	}
}

// The forge answers 500 for a minute, everywhere or for one kind of call, from each single
// call on that stop, pause and comments are made of. Everything is there at the end, once.
func TestAMinuteOfErrorsAtEveryCall(t *testing.T) {
	t.Parallel()
	lifeWith := func(t *testing.T, o *outage) {
		t.Helper()
		path := testkit.SQLite(t, sqlite.Open)
		synctest.Test(t, func(t *testing.T) {
			l := newLife(t, path)
			l.forge.SetFaults(o.fault)
			l.live()
			o.over()
			l.rest()
			l.forge.SetFaults(nil)
			l.verify()
		})
	}
	healthy := &outage{}
	t.Run("never", func(t *testing.T) { lifeWith(t, healthy) })
	calls := healthy.calls[:healthy.part]
	t.Logf("%d calls: %v", len(calls), calls)
	if len(calls) < 20 || t.Failed() {
		t.Fatal("a life without errors is not as it should be")
	}
	// Who reads first and who shares the reading is not the same in every life, so that
	// some have fewer calls.
	var happened, all atomic.Int64
	t.Cleanup(func() {
		if happened.Load() < all.Load()*3/4 {
			t.Errorf("the forge failed in %d of %d lives only", happened.Load(), all.Load())
		}
	})
	for at, method := range calls {
		for name, kind := range map[string]struct{ whole, lost bool }{
			"this call":   {false, false},
			"everything":  {true, false},
			"answer lost": {true, true},
		} {
			if kind.lost && slices.Contains([]string{"Item", "Comments", "Access", "Dependencies", "Repository", "List", "Self"}, method) {
				continue // nothing is done by a reading: the same as everything
			}
			all.Add(1)
			t.Run(fmt.Sprintf("%s from call %d on, %s", name, at+1, method), func(t *testing.T) {
				t.Parallel()
				o := &outage{at: at + 1, whole: kind.whole, lost: kind.lost}
				lifeWith(t, o)
				if !o.until.IsZero() {
					happened.Add(1)
				}
			})
		}
	}
}
