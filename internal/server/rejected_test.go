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
		if !strings.Contains(after.Detail, "Toryo: You are not allowed to push") || strings.Contains(after.Detail, "git push") || strings.Contains(after.Detail, maskedSecret) {
			t.Errorf("what the forge said is kept as %q", after.Detail)
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
	w.wantRejection(t, made, "rejected the pull request of toryo-bot")
}

// What went wrong on the server was not said by the forge: neither the agent nor the pages of the
// forge get to see it, and people find what the agent said.
func TestBranchThatTheServerCouldNotPublish(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]error{
		"not in the mirror": task.Errorf(task.NotFound, "the task has not pushed a branch in /var/lib/toryo/mirrors"),
		"too large":         task.Wrap(task.TooLarge, errors.New("/var/lib/toryo/mirrors is full"), "cannot publish the branch"),
		"a conflict here":   task.Errorf(task.Conflict, "the branch in /var/lib/toryo/mirrors is at another commit"),
		"not configured":    task.Errorf(task.Unsupported, "this server publishes no branches from /var/lib/toryo/mirrors"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := onSQLite(t)
			made := w.issue(t, "Fix the sum")
			held, _ := w.claim(t, made.ID)
			w.rejected.Store("c1", fault)
			_, err := held.OpenPull(t.Context(), wire.OpenPull{Branch: made.Branch, Commit: "c1", Base: "main", Title: "Fix it", Body: "Fixed."})
			if task.CodeOf(err) != task.Conflict || !strings.Contains(err.Error(), "the server could not write the branch \"toryo/1\"") || strings.Contains(err.Error(), "/var/lib") {
				t.Errorf("the agent is told %v", err)
			}
			if err := held.Finish(t.Context(), wire.Result{Outcome: task.OutcomeFailed, Reason: string(task.ReasonRunFailed), Comment: "It broke."}); err != nil {
				t.Fatal(err)
			}
			w.settle(t, made.Key)
			if said := w.textsOn(t, made.Key); !strings.Contains(said, "It broke.") || strings.Contains(said, "It said") || strings.Contains(said, "/var/lib") {
				t.Errorf("people are told %q", said)
			}
			notes, err := w.store.EventsOf(t.Context(), made.ID, task.NoteTaken)
			if err != nil || len(notes) != 0 {
				t.Errorf("the notes of the journal are %v, %v", notes, err)
			}
			after, err := w.store.Task(t.Context(), made.ID)
			if err != nil || after.State != task.Failed || after.Reason != task.ReasonRunFailed {
				t.Errorf("the task is %+v, %v", after, err)
			}
		})
	}
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
	for _, part := range []string{who, "The forge responded: `", "What to do: give the bot's account permission to push", "select Retry on the task page"} {
		if !strings.Contains(said[0], part) {
			t.Errorf("%q is missing in the comment\n%s", part, said[0])
		}
		if !strings.Contains(string(notes[0].Data), part) {
			t.Errorf("%q is missing in the journal: %s", part, notes[0].Data)
		}
	}
	for _, text := range []string{said[0], string(notes[0].Data)} {
		if strings.Contains(text, "publish_branch") || strings.Contains(text, "git push") || strings.Contains(text, "exit status") {
			t.Errorf("our own words are said to be the forge's:\n%s", text)
		}
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

// Somebody stops the task after its branch was rejected: then it was stopped, and nothing says
// that it has failed, neither on the item nor in the journal.
func TestRejectedBranchOfATaskThatIsStopped(t *testing.T) {
	t.Parallel()
	w := onSQLite(t)
	made := w.issue(t, "Fix the sum")
	held, _ := w.claim(t, made.ID)
	w.rejected.Store("c1", notAllowed())
	if _, err := held.OpenPull(t.Context(), wire.OpenPull{Branch: made.Branch, Commit: "c1", Base: "main", Title: "Fix it", Body: "Fixed."}); err == nil {
		t.Fatal("it was taken")
	}
	if _, err := w.controller.StopTask(t.Context(), made.ID, task.ReasonStopRequested); err != nil {
		t.Fatal(err)
	}
	if err := held.Finish(t.Context(), wire.Result{Outcome: task.OutcomeFailed, Reason: string(task.ReasonRunFailed), Comment: "It broke.", Summary: "Half of it."}); err != nil {
		t.Fatal(err)
	}
	w.settle(t, made.Key)
	w.wantState(t, made.ID, task.Stopped, task.ReasonStopRequested)
	if said := w.textsOn(t, made.Key); !strings.Contains(said, "Stopped.") || strings.Contains(said, "Failed") {
		t.Errorf("people are told %q", said)
	}
	if notes, err := w.store.EventsOf(t.Context(), made.ID, task.NoteTaken); err != nil || len(notes) != 0 {
		t.Errorf("the notes of the journal are %v, %v", notes, err)
	}
	if _, err := w.store.LastEvent(t.Context(), made.ID, task.Summed); err != nil {
		t.Errorf("what a later run is told is not in the journal: %v", err)
	}
}
