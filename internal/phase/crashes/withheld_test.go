package crashes_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/phase/phasetest"
	"github.com/toryo-dev/toryo/internal/task"
)

// gate is a forge that keeps to the server's rule: it withholds the first work in which
// the file is, and asked again it publishes a draft, or refuses a secret. It outlasts
// runs.
type gate struct {
	phase.Forge
	kept *gateState
}

type gateState struct {
	mu       sync.Mutex
	world    *phasetest.World
	kind     task.FindingKind
	withheld string // the commit
	asked    []phase.OpenPull
}

func (g gate) OpenPull(ctx context.Context, open phase.OpenPull) (phase.Pulled, error) {
	g.kept.mu.Lock()
	defer g.kept.mu.Unlock()
	g.kept.asked = append(g.kept.asked, open)
	if g.kept.world.File(open.Commit, "ci.yml") == "" {
		return g.Forge.OpenPull(ctx, open)
	}
	found := task.Finding{Kind: g.kept.kind, Path: "ci.yml", Line: 3}
	switch {
	case g.kept.withheld == "" || g.kept.withheld == open.Commit && !open.Again:
		g.kept.withheld = open.Commit
		return phase.Pulled{Withheld: true, Findings: []task.Finding{found}}, nil
	case found.Blocks():
		return phase.Pulled{}, task.Errorf(task.Unsafe, "the work is not published: secret ci.yml:3")
	}
	pulled, err := g.Forge.OpenPull(ctx, open)
	pulled.Findings = []task.Finding{found}
	return pulled, err
}

// gated makes a world in which the model adds ci.yml and, when it is told, removes it or
// does not.
func gated(t *testing.T, kind task.FindingKind, removes bool) (*phasetest.World, *gateState) {
	t.Helper()
	scenario, err := phasetest.Load("testdata/gate/" + map[bool]string{true: "removes", false: "keeps"}[removes] + ".txtar")
	if err != nil {
		t.Fatal(err)
	}
	state := &gateState{kind: kind, world: phasetest.New(t, phasetest.Engine(t), scenario)}
	state.world.Around = func(forge phase.Forge) phase.Forge { return gate{forge, state} }
	return state.world, state
}

// countTold is how often the model was told in the conversation of execution.
func countTold(world *phasetest.World) int {
	requests := world.Requests(task.Execution)
	count := 0
	for _, message := range requests[len(requests)-1].Messages {
		count += strings.Count(message.Text(), "The work was not published.")
	}
	return count
}

// Work that is withheld goes back to the model that did it, which is told what was
// found; it is verified again, committed anew, and offered again.
func TestWithheldWorkGoesBackOnce(t *testing.T) {
	t.Parallel()
	world, gate := gated(t, task.FindingProtected, true)
	if _, err := world.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	world.Check()
	if countTold(world) != 1 {
		t.Errorf("the model was told %d times", countTold(world))
	}
	if len(gate.asked) != 2 || gate.asked[0].Again || !gate.asked[1].Again || gate.asked[0].Commit == gate.asked[1].Commit {
		t.Errorf("it was offered as %+v", gate.asked)
	}
	if history := world.History(gate.asked[1].Commit); strings.Contains(history, gate.asked[0].Commit) {
		t.Error("what was withheld is in the history of what was published")
	}
}

func TestWithheldWorkThatStaysAsItIs(t *testing.T) {
	t.Parallel()
	for kind, want := range map[task.FindingKind]struct {
		state  task.State
		reason task.Reason
		pulls  int
	}{
		task.FindingProtected: {task.Done, task.ReasonCompleted, 1},
		task.FindingSecret:    {task.Failed, task.ReasonUnsafeChange, 0},
	} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			world, gate := gated(t, kind, false)
			outcome, err := world.Run(t.Context())
			if err != nil || outcome.State != want.state || outcome.Reason != want.reason || len(world.Pulls()) != want.pulls {
				t.Fatalf("%s/%s, %d pull requests, %v", outcome.State, outcome.Reason, len(world.Pulls()), err)
			}
			if len(gate.asked) != 2 || !gate.asked[1].Again || countTold(world) != 1 {
				t.Errorf("it was offered %d times and the model told %d times", len(gate.asked), countTold(world))
			}
			if want.pulls == 0 && !strings.Contains(outcome.Comment, "ci.yml:3") {
				t.Errorf("people are told %s", outcome.Comment)
			}
		})
	}
}

// A run that was cut off anywhere tells the model once, and offers the work as work of
// which the model was told.
func TestWithheldWorkAfterACrash(t *testing.T) {
	t.Parallel()
	whole, _ := gated(t, task.FindingProtected, false)
	if _, err := whole.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	whole.Check()
	tree := whole.Tree()
	for _, cut := range whole.Cuts(whole.Entries()/2, 1) {
		t.Run(fmt.Sprint(cut), func(t *testing.T) {
			t.Parallel()
			world, gate := gated(t, task.FindingProtected, false)
			world.CutAt(cut)
			if _, err := world.Run(t.Context()); err != nil && !phasetest.Crashed(err) {
				t.Fatal(err)
			}
			if _, err := world.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			world.Check()
			if got := world.Tree(); got != tree {
				t.Errorf("the branch has\n%s\nwant\n%s", got, tree)
			}
			if last := gate.asked[len(gate.asked)-1]; !last.Again || countTold(world) != 1 {
				t.Errorf("the model was told %d times, and the work last offered as %+v", countTold(world), last)
			}
			if t.Failed() {
				t.Log(world.JournalText())
			}
		})
	}
}
