package web

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// Something can be done with several tasks at once. Each is in the audit log by itself, and those
// with which it cannot be done are counted.
func TestManyTasksAtOnce(t *testing.T) {
	t.Parallel()
	h := newSteeredHouse(t, withBroker)
	one, two := h.assignOne(t, 1, "One"), h.assignOne(t, 2, "Two")
	done := h.assignOne(t, 3, "Failed before")
	h.move(t, done, task.GaveUp, task.ReasonRunFailed, "")
	form := url.Values{"pick": {string(one.ID), string(two.ID), string(done.ID), "no-such-task"}, "do": {"stop"}, "next": {"/queue?state=all"}}
	if status, _ := h.visitor(t, "vera").post("/queue/steer", form); status != http.StatusForbidden {
		t.Errorf("a viewer may stop tasks: %d", status)
	}
	alice := h.visitor(t, "alice")
	status, page := alice.post("/queue/steer", form)
	if status != http.StatusOK || !strings.Contains(page, "Stop: done for 2. Not possible for 2.") {
		t.Errorf("%d: the page does not say what was done", status)
	}
	for _, id := range []task.ID{one.ID, two.ID} {
		if is, err := h.store.Task(t.Context(), id); err != nil || is.State != task.Stopped {
			t.Errorf("the task %s is %s: %v", id, is.State, err)
		}
	}
	audit := strings.Join(h.audit(t), "\n")
	for _, want := range []string{"alice task.stop /tasks/" + string(one.ID) + " done", "alice task.stop /tasks/no-such-task not_found"} {
		if !strings.Contains(audit, want) {
			t.Errorf("the audit log does not have %q:\n%s", want, audit)
		}
	}
	if _, page := alice.post("/queue/steer", url.Values{"pick": {string(one.ID)}, "do": {"stop"}, "next": {"/queue?page=3"}}); !strings.Contains(page, "Not possible for 1: their state does not allow it.") {
		t.Error("the page does not say why it was not possible")
	}
	again := h.assignOne(t, 9, "Nine")
	if status, page := alice.post("/queue/steer", url.Values{"pick": {string(again.ID)}, "do": {""}, "next": {"/queue"}}); status != http.StatusOK || !strings.Contains(page, "Nine") {
		t.Errorf("without a button: %d", status)
	}
	if is, err := h.store.Task(t.Context(), again.ID); err != nil || is.State != task.Queued {
		t.Errorf("without a button the task is %s: %v", is.State, err)
	}
	for name, wrong := range map[string]url.Values{
		"unknown":  {"pick": {string(one.ID)}, "do": {"explode"}},
		"too many": {"pick": slices.Repeat([]string{"x"}, maxPicked+1), "do": {"stop"}},
	} {
		if status, _ := alice.post("/queue/steer", wrong); status < 400 || status >= 500 {
			t.Errorf("%s: %d", name, status)
		}
	}
}

// Nothing begins again that its page would not begin again: what the item does not want any more,
// and, with many at once, what is done. The page says why.
func TestRetryOfManyTasks(t *testing.T) {
	t.Parallel()
	h := newSteeredHouse(t, withBroker)
	failed, unwanted, done := h.assignOne(t, 1, "Failed"), h.assignOne(t, 2, "Unassigned"), h.runningTask(t, 3, "Done")
	h.move(t, failed, task.GaveUp, task.ReasonRunFailed, "")
	h.move(t, unwanted, task.Withdrawn, task.ReasonUnassigned, "")
	h.move(t, done, task.Finished, task.ReasonCompleted, "")
	plan := h.assignOne(t, 4, "Plans")
	h.move(t, plan, task.PauseSet, task.ReasonAwaitingApproval, "")
	alice := h.visitor(t, "alice")
	for _, one := range []struct {
		do   string
		pick task.Task
		says string
	}{
		{"retry", unwanted, "Retry: done for 0. Not possible for 1: the work is no longer requested on their items."},
		{"retry", done, "Retry: done for 0. Not possible for 1: they are done."},
		{"retry", failed, "Retry: done for 1."},
		{"resume", plan, "Resume: done for 0. Not possible for 1: their plans are waiting for approval."},
	} {
		status, page := alice.post("/queue/steer", url.Values{"pick": {string(one.pick.ID)}, "do": {one.do}, "next": {"/queue?state=all"}})
		if status != http.StatusOK || !strings.Contains(page, one.says) {
			t.Errorf("%d: the page does not say %q", status, one.says)
		}
	}
	for id, want := range map[task.ID]task.State{failed.ID: task.Queued, unwanted.ID: task.Stopped, done.ID: task.Done} {
		if is, err := h.store.Task(t.Context(), id); err != nil || is.State != want {
			t.Errorf("%s is %s, %v", is.Title, is.State, err)
		}
	}
	if status, _ := alice.post("/tasks/"+string(unwanted.ID)+"/retry", nil); status != http.StatusConflict {
		t.Errorf("a task that its item does not want begins again: %d", status)
	}
	if why, is := refusal("pause", task.Errorf(task.Conflict, "tasks cannot be paused here")); !is || why != refusedPause {
		t.Errorf("a pause that is switched off is refused for %q", why)
	}
	if why, is := refusal("resume", task.Errorf(task.StaleGeneration, "somebody was faster")); !is || why != refusedState {
		t.Errorf("what somebody else has moved at this moment is refused for %q", why)
	}
}

