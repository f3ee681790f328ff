package server

import (
	"testing"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// A run that a file on its agent's machine has paused goes on when that agent says so, and
// no other one. What a person wants paused besides stays so.
func TestPausedByItsAgent(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, database store.Store) {
		t.Helper()
		w := newWorkshop(t, database)
		pause := func(title string, besides bool) task.Task {
			made := w.issue(t, title)
			held, _ := w.claim(t, made.ID)
			if besides {
				if _, err := w.controller.Pause(t.Context(), made.ID, task.ReasonPauseRequested); err != nil {
					t.Fatal(err)
				}
			}
			if err := held.Finish(t.Context(), wire.Result{Outcome: "paused", Reason: string(task.ReasonAgentPaused)}); err != nil {
				t.Fatal(err)
			}
			return made
		}
		own, both, later := pause("by the file", false), pause("by a person too", true), pause("by a person later", false)
		if _, err := w.controller.Pause(t.Context(), later.ID, task.ReasonPauseRequested); err != nil {
			t.Fatal(err)
		}
		w.wantState(t, later.ID, task.Paused, task.ReasonPauseRequested)
		w.wantState(t, own.ID, task.Paused, task.ReasonAgentPaused)
		w.wantState(t, both.ID, task.Paused, task.ReasonPauseRequested)
		w.settle(t, own.Key)
		w.wantComments(t, own.Key, "**Paused.** The work on this task was paused because a file pause_signal on the agent's machine")

		tasks := []string{string(own.ID), string(both.ID), string(later.ID), "unheard of"}
		token := func(name string) *wire.Client {
			made, err := access.Tokens{Store: database, Now: w.now}.Create(t.Context(), access.Agent, name)
			if err != nil {
				t.Fatal(err)
			}
			return w.client(made)
		}
		if err := token("mallory").ResumeOwn(t.Context(), tasks); err != nil {
			t.Fatal(err)
		}
		last := w.wantState(t, own.ID, task.Paused, task.ReasonAgentPaused).LastAgent
		for range 2 { // it is safe to repeat
			if err := token(last).ResumeOwn(t.Context(), tasks); err != nil {
				t.Fatal(err)
			}
		}
		w.wantState(t, own.ID, task.Queued, task.ReasonResumed)
		w.wantState(t, both.ID, task.Paused, task.ReasonPauseRequested)
		w.wantState(t, later.ID, task.Paused, task.ReasonPauseRequested)

		// An agent that is gone is done without.
		gone := pause("by a file of an agent that is gone", false)
		admin := w.client(w.token(t, access.Operator))
		if _, err := admin.ResumeAll(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		w.wantState(t, gone.ID, task.Paused, task.ReasonAgentPaused)
		if _, err := admin.ResumeAll(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		w.wantState(t, gone.ID, task.Queued, task.ReasonResumed)
	})
}

// A task that its agent has handed back because of the file is in the queue again, with that
// reason, for any agent. It does not wait until the file is gone.
func TestHandedBackByAPausedAgent(t *testing.T) {
	t.Parallel()
	w := onSQLite(t)
	made := w.issue(t, "Repair the gate")
	held, _ := w.claim(t, made.ID)
	if err := held.Finish(t.Context(), wire.Result{Outcome: "returned", Reason: string(task.ReasonAgentPaused)}); err != nil {
		t.Fatal(err)
	}
	w.wantState(t, made.ID, task.Queued, task.ReasonAgentPaused)
	w.settle(t, made.Key)
	w.wantComments(t, made.Key)
	w.goOn(t, made.ID)
	w.wantState(t, made.ID, task.Running, task.ReasonClaimed)
}
