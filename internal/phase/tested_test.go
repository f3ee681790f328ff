package phase_test

import (
	"testing"

	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/phase/phasetest"
)

// TestBuiltAnewFromSnapshots: what set-up builds of the project is built of the files that
// are tested, also where the environment comes from a snapshot of others.
func TestBuiltAnewFromSnapshots(t *testing.T) {
	t.Parallel()
	scenario, err := phasetest.Load("verdicts/testdata/honest_built.txtar")
	if err != nil {
		t.Fatal(err)
	}
	world := phasetest.New(t, phasetest.Engine(t), scenario)
	world.Adjust = func(options *phase.Options) { options.Setup.Snapshots = 1 << 30 }
	if _, err := world.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	world.Check()
}
