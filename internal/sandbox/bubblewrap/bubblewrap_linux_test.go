package bubblewrap_test

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/sandbox/bubblewrap"
	"github.com/toryo-dev/toryo/internal/sandbox/cgroup"
	"github.com/toryo-dev/toryo/internal/sandbox/guest"
	"github.com/toryo-dev/toryo/internal/sandbox/sandboxtest"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
	"github.com/toryo-dev/toryo/internal/workdir"
)

func TestMain(m *testing.M) {
	sandboxtest.Probe()
	guest.Main(nil)
	if err := os.Setenv(sandboxtest.SecretVariable, "not for the inside"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

func newEngine(t *testing.T, dir string, gate sandbox.NewGate) sandbox.Engine {
	t.Helper()
	if _, err := exec.LookPath("bwrap"); err != nil {
		testkit.LeaveOut(t, "bubblewrap")
	}
	engine, err := bubblewrap.New(bubblewrap.Config{Dir: dir, NewGate: gate, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if err := engine.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	return engine
}

var harness = sandboxtest.Harness{New: newEngine}

//nolint:paralleltest // it measures limits, and would disturb others
func TestSuite(t *testing.T) { sandboxtest.Run(t, harness) }

// TestWithoutControlGroups runs the tests of limits again where the kernel does not
// count for us.
//
//nolint:paralleltest // it measures limits, and would disturb others
func TestWithoutControlGroups(t *testing.T) {
	counted := sandboxtest.Harness{New: func(t *testing.T, dir string, gate sandbox.NewGate) sandbox.Engine {
		t.Helper()
		newEngine(t, t.TempDir(), gate)
		engine, err := bubblewrap.New(bubblewrap.Config{Dir: dir, NewGate: gate, Log: slog.New(slog.DiscardHandler), Groups: &cgroup.System{Root: t.TempDir()}})
		if err != nil {
			t.Fatal(err)
		}
		return engine
	}}
	sandboxtest.RunSome(t, counted, "fork bomb", "memory", "memory that is shared", "memory in the background")
}

//nolint:paralleltest // it measures limits, and would disturb others
func TestChild(t *testing.T) { sandboxtest.Child(t, harness) }

// TestOrdinaryUser runs part of the suite again as a user without rights, where
// the tests are run by the superuser.
//
//nolint:paralleltest // it measures limits, and would disturb others
func TestOrdinaryUser(t *testing.T) {
	if os.Getuid() != 0 {
		return // then TestSuite was that
	}
	const nobody = 65534
	dir, err := os.MkdirTemp("", "ordinary") //nolint:usetesting // another user has to reach it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := workdir.Remove(dir); err != nil {
			t.Error(err)
		}
	})
	if err := errors.Join(os.Chmod(dir, 0o755), os.Chown(dir, nobody, nobody)); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "program"), program, 0o755); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), filepath.Join(dir, "program"), "-test.v", "-test.run=^TestSuite$/^(commands|shell_state|time_limit|fork_bomb|privileges|host_unharmed|network|snapshot|list_and_reap|the_program_is_killed|memory_that_is_shared|memory_in_the_background|arguments|sockets)$")
	command.Dir = dir
	command.Env = []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + dir}
	command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	output, err := command.CombinedOutput()
	if err != nil || bytes.Count(output, []byte("    --- PASS")) != 14 {
		t.Errorf("as an ordinary user: %v\n%s", err, output)
	}
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

// TestBubblewrapWithoutResources: bwrap prints what the kernel did not give it, such as a
// namespace where there are as many as user.max_user_namespaces allows.
func TestBubblewrapWithoutResources(t *testing.T) {
	t.Parallel()
	for printed, exhausted := range map[string]bool{
		"bwrap: Creating new namespace failed: No space left on device": true,
		"bwrap: Can't mount proc on /newroot/proc: Permission denied":   false,
	} {
		dir := t.TempDir()
		if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil { // the superuser starts it as another user
			t.Fatal(err)
		}
		program := filepath.Join(dir, "bwrap")
		if err := os.WriteFile(program, []byte("#!/bin/sh\necho \""+printed+"\" >&2\nexit 1\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		engine, err := bubblewrap.New(bubblewrap.Config{Dir: t.TempDir(), Program: program, Groups: &cgroup.System{Root: t.TempDir()},
			NewGate: func(sandbox.Policy) sandbox.Gate { return closedGate{} }, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		_, err = engine.Start(t.Context(), sandbox.Spec{Owner: "x", Workspace: t.TempDir()})
		if err == nil || !strings.Contains(err.Error(), printed) || sandbox.IsExhausted(err) != exhausted {
			t.Errorf("the start gave %v, a lack of resources: %t", err, sandbox.IsExhausted(err))
		}
	}
}

func BenchmarkSandbox(b *testing.B) {
	sandboxtest.Benchmark(b, func(b *testing.B) sandbox.Engine {
		b.Helper()
		engine, err := bubblewrap.New(bubblewrap.Config{Dir: b.TempDir(), NewGate: func(sandbox.Policy) sandbox.Gate { return closedGate{} }, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			b.Fatal(err)
		}
		return engine
	}, "")
}

type closedGate struct{}

func (closedGate) Serve(connection net.Conn) { _ = connection.Close() }
func (closedGate) SetPolicy(sandbox.Policy)  {}
func (closedGate) Close() error              { return nil }
