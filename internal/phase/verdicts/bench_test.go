package verdicts_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/phase/phasetest"
	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/task"
)

// BenchmarkVerdictAdds is what a verdict takes besides the tests themselves, where there is
// a snapshot of the environment: a sandbox of its own with the files of the commit.
func BenchmarkVerdictAdds(b *testing.B) {
	for _, name := range []string{"go", "node", "python"} {
		b.Run(name, func(b *testing.B) {
			scenario, err := phasetest.Load("testdata/honest_" + name + ".txtar")
			if err != nil {
				b.Fatal(err)
			}
			scenario.Compiled = false // the snapshot has what Go has compiled
			engine := phasetest.Engine(b)
			for b.Loop() {
				measureVerdict(b, phasetest.New(b, engine, scenario))
			}
		})
	}
}

func measureVerdict(b *testing.B, world *phasetest.World) {
	b.Helper()
	world.Adjust = func(options *phase.Options) {
		options.Setup.Snapshots = 1 << 30
		delete(options.Spec.Env, "GOCACHE")
	}
	if _, err := world.Run(b.Context()); err != nil {
		b.Fatal(err)
	}
	verdict := world.Verdict()
	tests := int64(0)
	for _, outcome := range verdict.Tests {
		tests += outcome.Milliseconds
	}
	if verdict.Build != nil {
		tests += verdict.Build.Milliseconds
	}
	b.ReportMetric(float64(tests), "ms-build-and-tests")
	b.ReportMetric(float64(world.PhaseDuration(task.Verification).Milliseconds()-tests), "ms-added")
}

// BenchmarkVerdictsAreRight counts the scenarios in which a model tries to fake a pass and
// is found out, those of honest work that pass, and those on projects in folders.
func BenchmarkVerdictsAreRight(b *testing.B) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		b.Fatal(err)
	}
	folders, _ := filepath.Glob("../testdata/inside/*folder*.txtar") // the pattern is good
	files = append(append(files, folders...), "../testdata/inside/mixed.txtar", "../testdata/inside/other_environment.txtar")
	engine := phasetest.Engine(b)
	for b.Loop() {
		countVerdicts(b, engine, files)
	}
}

func countVerdicts(b *testing.B, engine sandbox.Engine, files []string) {
	b.Helper()
	all, right := map[string]int{}, map[string]int{}
	for _, file := range files {
		scenario, err := phasetest.Load(file)
		if err != nil {
			b.Fatal(err)
		}
		kind := "folders-and-mixed"
		switch {
		case scenario.Cheat:
			kind = "cheats"
		case strings.Contains(file, "honest_"):
			kind = "honest"
		case filepath.Dir(file) == "testdata":
			continue
		}
		outcome, err := phasetest.New(b, engine, scenario).Run(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		all[kind]++
		if (outcome.State == task.Done) != scenario.Cheat {
			right[kind]++
		} else {
			b.Logf("%s ended as %s", file, outcome.State)
		}
	}
	for kind := range all {
		b.ReportMetric(float64(all[kind]), kind)
		b.ReportMetric(float64(right[kind]), kind+"-right")
	}
}
