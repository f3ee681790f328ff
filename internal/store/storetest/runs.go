package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

var runChecks = []check{
	{"reported entries are stored once and in order", reportInOrder},
	{"a run that is over reports nothing", reportAfterTheEnd},
	{"an entry about a phase sets the task's", reportPhase},
	{"a run ends once, and is known by its token", endOnce},
	{"an end that is refused leaves nothing behind", endRefused},
	{"of many ends of one run one counts", endTogether},
	{"many runs that end at the same time end as they would alone", endMany},
	{"many runs that are handed back at the same time begin a generation each", returnMany},
	{"the writes of a run are found by kind", runActions},
	{"the last entry of a kind is found", lastEvent},
	{"a task that is assigned again by a move begins anew", beginAnew},
}

func noteOf(x task.Task, sequence int64) task.Event {
	return task.Event{
		Task: x.ID, Generation: x.Generation, Source: task.FromAgent, Sequence: sequence, Kind: task.NoteTaken, At: noon,
		Data: json.RawMessage(fmt.Sprintf(`{"text":"%d"}`, sequence)),
	}
}

func reportOf(x task.Task, sequences ...int64) store.RunReport {
	report := store.RunReport{Task: x.ID, Generation: x.Generation}
	for _, sequence := range sequences {
		report.Events = append(report.Events, noteOf(x, sequence))
	}
	return report
}

func reportInOrder(t *testing.T, s store.Store) {
	x := running(t, s)
	equal(t, got[int64](t)(s.Report(t.Context(), reportOf(x))), 0)
	_, err := s.Report(t.Context(), reportOf(x, 2))
	wantCode(t, err, task.Conflict)
	equal(t, got[int64](t)(s.Report(t.Context(), reportOf(x, 1, 2, 3))), 3)
	equal(t, got[int64](t)(s.Report(t.Context(), reportOf(x, 1, 2))), 3)
	equal(t, got[int64](t)(s.Report(t.Context(), reportOf(x, 3, 4))), 4)
	_, err = s.Report(t.Context(), reportOf(x, 6, 5))
	wantCode(t, err, task.Invalid)
	_, err = s.Report(t.Context(), reportOf(x, 6))
	wantCode(t, err, task.Conflict)
	events := got[[]task.Event](t)(s.EventsAfter(t.Context(), x.ID, 2, 0))
	equal(t, len(events), 4)
	for i, e := range events {
		equal(t, [2]int64{e.Position, e.Sequence}, [2]int64{int64(i + 3), int64(i + 1)})
	}
}

func reportAfterTheEnd(t *testing.T, s store.Store) {
	lost, paused := running(t, s), running(t, s)
	moved(t, s, lost, task.Lost)
	moved(t, s, paused, task.PauseSet)
	for _, x := range []task.Task{lost, paused} {
		_, err := s.Report(t.Context(), reportOf(x, 1))
		wantCode(t, err, task.StaleGeneration)
	}
	_, err := s.Report(t.Context(), store.RunReport{Task: "nothing", Generation: 1})
	wantCode(t, err, task.NotFound)
}

func reportPhase(t *testing.T, s store.Store) {
	x := running(t, s)
	report := reportOf(x, 1)
	report.Phase = task.Planning
	got[int64](t)(s.Report(t.Context(), report))
	equal(t, got[task.Task](t)(s.Task(t.Context(), x.ID)).Phase, task.Planning)
	report = reportOf(x, 2)
	report.Phase = "lunch"
	_, err := s.Report(t.Context(), report)
	wantCode(t, err, task.Invalid)
}

func endOf(x task.Task, outcome string, trigger task.Trigger) store.RunEnd {
	return store.RunEnd{
		Task: x.ID, Generation: x.Generation, TokenHash: tokenHash, Outcome: outcome,
		Decide: func(task.Task, []store.Halt) (store.Change, []task.Event, error) {
			return store.Change{Trigger: trigger, Reason: task.ReasonCompleted}, nil, nil
		},
	}
}

