package outbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/dummy"
	"github.com/toryo-dev/toryo/internal/items"
	"github.com/toryo-dev/toryo/internal/lifecycle"
	"github.com/toryo-dev/toryo/internal/outbox"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/store/sqlite"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
)

const repository = "owner/name"

// oneIssue returns a forge with one issue.
func oneIssue() (*dummy.Forge, task.Key) {
	d := dummy.New(task.Gitea, "toryo-bot")
	d.AddRepository(repository, forge.Remote{})
	item := d.AddItem(repository, task.Issue, "alice", "Fix the roof")
	return d, item
}

// fixture is a sender with a real database and a forge in memory.
type fixture struct {
	*outbox.Sender
	t     *testing.T // of the bubble
	store store.Store
	forge *dummy.Forge
	item  task.Key
	task  task.Task
}

// withFixture runs a test in a bubble of time, in which waiting costs nothing.
func withFixture(t *testing.T, test func(d *fixture)) {
	t.Helper()
	path := testkit.SQLite(t, sqlite.Open)
	synctest.Test(t, func(t *testing.T) {
		opened, err := sqlite.Open(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = opened.Close() })
		on, item := oneIssue()
		d := &fixture{t: t, store: opened, forge: on, item: item}
		d.task, _, err = opened.Assign(t.Context(), store.NewTask{Key: item, Type: task.Development, Branch: "toryo/1", Reason: task.ReasonAssigned}, nil)
		if err != nil {
			t.Fatal(err)
		}
		d.Sender = d.newSender(opened)
		test(d)
	})
}

func (d *fixture) newSender(from store.Outbox) *outbox.Sender {
	return outbox.NewSender(outbox.SenderOptions{
		Outbox: from, Tasks: d.store, Forges: map[task.Forge]forge.Forge{task.Gitea: d.forge},
	})
}

// send starts the sender and stops it when the test ends.
func (d *fixture) send(t *testing.T) {
	t.Helper()
	d.Start(t.Context())
	sender := d.Sender
	t.Cleanup(func() { sender.Stop(context.WithoutCancel(t.Context())) })
}

func (d *fixture) write(what string) outbox.Write {
	return outbox.Write{Item: d.item, Task: d.task.ID, Generation: d.task.Generation, What: what}
}

func (d *fixture) put(t *testing.T, what string, payload outbox.Payload) string {
	t.Helper()
	action, err := outbox.NewAction(d.write(what), payload)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Put(t.Context(), action); err != nil {
		t.Fatal(err)
	}
	return action.IdempotencyKey
}

