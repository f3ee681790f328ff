package endtoend

import (
	"context"
	"fmt"
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
	h := build(t, plan{agents: 2, settings: "roles: {SHELLCODER: {description: Writes small shell scripts.}}\n"})
	board, err := openBoard(t.Context(), h)
	must(t, err)
	for _, scenario := range load(t, "testdata/fixups/*.txtar") {
		t.Run(scenario.Name, func(t *testing.T) {
			first, err := phasetest.Load("../phase/testdata/scenarios/shell.txtar")
			must(t, err)
			first.Name, first.Labels = scenario.Name, []string{"SHELLCODER"}
			done := h.runStory(t, board, first)
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
			s.askForChanges(t, board)
			s.seeThrough(t)
			s.check(t)
			s.checkProgress(t)
			s.checkKilled(t)
			done.checkRole(t)
			s.checkRole(t) // of the issue: the pull request has no label for it
			if t.Failed() {
				t.Log(s.journal(t))
			}
		})
	}
}

// askForChanges lets a reviewer ask for changes, and puts the bot on the pull request if it
// is to be taken off it. The run does not get to the event of the scenario before that.
func (s *story) askForChanges(t *testing.T, on *boardSite) {
	t.Helper()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	review := wire.NewBoardReview{Verdict: "request_changes", Body: "It should be tested."}
	must(t, on.act(t.Context(), http.MethodPost, "carol", on.path(s.item)+"/reviews", review, nil))
	if len(s.Events) == 0 || s.Events[0].By != "issue" {
		s.assignPull(t)
	}
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

// checkRole checks that the model was told its role whenever it was asked to work.
func (s *story) checkRole(t *testing.T) {
	t.Helper()
	told := 0
	for _, record := range s.model.Records() {
		if strings.Contains(record.Request.System, "## Your role: SHELLCODER\n\nWrites small shell scripts.\n") {
			told++
		}
	}
	if all := len(s.model.Records()); told == 0 || told != all {
		t.Errorf("the model was told its role in %d of %d requests", told, all)
	}
}

// checkKilled checks that no command of the events still runs.
func (s *story) checkKilled(t *testing.T) {
	t.Helper()
	for _, event := range s.Events {
		running, err := commandRuns(event.Running)
		must(t, err)
		if running {
			t.Errorf("%q still runs", event.Running)
		}
	}
}

// awaitCommand waits until a process with this command line is there.
func awaitCommand(ctx context.Context, command string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for command != "" {
		running, err := commandRuns(command)
		if err != nil || running {
			return err
		}
		if !pause(ctx) {
			return fmt.Errorf("%q does not run", command)
		}
	}
	return nil
}

// commandRuns reports whether a process has this command line, and nothing else in it.
func commandRuns(command string) (bool, error) {
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err == nil && strings.ReplaceAll(strings.TrimRight(string(text), "\x00"), "\x00", " ") == command {
			return true, nil
		}
	}
	return false, err
}