func endOnce(t *testing.T, s store.Store) {
	x := running(t, s)
	wrong := endOf(x, "done", task.Finished)
	wrong.TokenHash = []byte{1}
	_, err := s.EndRun(t.Context(), wrong)
	wantCode(t, err, task.LeaseLost)
	_, err = s.EndedRun(t.Context(), x.ID, x.Generation, tokenHash)
	wantCode(t, err, task.NotFound)
	end := endOf(x, "done", task.Finished)
	end.Decide = func(task.Task, []store.Halt) (store.Change, []task.Event, error) {
		summed := task.Event{Task: x.ID, Generation: x.Generation, Source: task.FromServer, Kind: task.Summed, Data: json.RawMessage(`{}`)}
		return store.Change{Trigger: task.Finished, Reason: task.ReasonCompleted}, []task.Event{summed}, nil
	}
	after := got[task.Task](t)(s.EndRun(t.Context(), end))
	equal(t, after.State, task.Done)
	equal(t, got[store.EndedRun](t)(s.EndedRun(t.Context(), x.ID, x.Generation, tokenHash)), store.EndedRun{Outcome: "done", State: task.Done})
	_, err = s.EndedRun(t.Context(), x.ID, x.Generation, []byte{1})
	wantCode(t, err, task.NotFound)
	_, err = s.EndRun(t.Context(), end)
	wantCode(t, err, task.LeaseLost)
	events := got[[]task.Event](t)(s.EventsAfter(t.Context(), x.ID, 0, 0))
	equal(t, []task.EventKind{events[2].Kind, events[3].Kind}, []task.EventKind{task.Summed, task.StateChanged})
}

func endRefused(t *testing.T, s store.Store) {
	x := running(t, s)
	no := errors.New("no")
	end := endOf(x, "done", task.Finished)
	event := task.Event{Task: x.ID, Generation: x.Generation, Source: task.FromServer, Kind: task.Summed}
	end.Decide = func(task.Task, []store.Halt) (store.Change, []task.Event, error) {
		return store.Change{}, []task.Event{event}, task.Wrap(task.Conflict, no, "no")
	}
	_, err := s.EndRun(t.Context(), end)
	wantCode(t, err, task.Conflict)
	event.Task = "another"
	end.Decide = func(task.Task, []store.Halt) (store.Change, []task.Event, error) {
		return store.Change{Trigger: task.Finished, Reason: task.ReasonCompleted}, []task.Event{event}, nil
	}
	_, err = s.EndRun(t.Context(), end)
	wantCode(t, err, task.Invalid)
	equal(t, got[task.Task](t)(s.Task(t.Context(), x.ID)).State, task.Running)
	equal(t, len(got[[]task.Event](t)(s.EventsAfter(t.Context(), x.ID, 0, 0))), 2)
	_, err = s.EndRun(t.Context(), endOf(x, "done", task.Resumed))
	wantIllegal(t, err)
}

func endTogether(t *testing.T, s store.Store) {
	x := running(t, s)
	var ended atomic.Int64
	together(8, func(i int) {
		trigger := []task.Trigger{task.Finished, task.GaveUp, task.PauseSet, task.Returned}[i%4]
		_, err := s.EndRun(t.Context(), endOf(x, string(trigger), trigger))
		if err == nil {
			ended.Add(1)
		} else if task.CodeOf(err) != task.LeaseLost {
			t.Error(err)
		}
	})
	equal(t, ended.Load(), 1)
}

// endMany ends runs at the same time. Of each four one is right, one has the wrong token, one is
// refused when it is decided on, and one wants a write that cannot be stored.
func endMany(t *testing.T, s store.Store) {
	const many = 48
	runs := make([]task.Task, many)
	for i := range runs {
		runs[i] = running(t, s)
		got[int64](t)(s.Report(t.Context(), reportOf(runs[i], 1)))
	}
	codes := make([]task.Code, many)
	together(many, func(i int) {
		_, err := s.EndRun(t.Context(), oneOfMany(runs[i], i%4))
		codes[i] = task.CodeOf(err)
	})
	for i, x := range runs {
		after := got[task.Task](t)(s.Task(t.Context(), x.ID))
		events := got[[]task.Event](t)(s.EventsAfter(t.Context(), x.ID, 0, 0))
		_, err := s.EndedRun(t.Context(), x.ID, x.Generation, tokenHash)
		written := got[[]store.Action](t)(s.PendingActions(t.Context(), x.Key))
		if i%4 != 0 {
			equal(t, codes[i], []task.Code{"", task.LeaseLost, task.Conflict, task.Invalid}[i%4])
			equal(t, [3]any{after.State, len(events), len(written)}, [3]any{task.Running, 3, 0})
			wantCode(t, err, task.NotFound)
			continue
		}
		must(t, err)
		equal(t, [3]any{codes[i], after.State, len(written)}, [3]any{task.Code(""), task.Done, 1})
		equal(t, len(events), 6)
		for j, want := range []struct {
			kind     task.EventKind
			sequence int64
		}{{task.StateChanged, 1}, {task.StateChanged, 2}, {task.NoteTaken, 1}, {task.NoteTaken, 3}, {task.Summed, 4}, {task.StateChanged, 5}} {
			equal(t, [3]any{events[j].Kind, events[j].Sequence, events[j].Position}, [3]any{want.kind, want.sequence, int64(j + 1)})
		}
	}
	equal(t, runsOf(statistics(t, s, today())), map[store.RunResult]int64{store.RunDone: many / 4})
}

