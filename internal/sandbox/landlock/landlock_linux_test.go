package landlock_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/sandbox/cgroup"
	"github.com/toryo-dev/toryo/internal/sandbox/guest"
	"github.com/toryo-dev/toryo/internal/sandbox/landlock"
	"github.com/toryo-dev/toryo/internal/sandbox/local"
	"github.com/toryo-dev/toryo/internal/sandbox/sandboxtest"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
)

func TestMain(m *testing.M) {
	sandboxtest.Probe()
	guest.Main(map[string]guest.Confinement{landlock.Name: landlock.Confine})
	if err := os.Setenv(sandboxtest.SecretVariable, "not for the inside"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

func newEngine(t *testing.T, dir string, _ sandbox.NewGate) sandbox.Engine {
	t.Helper()
	engine, err := landlock.New(landlock.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := engine.Check(t.Context()); err != nil {
		testkit.LeaveOut(t, "Landlock in the kernel")
	}
	return engine
}

var harness = sandboxtest.Harness{New: newEngine, Weak: true}

//nolint:paralleltest // it measures limits, and would disturb others
func TestSuite(t *testing.T) { sandboxtest.Run(t, harness) }

// TestWithoutControlGroups runs the tests of limits again where the kernel does not
// count for us.
//
//nolint:paralleltest // it measures limits, and would disturb others
func TestWithoutControlGroups(t *testing.T) {
	counted := sandboxtest.Harness{Weak: true, New: func(t *testing.T, dir string, gate sandbox.NewGate) sandbox.Engine {
		t.Helper()
		newEngine(t, t.TempDir(), gate)
		engine, err := landlock.New(landlock.Config{Dir: dir, Groups: &cgroup.System{Root: t.TempDir()}})
		if err != nil {
			t.Fatal(err)
		}
		return engine
	}}
	sandboxtest.RunSome(t, counted, "fork bomb", "memory", "memory that is shared", "memory in the background")
}

//nolint:paralleltest // it measures limits, and would disturb others
func TestChild(t *testing.T) { sandboxtest.Child(t, harness) }

// scopesSince is the version of Landlock that can keep signals inside.
const scopesSince = 6

func TestSignalsStayInside(t *testing.T) {
	t.Parallel()
	engine := newEngine(t, t.TempDir(), nil)
	if version, err := landlock.Version(); err != nil || version < scopesSince {
		testkit.LeaveOut(t, "Landlock with scopes in the kernel")
	}
	user, given := local.User()
	outside := exec.CommandContext(t.Context(), "sleep", "600")
	if given { // the sandbox's user is another than ours
		id := uint32(user)
		outside.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: id, Gid: id}}
	}
	if err := outside.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = outside.Process.Kill(); _ = outside.Wait() })
	box, err := engine.Start(t.Context(), sandbox.Spec{Owner: "x", Workspace: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = box.Stop(context.WithoutCancel(t.Context())) })
	for command, want := range map[string]string{
		fmt.Sprintf("kill -0 %d 2>/dev/null || echo refused", outside.Process.Pid): "refused\n",
		"sleep 600 & kill $! && wait; echo $?":                                     "0\n",
	} {
		result, err := box.Run(t.Context(), sandbox.Command{Text: command})
		if err != nil || string(result.Stdout) != want {
			t.Errorf("%s printed %q, %v, want %q", command, result.Log, err, want)
		}
	}
}

func TestWhatItCannotDoItRefuses(t *testing.T) {
	t.Parallel()
	engine := newEngine(t, t.TempDir(), nil)
	spec := sandbox.Spec{Owner: "x", Workspace: t.TempDir()}
	for _, policy := range []sandbox.Policy{sandbox.Registries, sandbox.OpenWorld} {
		with := spec
		with.Network = policy
		if _, err := engine.Start(t.Context(), with); task.CodeOf(err) != task.Unsupported {
			t.Errorf("the policy %s: %v", policy, err)
		}
	}
	with := spec
	with.Snapshot = "0123456789abcdef"
	if _, err := engine.Start(t.Context(), with); task.CodeOf(err) != task.Unsupported {
		t.Errorf("a snapshot: %v", err)
	}
}
