package environment_test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toryo-dev/toryo/internal/environment"
	"github.com/toryo-dev/toryo/internal/sandbox"
)

// goPlan is a plan for the project of newGoBench.
var goPlan = environment.Selection{Name: "go", SetupCommands: []string{"one"},
	Verification: []environment.Check{{Command: "check", ExpectedOutput: "OK"}}}

// newGoBench has a project whose toolchain has something to compile, and an engine whose
// snapshots can be layers.
func newGoBench(t *testing.T) *bench {
	t.Helper()
	b := newBench(t)
	b.Snapshots, b.engine.layers = 1<<30, true
	b.engine.results["check"] = []any{printed("OK")}
	if err := os.Rename(filepath.Join(b.dir, "requirements.txt"), filepath.Join(b.dir, "go.mod")); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bench) runFor(t *testing.T, source environment.Source, plan environment.Selection) environment.Outcome {
	t.Helper()
	outcome, err := b.Run(t.Context(), environment.Request{Plan: plan, Source: source,
		Spec: sandbox.Spec{Owner: "test", Workspace: b.dir, Env: map[string]string{"SECRET": "x"}}})
	if err != nil {
		t.Fatal(err)
	}
	if outcome.Result.OverallStatus != environment.Succeeded {
		t.Fatalf("got %+v", outcome.Result)
	}
	return outcome
}

func isToolchain(key string) bool { return strings.HasPrefix(key, "tools-") }

// What a toolchain compiles for every project is made of nothing of any project: not its
// files, not the plan's commands, not the variables of the run, and without a network. So
// every project may start from it, also work that nobody has looked at.
func TestToolchainsAreCompiledOnceOfNothingOfAProject(t *testing.T) {
	t.Parallel()
	b := newGoBench(t)
	b.runFor(t, environment.Source{Project: "ours", Change: "pull request of a stranger"}, goPlan)
	if len(b.engine.starts) != 2 || len(b.engine.kept) != 2 || !isToolchain(b.engine.kept[0]) || isToolchain(b.engine.kept[1]) {
		t.Fatalf("%d starts, kept were %v", len(b.engine.starts), b.engine.kept)
	}
	made, used := b.engine.starts[0], b.engine.starts[1]
	// "toryo env" removes those of processes that are gone, by this name.
	if name := filepath.Base(made.Workspace); !strings.HasPrefix(name, strconv.Itoa(os.Getpid())+"-") {
		t.Errorf("the folder %s does not say whose it is", name)
	}
	if made.Workspace == b.dir || made.Network != sandbox.NoNetwork || made.Env["SECRET"] != "" || made.Snapshot != "" {
		t.Errorf("it was compiled in %+v", made)
	}
	if _, err := os.Stat(made.Workspace); err == nil {
		t.Errorf("%s is left", made.Workspace)
	}
	if first := slices.Index(b.engine.ran, "one"); first < 1 || slices.Contains(b.engine.ran[:first], "check") || used.Snapshot != b.engine.kept[0] {
		t.Errorf("ran were %q; set-up started from %q", b.engine.ran, used.Snapshot)
	}

	b.engine.snapshots = []sandbox.Snapshot{{Key: b.engine.kept[0]}}
	for _, source := range []environment.Source{{Project: "theirs"}, {Project: "ours"}} {
		b.engine.starts, b.engine.ran = nil, nil
		other := goPlan
		other.SetupCommands = []string{"two"}
		got := b.runFor(t, source, other)
		if len(b.engine.starts) != 1 || b.engine.starts[0].Snapshot != b.engine.kept[0] || b.engine.ran[0] != "two" || got.Result.SetupResult.FromSnapshot != "" {
			t.Errorf("%v: starts were %+v, ran %q", source, b.engine.starts, b.engine.ran)
		}
	}
}

