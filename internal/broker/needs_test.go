package broker_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toryo-dev/toryo/internal/broker"
	"github.com/toryo-dev/toryo/internal/messages"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// What waits for a person is listed, once each, with a key that stays as long as it waits; and
// is not listed when it is over.
func TestNeeds(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	var faults []broker.Fault
	needs := broker.Needs{
		Store: o.store, Now: o.now, Day: store.Amount{Tokens: 100},
		Faults: func(context.Context) []broker.Fault { return faults },
	}
	want := func(when string, want ...string) {
		t.Helper()
		found, err := needs.List(t.Context())
		o.check(err)
		again, err := needs.List(t.Context())
		o.check(err)
		if diff := cmp.Diff(found, again); diff != "" {
			t.Errorf("%s: the second time the needs differ: %s", when, diff)
		}
		var got []string
		keys := map[string]bool{}
		for _, need := range found {
			text := fmt.Sprint(need.Kind, " ", need.Reason, " ", need.Subject, " ", need.Detail, " ", need.Tasks)
			if need.Task != nil {
				text += " " + need.Task.Key.String()
			}
			got = append(got, text)
			if need.Key == "" || keys[need.Key] {
				t.Errorf("%s: the key %q is not one", when, need.Key)
			}
			keys[need.Key] = true
			for _, language := range []task.Language{task.English, task.Japanese} {
				if said := messages.Need(language, need); said.What == "" {
					t.Errorf("%s: nothing is said about %s in %s", when, need.Kind, language)
				}
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	want("nothing is to be done")
	issues := map[string]task.Key{}
	for _, title := range []string{"Asks", "Plans", "Fails", "Waits"} {
		issues[title] = o.issue(title)
		o.look(issues[title])
	}
	move := func(title string, change store.Change) {
		t.Helper()
		change.Task = o.task(issues[title], task.Development).ID
		_, err := o.store.Move(t.Context(), change)
		o.check(err)
	}
	want("no agent is there", "tasks no_agents   4")
	token, err := o.store.AddToken(t.Context(), store.Token{Name: "mill", Role: "agent", Hash: []byte("mill"), CreatedAt: o.now()})
	o.check(err)
	want("one is new")
	move("Asks", store.Change{Trigger: task.PauseSet, Reason: task.ReasonAwaitingAnswer, Detail: "Which?"})
	move("Plans", store.Change{Trigger: task.PauseSet, Reason: task.ReasonAwaitingApproval, Detail: "Paint"})
	move("Fails", store.Change{Trigger: task.GaveUp, Reason: task.ReasonRunFailed, Detail: "exit 1"})
	people := []string{
		"answer awaiting_answer  Which? 0 github:team/app#1", "approval awaiting_approval  Paint 0 github:team/app#2", "failure run_failed  exit 1 0 github:team/app#3",
	}
	want("tasks wait for people", people...)

	o.check(o.store.AgentIs(t.Context(), token.ID, store.Condition{Unable: task.ReasonNoModel, Detail: "no key"}, o.now()))
	want("the agent takes no tasks", append(people, "agent no_model mill no key 1")...)
	o.check(o.store.AgentIs(t.Context(), token.ID, store.Condition{}, o.now()))
	o.later(10 * time.Minute)
	want("the agent is offline", append(append([]string{"tasks agents_silent   1"}, people...), "agent agents_silent mill  0")...)
	o.check(o.store.AgentsSeen(t.Context(), map[string]time.Time{token.ID: o.now()}))

	faults = []broker.Fault{{Name: "database", Detail: "full"}}
	_, err = o.store.PauseAll(t.Context(), store.GeneralPause{Source: "operator", At: o.now()})
	o.check(err)
	_, err = o.store.ReserveSpend(t.Context(), store.Call{At: o.now(), Most: store.Amount{Tokens: 95}}, func(store.Amount, store.Amount) error { return nil })
	o.check(err)
	want("everything is paused, and little is left of the budget",
		append(append([]string{"server  database full 0", "pause all_paused operator  1"}, people...), "budget    0")...)

	o.later(8 * 24 * time.Hour)
	o.check(o.store.RevokeToken(t.Context(), token.ID, o.now()))
	faults = nil
	_, err = o.store.ResumeAll(t.Context(), "operator")
	o.check(err)
	move("Asks", store.Change{Trigger: task.Withdrawn, Reason: task.ReasonUnassigned})
	move("Plans", store.Change{Trigger: task.Resumed, Reason: task.ReasonPlanApproved})
	want("a week later", "tasks no_agents   2")
}

// keysOf are the keys of what waits, of one kind.
func keysOf(needs []task.Need, kind task.NeedKind) (keys []string) {
	for _, need := range needs {
		if need.Kind == kind {
			keys = append(keys, need.Key)
		}
	}
	return keys
}

// What waits has the same key as long as it waits, over midnight too, and an agent that goes
// offline again has the key that it had: who tells people of it knows that it comes and goes.
func TestKeysOfNeeds(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	needs := broker.Needs{Store: o.store, Now: o.now, Day: store.Amount{Tokens: 100}}
	keys := func(kind task.NeedKind) []string {
		t.Helper()
		found, err := needs.List(t.Context())
		o.check(err)
		return keysOf(found, kind)
	}
	token, err := o.store.AddToken(t.Context(), store.Token{Name: "mill", Role: "agent", Hash: []byte("mill"), CreatedAt: o.now()})
	o.check(err)
	o.later(10 * time.Minute)
	first := keys(task.NeedAgent)
	o.check(o.store.AgentsSeen(t.Context(), map[string]time.Time{token.ID: o.now()}))
	if back := keys(task.NeedAgent); len(first) != 1 || len(back) != 0 {
		t.Errorf("offline are %q, then %q", first, back)
	}
	o.later(10 * time.Minute)
	if diff := cmp.Diff(first, keys(task.NeedAgent)); diff != "" {
		t.Errorf("the second time the key is another: %s", diff)
	}

	var paused []task.Task
	pause := func() {
		t.Helper()
		one, err := o.store.Move(t.Context(), store.Change{
			Task: assignTask(t, o.store).ID, Trigger: task.PauseSet, Reason: task.ReasonBudgetExhausted, Detail: "the budget of the task is 5 tokens",
		})
		o.check(err)
		paused = append(paused, one)
	}
	pause()
	one := keys(task.NeedBudget)
	pause()
	two := keys(task.NeedBudget)
	if len(one) != 1 || len(two) != 2 || two[0] != one[0] && two[1] != one[0] {
		t.Errorf("tasks that wait for their budgets have the keys %q, then %q", one, two)
	}
	o.later(24 * time.Hour)
	if diff := cmp.Diff(two, keys(task.NeedBudget)); diff != "" {
		t.Errorf("the next day the keys are others: %s", diff)
	}
	found, err := needs.List(t.Context())
	o.check(err)
	for _, need := range found {
		if said := messages.Need(task.English, need); need.Kind == task.NeedBudget && (need.Task == nil || need.Detail != paused[0].Detail || !strings.Contains(said.Fix, "toryo resume")) {
			t.Errorf("said of a task is %+v", said)
		}
	}
}

// At nine tenths of the day's budget nothing waits yet: nothing has to be resumed.
func TestBudgetThatIsNearlyUsed(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	needs := broker.Needs{Store: o.store, Now: o.now, Day: store.Amount{Tokens: 100}}
	spend := func(tokens int64) []task.Need {
		t.Helper()
		_, err := o.store.ReserveSpend(t.Context(), store.Call{At: o.now(), Most: store.Amount{Tokens: tokens}}, func(store.Amount, store.Amount) error { return nil })
		o.check(err)
		found, err := needs.List(t.Context())
		o.check(err)
		return found
	}
	nearly := spend(95)
	said := messages.Need(task.English, nearly[0])
	if len(nearly) != 1 || nearly[0].Reason != "" || said.Fix == "" || strings.Contains(said.Fix, "resume") {
		t.Errorf("%+v: %+v", nearly, said)
	}
	used := spend(5)
	if len(used) != 1 || used[0].Reason != task.ReasonBudgetExhausted || used[0].Key == nearly[0].Key {
		t.Errorf("%+v after %+v", used, nearly)
	}
}

// People are shown the failures that happened last, also of tasks that are old. Those who tell of
// each failure once get all of them.
func TestManyFailures(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	needs := broker.Needs{Store: o.store, Now: o.now}
	fail := func(one task.Task) {
		t.Helper()
		_, err := o.store.Move(t.Context(), store.Change{Task: one.ID, Trigger: task.GaveUp, Reason: task.ReasonRunFailed})
		o.check(err)
	}
	old := assignTask(t, o.store)
	for range 110 {
		fail(assignTask(t, o.store))
	}
	fail(old)
	shown, err := needs.List(t.Context())
	o.check(err)
	if keys := keysOf(shown, task.NeedFailure); len(keys) != 100 || !strings.Contains(keys[0], string(old.ID)) {
		t.Errorf("%d failures are shown, the first of them %q", len(keys), keys[0])
	}
	all, whole, err := needs.All(t.Context())
	o.check(err)
	if keys := keysOf(all, task.NeedFailure); len(keys) != 111 || !whole {
		t.Errorf("%d failures are listed, whole is %v", len(keys), whole)
	}
}

// Tasks that are paused for a reason that is theirs can be listed by it; those that nobody takes
// cannot.
func TestTasksThatWait(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	needs := broker.Needs{Store: o.store, Now: o.now}
	_, err := o.store.Move(t.Context(), store.Change{Task: assignTask(t, o.store).ID, Trigger: task.PauseSet, Reason: task.ReasonAgentPaused})
	o.check(err)
	assignTask(t, o.store)
	found, err := needs.List(t.Context())
	o.check(err)
	got := map[task.Reason]bool{}
	for _, need := range found {
		got[need.Reason] = need.OfTasks
		if said := messages.Need(task.English, need); said.What != "Waiting tasks: 1" || said.Why == "" {
			t.Errorf("said of %s is %+v", need.Reason, said)
		}
	}
	if diff := cmp.Diff(map[task.Reason]bool{task.ReasonAgentPaused: true, task.ReasonNoAgents: false}, got); diff != "" {
		t.Error(diff)
	}
}

// Why a queued task waits is said with the same codes everywhere, in the order in which tasks are
// handed out.
func TestTurns(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	want := func(when string, want ...string) {
		t.Helper()
		turns, err := broker.Turns(t.Context(), o.store, broker.Limits{PerRepository: 1}, o.now())
		o.check(err)
		var got []string
		for _, turn := range turns {
			is, err := o.store.Task(t.Context(), turn.Task)
			o.check(err)
			got = append(got, fmt.Sprint(is.Title, " ", turn.Place, " ", turn.Reason, " ", turn.By, strings.Join(turn.Pauses, "+"), " ", turn.Detail))
			if messages.Reason(task.English, turn.Reason) == "" {
				t.Errorf("%s: there are no words for %s", when, turn.Reason)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	want("nothing is to be done")
	first := assignTask(t, o.store, func(w *store.NewTask) { w.Title = "first" })
	assignTask(t, o.store, func(w *store.NewTask) { w.Title = "second" })
	assignTask(t, o.store, func(w *store.NewTask) { w.Title, w.Priority = "urgent", 10 })
	assignTask(t, o.store, func(w *store.NewTask) { w.Title, w.Key.Repository = "elsewhere", "team/other" })
	want("nobody is there", "urgent 1 no_agents  ", "elsewhere 2 no_agents  ", "first 3 no_agents  ", "second 4 no_agents  ")

	token, err := o.store.AddToken(t.Context(), store.Token{Name: "mill", Role: "agent", Hash: []byte("mill"), CreatedAt: o.now()})
	o.check(err)
	o.check(o.store.AgentIs(t.Context(), token.ID, store.Condition{Unable: task.ReasonNoSandbox, Detail: "no bwrap"}, o.now()))
	want("the agent cannot", "urgent 1 no_sandbox mill no bwrap", "elsewhere 2 no_sandbox mill no bwrap", "first 3 no_sandbox mill no bwrap", "second 4 no_sandbox mill no bwrap")
	o.check(o.store.AgentIs(t.Context(), token.ID, store.Condition{}, o.now()))
	want("the agent is busy", "urgent 1 no_agent_left  ", "elsewhere 2 no_agent_left  ", "first 3 no_agent_left  ", "second 4 no_agent_left  ")

	held := o.claim(first, "mill")
	want("a repository is at its limit", "urgent 0 repository_at_limit  ", "elsewhere 1 no_agent_left  ", "second 0 repository_at_limit  ")
	_, err = o.store.Move(t.Context(), store.Change{
		Task: held.ID, Generation: held.Generation, Trigger: task.Returned, Reason: task.ReasonNotPrepared, Detail: "502 Bad Gateway", ReadyAt: o.now().Add(time.Minute),
	})
	o.check(err)
	want("one was handed back", "urgent 1 no_agent_left  ", "elsewhere 2 no_agent_left  ", "first 0 not_prepared  502 Bad Gateway", "second 3 no_agent_left  ")

	_, err = o.store.PauseAll(t.Context(), store.GeneralPause{Source: "operator", By: "alice", At: o.now()})
	o.check(err)
	_, err = o.store.PauseAll(t.Context(), store.GeneralPause{Source: "a file", At: o.now().Add(time.Second)})
	o.check(err)
	const all = "all_paused alice+a file "
	want("everything is paused", "urgent 1 "+all, "elsewhere 2 "+all, "first 0 "+all, "second 3 "+all)
}
