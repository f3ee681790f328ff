package broker_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toryo-dev/toryo/internal/broker"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/messages"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// Whatever keeps agents from taking a task is said, with what can be done about it in
// every language; what only has to wait for its turn is not.
func TestWaits(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	agent := func(name string) store.Token {
		token, err := o.store.AddToken(t.Context(), store.Token{Name: name, Role: "agent", Hash: []byte(name), CreatedAt: o.now()})
		o.check(err)
		return token
	}
	want := func(when string, want ...string) {
		t.Helper()
		waits, err := broker.Waits(t.Context(), o.store, broker.Limits{}, o.now())
		o.check(err)
		var got []string
		for _, w := range waits {
			text := fmt.Sprint(w.Reason, " ", w.Agent, " ", w.Detail)
			for _, waiting := range w.Tasks {
				text += fmt.Sprint(" ", waiting.Key)
			}
			got = append(got, text)
			for _, language := range []task.Language{task.English, task.Japanese} {
				if messages.Fix(language, w.Reason) == "" || messages.Reason(language, w.Reason) == "" {
					t.Errorf("%s: nothing is said about %s in %s", when, w.Reason, language)
				}
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", when, diff)
		}
	}
	want("nothing is to be done")
	key := o.issue("Oil the gate")
	blocked := o.issue("Paint it")
	o.forge.Change(blocked, func(i *forge.Item) { i.Body = "Blocked by #1" })
	o.look(key)
	o.look(blocked)
	want("there is no agent", "no_agents   github:team/app#1")
	first := agent("first")
	want("an agent is new")
	o.later(10 * time.Minute)
	want("it is not heard of", "agents_silent   github:team/app#1")
	o.check(o.store.AgentsSeen(t.Context(), map[string]time.Time{first.ID: o.now()}))
	want("it is heard of")
	o.check(o.store.AgentIs(t.Context(), first.ID, store.Condition{Unable: task.ReasonNoSandbox, Detail: "no bwrap"}, o.now()))
	want("it has no sandbox", "no_sandbox first no bwrap github:team/app#1")
	second := agent("second")
	want("another one can work")
	o.check(o.store.RevokeToken(t.Context(), second.ID, o.now()))
	want("that one is gone", "no_sandbox first no bwrap github:team/app#1")
	o.check(o.store.AgentIs(t.Context(), first.ID, store.Condition{}, o.now()))
	want("the first one has a sandbox by now")
	_, err := o.store.PauseAll(t.Context(), store.GeneralPause{Source: "operator", At: o.now()})
	o.check(err)
	want("everything is paused", "all_paused   github:team/app#1 github:team/app#2")
	_, err = o.store.ResumeAll(t.Context(), "operator")
	o.check(err)

	held := o.claim(o.task(key, task.Development), "first")
	next := o.issue("Lock it")
	o.look(next)
	o.later(10 * time.Minute)
	want("the agent is at work, and was not heard of otherwise")
	_, err = o.store.Move(t.Context(), store.Change{Task: held.ID, Generation: held.Generation, Trigger: task.PauseSet, Reason: task.ReasonAwaitingAnswer})
	o.check(err)
	want("a question is open", "agents_silent   github:team/app#3", "awaiting_answer   github:team/app#1")
}