// after waits until nothing more happens for a while and returns an action.
func (d *fixture) after(t *testing.T, wait time.Duration, key string) store.Action {
	t.Helper()
	<-time.After(wait)
	synctest.Wait()
	action, err := d.store.Action(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return action
}

// bodies returns the comments on the item as people see them.
func (d *fixture) bodies(t *testing.T) []string {
	t.Helper()
	comments, err := d.forge.Comments(t.Context(), d.item)
	if err != nil {
		t.Fatal(err)
	}
	var bodies []string
	for _, comment := range comments {
		bodies = append(bodies, forge.StripMarker(comment.Body))
	}
	return bodies
}

func writes(calls []dummy.Call) []string {
	var all []string
	for _, call := range calls {
		switch call.Method {
		case "Item", "Comments", "Self":
		default:
			all = append(all, strings.TrimSpace(call.Method+" "+call.Detail))
		}
	}
	return all
}

func TestEveryKindOfAction(t *testing.T) {
	t.Parallel()
	withFixture(t, func(d *fixture) {
		t := d.t
		ctx := t.Context()
		d.forge.SetBranch(repository, "toryo/1", "c0ffee")
		pull := d.forge.AddItem(repository, task.Pull, "alice", "Theirs")
		if _, err := d.forge.SubmitReview(ctx, pull, forge.ReviewPost{Verdict: forge.Remark, Comments: []forge.LineComment{{}}}); err != nil {
			t.Fatal(err)
		}
		threads, _ := d.forge.ReviewThreads(ctx, pull)
		own := d.forge.AddComment(d.item, "toryo-bot", "old")
		if err := d.forge.AddLabel(ctx, d.item, "queued"); err != nil {
			t.Fatal(err)
		}
		before := len(d.forge.Calls())
		d.send(t)
		draft, title := true, "Roof"
		for i, p := range []outbox.Payload{
			outbox.Comment{Text: "hello"},
			outbox.EditComment{ID: own.ID, Text: "new"},
			outbox.AddLabel{Label: "a"},
			outbox.RemoveLabel{Label: "a"},
			outbox.StateLabel{Label: "running", Others: []string{"queued", "running", "done"}},
			outbox.Assign{Login: "bob"},
			outbox.React{Reaction: forge.Eyes},
			outbox.Unreact{Reaction: forge.Eyes},
			outbox.SetStatus{Commit: "c0ffee", Context: "toryo", State: forge.StatusPending},
			outbox.OpenPull{Title: "Fix", Text: "Fixes #1, fixes #9", Head: "toryo/1", Base: "main"},
		} {
			d.put(t, fmt.Sprint(i), p)
		}
		d.item = pull
		for i, p := range []outbox.Payload{
			outbox.EditPull{Title: &title, Draft: &draft},
			outbox.SubmitReview{Verdict: forge.Approve, Text: "good", Comments: []outbox.LineComment{{Path: "a", Side: forge.NewSide, Line: 1, Text: "/close"}}},
			outbox.Reply{Thread: threads[0].ID, Text: "so be it"},
		} {
			d.put(t, fmt.Sprint("pull", i), p)
		}
		<-time.After(time.Minute)
		synctest.Wait()
		var got []string
		for _, call := range d.forge.Calls()[before:] {
			if call.Key.Kind != task.Pull && call.Method != "Item" && call.Method != "Self" {
				got = append(got, strings.TrimSpace(call.Method+" "+call.Detail))
			}
		}
		want := []string{
			"CreateComment hello", "EditComment new", "AddLabel a", "RemoveLabel a", "AddLabel running", "RemoveLabel queued",
			"Assign bob", "React eyes", "Unreact eyes", "SetStatus toryo", "OpenPull toryo/1",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
		var result outbox.Pulled
		opened, err := d.store.Action(ctx, string(d.task.ID)+"/1/9")
		if err != nil || opened.Status != store.Delivered || json.Unmarshal(opened.Result, &result) != nil || !result.Opened {
			t.Errorf("opened: %+v, %v", opened, err)
		}
		made, _, err := d.forge.FindPull(ctx, repository, "toryo/1", "main")
		if err != nil || !strings.HasPrefix(made.Body, "Fixes #1, ") || strings.HasSuffix(made.Body, "fixes #9") {
			t.Errorf("the pull request says %q, %v", made.Body, err)
		}
		item, err := d.forge.Item(ctx, pull)
		if err != nil || item.Title != title || !item.Draft {
			t.Errorf("the pull request is %+v, %v", item, err)
		}
		threads, _ = d.forge.ReviewThreads(ctx, pull)
		if len(threads) != 2 || len(threads[0].Comments) != 2 || threads[1].Comments[0].Body != `\/close` {
			t.Errorf("threads %+v", threads)
		}
	})
}

func TestOrderAndRetry(t *testing.T) {
	t.Parallel()
	withFixture(t, func(d *fixture) {
		t := d.t
		var failures atomic.Int64
		d.forge.SetFaults(func(call dummy.Call) dummy.Fault {
			if call.Detail == "first" && failures.Add(1) <= 5 {
				return dummy.Refuse
			}
			return dummy.None
		})
		d.send(t)
		d.put(t, "1", outbox.Comment{Text: "first"})
		d.put(t, "2", outbox.AddLabel{Label: "second"})
		last := d.put(t, "3", outbox.Comment{Text: "third"})
		action := d.after(t, 10*time.Minute, last)
		if action.Status != store.Delivered {
			t.Fatalf("%+v", action)
		}
		if diff := cmp.Diff([]string{"first", "third"}, d.bodies(t)); diff != "" {
			t.Error(diff)
		}
		got := writes(d.forge.Calls())
		want := []string{
			"CreateComment first", "AddLabel second", "CreateComment first", "CreateComment first", "CreateComment first",
			"CreateComment first", "CreateComment first", "CreateComment third",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
	})
}

// Answers get lost after the write was made: it is not made twice.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	withFixture(t, func(d *fixture) {
		t := d.t
		d.forge.SetBranch(repository, "toryo/1", "c0ffee")
		lost := map[string]int{}
		d.forge.SetFaults(func(call dummy.Call) dummy.Fault {
			if call.Method == "Item" {
				return dummy.None
			}
			lost[call.Method]++
			if lost[call.Method] <= 2 {
				return dummy.Lose
			}
			return dummy.None
		})
		d.send(t)
		d.put(t, "1", outbox.Comment{Text: "hello"})
		d.put(t, "2", outbox.Progress{Name: "run", Text: "one"})
		last := d.put(t, "3", outbox.OpenPull{Title: "t", Head: "toryo/1", Base: "main"})
		if action := d.after(t, 10*time.Minute, last); action.Status != store.Delivered {
			t.Fatalf("%+v", action)
		}
		d.forge.SetFaults(nil)
		if diff := cmp.Diff([]string{"hello", "one"}, d.bodies(t)); diff != "" {
			t.Error(diff)
		}
		pulls, _ := d.forge.List(t.Context(), forge.Query{Repository: repository, Kind: task.Pull})
		if len(pulls) != 1 {
			t.Errorf("%d pull requests", len(pulls))
		}
	})
}

