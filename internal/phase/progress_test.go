package phase_test

import (
	"context"
	"testing"

	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/phase/phasetest"
)

// watched has the progress comments of a run counted, and those among them that tell of what
// may be lost.
type watched struct {
	phase.Forge
	world       *phasetest.World
	told, early *int
}

func (w watched) Progress(ctx context.Context, text string) error {
	*w.told++
	if !w.world.Durable() {
		*w.early++
	}
	return w.Forge.Progress(ctx, text)
}

// TestProgressTellsOfWhatIsDurable: people are told of an answer of the model when it cannot be
// lost any more.
func TestProgressTellsOfWhatIsDurable(t *testing.T) {
	t.Parallel()
	scenario, err := phasetest.Load("testdata/scenarios/shell.txtar")
	if err != nil {
		t.Fatal(err)
	}
	world := phasetest.New(t, phasetest.Engine(t), scenario)
	told, early := 0, 0
	world.Around = func(forge phase.Forge) phase.Forge { return watched{forge, world, &told, &early} }
	if _, err := world.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	world.Check()
	if told == 0 || early > 0 {
		t.Errorf("of %d progress comments %d tell of what may be lost", told, early)
	}
}
