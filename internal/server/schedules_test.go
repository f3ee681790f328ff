package server

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/toryo-dev/toryo/internal/forge/dummy"
	"github.com/toryo-dev/toryo/internal/items"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// said is a comment as the reference model knows it.
type said struct {
	id, body string
	gone     bool
	versions []string // every text that it had while the task lived
	present  bool     // it was there when the life began
}

// life is the reference model of one life of a task, and the agent in it: people
// write comments, runs take them up, and at the end every comment that is not the
// bot's has been taken up, each version at most once.
type life struct {
	w        *workshop
	t        *testing.T
	r        *rapid.T
	task     task.Task
	comments []*said
	held     *wire.RunClient // nil while no agent works
	position int64           // that is in the journal
	sequence int64
	begun    bool
	heard    []string // "change/id/body", in order
	count    int
	// unassigned says that the bot was taken off the item: then the task ends as
	// stopped, whatever else happens, unless it had ended before.
	unassigned bool
}

func (l *life) is() task.Task {
	is, err := l.w.store.Task(l.t.Context(), l.task.ID)
	if err != nil {
		l.r.Fatal(err)
	}
	return is
}

func (l *life) addComment() {
	l.count++
	body := fmt.Sprintf("text %d", l.count)
	made := l.w.forge.AddComment(l.task.Key, rapid.SampledFrom([]string{"alice", "bob"}).Draw(l.r, "author"), body)
	l.comments = append(l.comments, &said{id: made.ID, body: body, versions: []string{body}})
}

func (l *life) some() *said {
	there := slices.DeleteFunc(slices.Clone(l.comments), func(c *said) bool { return c.gone })
	if len(there) == 0 {
		return nil
	}
	return rapid.SampledFrom(there).Draw(l.r, "comment")
}

func (l *life) edit() {
	if c := l.some(); c != nil {
		l.count++
		c.body = fmt.Sprintf("text %d", l.count)
		c.versions = append(c.versions, c.body)
		l.w.forge.Edit(l.task.Key, c.id, c.body)
	}
}

func (l *life) remove() {
	if c := l.some(); c != nil {
		c.gone = true
		l.w.forge.DeleteComment(l.task.Key, c.id)
	}
}

// look looks at the item as the watcher does. Faults of the forge change nothing.
func (l *life) look(fault dummy.Fault) {
	is := l.is()
	if is.State != task.Running {
		return
	}
	l.w.forge.SetFaults(func(call dummy.Call) dummy.Fault {
		if call.Method == "Item" || call.Method == "Comments" {
			return fault
		}
		return dummy.None
	})
	defer l.w.forge.SetFaults(nil)
	l.w.snapshots.Changed(is.Key)
	err := l.w.watcher.Look(l.t.Context(), is)
	if fault == dummy.None && err != nil {
		l.r.Fatalf("looking: %v", err)
	}
}

// claim hands the task to an agent, which goes on where the last one was.
func (l *life) claim() {
	if l.held != nil || l.is().State != task.Queued {
		return
	}
	var running task.Task
	l.held, running = l.w.goOn(l.t, l.task.ID)
	l.sequence = 0
	if l.begun {
		return
	}
	told, err := l.w.talk.Present(l.t.Context(), running, items.Snapshot{})
	if err != nil {
		l.r.Fatal(err)
	}
	l.comments = slices.DeleteFunc(l.comments, func(c *said) bool { return c.gone })
	for _, c := range l.comments {
		c.present, c.versions = true, []string{c.body}
	}
	if len(told) != len(l.comments) {
		l.r.Fatalf("the run is told %d comments, %d are there", len(told), len(l.comments))
	}
	l.report(`{"phase":"planning"}`, task.PhaseChanged)
	l.begun = true
}

func (l *life) report(data string, kind task.EventKind) bool {
	_, err := l.held.Report(l.t.Context(), []wire.Entry{{Sequence: l.sequence + 1, Kind: string(kind), At: time.Now(), Data: json.RawMessage(data)}})
	if err == nil {
		l.sequence++
	}
	return err == nil
}