func TestProgressIsCoalesced(t *testing.T) {
	t.Parallel()
	withFixture(t, func(d *fixture) {
		t := d.t
		d.send(t)
		for i := range 200 { // for a minute
			d.put(t, fmt.Sprint("progress/", i), outbox.Progress{Name: "run", Text: fmt.Sprintf("step %d", i)})
			<-time.After(300 * time.Millisecond)
		}
		last := d.put(t, "end", outbox.Comment{Text: "done"})
		if action := d.after(t, time.Minute, last); action.Status != store.Delivered {
			t.Fatalf("%+v", action)
		}
		if diff := cmp.Diff([]string{"step 199", "done"}, d.bodies(t)); diff != "" {
			t.Error(diff)
		}
		if got := len(writes(d.forge.Calls())); got > 15 {
			t.Errorf("%d writes in a minute, want one in five seconds and the comment", got)
		}
		// A person deletes it; then it is written anew, and after a restart found.
		comments, _ := d.forge.Comments(t.Context(), d.item)
		d.forge.DeleteComment(d.item, comments[0].ID)
		again := d.put(t, "progress/again", outbox.Progress{Name: "run", Text: "again"})
		if action := d.after(t, time.Minute, again); action.Status != store.Delivered {
			t.Fatalf("%+v", action)
		}
		d.Stop(t.Context())
		d.Sender = d.newSender(d.store)
		d.send(t)
		anew := d.put(t, "progress/anew", outbox.Progress{Name: "run", Text: "anew"})
		d.after(t, time.Minute, anew)
		if diff := cmp.Diff([]string{"done", "anew"}, d.bodies(t)); diff != "" {
			t.Error(diff)
		}
	})
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	withFixture(t, func(d *fixture) {
		t := d.t
		d.forge.SetFaults(func(call dummy.Call) dummy.Fault {
			if call.Detail == "boom" {
				return dummy.Panic
			}
			return dummy.None
		})
		d.send(t)
		gone := d.put(t, "gone", outbox.EditComment{ID: "4711", Text: "x"})
		boom := d.put(t, "boom", outbox.Comment{Text: "boom"})
		if _, err := d.Put(t.Context(), store.Action{Item: d.item, IdempotencyKey: "odd", Kind: "dance", Payload: json.RawMessage(`{}`)}); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Put(t.Context(), store.Action{Item: d.item, IdempotencyKey: "bad", Kind: "comment", Payload: json.RawMessage(`{"txt":"x"}`)}); err != nil {
			t.Fatal(err)
		}
		after := d.put(t, "after", outbox.Comment{Text: "still here"})
		if action := d.after(t, time.Hour, after); action.Status != store.Delivered {
			t.Errorf("what stood behind: %+v", action)
		}
		for key, reason := range map[string]task.Reason{
			gone: task.ReasonRejectedByForge, boom: task.ReasonAttemptsExhausted, "odd": task.ReasonNotWritten, "bad": task.ReasonNotWritten,
		} {
			if action := d.after(t, 0, key); action.Status != store.Refused || action.Reason != reason {
				t.Errorf("%s: %s %q (%s)", key, action.Status, action.Reason, action.LastError)
			}
		}
	})
}

