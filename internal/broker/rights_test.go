package broker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/broker"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/messages"
	"github.com/toryo-dev/toryo/internal/outbox"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// A task in a repository where the bot lacks a right is handed to nobody, so that no model is
// asked for it: it waits with the reason, which is said once on the item, where the bot may
// comment, and goes on by itself when the right is given.
func TestTaskWaitsForARightOfTheBot(t *testing.T) {
	t.Parallel()
	for lacks, reason := range map[forge.Rights]task.Reason{
		{Push: true, Label: true}: task.ReasonNoPushRight,
		{Comment: true}:           task.ReasonNoCommentRight,
		{Issues: true}:            task.ReasonNoCommentRight,
		{Label: true}:             task.ReasonNoLabelRight,
	} {
		t.Run(fmt.Sprintf("%s %+v", reason, lacks), func(t *testing.T) {
			t.Parallel()
			o := newOffice(t)
			o.forge.SetLacks(team, lacks)
			key := o.issue("Fix the gate")
			o.look(key)
			waiting := o.task(key, task.Development)
			p := preparer(o, new(seeds))
			askAnew := func(agent string) { // one that has seen the queue empty does not look again at once
				h, _ := handsOut(t, o.store, func(options *broker.HandOutOptions) { options.Prepare, options.Now = p.Prepare, o.now })
				ask(t, h, agent)
			}
			var before time.Duration
			for round := range 6 { // it is tried again, and is in the queue again each time
				askAnew(fmt.Sprint("a", round))
				is := o.await(waiting.ID, func(is task.Task) bool {
					return is.State == task.Queued && is.Reason == reason && is.Generation == int64(round)+2
				})
				if is.Attempts != 0 || !is.ReadyAt.After(o.now()) {
					t.Errorf("it has used up %d attempts, and waits until %v", is.Attempts, is.ReadyAt)
				}
				waits := is.ReadyAt.Sub(o.now())
				if waits <= before {
					t.Errorf("after %d times it waits %v, after %v before", round+1, waits, before)
				}
				if before = waits; round < 5 {
					o.later(waits + time.Minute)
				}
			}
			pending, err := o.store.PendingActions(t.Context(), key)
			o.check(err)
			said := 0
			for _, action := range pending {
				if action.Kind == (outbox.Comment{}).Kind() && strings.Contains(string(action.Payload), messages.Reason(task.English, reason)) {
					said++
				}
			}
			if want := map[bool]int{true: 0, false: 1}[lacks.Comment || lacks.Issues]; said != want {
				t.Errorf("it is to be said %d times on the item, want %d: %+v", said, want, pending)
			}
			waits, err := broker.Waits(t.Context(), o.store, broker.Limits{}, o.now())
			o.check(err)
			if len(waits) != 1 || waits[0].Reason != reason || len(waits[0].Tasks) != 1 || messages.Fix(task.English, reason) == "" {
				t.Errorf("what tasks wait for is %+v", waits)
			}

			o.forge.SetLacks(team, forge.Rights{})
			o.later(time.Hour)
			askAnew("b")
			if is := o.await(waiting.ID, func(is task.Task) bool { return is.State == task.Running }); is.Attempts != 1 {
				t.Errorf("it was given as %+v", is)
			}
		})
	}
}

// What is said on the item of a task that waits for a right of the bot tells one that has worked
// before from one that has not.
func TestWhatIsSaidWhenARightIsMissing(t *testing.T) {
	t.Parallel()
	for worked, want := range map[bool]string{false: "The work has not started:", true: "The work cannot continue:"} {
		o := newOffice(t)
		o.forge.SetLacks(team, forge.Rights{Push: true})
		key := o.issue("Fix the gate")
		o.look(key)
		waiting := o.task(key, task.Development)
		if worked {
			_, err := o.store.Append(t.Context(), []task.Event{{Task: waiting.ID, Generation: waiting.Generation, Source: task.FromAgent, Sequence: 1, Kind: task.Planned, Data: []byte(`{}`)}})
			o.check(err)
		}
		h, _ := handsOut(t, o.store, func(options *broker.HandOutOptions) {
			options.Prepare, options.Now = preparer(o, new(seeds)).Prepare, o.now
		})
		ask(t, h, "a")
		o.await(waiting.ID, func(is task.Task) bool { return is.State == task.Queued && is.Reason == task.ReasonNoPushRight })
		pending, err := o.store.PendingActions(t.Context(), key)
		o.check(err)
		if !slices.ContainsFunc(pending, func(action store.Action) bool { return strings.Contains(string(action.Payload), want) }) {
			t.Errorf("nothing that is to be written says %q: %+v", want, pending)
		}
	}
}

