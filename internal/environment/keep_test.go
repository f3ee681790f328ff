package environment_test

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/toryo-dev/toryo/internal/environment"
	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/task"
)

var errGone = task.Errorf(task.Unavailable, "the sandbox is gone")

// A sandbox that has no room for the caches of compilers is set up once more without them, and
// that is kept.
func TestASandboxThatIsLostWithItsCachesIsSetUpAgain(t *testing.T) {
	t.Parallel()
	entry, _ := environment.BuiltIn().Find("go")
	for name, result := range map[string]any{
		"it is gone":       errGone,
		"memory":           sandbox.Result{ExitCode: 137, Exceeded: sandbox.MemoryLimit},
		"its disk is full": sandbox.Result{ExitCode: 137, Exceeded: sandbox.DiskLimit},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.Snapshots = 1 << 30
			b.engine.results["check"] = []any{printed("OK")}
			b.engine.results[entry.Caches[0]] = []any{result}
			got := b.run(t, environment.Selection{Name: "go", SetupCommands: []string{"one"}, Verification: plan.Verification, Projects: []environment.Project{}})
			want := []string{"one", entry.Caches[0], "one", "check"}
			if got.Result.OverallStatus != environment.Succeeded || !slices.Equal(b.engine.ran, want) || len(b.engine.starts) != 2 || b.engine.stops != 1 || len(b.engine.kept) != 1 {
				t.Errorf("got %+v; ran %q, %d starts, kept %v", got.Result, b.engine.ran, len(b.engine.starts), b.engine.kept)
			}
		})
	}
}

// A sandbox that had no room for the caches of compilers lives. If it cannot be stopped, no other
// is started beside it; one that is gone may be.
func TestNoSandboxIsStartedBesideOneThatLives(t *testing.T) {
	t.Parallel()
	entry, _ := environment.BuiltIn().Find("go")
	for name, test := range map[string]struct {
		result any
		starts int
		ends   environment.Status
	}{
		"it is gone": {errGone, 2, environment.Succeeded},
		"it lives":   {sandbox.Result{ExitCode: 137, Exceeded: sandbox.MemoryLimit}, 1, environment.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.Snapshots = 1 << 30
			b.engine.stopErr = errors.New("the engine does not answer")
			b.engine.results["check"] = []any{printed("OK")}
			b.engine.results[entry.Caches[0]] = []any{test.result}
			got := b.run(t, environment.Selection{Name: "go", SetupCommands: []string{"one"}, Verification: plan.Verification, Projects: []environment.Project{}})
			if got.Result.OverallStatus != test.ends || len(b.engine.starts) != test.starts || b.engine.stops != 1 {
				t.Errorf("got %+v; %d starts, %d stops", got.Result, len(b.engine.starts), b.engine.stops)
			}
		})
	}
}

// Caches that are not filled in time are kept as they are.
func TestCachesThatTakeTooLongAreKept(t *testing.T) {
	t.Parallel()
	entry, _ := environment.BuiltIn().Find("go")
	b := newBench(t)
	b.Snapshots = 1 << 30
	b.engine.results["check"] = []any{printed("OK")}
	b.engine.results[entry.Caches[0]] = []any{sandbox.Result{ExitCode: 137, Exceeded: sandbox.TimeLimit}}
	got := b.run(t, environment.Selection{Name: "go", SetupCommands: []string{"one"}, Verification: plan.Verification, Projects: []environment.Project{}})
	if got.Result.OverallStatus != environment.Succeeded || len(b.engine.starts) != 1 || len(b.engine.kept) != 1 {
		t.Errorf("got %+v; %d starts, kept %v", got.Result, len(b.engine.starts), b.engine.kept)
	}
}

// That a snapshot cannot be made is no failure of the set-up, whether the sandbox goes with it
// or not.
func TestASnapshotThatCannotBeMadeIsNoFailure(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		then any // of the next command
		want []string
	}{
		"the sandbox is gone": {errGone, []string{"one", "two", "true", "one", "two", "check"}},
		"it goes on":          {printed(""), []string{"one", "two", "true", "check"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.Snapshots = 1 << 30
			b.engine.keeping = func() (int64, error) { return 0, errors.New("no space left on device") }
			b.engine.stopErr = errors.New("there is nothing to stop")
			b.engine.results["check"], b.engine.results["true"] = []any{printed("OK")}, []any{test.then}
			got := b.run(t, plan)
			if got.Result.OverallStatus != environment.Succeeded || !slices.Equal(b.engine.ran, test.want) || got.Receipt.SnapshotKey != "" {
				t.Errorf("got %+v; ran %q", got.Result, b.engine.ran)
			}
		})
	}
}

// A snapshot for which all others would have to go, and then it too, is not kept.
func TestASnapshotThatIsTooLargeLeavesTheOthers(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Snapshots = 15
	b.engine.snapshots = []sandbox.Snapshot{{Key: "tools", Bytes: 10}, {Key: "too large", Bytes: 16}}
	b.engine.keeping = func() (int64, error) { return 16, nil }
	b.engine.results["check"] = []any{printed("OK")}
	got := b.run(t, plan)
	if got.Result.OverallStatus != environment.Succeeded || got.Receipt.SnapshotKey != "" || len(b.engine.kept) != 1 || !slices.Equal(b.engine.removed, b.engine.kept) || len(got.Result.Warnings) != 1 {
		t.Errorf("got %+v; kept %v, removed %v", got.Result, b.engine.kept, b.engine.removed)
	}
}

// A snapshot that did not pass verification is removed only if what was set up anew in the same
// way passes at once. Otherwise the verification may be what is wrong, and others use the
// snapshot. It is not made again in the same run, so that no run takes longer than the one before.
func TestOnlyASnapshotThatIsOutOfDateIsRemoved(t *testing.T) {
	t.Parallel()
	again := environment.Repair{SetupCommands: []string{"one"}}
	for name, test := range map[string]struct {
		results map[string][]any // of the set-up from nothing
		removed bool
	}{
		"it passes":                        {map[string][]any{"check": {printed("OK")}}, true},
		"it fails again":                   {map[string][]any{"check": {printed("no")}}, false},
		"it passes once repaired":          {map[string][]any{"check": {printed("no"), printed("OK")}}, false},
		"the set-up is repaired":           {map[string][]any{"one": {failedWith(1, "boom"), printed("")}, "check": {printed("OK")}}, false},
		"another project cannot be set up": {map[string][]any{"npm install": {failedWith(127, "npm: command not found")}, "check": {printed("OK")}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := inFolders(t, twoProjects)
			b.Snapshots = 1 << 30
			b.engine.results["node -e 'console.log(\"OK\")'"] = []any{printed("OK")}
			b.repairer.answers = []any{again, errors.New("no more")}
			plan := environment.Selection{Name: "go", SetupCommands: []string{"one"}, Verification: goCheck}
			b.run(t, plan)
			b.engine.snapshots = []sandbox.Snapshot{{Key: b.engine.kept[0]}}
			maps.Copy(b.engine.results, test.results)
			b.engine.results["check"] = append([]any{printed("stale")}, test.results["check"]...)
			got := b.run(t, plan)
			if removed := slices.Equal(b.engine.removed, b.engine.kept); removed != test.removed || len(b.engine.kept) != 1 || len(b.engine.starts) != 3 {
				t.Errorf("got %+v; kept %v, removed %v, %d starts", got.Result, b.engine.kept, b.engine.removed, len(b.engine.starts))
			}
		})
	}
}