// A write whose run ended while it was being tried again is refused.
func TestStaleGenerationIsRefused(t *testing.T) {
	t.Parallel()
	withFixture(t, func(d *fixture) {
		t := d.t
		d.forge.SetFaults(func(dummy.Call) dummy.Fault { return dummy.Refuse })
		d.send(t)
		key := d.put(t, "1", outbox.Comment{Text: "zombie"})
		d.after(t, 10*time.Second, key)
		if _, err := d.store.Move(t.Context(), store.Change{Task: d.task.ID, Trigger: task.Withdrawn, Reason: task.ReasonUnassigned}); err != nil {
			t.Fatal(err)
		}
		d.forge.SetFaults(nil)
		if action := d.after(t, time.Hour, key); action.Status != store.Refused || action.Reason != task.ReasonStaleGeneration {
			t.Errorf("%+v", action)
		}
		if got := d.bodies(t); got != nil {
			t.Errorf("a run that is over wrote %q", got)
		}
		action, _ := outbox.NewAction(d.write("2"), outbox.Comment{Text: "zombie"})
		if _, err := d.Put(t.Context(), action); task.CodeOf(err) != task.StaleGeneration {
			t.Errorf("put by a run that is over: %v", err)
		}
	})
}

// What is published is the branch of the task, whatever stands in the outbox, and never
// the default branch.
func TestOnlyTheTasksBranchIsPublished(t *testing.T) {
	t.Parallel()
	withFixture(t, func(d *fixture) {
		t := d.t
		var published []string
		d.Sender = outbox.NewSender(outbox.SenderOptions{
			Outbox: d.store, Tasks: d.store, Forges: map[task.Forge]forge.Forge{task.Gitea: d.forge},
			Publish: func(_ context.Context, p outbox.Publication) (outbox.Published, error) {
				published = append(published, p.Branch)
				return outbox.Published{Commit: p.Commit}, nil
			},
		})
		d.send(t)
		pull := task.Key{Forge: d.item.Forge, Repository: d.item.Repository, Kind: task.Pull, Number: 99}
		fromDefault, _, err := d.store.Assign(t.Context(), store.NewTask{Key: pull, Type: task.Development, Branch: "main", Reason: task.ReasonAssigned}, nil)
		if err != nil {
			t.Fatal(err)
		}
		put := func(of task.Task, payload outbox.Payload, want store.ActionStatus) {
			t.Helper()
			action, err := outbox.NewAction(outbox.Write{Item: d.item, Task: of.ID, Generation: of.Generation, What: fmt.Sprint(payload)}, payload)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := d.Put(t.Context(), action); err != nil {
				t.Fatal(err)
			}
			if after := d.after(t, time.Minute, action.IdempotencyKey); after.Status != want {
				t.Errorf("%+v is %s, want %s", payload, after.Status, want)
			}
		}
		put(d.task, outbox.PublishBranch{Branch: "production", Commit: "c1"}, store.Refused)
		put(fromDefault, outbox.PublishBranch{Branch: "main", Commit: "c1"}, store.Refused)
		put(task.Task{}, outbox.PublishBranch{Branch: "toryo/1", Commit: "c1"}, store.Refused)
		put(d.task, outbox.OpenPull{Title: "t", Head: "production", Base: "main"}, store.Refused)
		put(d.task, outbox.PublishBranch{Branch: "toryo/1", Commit: "c1"}, store.Delivered)
		if !slices.Equal(published, []string{"toryo/1"}) {
			t.Errorf("published %q", published)
		}
	})
}

// between moves the task on after Take, before the sender performs the action.
type between struct {
	store.Outbox
	then func()
}

func (b between) Take(ctx context.Context, now, until time.Time, limit int) ([]store.Action, error) {
	taken, err := b.Outbox.Take(ctx, now, until, limit)
	if len(taken) > 0 {
		b.then()
	}
	return taken, err
}

func TestGenerationEndsAfterTake(t *testing.T) {
	t.Parallel()
	withFixture(t, func(d *fixture) {
		t := d.t
		d.Sender = d.newSender(between{d.store, func() {
			if _, err := d.store.Move(t.Context(), store.Change{Task: d.task.ID, Trigger: task.Withdrawn, Reason: task.ReasonUnassigned}); err != nil {
				t.Error(err)
			}
		}})
		d.send(t)
		key := d.put(t, "1", outbox.Comment{Text: "zombie"})
		if action := d.after(t, time.Hour, key); action.Status != store.Refused || action.Reason != task.ReasonStaleGeneration || d.bodies(t) != nil {
			t.Errorf("%+v, comments %q", action, d.bodies(t))
		}
	})
}