// checkpoint is what an agent does between two steps: stop, pause, comments. A
// comment is taken up when that is in the journal.
func (l *life) checkpoint(crash bool) {
	if l.held == nil {
		return
	}
	signals, err := l.held.Signals(l.t.Context(), l.position, 0)
	if task.CodeOf(err) == task.LeaseLost {
		l.held = nil
		return
	}
	if err != nil {
		l.r.Fatal(err)
	}
	switch {
	case crash:
		return // it has read them and does nothing about them
	case signals.Stop != nil:
		l.finish("stopped")
	case signals.Pause != nil:
		l.finish("paused")
	case len(signals.Comments) > 0:
		last := signals.Comments[len(signals.Comments)-1].Position
		if !l.report(fmt.Sprintf(`{"signal":{"signal":"comments","position":%d}}`, last), task.SignalTaken) {
			return
		}
		l.position = last
		for _, c := range signals.Comments {
			l.heard = append(l.heard, string(c.Change)+"/"+c.ID+"/"+c.Body)
			if task.SameLogin(c.Author, bot) {
				l.r.Fatalf("the run hears the bot: %+v", c)
			}
		}
	}
}

func (l *life) finish(outcome task.Outcome) {
	err := l.held.Finish(l.t.Context(), wire.Result{Outcome: outcome})
	if err != nil && task.CodeOf(err) != task.LeaseLost && task.CodeOf(err) != task.Conflict {
		l.r.Fatalf("%s: %v", outcome, err)
	}
	if task.CodeOf(err) != task.Conflict {
		l.held = nil
	}
}

// lose lets the agent's lease run out.
func (l *life) lose() {
	l.w.pass(2 * time.Minute)
	if is := l.is(); is.State == task.Running {
		done, err := l.w.controller.Halted(l.t.Context(), is)
		if err == nil && !done {
			_, err = l.w.store.Move(l.t.Context(), store.Change{Task: is.ID, Generation: is.Generation, Trigger: task.Lost, Reason: task.ReasonLeaseExpired})
		}
		if err != nil {
			l.r.Fatal(err)
		}
	}
	l.held = nil
}

func (l *life) steer(do func() (task.Task, error)) {
	if _, err := do(); err != nil && task.CodeOf(err) != task.IllegalMove {
		l.r.Fatal(err)
	}
}

// step does one of the things that can happen.
func (l *life) step() {
	ctx, id := l.t.Context(), l.task.ID
	switch rapid.SampledFrom([]string{
		"say", "say", "edit", "remove", "bot", "look", "look", "fault", "claim", "claim", "checkpoint", "checkpoint", "crash",
		"lose", "pause", "resume", "resume", "grace", "done", "unassign",
	}).Draw(l.r, "step") {
	case "say":
		l.addComment()
	case "edit":
		l.edit()
	case "remove":
		l.remove()
	case "bot":
		l.w.forge.AddComment(l.task.Key, rapid.SampledFrom([]string{bot, "Toryo-Bot", bot + "[bot]"}).Draw(l.r, "spelling"), "I am at it")
	case "look":
		l.look(dummy.None)
	case "fault":
		l.look(dummy.Refuse)
	case "claim":
		l.claim()
	case "checkpoint":
		l.checkpoint(false)
	case "crash":
		l.checkpoint(true)
	case "lose":
		l.lose()
	case "pause":
		l.steer(func() (task.Task, error) { return l.w.controller.Pause(ctx, id, task.ReasonPauseRequested) })
	case "resume":
		l.steer(func() (task.Task, error) { return l.w.controller.Resume(ctx, id) })
	case "grace":
		if _, err := l.w.controller.Look(ctx); err != nil {
			l.r.Fatal(err)
		}
	case "done":
		if l.held != nil && rapid.IntRange(0, 9).Draw(l.r, "really") == 0 {
			l.finish("done")
		}
	case "unassign":
		if !l.unassigned && rapid.IntRange(0, 5).Draw(l.r, "really") == 0 {
			l.unassigned = l.is().State.Active()
			if err := l.w.forge.Unassign(ctx, l.task.Key, bot); err != nil {
				l.r.Fatal(err)
			}
		}
	}
}