// A set-up from nothing starts with what is compiled for every project, also where it is the
// second one of a run, after a snapshot that was not good or a sandbox that was lost.
func TestASecondSetUpStartsWithTheCompiledToolchain(t *testing.T) {
	t.Parallel()
	entry, _ := environment.BuiltIn().Find("go")
	for name, prepare := range map[string]func(*bench){
		"the snapshot fails": func(b *bench) { b.engine.results["check"] = []any{printed("no"), printed("OK")} },
		"the sandbox is lost": func(b *bench) {
			b.engine.snapshots = b.engine.snapshots[:1]
			b.engine.results[entry.Caches[0]] = []any{errGone}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newGoBench(t)
			b.runFor(t, environment.Source{Project: "ours"}, goPlan)
			tools, kept := b.engine.kept[0], b.engine.kept[1]
			b.engine.snapshots, b.engine.starts = []sandbox.Snapshot{{Key: tools}, {Key: kept}}, nil
			prepare(b)
			b.runFor(t, environment.Source{Project: "ours"}, goPlan)
			if len(b.engine.starts) != 2 || b.engine.starts[1].Snapshot != tools {
				t.Errorf("starts were %+v", b.engine.starts)
			}
		})
	}
}

// A toolchain that cannot be compiled, or an engine that cannot keep a sandbox that was
// started from a snapshot, makes set-up slower and nothing else.
func TestWithoutACompiledToolchain(t *testing.T) {
	t.Parallel()
	entry, _ := environment.BuiltIn().Find("go")
	for name, prepare := range map[string]func(*bench){
		"it does not compile": func(b *bench) {
			b.engine.results[entry.Toolchain.Run[0]] = []any{failedWith(1, "no space left on device")}
		},
		"no layers":    func(b *bench) { b.engine.layers = false },
		"no snapshots": func(b *bench) { b.Snapshots = 0 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newGoBench(t)
			prepare(b)
			got := b.runFor(t, environment.Source{Project: "ours"}, goPlan)
			if last := b.engine.starts[len(b.engine.starts)-1]; last.Snapshot != "" || last.Workspace != b.dir || slices.ContainsFunc(b.engine.kept, isToolchain) || len(got.Result.Errors) != 0 {
				t.Errorf("got %+v; it started from %q, kept %v", got.Result, last.Snapshot, b.engine.kept)
			}
		})
	}
}

// One that could not be compiled is not waited for by the next set-up, until an hour later. If there is
// one by then, because another process has made it, it is used at once.
func TestAToolchainThatCannotBeCompiledIsTriedAgainAnHourLater(t *testing.T) {
	t.Parallel()
	entry, _ := environment.BuiltIn().Find("go")
	synctest.Test(t, func(t *testing.T) {
		b := newGoBench(t)
		b.engine.results[entry.Toolchain.Run[0]] = []any{failedWith(1, "no space left on device"), printed("")}
		setUp := func(project string) (from string, compiled bool) {
			t.Helper()
			b.engine.starts = nil
			b.runFor(t, environment.Source{Project: project}, goPlan)
			last := b.engine.starts[len(b.engine.starts)-1]
			return last.Snapshot, len(b.engine.starts) > 1
		}
		if from, compiled := setUp("first"); from != "" || !compiled {
			t.Fatalf("the first started from %q; tried to compile: %t", from, compiled)
		}
		<-time.After(59 * time.Minute) // the time of a synctest bubble
		if from, compiled := setUp("second"); from != "" || compiled {
			t.Errorf("59 minutes later one started from %q; tried to compile: %t", from, compiled)
		}
		<-time.After(time.Minute) // the time of a synctest bubble
		if from, compiled := setUp("third"); !isToolchain(from) || !compiled {
			t.Errorf("an hour later one started from %q; tried to compile: %t", from, compiled)
		}
	})
}

func TestAToolchainThatAnotherProcessHasCompiledIsUsed(t *testing.T) {
	t.Parallel()
	entry, _ := environment.BuiltIn().Find("go")
	other := newGoBench(t)
	other.runFor(t, environment.Source{Project: "first"}, goPlan)
	key := other.engine.kept[0]
	b := newGoBench(t)
	b.engine.identity = other.engine.identity
	b.engine.results[entry.Toolchain.Run[0]] = []any{failedWith(1, "no space left on device")}
	b.runFor(t, environment.Source{Project: "second"}, goPlan)
	b.engine.snapshots, b.engine.starts = []sandbox.Snapshot{{Key: key}}, nil
	b.runFor(t, environment.Source{Project: "third"}, goPlan)
	if len(b.engine.starts) != 1 || b.engine.starts[0].Snapshot != key {
		t.Errorf("starts were %+v, and %s was there", b.engine.starts, key)
	}
}