var errKilled = errors.New("killed")

// mortal is an outbox whose process is killed at one of its calls: that call and
// all later ones do not come back with anything.
type mortal struct {
	store.Outbox
	left atomic.Int64 // calls until then
	late bool         // the call is still done
	dead chan struct{}
}

func (m *mortal) call(do func() error) error {
	switch left := m.left.Add(-1); {
	case left > 0:
		return do()
	case left == 0:
		if m.late {
			_ = do()
		}
		close(m.dead)
	}
	return errKilled
}

func (m *mortal) Take(ctx context.Context, now, until time.Time, limit int) (taken []store.Action, err error) {
	err = m.call(func() (err error) {
		taken, err = m.Outbox.Take(ctx, now, until, limit)
		return err
	})
	if err != nil {
		return nil, err
	}
	return taken, nil
}

func (m *mortal) Deliver(ctx context.Context, id string, result json.RawMessage) error {
	return m.call(func() error { return m.Outbox.Deliver(ctx, id, result) })
}

func (m *mortal) Retry(ctx context.Context, id string, attempt int, at time.Time, cause string) error {
	return m.call(func() error { return m.Outbox.Retry(ctx, id, attempt, at, cause) })
}

func (m *mortal) KeepTaken(ctx context.Context, id string, attempt int, until time.Time) error {
	if m.left.Load() <= 0 {
		return errKilled
	}
	return m.Outbox.KeepTaken(ctx, id, attempt, until)
}

// A write that takes long stays in the hands of who began with it, and what a
// process had in its hands that is gone is free soon after.
func TestHoldEndsWithTheProcess(t *testing.T) {
	t.Parallel()
	withFixture(t, func(d *fixture) {
		t := d.t
		d.forge.SetFaults(func(call dummy.Call) dummy.Fault {
			if call.Method == "CreateComment" {
				return dummy.Hang
			}
			return dummy.None
		})
		doomed := &mortal{Outbox: d.store, dead: make(chan struct{})}
		doomed.left.Store(1000)
		first := d.newSender(doomed)
		first.Start(t.Context())
		key := d.put(t, "1", outbox.Comment{Text: "hello"})
		first.Wake()
		synctest.Wait()
		d.send(t)
		if action := d.after(t, 100*time.Second, key); action.Attempts != 1 {
			t.Fatalf("a write that takes long was taken again: %+v", action)
		}
		d.forge.SetFaults(nil)
		doomed.left.Store(0)
		killed, cancel := context.WithCancel(t.Context())
		cancel()
		first.Stop(killed)
		if action := d.after(t, 62*time.Second, key); action.Status != store.Delivered || action.Attempts != 2 {
			t.Errorf("what a dead process held is %+v", action)
		}
		if diff := cmp.Diff([]string{"hello"}, d.bodies(t)); diff != "" {
			t.Error(diff)
		}
	})
}

// What a killed server held is in the way of what comes after it until its hold ends, and no longer:
// another server looks then, and not only at its next regular look.
func TestAHoldThatEndsIsSeen(t *testing.T) {
	t.Parallel()
	withFixture(t, func(d *fixture) {
		t := d.t
		const held, letGo = 100 * time.Second, 20 * time.Second // the second is for a server that is not dead after all
		d.put(t, "1", outbox.Comment{Text: "one"})
		d.store.ActAs("killed")
		if taken, err := d.store.Take(t.Context(), time.Now(), time.Now().Add(held), 1); err != nil || len(taken) != 1 {
			t.Fatalf("taken were %+v, %v", taken, err)
		}
		d.store.ActAs("other")
		d.send(t)
		key := d.put(t, "2", outbox.Comment{Text: "two"})
		if action := d.after(t, held+letGo+time.Second, key); action.Status != store.Delivered {
			t.Errorf("what comes after it is %+v", action)
		}
		if diff := cmp.Diff([]string{"one", "two"}, d.bodies(t)); diff != "" {
			t.Error(diff)
		}
	})
}

