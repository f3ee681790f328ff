package sandboxtest

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/sandbox/egress"
	"github.com/toryo-dev/toryo/internal/workdir"
)

// Harness is how the suite gets at an adapter.
type Harness struct {
	// New makes an engine with a folder and a gate.
	New   func(t *testing.T, dir string, gate sandbox.NewGate) sandbox.Engine
	Image string
	// Weak says that the adapter shares the host's file system and processes:
	// what it confines is less, and it has neither snapshots nor a network.
	Weak bool
}

// Run runs the suite.
func Run(t *testing.T, harness Harness) {
	t.Helper()
	RunSome(t, harness)
}

// RunSome runs the tests of the suite that are named, or all.
func RunSome(t *testing.T, harness Harness, names ...string) {
	t.Helper()
	tests := []struct {
		name   string
		strong bool // needs an adapter that is not weak
		test   func(*testing.T, Harness)
	}{
		{"commands", false, testCommands},
		{"shell state", false, testShellState},
		{"fresh shell", false, testFreshShell},
		{"folders and sessions", false, testFolders},
		{"a shell that dies", false, testDeadShell},
		{"standard input", false, testStandardInput},
		{"output", false, testOutput},
		{"time limit", false, testTimeLimit},
		{"cancelled", false, testCancelled},
		{"fork bomb", false, testForkBomb},
		{"memory", false, testMemory},
		{"disk", false, testDisk},
		{"memory that is shared", false, testSharedMemory},
		{"memory in the background", false, testBackgroundMemory},
		{"memory at once", true, testMemoryAtOnce},
		{"disk over many commands", false, testDiskOverCommands},
		{"disk in the background", false, testBackgroundDisk},
		{"empty files", false, testEmptyFiles},
		{"odd names and deep folders", false, testOddTree},
		{"the shell's state", false, testHostileState},
		{"arguments", false, testArguments},
		{"left behind", false, testLeftBehind},
		{"bad commands", false, testBadCommands},
		{"bad specification", false, testBadSpec},
		{"nothing secret", false, testNothingSecret},
		{"host unharmed", false, testHostUnharmed},
		{"privileges", true, testPrivileges},
		{"stopped while a command runs", false, testStoppedWhileRunning},
		{"network", true, testNetwork},
		{"idle connections", true, testIdleConnections},
		{"no network", false, testNoNetwork},
		{"sockets", false, testSockets},
		{"snapshot", true, testSnapshot},
		{"list and reap", false, testListAndReap},
		{"the program is killed", false, testKilledProgram},
		{"places of the data folder", false, testPlaces},
	}
	for _, test := range tests {
		if len(names) > 0 && !slices.Contains(names, test.name) {
			continue
		}
		if test.strong && harness.Weak {
			continue // this adapter does not have it
		}
		t.Run(test.name, func(t *testing.T) { test.test(t, harness) })
	}
}

const owner = "suite"

// engine makes an engine with a folder of its own.
func (h Harness) engine(t *testing.T, gate sandbox.NewGate) sandbox.Engine {
	t.Helper()
	dir := t.TempDir()
	t.Cleanup(func() {
		if err := workdir.Remove(dir); err != nil {
			t.Error(err)
		}
	})
	return h.New(t, dir, gate)
}

// limits are small, so that what exceeds them does so soon.
var limits = sandbox.Limits{Memory: 300 << 20, Processes: 100, CPUs: 1, Disk: 32 << 20}

// NoGate lets nothing out.
func NoGate(policy sandbox.Policy) sandbox.Gate {
	list, err := egress.NewList()
	if err != nil {
		panic(err) // an empty list is always good
	}
	return egress.New(list, policy, slog.New(slog.DiscardHandler))
}

func start(t *testing.T, h Harness) sandbox.Sandbox {
	t.Helper()
	return startWith(t, h.engine(t, NoGate), sandbox.Spec{Owner: owner, Image: h.Image, Workspace: t.TempDir(), Limits: limits})
}

func startWith(t *testing.T, engine sandbox.Engine, spec sandbox.Spec) sandbox.Sandbox {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	started, err := engine.Start(ctx, spec)
	if err != nil {
		t.Fatalf("start a sandbox: %v", err)
	}
	t.Cleanup(func() {
		if err := started.Stop(context.WithoutCancel(ctx)); err != nil {
			t.Errorf("stop the sandbox: %v", err)
		}
	})
	return started
}

// run runs a command that has to be carried out, whatever its exit code.
func run(t *testing.T, in sandbox.Sandbox, text string) sandbox.Result {
	t.Helper()
	return runCommand(t, in, sandbox.Command{Text: text, Timeout: time.Minute})
}

func runCommand(t *testing.T, in sandbox.Sandbox, command sandbox.Command) sandbox.Result {
	t.Helper()
	result, err := in.Run(t.Context(), command)
	if err != nil {
		t.Fatalf("run %.80q: %v", command.Text, err)
	}
	return result
}

// wantOutput runs a command and compares its standard output.
func wantOutput(t *testing.T, in sandbox.Sandbox, text, want string) {
	t.Helper()
	result := run(t, in, text)
	if string(result.Stdout) != want || result.ExitCode != 0 {
		t.Errorf("%q printed %.300q and ended with %d, want %q (all: %.500q)", text, result.Stdout, result.ExitCode, want, result.Log)
	}
}
