package bubblewrap_test

import (
	"log/slog"
	"os"
	"os/exec"
	"testing"

	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/sandbox/bubblewrap"
	"github.com/toryo-dev/toryo/internal/sandbox/guest"
	"github.com/toryo-dev/toryo/internal/sandbox/sandboxtest"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
)

func TestMain(m *testing.M) {
	guest.Main(nil)
	if err := os.Setenv(sandboxtest.SecretVariable, "not for the inside"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

func newEngine(t *testing.T, gate sandbox.NewGate) sandbox.Engine {
	t.Helper()
	if _, err := exec.LookPath("bwrap"); err != nil {
		testkit.LeaveOut(t, "bubblewrap")
	}
	dir := t.TempDir()
	t.Cleanup(func() {
		if err := sandbox.RemoveTree(dir); err != nil {
			t.Error(err)
		}
	})
	engine, err := bubblewrap.New(bubblewrap.Config{Dir: dir, NewGate: gate, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if err := engine.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	return engine
}

func TestSuite(t *testing.T) {
	sandboxtest.Run(t, sandboxtest.Harness{New: newEngine})
}

func TestMissingProgram(t *testing.T) {
	t.Parallel()
	engine, err := bubblewrap.New(bubblewrap.Config{Dir: t.TempDir(), Program: "no-such-program",
		NewGate: func(sandbox.Policy) sandbox.Gate { return nil }, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if err := engine.Check(t.Context()); task.CodeOf(err) != task.NotReady {
		t.Errorf("check: %v", err)
	}
	_, err = engine.Start(t.Context(), sandbox.Spec{Owner: "x", Workspace: t.TempDir()})
	if task.CodeOf(err) != task.NotReady {
		t.Errorf("start: %v", err)
	}
}