// slow is a forge that takes a while for a comment.
type slow struct {
	forge.Forge
	takes time.Duration
}

func (s slow) CreateComment(ctx context.Context, key task.Key, post forge.Post) (task.Comment, error) {
	if err := lifecycle.Sleep(ctx, s.takes); err != nil {
		return task.Comment{}, err
	}
	return s.Forge.CreateComment(ctx, key, post)
}

// start starts the sender of a process whose clock is ahead.
func (d *fixture) start(process string, from store.Outbox, on forge.Forge, ahead time.Duration) {
	d.store.ActAs(process)
	sender := outbox.NewSender(outbox.SenderOptions{
		Outbox: from, Tasks: d.store, Forges: map[task.Forge]forge.Forge{task.Gitea: on},
		Now: func() time.Time { return time.Now().Add(ahead) },
	})
	sender.Start(d.t.Context())
	d.t.Cleanup(func() { sender.Stop(context.WithoutCancel(d.t.Context())) })
	synctest.Wait()
}

// stalled is an outbox whose answers come late, as for a process that was frozen.
type stalled struct {
	store.Outbox
	by time.Duration
}

func (s stalled) Take(ctx context.Context, now, until time.Time, limit int) ([]store.Action, error) {
	taken, err := s.Outbox.Take(ctx, now, until, limit)
	if len(taken) > 0 {
		<-time.After(s.by)
	}
	return taken, err
}

// A server that hears late that it has taken a write, when another has taken it over, leaves it.
func TestTakenLongAgo(t *testing.T) {
	t.Parallel()
	withFixture(t, func(d *fixture) {
		t := d.t
		key := d.put(t, "1", outbox.Comment{Text: "hello"})
		d.start("one", stalled{d.store, 25 * time.Second}, d.forge, 0)
		d.start("two", d.store, d.forge, time.Minute)
		action := d.after(t, 10*time.Minute, key)
		if diff := cmp.Diff([]string{"hello"}, d.bodies(t)); action.Status != store.Delivered || diff != "" {
			t.Errorf("it is %s: %s", action.Status, diff)
		}
	})
}

// Two servers whose clocks do not agree, because the clock of the database was just set, write
// nothing twice: neither if the first ends what it has begun, nor if it is cut off.
func TestClocksThatDiffer(t *testing.T) {
	t.Parallel()
	for _, takes := range []time.Duration{time.Second, 4 * time.Second, 6 * time.Second, 11 * time.Second, time.Minute} {
		withFixture(t, func(d *fixture) {
			t := d.t
			key := d.put(t, "1", outbox.Comment{Text: "hello"})
			d.start("one", d.store, slow{d.forge, takes}, 0)
			d.start("two", d.store, d.forge, time.Minute)
			action := d.after(t, 10*time.Minute, key)
			if diff := cmp.Diff([]string{"hello"}, d.bodies(t)); action.Status != store.Delivered || diff != "" {
				t.Errorf("a write of %s is %s: %s", takes, action.Status, diff)
			}
		})
	}
}

// A write whose hold cannot be extended is cut off before someone else begins.
func TestLostHoldCutsTheWrite(t *testing.T) {
	t.Parallel()
	withFixture(t, func(d *fixture) {
		t := d.t
		d.forge.SetFaults(func(call dummy.Call) dummy.Fault {
			if call.Method == "CreateComment" {
				return dummy.Hang
			}
			return dummy.None
		})
		d.Sender = d.newSender(unkept{d.store})
		d.send(t)
		key := d.put(t, "1", outbox.Comment{Text: "hello"})
		if action := d.after(t, 9*time.Second, key); action.LastError != "" {
			t.Errorf("cut off too early: %+v", action)
		}
		if action := d.after(t, 5*time.Second, key); action.LastError == "" {
			t.Errorf("it goes on without a hold: %+v", action)
		}
	})
}

// unkept is an outbox that extends no hold.
type unkept struct{ store.Outbox }

func (unkept) KeepTaken(context.Context, string, int, time.Time) error {
	return task.Errorf(task.DatabaseDown, "the database is down")
}

