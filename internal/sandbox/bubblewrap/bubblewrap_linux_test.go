package bubblewrap_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

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
	engine, err := bubblewrap.New(bubblewrap.Config{Dir: dir, Guest: testkit.Guest(), NewGate: gate, Log: slog.New(slog.DiscardHandler)})
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
		engine, err := bubblewrap.New(bubblewrap.Config{Dir: dir, Guest: testkit.Guest(), NewGate: gate, Log: slog.New(slog.DiscardHandler), Groups: &cgroup.System{Root: t.TempDir()}})
		if err != nil {
			t.Fatal(err)
		}
		return engine
	}}
	sandboxtest.RunSome(t, counted, "fork bomb", "memory", "memory that is shared", "memory in the background")
}

//nolint:paralleltest // it measures limits, and would disturb others
func TestChild(t *testing.T) { sandboxtest.Child(t, harness) }

// A server that is told to stop while it looks whether bwrap works ends, also if bwrap is killed before
// what it has started knows that it is to end too. The output is held open by that.
func TestStopInTheMiddleOfACheck(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	ended, program := filepath.Join(folder, "ended"), filepath.Join(folder, "bwrap")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n(sleep 20; touch "+ended+") &\nwait\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	engine, err := bubblewrap.New(bubblewrap.Config{Dir: filepath.Join(folder, "data"), Program: program, NewGate: sandboxtest.NoGate, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := engine.Check(ctx); err == nil {
		t.Error("what does not end works")
	}
	if _, err := os.Stat(ended); err == nil {
		t.Error("the end of what bwrap had started was waited for")
	}
}

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

// TestToolchains: a toolchain of the host is found at its own path, wherever that is.
func TestToolchains(t *testing.T) {
	t.Parallel()
	newEngine(t, t.TempDir(), sandboxtest.NoGate)
	for _, parent := range []string{"/mnt", "/opt", "/srv", "/tmp", "/home"} {
		folder, err := os.MkdirTemp(parent, "toolchain") //nolint:usetesting // it has to be there
		if err != nil {
			continue // an ordinary user may not
		}
		t.Cleanup(func() {
			if err := workdir.Remove(folder); err != nil {
				t.Error(err)
			}
		})
		err = errors.Join(os.Chmod(folder, 0o755), os.Mkdir(filepath.Join(folder, "bin"), 0o755),
			os.WriteFile(filepath.Join(folder, "bin", "compile"), []byte("#!/bin/sh\necho compiled\n"), 0o755))
		if err != nil {
			t.Fatal(err)
		}
		engine, err := bubblewrap.New(bubblewrap.Config{Dir: filepath.Join(folder, "data"), Toolchains: []string{folder}, NewGate: sandboxtest.NoGate, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		box, err := engine.Start(t.Context(), sandbox.Spec{Owner: "toolchains", Workspace: t.TempDir()})
		if err != nil {
			t.Fatalf("below %s: %v", parent, err)
		}
		result, err := box.Run(t.Context(), sandbox.Command{Text: "compile"})
		if err != nil || string(result.Stdout) != "compiled\n" {
			t.Errorf("below %s: %q, %v", parent, result.Log, err)
		}
		if err := box.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	}
	for _, folder := range []string{"/", "/tmp", "/tmp/", "/home", "/home/toryo", "/workspace", "/workspace/go", "/run/toryo"} {
		_, err := bubblewrap.New(bubblewrap.Config{Dir: t.TempDir(), Toolchains: []string{folder}, NewGate: sandboxtest.NoGate, Log: slog.New(slog.DiscardHandler)})
		if task.CodeOf(err) != task.Invalid {
			t.Errorf("the toolchain %s: %v", folder, err)
		}
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

// A sandbox for which the disk of the machine has no room is no matter of what is to run in it.
func TestBubblewrapWithoutRoom(t *testing.T) {
	t.Parallel()
	for what, fill := range map[string]func(*testkit.Disk){
		"full": func(disk *testkit.Disk) { disk.Fill(t) }, "no file left": func(disk *testkit.Disk) { disk.FillFiles(t) },
	} {
		disk := testkit.NewDisk(t, 1<<20, 200)
		if disk == nil {
			return
		}
		engine, err := bubblewrap.New(bubblewrap.Config{Dir: filepath.Join(disk.Dir, "sandbox"), NewGate: func(sandbox.Policy) sandbox.Gate { return closedGate{} }, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		fill(disk)
		_, err = engine.Start(t.Context(), sandbox.Spec{Owner: "x", Workspace: t.TempDir()})
		if _, unusable := errors.AsType[*sandbox.UnusableError](sandbox.StartError(err)); !unusable {
			t.Errorf("%s: the start gave %v", what, err)
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
