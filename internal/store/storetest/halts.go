package storetest

import (
	"encoding/json"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

var haltChecks = []check{
	{"a halt is noted once, and a stop comes first", noteHalts},
	{"a person's pause takes the place of one that ends by itself", personsPause},
	{"a person's pause waits behind a question", pauseBehindQuestion},
	{"a halt outlasts the loss of the agent", haltOutlastsLoss},
	{"what ends the task or settles the halt removes it", settledHalts},
	{"a task that has ended cannot be halted", haltEnded},
	{"of many who ask for a halt one notes it", haltTogether},
	{"nothing is handed out while anyone wants everything paused", generalPause},
	{"whoever ends a run sees the halts that are pending", endSeesHalts},
}

func haltOf(x task.Task, signal task.Signal) store.Halt {
	return store.Halt{Task: x.ID, Signal: signal, Reason: task.ReasonUnassigned, At: noon}
}

func halted(t *testing.T, s store.Store, x task.Task, signal task.Signal) bool {
	t.Helper()
	is, noted, err := s.RequestHalt(t.Context(), haltOf(x, signal))
	must(t, err)
	equal(t, is.ID, x.ID)
	return noted
}

func pendingOf(t *testing.T, s store.Store, x task.Task) []task.Signal {
	t.Helper()
	var signals []task.Signal
	for _, halt := range got[[]store.Halt](t)(s.HaltsOf(t.Context(), x.ID)) {
		signals = append(signals, halt.Signal)
	}
	return signals
}

func noteHalts(t *testing.T, s store.Store) {
	x, other := running(t, s), running(t, s)
	equal(t, halted(t, s, x, task.SignalPause), true)
	equal(t, halted(t, s, x, task.SignalStop), true)
	later := haltOf(x, task.SignalStop)
	later.At, later.Reason = noon.Add(time.Hour), task.ReasonItemClosed
	_, noted, err := s.RequestHalt(t.Context(), later)
	must(t, err)
	equal(t, noted, false)
	equal(t, got[[]store.Halt](t)(s.HaltsOf(t.Context(), x.ID)), []store.Halt{haltOf(x, task.SignalStop), haltOf(x, task.SignalPause)})
	equal(t, pendingOf(t, s, other), nil)
	equal(t, len(got[[]store.Halt](t)(s.ListHalts(t.Context()))), 2)
	equal(t, got[bool](t)(s.CancelHalt(t.Context(), x.ID, task.SignalPause, "")), true)
	equal(t, got[bool](t)(s.CancelHalt(t.Context(), x.ID, task.SignalPause, "")), false)
	equal(t, pendingOf(t, s, x), []task.Signal{task.SignalStop})
	_, _, err = s.RequestHalt(t.Context(), haltOf(x, task.SignalComments))
	wantCode(t, err, task.Invalid)
	_, _, err = s.RequestHalt(t.Context(), store.Halt{Task: "nothing", Signal: task.SignalStop})
	wantCode(t, err, task.NotFound)
}

// personsPause has the pause of a person take the place of one that would end by itself.
func personsPause(t *testing.T, s store.Store) {
	byPerson := func(x task.Task) store.Halt {
		return store.Halt{Task: x.ID, Signal: task.SignalPause, Reason: task.ReasonPauseRequested, At: noon}
	}
	ofAll := func(x task.Task) store.Halt {
		return store.Halt{Task: x.ID, Signal: task.SignalPause, Reason: task.ReasonAllPaused, At: noon}
	}
	x := running(t, s)
	for _, halt := range []store.Halt{ofAll(x), byPerson(x), ofAll(x)} {
		_, _, err := s.RequestHalt(t.Context(), halt)
		must(t, err)
	}
	equal(t, got[[]store.Halt](t)(s.HaltsOf(t.Context(), x.ID)), []store.Halt{byPerson(x)})
	// Whoever knows of the pause of everything only takes back that, and has to look again.
	equal(t, got[bool](t)(s.CancelHalt(t.Context(), x.ID, task.SignalPause, task.ReasonAllPaused)), false)
	comesAbout := store.Change{Task: x.ID, Trigger: task.PauseSet, Reason: task.ReasonAllPaused, Halt: task.SignalPause}
	_, err := s.Move(t.Context(), comesAbout)
	wantCode(t, err, task.Conflict)
	comesAbout.Reason = task.ReasonPauseRequested
	equal(t, got[task.Task](t)(s.Move(t.Context(), comesAbout)).Reason, task.ReasonPauseRequested)

	// So does whoever knows of one that was taken back.
	back := running(t, s)
	_, _, err = s.RequestHalt(t.Context(), byPerson(back))
	must(t, err)
	equal(t, got[bool](t)(s.CancelHalt(t.Context(), back.ID, task.SignalPause, "")), true)
	comesAbout.Task = back.ID
	_, err = s.Move(t.Context(), comesAbout)
	wantCode(t, err, task.Conflict)
	equal(t, got[task.Task](t)(s.Task(t.Context(), back.ID)).State, task.Running)

	for _, reason := range []task.Reason{task.ReasonAllPaused, task.ReasonAgentPaused} {
		x := running(t, s)
		paused := got[task.Task](t)(s.Move(t.Context(), store.Change{Task: x.ID, Trigger: task.PauseSet, Reason: reason}))
		_, noted, err := s.RequestHalt(t.Context(), byPerson(x))
		must(t, err)
		equal(t, noted, false)
		now := got[task.Task](t)(s.Task(t.Context(), x.ID))
		equal(t, now.Reason, task.ReasonPauseRequested)
		equal(t, now.Generation, paused.Generation)
		equal(t, pendingOf(t, s, x), nil)
		var change task.StateChange
		must(t, json.Unmarshal(got[task.Event](t)(s.LastEvent(t.Context(), x.ID, task.StateChanged)).Data, &change))
		equal(t, change, task.StateChange{Trigger: task.PauseSet, From: task.Paused, To: task.Paused, Reason: task.ReasonPauseRequested})
		_, _, err = s.RequestHalt(t.Context(), ofAll(x))
		must(t, err)
		equal(t, got[task.Task](t)(s.Task(t.Context(), x.ID)).Reason, task.ReasonPauseRequested)

		// What would have let it go on does not any more.
		_, err = s.Move(t.Context(), store.Change{Task: x.ID, Generation: paused.Generation, Trigger: task.Resumed, Was: reason})
		wantCode(t, err, task.Conflict)
		equal(t, got[task.Task](t)(s.Task(t.Context(), x.ID)).State, task.Paused)
		_, err = s.Move(t.Context(), store.Change{Task: x.ID, Trigger: task.Resumed, Was: task.ReasonPauseRequested})
		must(t, err)
	}
}

// pauseBehindQuestion has a person pause a task that waits for an answer, or is about to:
// the answer has to reach the run, and the pause holds after it.
func pauseBehindQuestion(t *testing.T, s store.Store) {
	byPerson := func(x task.Task) store.Halt {
		return store.Halt{Task: x.ID, Signal: task.SignalPause, Reason: task.ReasonPauseRequested, At: noon}
	}
	asks := func(x task.Task) {
		_, err := s.Move(t.Context(), store.Change{Task: x.ID, Trigger: task.PauseSet, Reason: task.ReasonAwaitingAnswer})
		must(t, err)
	}
	pauses := func(x task.Task) {
		_, noted, err := s.RequestHalt(t.Context(), byPerson(x))
		must(t, err)
		equal(t, noted, true)
	}
	for _, inOrder := range [][]func(task.Task){{asks, pauses}, {pauses, asks}} {
		x := running(t, s)
		for _, do := range inOrder {
			do(x)
		}
		is := got[task.Task](t)(s.Task(t.Context(), x.ID))
		equal(t, is.State, task.Paused)
		equal(t, is.Reason, task.ReasonAwaitingAnswer)
		equal(t, got[[]store.Halt](t)(s.HaltsOf(t.Context(), x.ID)), []store.Halt{byPerson(x)})
		// The answer does not let it go on, but a person does.
		is = got[task.Task](t)(s.Move(t.Context(), store.Change{Task: x.ID, Generation: is.Generation, Trigger: task.Resumed, Was: task.ReasonAwaitingAnswer}))
		equal(t, is.State, task.Paused)
		equal(t, is.Reason, task.ReasonPauseRequested)
		equal(t, pendingOf(t, s, x), nil)
		equal(t, moved(t, s, x, task.Resumed).State, task.Queued)
	}
	// A pause of everything does not: it keeps the task from being handed out anyway.
	x := running(t, s)
	_, _, err := s.RequestHalt(t.Context(), store.Halt{Task: x.ID, Signal: task.SignalPause, Reason: task.ReasonAllPaused, At: noon})
	must(t, err)
	asks(x)
	equal(t, pendingOf(t, s, x), nil)
	answered := store.Change{Task: x.ID, Trigger: task.Resumed, Was: task.ReasonAwaitingAnswer}
	halted(t, s, x, task.SignalStop)
	_, err = s.Move(t.Context(), answered)
	wantCode(t, err, task.Conflict)
	equal(t, got[bool](t)(s.CancelHalt(t.Context(), x.ID, task.SignalStop, "")), true)
	equal(t, got[task.Task](t)(s.Move(t.Context(), answered)).State, task.Queued)
}

func haltOutlastsLoss(t *testing.T, s store.Store) {
	x := running(t, s)
	halted(t, s, x, task.SignalStop)
	halted(t, s, x, task.SignalPause)
	moved(t, s, x, task.Lost)
	equal(t, pendingOf(t, s, x), []task.Signal{task.SignalStop, task.SignalPause})
}

func settledHalts(t *testing.T, s store.Store) {
	for _, c := range []struct {
		trigger task.Trigger
		left    []task.Signal
	}{
		{task.Finished, nil},
		{task.GaveUp, nil},
		{task.Withdrawn, nil},
		{task.PauseSet, []task.Signal{task.SignalStop}},
	} {
		x := running(t, s)
		halted(t, s, x, task.SignalStop)
		halted(t, s, x, task.SignalPause)
		moved(t, s, x, c.trigger)
		equal(t, pendingOf(t, s, x), c.left)
	}
	x := moved(t, s, running(t, s), task.PauseSet)
	equal(t, halted(t, s, x, task.SignalPause), false) // it is paused
	equal(t, pendingOf(t, s, x), nil)
}

func haltEnded(t *testing.T, s store.Store) {
	x := moved(t, s, running(t, s), task.Finished)
	for _, signal := range []task.Signal{task.SignalStop, task.SignalPause} {
		_, _, err := s.RequestHalt(t.Context(), haltOf(x, signal))
		wantIllegal(t, err)
	}
}

func haltTogether(t *testing.T, s store.Store) {
	x := running(t, s)
	var noted atomic.Int64
	together(8, func(int) {
		_, first, err := s.RequestHalt(t.Context(), haltOf(x, task.SignalStop))
		if err != nil {
			t.Error(err)
		}
		if first {
			noted.Add(1)
		}
	})
	equal(t, noted.Load(), 1)
}

func generalPause(t *testing.T, s store.Store) {
	x := assigned(t, s)
	equal(t, got[bool](t)(s.PauseAll(t.Context(), store.GeneralPause{Source: "operator", By: "alice", At: noon})), true)
	equal(t, got[bool](t)(s.PauseAll(t.Context(), store.GeneralPause{Source: "operator", At: noon.Add(1)})), false)
	equal(t, got[bool](t)(s.PauseAll(t.Context(), store.GeneralPause{Source: "file", At: noon.Add(time.Second)})), true)
	equal(t, got[[]store.GeneralPause](t)(s.GeneralPauses(t.Context())), []store.GeneralPause{{Source: "operator", By: "alice", At: noon}, {Source: "file", At: noon.Add(time.Second)}})
	wantNothing := func() {
		t.Helper()
		equal(t, len(got[store.Queue](t)(s.Queue(t.Context(), noon, 0)).Ready), 0)
		equal(t, len(got[[]task.Task](t)(s.Claim(t.Context(), []store.Claim{claimOf(x)}, nil))), 0)
	}
	wantNothing()
	equal(t, got[bool](t)(s.ResumeAll(t.Context(), "operator")), true)
	equal(t, got[bool](t)(s.ResumeAll(t.Context(), "operator")), false)
	wantNothing()
	equal(t, got[bool](t)(s.ResumeAll(t.Context(), "file")), true)
	equal(t, len(got[[]task.Task](t)(s.Claim(t.Context(), []store.Claim{claimOf(x)}, nil))), 1)
	_, err := s.PauseAll(t.Context(), store.GeneralPause{})
	wantCode(t, err, task.Invalid)
}

func endSeesHalts(t *testing.T, s store.Store) {
	x := running(t, s)
	halted(t, s, x, task.SignalStop)
	end := endOf(x, "stopped", task.Withdrawn)
	end.Decide = func(is task.Task, pending []store.Halt) (store.Change, []task.Event, error) {
		equal(t, is.State, task.Running)
		equal(t, pending, []store.Halt{haltOf(x, task.SignalStop)})
		return store.Change{Trigger: task.Withdrawn, Reason: pending[0].Reason}, nil, nil
	}
	equal(t, got[task.Task](t)(s.EndRun(t.Context(), end)).State, task.Stopped)
	equal(t, pendingOf(t, s, x), nil)
}