// Where something fails in the middle, the page says how many were done.
func TestManyTasksWithAnError(t *testing.T) {
	t.Parallel()
	h := newSteeredHouse(t, withBroker)
	var picked []string
	for number := range 3 {
		picked = append(picked, string(h.assignOne(t, int64(number+1), "One").ID))
	}
	h.pages.Steering = failsAt{h.pages.Steering, task.ID(picked[1])}
	_, page := h.visitor(t, "alice").post("/queue/steer", url.Values{"pick": picked, "do": {"stop"}, "next": {"/queue?state=all"}})
	if !strings.Contains(page, "Stop: done for 1. Not done for 2 because of an error.") {
		t.Error("the page does not say how many were stopped")
	}
	for i, want := range []task.State{task.Stopped, task.Queued, task.Queued} {
		if is, err := h.store.Task(t.Context(), task.ID(picked[i])); err != nil || is.State != want {
			t.Errorf("task %d is %s, %v", i, is.State, err)
		}
	}
}

// failsAt stops all tasks but one, at which the database is away.
type failsAt struct {
	Steering
	id task.ID
}

func (f failsAt) Stop(ctx context.Context, id task.ID) error {
	if id == f.id {
		return task.Errorf(task.DatabaseDown, "gone")
	}
	return f.Steering.Stop(ctx, id)
}

// Enter in the box of a row does nothing with the rows that are picked.
func TestEnterInAListDoesNothing(t *testing.T) {
	t.Parallel()
	h := newSteeredHouse(t, withBroker)
	one := h.assignOne(t, 1, "One")
	alice := h.window(t, "alice")
	alice.Open("/queue")
	alice.Run("listen", chromedp.Evaluate(`addEventListener("submit", (event) => { window.submitted = !event.defaultPrevented; })`, nil))
	alice.Click(`#rows input[name="pick"]`)
	alice.Run("press Enter", chromedp.KeyEvent(kb.Enter))
	if get[bool](alice, `window.submitted === true || !document.querySelector("#rows input[name=pick]:checked")`) {
		t.Error("Enter sends the form")
	}
	alice.Click(`#bulk summary`)
	alice.Click(`#bulk button[value=pause]`)
	alice.Sees(".notice", "Pause: done for 1.")
	if is, err := h.store.Task(t.Context(), one.ID); err != nil || is.State != task.Paused {
		t.Errorf("the task is %s, %v", is.State, err)
	}
}

// Tokens are revoked, items of the board closed, and reviews deleted several at once.
func TestManyOfOtherLists(t *testing.T) {
	t.Parallel()
	h := newHouse(t, withReviews(t))
	h.repository(t)
	_, err := h.board.EnsureUser(t.Context(), "alice", forge.WriteAccess)
	must(t, err)
	for i := range 3 {
		_, err := h.board.As("alice").CreateIssue(t.Context(), "team/app", forge.NewIssue{Title: fmt.Sprint("Issue ", i+1)})
		must(t, err)
		_, err = access.Tokens{Store: h.store, Now: time.Now}.Create(t.Context(), access.Agent, fmt.Sprint("agent-", i))
		must(t, err)
	}
	tokens, err := h.store.ListTokens(t.Context())
	must(t, err)
	var ids []string
	for _, token := range tokens {
		ids = append(ids, token.ID)
	}
	root, alice, vera := h.visitor(t, "root"), h.visitor(t, "alice"), h.visitor(t, "vera")
	for path, form := range map[string]url.Values{
		"/settings/tokens/many": {"pick": ids, "do": {"revoke"}}, "/board/team/app/issues/many": {"pick": {"1"}, "do": {"close"}},
		"/reviews/many": {"pick": {"x"}, "do": {"delete"}},
	} {
		if status, _ := vera.post(path, form); status != http.StatusForbidden {
			t.Errorf("a viewer may do something at %s: %d", path, status)
		}
	}
	if _, page := root.post("/settings/tokens/many", url.Values{"pick": ids[:2], "do": {"revoke"}, "next": {"/settings"}}); !strings.Contains(page, "Revoke: done for 2.") || !strings.Contains(page, "Revoked tokens: 2") {
		t.Error("the tokens are not revoked")
	}
	if _, page := alice.post("/board/team/app/issues/many", url.Values{"pick": {"1", "3", "99"}, "do": {"close"}, "next": {"/board/team/app/issues"}}); !strings.Contains(page, "Close: done for 2. Not possible for 1: they no longer exist.") ||
		strings.Contains(page, "Issue 1") || !strings.Contains(page, "Issue 2") {
		t.Error("the items are not closed")
	}
	mine, others := h.review(t, "alice", paper), h.review(t, "bob", paper)
	if _, page := alice.post("/reviews/many", url.Values{"pick": {mine.ID, others.ID}, "do": {"delete"}, "next": {"/reviews"}}); !strings.Contains(page, "Delete: done for 1. Not possible for 1") {
		t.Error("the page does not say which reviews were deleted")
	}
	for id, want := range map[string]task.Code{mine.ID: task.NotFound, others.ID: ""} {
		if _, err := h.store.Review(t.Context(), id); task.CodeOf(err) != want {
			t.Errorf("the review: %v", err)
		}
	}
	if lines := strings.Join(h.audit(t), "\n"); !strings.Contains(lines, "alice item.close /board/team/app/issues/3 done") || !strings.Contains(lines, "root token.revoke /settings/tokens id="+ids[0]+" done") {
		t.Errorf("the audit log does not have each of them:\n%s", lines)
	}
}

