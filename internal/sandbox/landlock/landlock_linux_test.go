package landlock_test

import (
	"os"
	"testing"

	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/sandbox/guest"
	"github.com/toryo-dev/toryo/internal/sandbox/landlock"
	"github.com/toryo-dev/toryo/internal/sandbox/sandboxtest"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
)

func TestMain(m *testing.M) {
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

//nolint:paralleltest // it measures limits, and would disturb others
func TestChild(t *testing.T) { sandboxtest.Child(t, harness) }

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
