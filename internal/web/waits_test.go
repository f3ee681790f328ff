package web

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/messages"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// The home page says why nobody takes tasks that wait, and what to do about it, in the
// reader's language. What is paused is not said twice.
func TestHomeSaysWhyTasksWait(t *testing.T) {
	t.Parallel()
	h := newHouse(t, func(o *Options) {
		o.Waits = func(context.Context) ([]Wait, error) {
			return []Wait{
				{Reason: task.ReasonNoSandbox, Agent: "laptop", Detail: "bwrap <missing>", Tasks: []task.Task{{State: task.Queued}, {State: task.Queued}}},
				{Reason: task.ReasonAwaitingAnswer, Tasks: []task.Task{{State: task.Paused}}},
			}, nil
		}
	})
	for language, wants := range map[string][]string{
		"en": {"No agent takes 2 of the queued tasks", "no sandbox works on its machine", "laptop", "bwrap &lt;missing&gt;", "sudo apt-get install bubblewrap"},
		"ja": {"引き受けられていない待機中のタスク: 2 件", "使えるサンドボックスがなく", "laptop", "対処方法", "bubblewrap をインストール"},
	} {
		v := h.visitor(t, "vera")
		v.header.Set("Accept-Language", language)
		status, page := v.get("/")
		for _, want := range wants {
			if status != http.StatusOK || !strings.Contains(page, want) {
				t.Errorf("in %s the page does not say %q: %s", language, want, page)
			}
		}
		if strings.Contains(page, messages.Fix(task.Language(language), task.ReasonAwaitingAnswer)) {
			t.Errorf("in %s the page says of a paused task that nobody takes it", language)
		}
	}
}

// An open home page shows, without being loaded again, that the server cannot write and that an
// agent takes no tasks, for a reason also that this version does not know; and that it is over.
func TestOpenHomeShowsFaultsAndUnableAgents(t *testing.T) {
	t.Parallel()
	var faults atomic.Pointer[[]Fault]
	faults.Store(new([]Fault))
	h := newHouse(t, func(o *Options) {
		o.Faults = func(context.Context) []Fault { return *faults.Load() }
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
	faults.Store(&[]Fault{{Name: "data_folder", Detail: "no space left"}})
	vera.Sees("#waits", "no space left")
	faults.Store(new([]Fault))
	vera.Until(`!document.querySelector("#waits .notice")`)
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
	}
	is(store.Condition{})
	vera.Sees("#lists .list", "idle")
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
	if text := page("en"); strings.Contains(text, "To fix it") {
		t.Errorf("a task that waits for an agent has something to fix: %s", text)
	}
	_, err = h.store.Move(t.Context(), store.Change{Task: one.ID, Trigger: task.GaveUp, Reason: task.ReasonRejectedByForge})
	must(t, err)
	for _, language := range []task.Language{task.English, task.Japanese} {
		text := page(string(language))
		for _, want := range []string{messages.Reason(language, task.ReasonRejectedByForge), messages.Fix(language, task.ReasonRejectedByForge)} {
			if want == "" || !strings.Contains(text, want) {
				t.Errorf("in %s the page does not say %q", language, want)
			}
		}
	}
}
