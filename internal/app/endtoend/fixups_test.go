package endtoend

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/llm/script"
	"github.com/toryo-dev/toryo/internal/phase/phasetest"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// TestFixUps lets the bot do an issue, lets a reviewer ask for changes of its pull request,
// and then a scenario happen to the task that comes of that.
func TestFixUps(t *testing.T) { //nolint:tparallel // one after the other
	t.Parallel()
	h := build(t, plan{agents: 2})
	board, err := openBoard(t.Context(), h)
	must(t, err)
	for _, scenario := range load(t, "testdata/fixups/*.txtar") {
		t.Run(scenario.Name, func(t *testing.T) {
			first, err := phasetest.Load("../../phase/testdata/scenarios/shell.txtar")
			must(t, err)
			first.Name = scenario.Name
			done := h.tell(t, board, first)
			o := done.read(t)
			if t.Failed() || len(o.pulls) != 1 {
				t.Fatalf("there are %d pull requests, want 1", len(o.pulls))
			}
			s := &story{
				Scenario: scenario, house: h, site: board, item: o.pulls[0].Key, issue: done.item, main: done.main, model: script.NewServer(scenario.Script),
				fired: map[int]bool{}, ids: map[string]string{}, threads: map[string]string{}, authors: map[string]string{},
			}
			h.mutex.Lock()
			h.stories[s.item.Repository] = s
			h.mutex.Unlock()
			review := wire.NewBoardReview{Verdict: "request_changes", Body: "It should be tested."}
			must(t, board.act(t.Context(), http.MethodPost, "carol", board.path(s.item)+"/reviews", review, nil))
			if !offIssue(scenario) {
				s.assignPull(t)
			}
			s.seeThrough(t)
			s.check(t)
			s.checkProgress(t)
			s.checkKilled(t)
			if t.Failed() {
				t.Log(s.journal(t))
			}
		})
	}
}

func offIssue(scenario *phasetest.Scenario) bool {
	return len(scenario.Events) > 0 && scenario.Events[0].By == "issue"
}

// assignPull puts the bot on the pull request when its task is there, and waits until the
// server has seen that.
func (s *story) assignPull(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	assigned := false
	for {
		is, err := s.house.store.TaskOf(ctx, s.item, task.Development)
		if err == nil && is.AssignedOn.Contains(s.item) {
			return
		}
		if err == nil && !assigned {
			must(t, s.site.assign(ctx, s.item, true))
			assigned = true
		}
		if !pause(ctx) {
			t.Fatalf("the bot was not seen on the pull request: %+v, %v", is, err)
		}
	}
}

// checkKilled looks for the commands of the scenario among all processes.
func (s *story) checkKilled(t *testing.T) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	must(t, err)
	for _, rule := range s.Script.Rules {
		for _, call := range rule.Answer.Calls {
			command, _ := call.Arguments["command"].(string)
			for _, file := range files {
				text, err := os.ReadFile(file)
				if err == nil && command != "" && strings.Contains(strings.ReplaceAll(string(text), "\x00", " "), command) {
					t.Errorf("%q still runs: %s", command, file)
				}
			}
		}
	}
}