// returnMany hands runs back at the same time, each with three entries: more than one statement takes.
func returnMany(t *testing.T, s store.Store) {
	const many = 100
	runs := make([]task.Task, many)
	for i := range runs {
		runs[i] = running(t, s)
		put(t, s, actionOf(runs[i], "progress"))
	}
	together(many, func(i int) {
		end := endOf(runs[i], "returned", task.Returned)
		end.Decide = func(x task.Task, _ []store.Halt) (store.Change, []task.Event, error) {
			note := task.Event{Task: x.ID, Generation: x.Generation, Source: task.FromServer, Kind: task.NoteTaken, Data: json.RawMessage(`{}`)}
			return store.Change{Trigger: task.Returned, Reason: task.ReasonRunFailed}, []task.Event{note, note, note}, nil
		}
		if _, err := s.EndRun(t.Context(), end); err != nil {
			t.Error(err)
		}
	})
	for _, x := range runs {
		after := got[task.Task](t)(s.Task(t.Context(), x.ID))
		equal(t, [2]any{after.State, after.Generation}, [2]any{task.Queued, x.Generation + 1})
		equal(t, len(got[[]store.Action](t)(s.PendingActions(t.Context(), x.Key))), 0) // of a run that is over
		var numbers [][3]int64
		for _, e := range got[[]task.Event](t)(s.EventsAfter(t.Context(), x.ID, 0, 0)) {
			numbers = append(numbers, [3]int64{e.Generation, e.Sequence, e.Position})
		}
		equal(t, numbers, [][3]int64{{1, 1, 1}, {1, 2, 2}, {1, 3, 3}, {1, 4, 4}, {1, 5, 5}, {2, 1, 6}})
	}
}

func oneOfMany(x task.Task, kind int) store.RunEnd {
	end := endOf(x, "done", task.Finished)
	end.Decide = func(task.Task, []store.Halt) (store.Change, []task.Event, error) {
		if kind == 2 {
			return store.Change{}, nil, task.Errorf(task.Conflict, "no")
		}
		said := func(of task.EventKind) task.Event {
			return task.Event{Task: x.ID, Generation: x.Generation, Source: task.FromServer, Kind: of, Data: json.RawMessage(`{}`)}
		}
		change := store.Change{Trigger: task.Finished, Reason: task.ReasonCompleted, Effects: func(_, after task.Task) []store.Action {
			write := store.Action{
				Item: after.Key, Task: after.ID, Generation: after.Generation, IdempotencyKey: "end " + string(after.ID), Kind: "comment", Payload: json.RawMessage(`{}`),
			}
			if kind == 3 {
				write.Payload = json.RawMessage(`{`)
			}
			return []store.Action{write}
		}}
		return change, []task.Event{said(task.NoteTaken), said(task.Summed)}, nil
	}
	if kind == 1 {
		end.TokenHash = []byte{1}
	}
	return end
}

func runActions(t *testing.T, s store.Store) {
	x := running(t, s)
	for i, kind := range []string{"open_pull", "comment", "open_pull"} {
		_, _, err := s.Put(t.Context(), store.Action{
			Item: x.Key, Task: x.ID, Generation: x.Generation, IdempotencyKey: fmt.Sprintf("%s/%d", x.ID, i), Kind: kind, Payload: json.RawMessage(`{}`),
		})
		must(t, err)
	}
	equal(t, len(got[[]store.Action](t)(s.RunActions(t.Context(), x.ID, x.Generation, x.Generation, "open_pull"))), 2)
	equal(t, len(got[[]store.Action](t)(s.RunActions(t.Context(), x.ID, x.Generation+1, x.Generation+2, "open_pull"))), 0)
}

func lastEvent(t *testing.T, s store.Store) {
	x := running(t, s)
	got[int64](t)(s.Report(t.Context(), reportOf(x, 1, 2)))
	equal(t, got[task.Event](t)(s.LastEvent(t.Context(), x.ID, task.NoteTaken)).Sequence, 2)
	_, err := s.LastEvent(t.Context(), x.ID, task.Saved)
	wantCode(t, err, task.NotFound)
}

func beginAnew(t *testing.T, s store.Store) {
	x := moved(t, s, running(t, s), task.GaveUp)
	again := moved(t, s, x, task.Assigned)
	equal(t, [3]any{again.State, again.FirstGeneration, again.Cause}, [3]any{task.Queued, again.Generation, x.Cause})
}
