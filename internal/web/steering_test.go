package web

import (
	"context"
	"log/slog"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/toryo-dev/toryo/internal/broker"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/items"
	"github.com/toryo-dev/toryo/internal/outbox"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// steered lets the pages of a house steer tasks through the real broker.
type steered struct{ controller *broker.Controller }

func (s *steered) Stop(ctx context.Context, id task.ID) error {
	_, err := s.controller.StopTask(ctx, id, task.ReasonStopRequested)
	return err
}

func (s *steered) Pause(ctx context.Context, id task.ID) error {
	_, err := s.controller.Pause(ctx, id, task.ReasonPauseRequested)
	return err
}

func (s *steered) Resume(ctx context.Context, id task.ID) error {
	_, err := s.controller.Resume(ctx, id)
	return err
}

func (s *steered) Approve(ctx context.Context, id task.ID, revision int) error {
	_, err := s.controller.Approve(ctx, id, revision)
	return err
}

func (s *steered) ResumeAll(ctx context.Context) error {
	_, err := s.controller.ResumeAll(ctx, "operator")
	return err
}

func (s *steered) Retry(ctx context.Context, id task.ID) error {
	_, err := s.controller.Retry(ctx, id)
	return err
}

func newSteeredHouse(t testing.TB, options ...with) *house {
	t.Helper()
	s := new(steered)
	h := newHouse(t, append(options, func(o *Options) { o.Steering = s })...)
	forges := map[task.Forge]forge.Forge{task.Board: h.board.As(bot)}
	snapshots := items.NewSnapshots(map[task.Forge]forge.Reader{task.Board: h.board.As(bot)}, items.DefaultAges, nil)
	t.Cleanup(snapshots.Stop)
	log := slog.New(slog.DiscardHandler)
	sender := outbox.NewSender(outbox.SenderOptions{Outbox: h.store, Tasks: h.store, Forges: forges, Snapshots: snapshots, Log: log})
	s.controller = broker.NewController(broker.ControllerOptions{
		Store: h.store, Sender: sender, Log: log,
		Status: &broker.StatusText{Labels: func(task.Forge) task.LabelNames { return task.DefaultLabelNames() }, Language: "en", Snapshots: snapshots,
			GitURL: func(task.ID) string { return "" }},
	})
	return h
}

// Buttons ask first, and then do what the API does; what a state does not allow
// has no button.
func TestSteering(t *testing.T) {
	t.Parallel()
	h := newSteeredHouse(t)
	h.repository(t)
	_, err := h.board.As(bot).CreateIssue(t.Context(), "team/app", forge.NewIssue{Title: "Fix the gate"})
	must(t, err)
	key := task.Key{Forge: task.Board, Repository: "team/app", Kind: task.Issue, Number: 1}
	one, _, err := h.store.Assign(t.Context(), store.NewTask{Key: key, Type: task.Development, Title: "Fix the gate", Reason: task.ReasonAssigned}, nil)
	must(t, err)
	alice := h.window(t, "alice")
	path := "/tasks/" + string(one.ID)
	alice.Open(path)
	steer := func(button, state string, buttons string) {
		t.Helper()
		alice.Click(`form[action="` + path + `/` + button + `"]` + `, details:has(form[action="` + path + `/` + button + `"]) > summary`)
		alice.Run("mark the page", chromedp.Evaluate(`window.old = true`, nil))
		alice.Click(`form[action="` + path + `/` + button + `"] button`)
		alice.Until(`!window.old && document.readyState === "complete"`)
		alice.Sees("#task-head .badge", state)
		if got := get[string](alice, `[...document.querySelectorAll("#task-head .confirm > summary")].map(e => e.textContent).join(" ")`); got != buttons {
			t.Errorf("after %s there are the buttons %q, want %q", button, got, buttons)
		}
	}
	steer("pause", "Paused", "Resume Stop")
	steer("resume", "Queued", "Pause Stop")
	steer("stop", "Stopped", "Retry")
	steer("retry", "Queued", "Pause Stop")
	if after, err := h.store.Task(t.Context(), one.ID); err != nil || after.State != task.Queued || after.Reason != task.ReasonRetried {
		t.Errorf("the task is %+v, %v", after, err)
	}
	alice.Allowed = append(alice.Allowed, "409")
	if status, _ := h.visitor(t, "alice").post(path+"/resume", nil); status != 409 {
		t.Errorf("to resume a task that waits answers %d", status)
	}
	if log := h.audit(t); log[0] != "alice task.resume "+path+"/resume illegal_move" {
		t.Errorf("the audit log ends with %q", log[0])
	}
}

// The button approves the plan that the page shows, and no other.
func TestThePageApprovesThePlanThatItShows(t *testing.T) {
	t.Parallel()
	h := newSteeredHouse(t)
	h.repository(t)
	_, err := h.board.As(bot).CreateIssue(t.Context(), "team/app", forge.NewIssue{Title: "Fix the gate"})
	must(t, err)
	key := task.Key{Forge: task.Board, Repository: "team/app", Kind: task.Issue, Number: 1}
	one, _, err := h.store.Assign(t.Context(), store.NewTask{Key: key, Type: task.Development, Title: "Fix the gate", Reason: task.ReasonAssigned}, nil)
	must(t, err)
	_, err = h.store.Append(t.Context(), []task.Event{
		{Task: one.ID, Generation: 1, Source: task.FromAgent, Sequence: 1, Kind: task.Planned, Data: []byte(`{"plan":{"revision":2}}`)},
		{Task: one.ID, Generation: 1, Source: task.FromAgent, Sequence: 2, Kind: task.SignalTaken,
			Data: []byte(`{"signal":{"signal":"pause","reason":"awaiting_approval","plan_revision":2}}`)},
	})
	must(t, err)
	_, err = h.store.Move(t.Context(), store.Change{Task: one.ID, Generation: 1, Trigger: task.PauseSet, Reason: task.ReasonAwaitingApproval})
	must(t, err)
	path := "/tasks/" + string(one.ID)
	alice := h.visitor(t, "alice")
	_, page := alice.get(path)
	for _, part := range []string{"The plan is waiting for approval", path + "/approve", `name="plan" value="2"`, path + "/stop"} {
		if !strings.Contains(page, part) {
			t.Errorf("the page has no %s", part)
		}
	}
	for _, form := range []struct {
		plan string
		want int
	}{{"1", 409}, {"", 422}, {"2", 200}, {"2", 409}} {
		if status, body := alice.post(path+"/approve", url.Values{"plan": {form.plan}}); status != form.want {
			t.Errorf("to approve plan %q answers %d: %s", form.plan, status, body)
		}
	}
	if after, err := h.store.Task(t.Context(), one.ID); err != nil || after.State != task.Queued || after.Reason != task.ReasonPlanApproved {
		t.Errorf("the task is %+v, %v", after, err)
	}
}