// TestKilledAtEveryPoint kills the sender at its n-th call of the outbox, before
// or after the call is done, and lets another go on: everything is written once
// and in order.
func TestKilledAtEveryPoint(t *testing.T) {
	t.Parallel()
	for n := range int64(14) {
		for _, late := range []bool{false, true} {
			t.Run(fmt.Sprint(n+1, late), func(t *testing.T) {
				t.Parallel()
				withFixture(t, func(d *fixture) {
					t := d.t
					d.forge.SetBranch(repository, "toryo/1", "c0ffee")
					d.put(t, "1", outbox.Comment{Text: "one"})
					d.put(t, "2", outbox.Progress{Name: "run", Text: "two"})
					d.put(t, "3", outbox.OpenPull{Title: "t", Head: "toryo/1", Base: "main"})
					last := d.put(t, "4", outbox.Comment{Text: "three"})

					doomed := &mortal{Outbox: d.store, late: late, dead: make(chan struct{})}
					doomed.left.Store(n + 1)
					first := d.newSender(doomed)
					first.Start(t.Context())
					select {
					case <-doomed.dead:
					case <-time.After(time.Minute): // it needed fewer calls
					}
					ended, cancel := context.WithCancel(t.Context())
					cancel()
					first.Stop(ended)

					d.send(t)
					if action := d.after(t, 10*time.Minute, last); action.Status != store.Delivered {
						t.Fatalf("%+v", action)
					}
					if diff := cmp.Diff([]string{"one", "two", "three"}, d.bodies(t)); diff != "" {
						t.Error(diff)
					}
					pulls, _ := d.forge.List(t.Context(), forge.Query{Repository: repository, Kind: task.Pull})
					if len(pulls) != 1 {
						t.Errorf("%d pull requests", len(pulls))
					}
				})
			})
		}
	}
}

// Stop gives up on a forge that hangs, and the write is tried again later.
func TestStopCutsOffWhatHangs(t *testing.T) {
	t.Parallel()
	withFixture(t, func(d *fixture) {
		t := d.t
		d.forge.SetFaults(func(call dummy.Call) dummy.Fault {
			if call.Method == "CreateComment" {
				return dummy.Hang
			}
			return dummy.None
		})
		d.Start(t.Context())
		key := d.put(t, "1", outbox.Comment{Text: "hello"})
		synctest.Wait()
		grace, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		d.Stop(grace)
		if action := d.after(t, 0, key); action.Status != store.Pending || action.LastError == "" {
			t.Errorf("%+v", action)
		}
		d.forge.SetFaults(nil)
		d.Sender = d.newSender(d.store)
		d.send(t)
		if action := d.after(t, time.Minute, key); action.Status != store.Delivered {
			t.Errorf("%+v", action)
		}
	})
}

// More actions than workers, and forges that hang: all are sent in the end, and
// the sender does not spin while it waits.
func TestMoreActionsThanWorkers(t *testing.T) {
	t.Parallel()
	withFixture(t, func(d *fixture) {
		t := d.t
		counted := &mortal{Outbox: d.store, dead: make(chan struct{})}
		counted.left.Store(1000)
		d.Sender = d.newSender(counted)
		d.forge.SetFaults(func(call dummy.Call) dummy.Fault {
			if call.Method == "CreateComment" && call.Key.Number > 1 {
				return dummy.Hang
			}
			return dummy.None
		})
		d.send(t)
		var last string
		for range 12 {
			d.item = d.forge.AddItem(repository, task.Issue, "alice", "x")
			last = d.put(t, "on "+d.item.String(), outbox.Comment{Text: "hello"})
		}
		d.after(t, time.Minute, last)
		if used := 1000 - counted.left.Load(); used > 20 {
			t.Errorf("the outbox was used %d times while every worker was busy", used)
		}
		d.forge.SetFaults(nil)
		if action := d.after(t, 10*time.Minute, last); action.Status != store.Delivered {
			t.Errorf("%+v", action)
		}
	})
}

// Nothing to do costs nothing: the outbox is read at the start, when what a server
// was writing that was killed has settled, and twice a minute.
func TestNoBusyPolling(t *testing.T) {
	t.Parallel()
	withFixture(t, func(d *fixture) {
		t := d.t
		counted := &mortal{Outbox: d.store, dead: make(chan struct{})}
		counted.left.Store(1000)
		d.Sender = d.newSender(counted)
		d.send(t)
		<-time.After(time.Hour)
		synctest.Wait()
		if got := 1000 - counted.left.Load(); got > 122 {
			t.Errorf("the outbox was looked at %d times in an idle hour", got)
		}
	})
}

