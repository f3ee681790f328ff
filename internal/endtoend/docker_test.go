package endtoend

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/sandbox/docker"
	"github.com/toryo-dev/toryo/internal/sandbox/egress"
	"github.com/toryo-dev/toryo/internal/testkit"
)

// TestDocker lets a selection of the scenarios happen with real containers, and none is
// left afterwards.
func TestDocker(t *testing.T) { //nolint:tparallel // tellAll runs them side by side
	t.Parallel()
	engine, image := os.Getenv("TORYO_TEST_DOCKER"), os.Getenv("TORYO_TEST_DOCKER_IMAGE")
	if engine == "" || image == "" {
		testkit.LeaveOut(t, "a Docker Engine (TORYO_TEST_DOCKER, TORYO_TEST_DOCKER_IMAGE)")
	}
	h := build(t, plan{agents: 2, sandbox: docker.Name, env: []string{"TORYO_SANDBOX_CONTAINER_ENGINE=" + engine}})
	board, err := openBoard(t.Context(), h)
	must(t, err)
	scenarios := pick(load(t, "../phase/testdata/scenarios/*.txtar", "testdata/signals/*.txtar"),
		"python", "stop_late_command", "stop_late_setup", "pause_command", "crash_command")
	for _, scenario := range scenarios {
		scenario.Image = image
	}
	h.runStories(t, board, scenarios)
	gates, err := egress.Registries()
	must(t, err)
	cleaner, err := docker.New(docker.Config{Host: engine, Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler), NewGate: func(policy sandbox.Policy) sandbox.Gate {
		return egress.New(gates, policy, slog.New(slog.DiscardHandler))
	}})
	must(t, err)
	for i := range h.agents {
		owner, err := os.ReadFile(filepath.Join(h.agentData(i), "agent", "owner"))
		must(t, err)
		left, err := cleaner.Reap(t.Context(), strings.TrimSpace(string(owner)), func(sandbox.Info) bool { return false })
		if err != nil || left > 0 {
			t.Errorf("agent%d has left %d containers, %v", i, left, err)
		}
	}
}
