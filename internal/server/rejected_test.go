package server

import (
	"errors"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/dummy"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// notAllowed is what the mirror says when a forge does not let us push. What a forge says may have
// anything in it.
func notAllowed() error {
	said := errors.New("git push: exit status 1: remote: \x1b[31mToryo: You are not allowed to push\n# with " + maskedSecret + strings.Repeat(" x", 2000))
	return &forge.Error{Err: task.Wrap(task.Forbidden, said, "cannot publish the branch")}
}

// People are told who may not push where, what the forge said and what to do: on the item, in the
// journal, and by the reason of the task. The agent is told too.
func TestRejectedBranch(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, database store.Store) {
		w := newWorkshop(t, database)
		made := w.issue(t, "Fix the sum")
		held, _ := w.claim(t, made.ID)
		w.rejected.Store("c1", notAllowed())
		_, err := held.OpenPull(t.Context(), wire.OpenPull{Branch: made.Branch, Commit: "c1", Base: "main", Title: "Fix it", Body: "Fixed."})
		if task.CodeOf(err) != task.Conflict || !strings.Contains(err.Error(), "did not accept the branch \"toryo/1\" in gitea:team/app") ||
			!strings.Contains(err.Error(), "You are not allowed to push") || strings.Contains(err.Error(), maskedSecret) {
			t.Errorf("the agent is told %v", err)
		}
		if err := held.Finish(t.Context(), wire.Result{Outcome: task.OutcomeFailed, Reason: string(task.ReasonRunFailed), Comment: "It broke.", Kept: "c1"}); err != nil {
			t.Fatal(err)
		}
		w.settle(t, made.Key)
		after, err := w.store.Task(t.Context(), made.ID)
		if err != nil || after.State != task.Failed || after.Reason != task.ReasonRejectedByForge {
			t.Errorf("the task is %+v, %v", after, err)
		}
		w.wantRejection(t, made, "toryo-bot pushed the branch `toryo/1` to `gitea:team/app`")
	})
}

// A pull request that the forge does not accept is told from a branch.
func TestRejectedPullRequest(t *testing.T) {
	t.Parallel()
	w := onSQLite(t)
	made := w.issue(t, "Fix the sum")
	held, _ := w.claim(t, made.ID)
	w.forge.SetFaults(func(call dummy.Call) dummy.Fault {
		if call.Method == "OpenPull" {
			return dummy.Forbid
		}
		return dummy.None
	})
	if _, err := held.OpenPull(t.Context(), wire.OpenPull{Branch: made.Branch, Commit: "c1", Base: "main", Title: "Fix it", Body: "Fixed."}); task.CodeOf(err) != task.Conflict {
		t.Errorf("the agent is told %v", err)
	}
	if err := held.Finish(t.Context(), wire.Result{Outcome: task.OutcomeFailed, Reason: string(task.ReasonRunFailed), Comment: "It broke."}); err != nil {
		t.Fatal(err)
	}
	w.settle(t, made.Key)
	w.wantRejection(t, made, "did not accept a pull request of toryo-bot")
}

// wantRejection checks what people find about a rejected write.
func (w *workshop) wantRejection(t *testing.T, made task.Task, who string) {
	t.Helper()
	var said []string
	for _, comment := range w.comments(t, made.Key) {
		if strings.Contains(comment.Body, "**Failed.**") {
			said = append(said, comment.Body)
		}
	}
	if len(said) != 1 {
		t.Fatalf("there are %d comments about the failure: %q", len(said), said)
	}
	notes, err := w.store.EventsOf(t.Context(), made.ID, task.NoteTaken)
	if err != nil || len(notes) != 1 {
		t.Fatalf("the notes of the journal are %v, %v", notes, err)
	}
	for _, part := range []string{who, "It said: `", "What to do: give the account of the bot the right to push", "press Retry on the page of the task"} {
		if !strings.Contains(said[0], part) {
			t.Errorf("%q is missing in the comment\n%s", part, said[0])
		}
		if !strings.Contains(string(notes[0].Data), part) {
			t.Errorf("%q is missing in the journal: %s", part, notes[0].Data)
		}
	}
	for _, text := range []string{said[0], string(notes[0].Data)} {
		if strings.Contains(text, maskedSecret) || strings.Contains(text, "\n#") || strings.Contains(text, "log of the server") || len(text) > 3000 {
			t.Errorf("it says\n%s", text)
		}
	}
}

// What a forge refused before does not explain a failure that came after it was accepted.
func TestRejectedBranchThatWasAcceptedLater(t *testing.T) {
	t.Parallel()
	w := onSQLite(t)
	made := w.issue(t, "Fix the sum")
	held, _ := w.claim(t, made.ID)
	w.rejected.Store("c1", notAllowed())
	if _, err := held.OpenPull(t.Context(), wire.OpenPull{Branch: made.Branch, Commit: "c1", Base: "main", Title: "Fix it", Body: "Fixed."}); err == nil {
		t.Fatal("it was taken")
	}
	if _, err := held.OpenPull(t.Context(), wire.OpenPull{Branch: made.Branch, Commit: "c2", Base: "main", Title: "Fix it", Body: "Fixed."}); err != nil {
		t.Fatal(err)
	}
	if err := held.Finish(t.Context(), wire.Result{Outcome: task.OutcomeFailed, Reason: string(task.ReasonRunFailed), Comment: "It broke later."}); err != nil {
		t.Fatal(err)
	}
	w.settle(t, made.Key)
	if said := w.textsOn(t, made.Key); !strings.Contains(said, "It broke later.") || strings.Contains(said, "not allowed") {
		t.Errorf("people are told %q", said)
	}
}