func TestMentionsOnlyOfParticipants(t *testing.T) {
	t.Parallel()
	withFixture(t, func(d *fixture) {
		t := d.t
		d.forge.AddComment(d.item, "bob", "me too")
		snapshots := items.NewSnapshots(map[task.Forge]forge.Reader{task.Gitea: d.forge}, items.DefaultAges, nil)
		t.Cleanup(snapshots.Stop)
		d.Sender = outbox.NewSender(outbox.SenderOptions{
			Outbox: d.store, Tasks: d.store, Forges: map[task.Forge]forge.Forge{task.Gitea: d.forge}, Snapshots: snapshots,
		})
		d.send(t)
		key := d.put(t, "1", outbox.Comment{Text: "@alice @Bob @carol\n/close\nfixes #77 <!-- x -->"})
		if action := d.after(t, time.Minute, key); action.Status != store.Delivered {
			t.Fatalf("%+v", action)
		}
		want := "@alice @Bob @\u200bcarol\n\\/close\nfixes\u200b #77 <\\!-- x -->"
		if got := d.bodies(t)[1]; got != want {
			t.Errorf("posted %q, want %q", got, want)
		}
		if got, err := snapshots.Get(t.Context(), d.item, time.Hour); err != nil || len(got.Comments) != 2 {
			t.Error("our own comment is not in the snapshot")
		}
	})
}

// Forges refuse a verdict on a pull request of our own: it is given as a comment.
func TestVerdictOnOurOwnPull(t *testing.T) {
	t.Parallel()
	withFixture(t, func(d *fixture) {
		t := d.t
		ctx := t.Context()
		d.send(t)
		for author, want := range map[string]forge.Verdict{"toryo-bot": forge.Remark, "Toryo-Bot": forge.Remark, "alice": forge.RequestChanges} {
			d.item = d.forge.AddItem(repository, task.Pull, author, "A roof")
			d.put(t, "review of "+author, outbox.SubmitReview{Verdict: forge.RequestChanges, Text: "no"})
			<-time.After(time.Minute)
			synctest.Wait()
			reviews, err := d.forge.Reviews(ctx, d.item)
			if err != nil || len(reviews) != 1 || reviews[0].Verdict != want {
				t.Errorf("the review of %s's pull request is %+v, %v", author, reviews, err)
			}
		}
	})
}

// A label that asked for a review stays when what was reviewed is not the head any more.
func TestAnsweredReviewLabel(t *testing.T) {
	t.Parallel()
	withFixture(t, func(d *fixture) {
		t := d.t
		ctx := t.Context()
		d.send(t)
		for name, c := range map[string]struct {
			heads map[int64]string // that were reviewed
			again bool             // it was put on again since
			stays bool
		}{
			"the heads were reviewed":       {heads: map[int64]string{0: "c1", 1: "c1"}},
			"one has another head":          {heads: map[int64]string{0: "c1", 1: "c0"}, stays: true},
			"one is gone, one was reviewed": {heads: map[int64]string{0: "c1", 99: "c1"}},
			"it was put on again":           {heads: map[int64]string{0: "c1"}, again: true, stays: true},
		} {
			issue := d.forge.AddItem(repository, task.Issue, "alice", name)
			if err := d.forge.AddLabel(ctx, issue, "needs-review"); err != nil {
				t.Fatal(err)
			}
			answered := outbox.ReviewAnswered{Label: "needs-review", PutOn: time.Now()}
			if c.again {
				answered.PutOn = time.Now().Add(-time.Minute)
			}
			for offset, reviewed := range c.heads {
				number := issue.Number + 100 + offset
				if offset < 2 {
					pull := d.forge.AddItem(repository, task.Pull, "alice", name)
					d.forge.Change(pull, func(i *forge.Item) { i.HeadCommit = "c1" })
					number = pull.Number
				}
				answered.Pulls = append(answered.Pulls, outbox.PullHead{Number: number, Commit: reviewed})
			}
			d.item = issue
			d.put(t, name, answered)
			<-time.After(time.Minute)
			synctest.Wait()
			item, err := d.forge.Item(ctx, issue)
			if err != nil || item.HasLabel("needs-review") != c.stays {
				t.Errorf("%s: the labels are %q, %v", name, item.Labels, err)
			}
		}
	})
}
