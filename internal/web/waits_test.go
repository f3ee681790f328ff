package web

import (
	"context"
	"fmt"
	"html"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/broker"
	"github.com/toryo-dev/toryo/internal/messages"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

// withBroker lets the pages say what waits for people and why tasks wait, as a server does.
func withBroker(o *Options) {
	database, _ := o.Store.(store.Store) // newHouse puts it there
	needs := &broker.Needs{Store: database, Now: o.Now, Day: store.Amount{Tokens: 1000}}
	o.Needs = needs.List
	o.Turns = func(ctx context.Context, _ []task.Task) ([]Turn, error) {
		found, err := broker.Turns(ctx, database, broker.Limits{}, o.Now())
		var turns []Turn
		for _, one := range found {
			turns = append(turns, Turn(one))
		}
		return turns, err
	}
}

// assignOne makes a queued task of team/app.
func (h *house) assignOne(t testing.TB, number int64, title string) task.Task {
	t.Helper()
	key := task.Key{Forge: task.Gitea, Repository: "team/app", Kind: task.Issue, Number: number}
	made, _, err := h.store.Assign(t.Context(), store.NewTask{Key: key, Type: task.Development, Title: title, Reason: task.ReasonAssigned, URL: "https://forge.example/" + title}, nil)
	must(t, err)
	return made
}

// move moves a task, with what was said about it.
func (h *house) move(t testing.TB, one task.Task, trigger task.Trigger, reason task.Reason, detail string) {
	t.Helper()
	_, err := h.store.Move(t.Context(), store.Change{Task: one.ID, Trigger: trigger, Reason: reason, Detail: detail})
	must(t, err)
}

// The first page begins with what waits for a person: questions, plans, failures with what was
// said about them, agents, a pause of everything, budgets. It is in the reader's language, and what
// others wrote is data.
func TestOverviewBeginsWithWhatWaitsForPeople(t *testing.T) {
	t.Parallel()
	h := newHouse(t, withBroker)
	h.move(t, h.assignOne(t, 1, "Asks"), task.PauseSet, task.ReasonAwaitingAnswer, "Which <b>colour</b>?")
	h.move(t, h.assignOne(t, 2, "Plans"), task.PauseSet, task.ReasonAwaitingApproval, "Paint the gate")
	h.move(t, h.assignOne(t, 3, "Breaks"), task.GaveUp, task.ReasonRejectedByForge, "remote: protected branch")
	h.assignOne(t, 4, "Waits")
	_, err := access.Tokens{Store: h.store, Now: time.Now}.Create(t.Context(), access.Agent, "mill")
	must(t, err)
	agents, err := h.store.ListAgents(t.Context())
	must(t, err)
	must(t, h.store.AgentIs(t.Context(), agents[0].Token, store.Condition{Unable: task.ReasonNoSandbox, Detail: "bwrap is missing"}, time.Now()))
	_, err = h.store.PauseAll(t.Context(), store.GeneralPause{Source: "operator", At: time.Now()})
	must(t, err)
	_, err = h.store.ReserveSpend(t.Context(), store.Call{At: time.Now(), Most: store.Amount{Tokens: 1000}}, func(store.Amount, store.Amount) error { return nil })
	must(t, err)
	for language, wants := range map[string][]string{
		"en": {
			"Everything is paused by an operator", ">Asks</a>", "gitea:team/app#1</a>", "Which &lt;b&gt;colour&lt;/b&gt;?", ">Plans</a>", "Paint the gate",
			">Breaks</a>", "Failed", "The forge rejected the write", "remote: protected branch", "account permission to push branches",
			"Agent mill is not accepting tasks", "bwrap is missing", "budget is used up",
		},
		"ja": {"オペレーター がすべてのタスクを一時停止しています", "質問", "計画", "失敗", "対処方法", "エージェント mill はタスクを受け付けていません", "1 日の予算を使い切りました"},
	} {
		v := h.visitor(t, "vera")
		v.header.Set("Accept-Language", language)
		_, page := v.get("/")
		at := strings.Index(page, `id="needs"`)
		end := strings.Index(page, `id="figures"`)
		if at < 0 || end < at {
			t.Fatalf("the page does not begin with what waits for people: %d, %d", at, end)
		}
		for _, want := range wants {
			if !strings.Contains(page[at:end], want) {
				t.Errorf("in %s the page does not begin with %q: %s", language, want, page[at:end])
			}
		}
	}
}

// The waiting list of the first page is in the order in which tasks are handed out, and says why
// each waits.
func TestWaitingListIsInHandOutOrder(t *testing.T) {
	t.Parallel()
	h := newHouse(t, withBroker)
	h.assignOne(t, 1, "Last of all")
	review := task.Key{Forge: task.Gitea, Repository: "team/app", Kind: task.Pull, Number: 9}
	_, _, err := h.store.Assign(t.Context(), store.NewTask{Key: review, Type: task.Review, Title: "Reviews come first", Reason: task.ReasonReviewDue}, nil)
	must(t, err)
	_, page := h.visitor(t, "vera").get("/")
	_, list, _ := strings.Cut(page, `id="queued"`)
	first, second := strings.Index(list, "Reviews come first"), strings.Index(list, "Last of all")
	if first < 0 || second < first {
		t.Errorf("the waiting list is not in the order in which tasks are handed out: %d, %d", first, second)
	}
	if !strings.Contains(list, "No agent is connected") {
		t.Errorf("the waiting list does not say why tasks wait: %s", list)
	}
}

// An open home page shows, without being loaded again, that the server cannot write and that an
// agent takes no tasks, for a reason also that this version does not know; and that it is over.
func TestOpenHomeShowsFaultsAndUnableAgents(t *testing.T) {
	t.Parallel()
	var faults atomic.Pointer[[]broker.Fault]
	faults.Store(new([]broker.Fault))
	h := newHouse(t, func(o *Options) {
		database, _ := o.Store.(store.Store) // newHouse puts it there
		needs := &broker.Needs{Store: database, Now: o.Now, Faults: func(context.Context) []broker.Fault { return *faults.Load() }}
		o.Needs = needs.List
	})
	_, err := access.Tokens{Store: h.store, Now: time.Now}.Create(t.Context(), access.Agent, "mill")
	must(t, err)
	agents, err := h.store.ListAgents(t.Context())
	must(t, err)
	is := func(condition store.Condition) {
		t.Helper()
		must(t, h.store.AgentIs(t.Context(), agents[0].Token, condition, time.Now()))
	}
	vera := h.window(t, "vera")
	vera.Open("/")
	vera.IsLive()
	faults.Store(&[]broker.Fault{{Name: "data_folder", Detail: "no space left"}})
	vera.Sees("#needs", "no space left")
	faults.Store(new([]broker.Fault))
	vera.Until(`!document.querySelector("#needs li")`)
	for _, one := range []struct {
		store.Condition
		says string
	}{
		{store.Condition{Unable: task.ReasonNoSandbox, Detail: "bwrap is missing"}, "bwrap is missing"},
		{store.Condition{Unable: task.ReasonNoSandbox, Detail: "bwrap may not start"}, "bwrap may not start"},
		{store.Condition{Unable: "reason_of_a_newer_agent"}, "reason_of_a_newer_agent"},
	} {
		is(one.Condition)
		vera.Sees("#lists .unable", one.says)
		vera.Sees("#needs", "mill")
	}
	is(store.Condition{})
	vera.Sees("#agents-now", "Idle")
}

// The page of a task that failed or waits for people says what they can do, in their language.
func TestTaskPageSaysWhatToDo(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	key := task.Key{Forge: task.Gitea, Repository: "team/app", Kind: task.Issue, Number: 3}
	one, _, err := h.store.Assign(t.Context(), store.NewTask{Key: key, Type: task.Development, Title: "Fix the gate", Reason: task.ReasonAssigned}, nil)
	must(t, err)
	page := func(language string) string {
		v := h.visitor(t, "vera")
		v.header.Set("Accept-Language", language)
		_, text := v.get("/tasks/" + string(one.ID))
		return text
	}
	if text := page("en"); strings.Contains(text, "What to do") {
		t.Errorf("a task that waits for an agent has something to fix: %s", text)
	}
	h.move(t, one, task.GaveUp, task.ReasonRejectedByForge, "remote: <protected>")
	for _, language := range []task.Language{task.English, task.Japanese} {
		text := page(string(language))
		for _, want := range []string{textfmt.UpperFirst(messages.Reason(language, task.ReasonRejectedByForge)), html.EscapeString(messages.Fix(language, task.ReasonRejectedByForge)), "remote: &lt;protected&gt;"} {
			if want == "" || !strings.Contains(text, want) {
				t.Errorf("in %s the page does not say %q", language, want)
			}
		}
	}
}

// The page and the list say how many turns a run had that has used them all.
func TestTurnLimitIsShown(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	one := h.assignOne(t, 3, "Fix the gate")
	h.move(t, one, task.GaveUp, task.ReasonTurnsExhausted, "40 turns")
	for _, address := range []string{"/tasks/" + string(one.ID), "/queue?state=failed"} {
		_, text := h.visitor(t, "vera").get(address)
		if text := strings.Join(strings.Fields(anyTag.ReplaceAllString(text, " ")), " "); !strings.Contains(text, "The turn limit was reached (40 turns)") {
			t.Errorf("%s does not say how many turns there were: %s", address, text)
		}
	}
	vera := h.visitor(t, "vera")
	vera.header.Set("Accept-Language", "ja")
	if _, text := vera.get("/tasks/" + string(one.ID)); !strings.Contains(text, "（40 turns）") {
		t.Error("in Japanese the page does not say how many turns there were")
	}
}

var anyTag = regexp.MustCompile(`<[^>]*>`)

// The page of a queued task says why it waits, and shows its item.
func TestTaskPageSaysWhyItWaits(t *testing.T) {
	t.Parallel()
	h := newHouse(t, withBroker)
	one := h.assignOne(t, 3, "Fix the gate")
	says := func(wants ...string) {
		t.Helper()
		_, text := h.visitor(t, "vera").get("/tasks/" + string(one.ID))
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("the page of a queued task does not say %q", want)
			}
		}
	}
	says("No agent is connected", "gitea:team/app#3", "https://forge.example/", "Position 1 in the queue")
	_, err := access.Tokens{Store: h.store, Now: time.Now}.Create(t.Context(), access.Agent, "mill")
	must(t, err)
	says("All agents are busy")
	_, err = h.store.PauseAll(t.Context(), store.GeneralPause{Source: "operator", By: "carol", At: time.Now()})
	must(t, err)
	_, err = h.store.PauseAll(t.Context(), store.GeneralPause{Source: "the file pause", At: time.Now().Add(time.Second)})
	must(t, err)
	says("Everything is paused by carol and the file pause")
	if _, home := h.visitor(t, "vera").get("/"); !strings.Contains(home, "Everything is paused by carol") {
		t.Error("the first page does not say who paused everything")
	}
}