// labelsOf are the state labels that have yet to be written, with their generations.
func (o *office) labelsOf(key task.Key) (labels []string) {
	o.Helper()
	pending, err := o.store.PendingActions(o.Context(), key)
	o.check(err)
	for _, action := range pending {
		var label outbox.StateLabel
		if action.Kind == label.Kind() {
			o.check(json.Unmarshal(action.Payload, &label))
			labels = append(labels, fmt.Sprintf("%d %s", action.Generation, label.Label))
		}
	}
	return labels
}

// While a right is missing, the label of the item is left as it is, however often the task is tried. One
// that was not written yet is not lost. The task that an agent gets is shown.
func TestLabelsStayWhileARightIsMissing(t *testing.T) {
	t.Parallel()
	names := task.DefaultLabelNames()
	for _, written := range []bool{true, false} {
		o := newOffice(t)
		o.forge.SetLacks(team, forge.Rights{Push: true})
		key := o.issue("Fix the gate")
		o.look(key)
		if written {
			pending, err := o.store.PendingActions(t.Context(), key)
			o.check(err)
			for _, action := range pending {
				o.check(o.store.Deliver(t.Context(), action.ID, nil))
			}
		}
		waiting := o.task(key, task.Development)
		p := preparer(o, new(seeds))
		askAnew := func(agent string) { // one that has seen the queue empty does not look again at once
			h, _ := handsOut(t, o.store, func(options *broker.HandOutOptions) { options.Prepare, options.Now = p.Prepare, o.now })
			ask(t, h, agent)
		}
		for round := range 3 {
			askAnew(fmt.Sprint("a", round))
			is := o.await(waiting.ID, func(is task.Task) bool { return is.State == task.Queued && is.Generation == int64(round)+2 })
			want := ""
			if !written {
				want = fmt.Sprintf("%d %s", is.Generation, names[task.Queued.Label()])
			}
			if got := strings.Join(o.labelsOf(key), ", "); got != want {
				t.Errorf("after %d times the labels to be written are %q, want %q", round+1, got, want)
			}
			o.later(time.Hour)
		}
		o.forge.SetLacks(team, forge.Rights{})
		askAnew("b") // one of those that asked before may get it
		is := o.await(waiting.ID, func(is task.Task) bool { return is.State == task.Running })
		want := fmt.Sprintf("%d %s", is.Generation, names[task.Running.Label()])
		until(t, "the label of a task that an agent has is to be written: "+want, func() bool { return slices.Contains(o.labelsOf(key), want) })
	}
}

// A review needs no label, and is handed out to a bot that may set none.
func TestAReviewWithoutTheRightToLabel(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.forge.SetLacks(team, forge.Rights{Push: true, Label: true})
	pull := o.pull("feature", "")
	o.check(o.forge.AddLabel(t.Context(), pull, needsReview))
	o.later(time.Hour)
	o.sync()
	h, _ := handsOut(t, o.store, func(options *broker.HandOutOptions) {
		options.Prepare, options.Now = preparer(o, new(seeds)).Prepare, o.now
	})
	if made := ask(t, h, "reviewer").get(t); made.Task.Key != pull || made.Task.Type != task.Review {
		t.Errorf("given is %+v", made.Task)
	}
}

// await waits until a task is as wanted.
func (o *office) await(id task.ID, so func(task.Task) bool) task.Task {
	o.Helper()
	ctx, cancel := context.WithTimeout(o.Context(), 5*time.Minute)
	defer cancel()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for {
		is, err := o.store.Task(ctx, id)
		if err == nil && so(is) {
			return is
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			o.Fatalf("the task is %+v, %v", is, err)
		}
	}
}