// The lists of reviews, users and tokens are searched, put in order and turned over like all others.
func TestOtherLists(t *testing.T) {
	t.Parallel()
	h := newHouse(t, withReviews(t))
	for i := range rowsPerPage + 5 {
		_, err := h.pages.Reviews.AddReview(t.Context(), "alice", store.Review{CustomQuestionText: fmt.Sprintf("Question %02d", i), AnswerText: paper, Judgement: []byte(`{"overall_review":"x"}`)})
		must(t, err)
		must(t, h.pages.accounts.Create(t.Context(), fmt.Sprintf("user-%02d", i), access.Viewer, ""))
	}
	alice, root := h.visitor(t, "alice"), h.visitor(t, "root")
	for _, one := range []struct {
		who        *visitor
		path       string
		has, lacks []string
	}{
		{alice, "/reviews", []string{"Question 54", "Question 05", "Rows 1–50 of 55"}, []string{"Question 04"}},
		{alice, "/reviews?page=2", []string{"Question 04", "Question 00", `rel="prev"`}, []string{"Question 05"}},
		{alice, "/reviews?sort=title", []string{"Question 00", "Question 49"}, []string{"Question 50"}},
		{alice, "/reviews?q=question+07", []string{"Question 07", "Rows: 1"}, []string{"Question 08"}},
		{alice, "/reviews?type=pulls", []string{"No reviews match."}, []string{"Question"}},
		{root, "/settings/people", []string{"<strong>alice</strong>", "Rows 1–50 of"}, []string{"user-54"}},
		{root, "/settings/people?q=USER-54", []string{"user-54"}, []string{"<strong>alice</strong>"}},
		{root, "/settings/people?sort=-login", []string{"user-54"}, []string{"<strong>alice</strong>"}},
		{root, "/settings/people?page=2", []string{"user-54"}, []string{"<strong>alice</strong>"}},
	} {
		status, page := one.who.get(one.path)
		if status != http.StatusOK {
			t.Errorf("%s: %d", one.path, status)
		}
		for _, text := range one.has {
			if !strings.Contains(page, text) {
				t.Errorf("%s does not have %q", one.path, text)
			}
		}
		for _, text := range one.lacks {
			if strings.Contains(page, text) {
				t.Errorf("%s has %q", one.path, text)
			}
		}
	}
	if _, page := alice.post("/links/save", url.Values{"name": {"mine"}, "next": {"/reviews?type=documents"}}); !strings.Contains(page, `href="/reviews?type=documents" aria-current="page"`) {
		t.Error("a view of the reviews cannot be saved")
	}
}

// A search keeps what else the list is narrowed to, and finds for whom a token acts.
func TestSearchKeepsWhatWasChosen(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tokens := access.Tokens{Store: h.store, Now: time.Now}
	user, err := h.store.User(t.Context(), "vera")
	must(t, err)
	_, err = tokens.CreateFor(t.Context(), access.Viewer, "laptop", user)
	must(t, err)
	_, err = tokens.Create(t.Context(), access.Agent, "mill")
	must(t, err)
	root := h.visitor(t, "root")
	_, page := root.get("/settings?q=vera")
	if !strings.Contains(page, "laptop") || strings.Contains(page, ">mill<") {
		t.Error("a search does not find for whom a token acts")
	}
	for path, want := range map[string]string{
		"/settings?tokens=all": `<input type="hidden" name="tokens" value="all">`, "/settings/audit?before=zzz": `<input type="hidden" name="before" value="zzz">`,
	} {
		if _, page := root.get(path); !strings.Contains(page, want) {
			t.Errorf("the form of %s does not keep %q", path, want)
		}
	}
}
