package endtoend

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/messages"
	"github.com/toryo-dev/toryo/internal/phase/phasetest"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// brokenKey is the key of an agent that the model rejects.
const brokenKey = "sk-broken"

// TestBrokenAgentHarmsNobody has two agents, of which one has a key that the model rejects once
// it is at work. The other one does all tasks, none of which has used up an attempt or failed;
// the broken one is shown with the reason and what to do, and comes back when its key is good
// again.
func TestBrokenAgentHarmsNobody(t *testing.T) {
	t.Parallel()
	h := build(t, plan{agents: 2, keys: map[int]string{0: brokenKey}})
	board, err := openBoard(t.Context(), h)
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	h.reject(true) // its check at the start has passed
	var stories []*story
	for i := range 3 {
		stories = append(stories, h.begin(t, board, named(t, fmt.Sprint("harmless", i))))
	}
	for _, s := range stories {
		s.seeThrough(t)
		done, err := h.store.TaskOf(ctx, s.item, task.Development)
		if err != nil || done.State != task.Done || done.Attempts != 1 || done.LastAgent != "agent1" {
			t.Errorf("the task is %+v, %v", done, err)
		}
	}
	h.awaitUnable(t, "agent0", task.ReasonKeyRejected)
	h.showsUnable(t, task.ReasonKeyRejected)
	// Each of them that the broken agent had was handed back once, at most: it takes one at a time.
	if handed := h.handedBack(t, stories, task.ReasonKeyRejected); len(handed) > 1 {
		t.Errorf("%d tasks were handed back: %v", len(handed), handed)
	}

	h.reject(false)
	h.awaitUnable(t, "agent0", "")
}

// TestOnlyABrokenAgent has one agent, whose key the model rejects: its task waits with the reason,
// and is done after the repair. Another one whose key is rejected before it starts is known to be
// broken without any task.
func TestOnlyABrokenAgent(t *testing.T) {
	t.Parallel()
	h := build(t, plan{agents: 1, keys: map[int]string{0: brokenKey, 1: brokenKey}})
	board, err := openBoard(t.Context(), h)
	must(t, err)
	h.reject(true)
	s := h.begin(t, board, named(t, "patient"))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		is, err := h.store.TaskOf(ctx, s.item, task.Development)
		if err == nil && is.State == task.Queued && is.Reason == task.ReasonKeyRejected && is.Attempts == 0 {
			break
		}
		if !pause(ctx) {
			t.Fatalf("the task is %+v, %v", is, err)
		}
	}
	explained, err := h.toryo(ctx, "tasks", "next", "--explain", "--data", h.data(0))
	must(t, err)
	for _, want := range []string{messages.Reason(task.English, task.ReasonKeyRejected), messages.Fix(task.English, task.ReasonKeyRejected)} {
		if !strings.Contains(explained, want) {
			t.Errorf("it is not said that %q:\n%s", want, explained)
		}
	}
	h.reject(false)
	s.seeThrough(t)
	if is, err := h.store.TaskOf(ctx, s.item, task.Development); err != nil || is.State != task.Done || is.Attempts != 1 {
		t.Errorf("the task is %+v, %v", is, err)
	}
	h.reject(true)
	must(t, h.addAgent(ctx, 1))
	h.awaitUnable(t, "agent1", task.ReasonKeyRejected)
}

// awaitUnable waits until the server knows for what reason an agent takes no tasks.
func (h *house) awaitUnable(t *testing.T, name string, reason task.Reason) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		agents, err := h.store.ListAgents(ctx)
		must(t, err)
		if slices.ContainsFunc(agents, func(a store.Agent) bool { return a.Name == name && a.Unable == reason }) {
			return
		}
		if !pause(ctx) {
			t.Fatalf("the agents are %+v", agents)
		}
	}
}

// showsUnable looks at where people see an agent that takes no tasks.
func (h *house) showsUnable(t *testing.T, reason task.Reason) {
	t.Helper()
	listed, err := h.toryo(t.Context(), "agent", "list", "--data", h.data(0))
	must(t, err)
	for _, want := range []string{messages.Reason(task.English, reason), messages.Fix(task.English, reason), "Incorrect API key provided"} {
		if !strings.Contains(listed, want) {
			t.Errorf("toryo agent list does not say %q:\n%s", want, listed)
		}
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.urls[0]+"/metrics", nil)
	must(t, err)
	answer, err := (&http.Client{Timeout: time.Minute}).Do(request)
	must(t, err)
	text, err := io.ReadAll(answer.Body)
	must(t, answer.Body.Close())
	must(t, err)
	if want := fmt.Sprintf("toryo_agents{unable=%q} 1", reason); !strings.Contains(string(text), want) {
		t.Errorf("the metrics do not have %s", want)
	}
}

// handedBack are the stories whose task was handed back for a reason.
func (h *house) handedBack(t *testing.T, stories []*story, reason task.Reason) (handed []string) {
	t.Helper()
	for _, s := range stories {
		moves, err := h.store.EventsOf(t.Context(), s.taskID(t.Context()), task.StateChanged)
		must(t, err)
		for _, move := range moves {
			if strings.Contains(string(move.Data), `"`+string(reason)+`"`) {
				handed = append(handed, s.Name)
			}
		}
	}
	return handed
}

// named is a short scenario under another name.
func named(t *testing.T, name string) *phasetest.Scenario {
	t.Helper()
	scenario := load(t, "../phase/testdata/scenarios/shell.txtar")[0]
	scenario.Name = name
	return scenario
}
