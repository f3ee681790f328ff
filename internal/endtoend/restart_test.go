package endtoend

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/toryo-dev/toryo/internal/phase/phasetest"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// TestCopiedAgent starts an agent in a copy of the folder of one that is in the middle of
// a task: with the same token and name, but another one. It is not taken for the first
// one, which goes on with its task.
func TestCopiedAgent(t *testing.T) {
	t.Parallel()
	h := build(t, plan{agents: 1, env: []string{longLeases}})
	board, err := openBoard(t.Context(), h)
	must(t, err)
	scenario := crashScenario(t, "copied", 0)
	scenario.Expect.Runs = 1
	scenario.Events = append(scenario.Events, phasetest.Event{When: phasetest.When{Entry: 30}, Do: func(ctx context.Context) error {
		before, err := h.runningIn(ctx)
		if err == nil {
			err = h.addCopy(ctx) // it has said by then that it was started
		}
		after, failed := h.runningIn(ctx)
		if err = errors.Join(err, failed); err != nil || after != before {
			t.Errorf("the task of the first agent is in generation %d, and was in %d: %v", after, before, err)
		}
		return err
	}})
	h.runStory(t, board, scenario)
}

// runningIn is the generation of the one task that is running.
func (h *house) runningIn(ctx context.Context) (int64, error) {
	held, err := h.store.ListTasks(ctx, store.TaskFilter{States: []task.State{task.Running}})
	if err != nil || len(held) != 1 {
		return 0, errors.Join(err, fmt.Errorf("%d tasks are running", len(held)))
	}
	return held[0].Generation, nil
}

// addCopy starts an agent in a copy of the folder of the first one.
func (h *house) addCopy(ctx context.Context) error {
	from, to := filepath.Join(h.agentData(0), "agent"), filepath.Join(h.agentData(1), "agent")
	if err := os.CopyFS(filepath.Join(to, "processes"), os.DirFS(filepath.Join(from, "processes"))); err != nil {
		return err
	}
	for _, file := range []string{"token", "owner", "agent.lock"} {
		text, err := os.ReadFile(filepath.Join(from, file))
		if err == nil {
			err = os.WriteFile(filepath.Join(to, file), text, 0o600)
		}
		if err != nil {
			return err
		}
	}
	first := h.agents[0]
	args := slices.Clone(first.args)
	args[slices.Index(args, "--data")+1] = h.agentData(1)
	second := &process{name: "agent1", dir: h.dir, ready: "asks", env: first.env, args: args}
	h.agents = append(h.agents, second)
	return second.start(ctx)
}

// TestPauseFileOfAnAgent has a file in the folder of an agent's contexts pause what that
// agent does, and nothing else: another agent takes tasks meanwhile. The agent takes none,
// also not after it was killed and started again. When the file is gone the task goes on.
func TestPauseFileOfAnAgent(t *testing.T) {
	t.Parallel()
	h := build(t, plan{agents: 2, env: []string{longLeases}})
	board, err := openBoard(t.Context(), h)
	must(t, err)
	paused, other := crashScenario(t, "paused", 0), crashScenario(t, "other", 0)
	paused.Expect.Runs, paused.Expect.States = 2, []string{"paused/agent_paused", "done/completed"}
	paused.Events = append(paused.Events,
		phasetest.Event{When: phasetest.When{Entry: 30}, Signal: task.SignalPause, By: "agent file"},
		phasetest.Event{When: phasetest.When{Start: true, Run: 2}, Do: func(ctx context.Context) error {
			of := h.of(t.Context(), h.pausedTask(t)).agent
			file := h.pauseFileOf(of)
			host, err := os.Hostname()
			if err != nil {
				return err
			}
			h.wantAgent(t, of, "(file "+file+" on "+host+")")
			agent := h.agentNamed(of)
			agent.end(syscall.SIGKILL)
			if err := agent.start(ctx); err != nil {
				return err
			}
			if told := h.runStory(t, board, other); told.agent == of {
				t.Errorf("%s takes a task while its pause file is there", of)
			}
			h.pausedTask(t)
			return nil
		}},
	)
	h.runStory(t, board, paused)
	h.wantAgent(t, "agent0", "-")
	h.wantAgent(t, "agent1", "-")
}

// pausedTask is the id of the one task that is paused.
func (h *house) pausedTask(t *testing.T) string {
	t.Helper()
	held, err := h.store.ListTasks(t.Context(), store.TaskFilter{States: []task.State{task.Paused}})
	if err != nil || len(held) != 1 {
		t.Fatalf("%d tasks are paused, %v", len(held), err)
	}
	return string(held[0].ID)
}

// wantAgent waits until the list of agents says why an agent takes no tasks.
func (h *house) wantAgent(t *testing.T, name, reason string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		said, err := h.toryo(ctx, "agent", "list", "--data", h.data(0))
		must(t, err)
		for line := range strings.Lines(said) {
			if strings.Contains(line, name) && (strings.Contains(line, reason) && reason != "-" || strings.HasSuffix(strings.TrimSpace(line), " "+reason)) {
				return
			}
		}
		if !pause(ctx) {
			t.Fatalf("%s is not listed with %q: %s", name, reason, said)
		}
	}
}