// wind lets a task go on that is not wanted any more, until it has ended.
func (l *life) wind() {
	for rounds := 0; l.is().State.Active(); rounds++ {
		if rounds > 20 {
			l.r.Fatalf("the task does not end: %+v", l.is())
		}
		l.w.snapshots.Changed(l.task.Key)
		if err := l.w.intake.Look(l.t.Context(), l.task.Key, 0); err != nil {
			l.r.Fatal(err)
		}
		l.checkpoint(false)
		if l.held == nil && l.is().State == task.Running {
			l.lose()
		}
	}
	if is := l.is(); is.State != task.Stopped && is.State != task.Done {
		l.r.Fatalf("nobody wanted the task any more, and it is %s", is.State)
	}
}

// carryOn lets a task that lives go on until its run has nothing left to hear.
func (l *life) carryOn() {
	for rounds := 0; l.is().State.Active(); rounds++ {
		if rounds > 20 {
			l.r.Fatalf("the task does not go on: %+v", l.is())
		}
		l.steer(func() (task.Task, error) { return l.w.controller.Resume(l.t.Context(), l.task.ID) })
		l.claim()
		l.look(dummy.None)
		before := len(l.heard)
		l.checkpoint(false)
		if l.held != nil && len(l.heard) == before {
			return
		}
	}
}

// check compares what the runs heard with what was said.
func (l *life) check() {
	last := l.checkOnce()
	for _, c := range l.comments {
		heard, was := last[c.id]
		switch {
		case c.gone && was && !strings.HasPrefix(heard, "deleted/"):
			l.r.Fatalf("comment %s was heard, was deleted, and nobody said so: %q", c.id, l.heard)
		case !c.gone && !c.present && (!was || heard != "new/"+c.body && heard != "edited/"+c.body):
			l.r.Fatalf("comment %s says %q, the run heard %q: %q", c.id, c.body, heard, l.heard)
		case !c.gone && c.present && c.body != c.versions[0] && heard != "edited/"+c.body:
			l.r.Fatalf("comment %s, which was there, says %q now, the run heard %q", c.id, c.body, heard)
		}
	}
}

// checkOnce makes sure that nothing was heard twice, and returns what was heard last of
// each comment.
func (l *life) checkOnce() map[string]string {
	seen, last := map[string]bool{}, map[string]string{}
	for _, h := range l.heard {
		if seen[h] {
			l.r.Fatalf("%s was heard twice: %q", h, l.heard)
		}
		seen[h] = true
		parts := strings.SplitN(h, "/", 3)
		last[parts[1]] = parts[0] + "/" + parts[2]
	}
	return last
}

// Random schedules of comments, stops, pauses, losses of agents, faults of the forge and
// a stop at the end: no comment is lost, none is heard twice, none is the bot's own,
// and the label is that of the state.
func TestSchedules(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, database store.Store) {
		t.Helper()
		w := newWorkshop(t, database)
		rapid.Check(t, func(r *rapid.T) {
			l := &life{w: w, t: t, r: r, task: w.issue(t, "Fix the gate")}
			for range rapid.IntRange(5, 40).Draw(r, "steps") {
				l.step()
			}
			if l.unassigned {
				l.wind()
				l.checkOnce()
			} else {
				l.carryOn()
			}
			if l.is().State.Active() {
				l.check()
				w.settle(t, l.task.Key)
				if _, err := w.controller.StopTask(t.Context(), l.task.ID, task.ReasonStopRequested); err != nil {
					r.Fatal(err)
				}
				l.checkpoint(false)
			}
			w.settle(t, l.task.Key)
			w.wantLabel(t, l.task.Key, l.is().State)
			if !l.is().State.Terminal() {
				r.Fatalf("the task is %s in the end", l.is().State)
			}
		})
	})
}