// A queued task that waits for nothing but a time says so, and a reason is said once.
func TestTaskPageSaysUntilWhen(t *testing.T) {
	t.Parallel()
	h := newHouse(t, withBroker)
	key := task.Key{Forge: task.Gitea, Repository: "team/app", Kind: task.Issue, Number: 3}
	later, _, err := h.store.Assign(t.Context(), store.NewTask{Key: key, Type: task.Development, Title: "Later", Reason: task.ReasonAssigned, ReadyAt: time.Now().Add(time.Hour)}, nil)
	must(t, err)
	vera := h.visitor(t, "vera")
	if _, page := vera.get("/tasks/" + string(later.ID)); !strings.Contains(page, textfmt.UpperFirst(messages.Reason(task.English, task.ReasonNotReady))) || !strings.Contains(page, "Next attempt:") {
		t.Error("the page does not say until when the task waits")
	}
	failed := h.assignOne(t, 4, "Fails")
	h.move(t, failed, task.GaveUp, task.ReasonRejectedByForge, "remote: no")
	_, page := vera.get("/tasks/" + string(failed.ID))
	_, head, _ := strings.Cut(page, `id="task-head"`)
	head, _, _ = strings.Cut(head, `id="question"`)
	if count := strings.Count(head, textfmt.UpperFirst(messages.Reason(task.English, task.ReasonRejectedByForge))); count != 1 {
		t.Errorf("the head says the reason %d times", count)
	}
}

// The first page counts what has ended today, and shows what ended last.
func TestHomeCountsWhatHasEnded(t *testing.T) {
	t.Parallel()
	h := newHouse(t, withBroker)
	old := h.runningTask(t, 1, "Assigned long ago")
	for i := range int64(homeList + 1) {
		h.move(t, h.runningTask(t, i+10, fmt.Sprint("Done ", i)), task.Finished, task.ReasonCompleted, "")
	}
	h.move(t, old, task.Finished, task.ReasonCompleted, "")
	h.move(t, h.assignOne(t, 99, "Fails"), task.GaveUp, task.ReasonRunFailed, "")
	_, page := h.visitor(t, "vera").get("/")
	for _, want := range []string{
		`href="/queue?state=done"><strong>10</strong>`, `href="/queue?state=failed"><strong>1</strong>`, ">Assigned long ago</a>", ">Done 8</a>", "and 2 more",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the first page does not say %q", want)
		}
	}
	if strings.Contains(page, ">Done 0</a>") {
		t.Error("the first page shows what ended first")
	}
}
