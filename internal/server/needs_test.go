package server

import (
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// What a run says about its end is kept with the task, and everybody who asks for the task, for
// its journal or for what waits for people is told it. With the next state it is gone.
func TestNeedsAndReasons(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, database store.Store) {
		w := newWorkshop(t, database)
		viewer := w.client(w.token(t, access.Viewer))
		said := func(when string, id task.ID, detail, fix string) {
			t.Helper()
			found, err := viewer.FindTask(t.Context(), string(id))
			if err != nil || found.Detail != detail || !strings.Contains(found.Fix, fix) || fix == "" && found.Fix != "" {
				t.Errorf("%s: the task says %q and %q, %v", when, found.Detail, found.Fix, err)
			}
		}
		needs := func(when string, kinds string, details ...string) {
			t.Helper()
			found, err := viewer.Needs(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var all, texts []string
			for _, need := range found.Needs {
				all = append(all, need.Kind)
				texts = append(texts, need.What+" "+need.Detail+" "+need.Fix)
			}
			if got := strings.Join(all, " "); got != kinds {
				t.Errorf("%s: what waits for people is %q, want %q", when, got, kinds)
			}
			for _, detail := range details {
				if !strings.Contains(strings.Join(texts, "\n"), detail) {
					t.Errorf("%s: what waits for people does not say %q: %q", when, detail, texts)
				}
			}
		}
		made := w.issue(t, "Fix the sum")
		held, _ := w.claim(t, made.ID)
		end := wire.Result{Outcome: task.OutcomeFailed, Reason: string(task.ReasonRunFailed), Comment: "It broke.", Detail: "fatal: \x1b[31mno space\x07 left", Hint: "make room"}
		if err := held.Finish(t.Context(), end); err != nil {
			t.Fatal(err)
		}
		said("failed", made.ID, "fatal: no space left", "make room")
		needs("failed", "failure", "Fix the sum", "no space left", "make room")
		journal, err := viewer.TaskEvents(t.Context(), made.ID, 0, 100)
		if err != nil {
			t.Fatal(err)
		}
		noted := 0
		for _, event := range journal.Events {
			if event.Kind == string(task.NoteTaken) && strings.Contains(string(event.Data), "no space left") {
				noted++
			}
		}
		if noted != 1 {
			t.Errorf("the journal says %d times what went wrong", noted)
		}
		again, err := w.store.Move(t.Context(), store.Change{Task: made.ID, Trigger: task.Assigned, Reason: task.ReasonRetried})
		if err != nil {
			t.Fatal(err)
		}
		said("retried", made.ID, "", "")
		held, _ = w.goOn(t, again.ID)
		if err := held.Finish(t.Context(), wire.Result{Outcome: task.OutcomePaused, Reason: string(task.ReasonAwaitingAnswer), Detail: "Which colour?"}); err != nil {
			t.Fatal(err)
		}
		said("asks", made.ID, "Which colour?", "answer the question")
		needs("asks", "answer", "Which colour?")
	})
}

// What a run says that was stopped is not about the stop.
func TestStoppedRunExplainsNothing(t *testing.T) {
	t.Parallel()
	w := onSQLite(t)
	made := w.issue(t, "Fix the sum")
	held, _ := w.claim(t, made.ID)
	if _, _, err := w.store.RequestHalt(t.Context(), store.Halt{Task: made.ID, Signal: task.SignalStop, Reason: task.ReasonStopRequested, At: time.Now()}); err != nil {
		t.Fatal(err)
	}
	if err := held.Finish(t.Context(), wire.Result{Outcome: task.OutcomeFailed, Reason: string(task.ReasonRunFailed), Detail: "exit status 1"}); err != nil {
		t.Fatal(err)
	}
	is, err := w.store.Task(t.Context(), made.ID)
	if err != nil || is.State != task.Stopped || is.Detail != "" {
		t.Errorf("the task is %+v, %v", is, err)
	}
}
