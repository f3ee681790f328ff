package crashes_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/phase/phasetest"
	"github.com/toryo-dev/toryo/internal/task"
)

// TestCrashPointsOfAReturn kills a run after each entry from the first time that it hands
// its work over, which a comment prevents. It is with the model that does the work, and
// there is one pull request.
func TestCrashPointsOfAReturn(t *testing.T) {
	t.Parallel()
	engine := phasetest.Engine(t)
	load := func(t *testing.T) *phasetest.World {
		t.Helper()
		scenario, err := phasetest.Load("../../endtoend/testdata/signals/comments_committed.txtar")
		if err != nil {
			t.Fatal(err)
		}
		scenario.Events[0].Comments[0].Access = "write"
		scenario.Expect.Files = map[string]string{"add.sh": "$1 + $2"} // the script does not know what it was about to do
		return phasetest.New(t, engine, scenario)
	}
	whole := load(t)
	if _, err := whole.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	whole.Check()
	for _, cut := range whole.Cuts(whole.EntryOf("complete/active"), 1) {
		if cut.Entry == whole.Entries() {
			continue
		}
		t.Run(fmt.Sprint(cut), func(t *testing.T) {
			t.Parallel()
			world := load(t)
			world.CutAt(cut)
			if _, err := world.Run(t.Context()); !phasetest.Crashed(err) {
				t.Fatal(err)
			}
			if _, err := world.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			world.Check()
			if t.Failed() {
				t.Log(world.JournalText())
			}
		})
	}
}

// TestCrashPoints kills the run after every second entry of its journal and after each that
// is followed, which may be lost or not, carries it on from the journal on another machine,
// and compares the end with that of the run that was not killed.
func TestCrashPoints(t *testing.T) {
	t.Parallel()
	load := func(t *testing.T) *phasetest.Scenario {
		t.Helper()
		scenario, err := phasetest.Load("testdata/crash/comment.txtar")
		if err != nil {
			t.Fatal(err)
		}
		return scenario
	}
	engine := phasetest.Engine(t)
	whole := phasetest.New(t, engine, load(t))
	if _, err := whole.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	whole.Check()
	if t.Failed() {
		t.Fatalf("the run that was not cut failed: %v", whole.Phases())
	}
	cuts := whole.Cuts(1, 2)
	t.Logf("%d crash points", len(cuts))
	tree := whole.Tree()
	for _, cut := range cuts {
		t.Run(fmt.Sprint(cut), func(t *testing.T) {
			t.Parallel()
			world := phasetest.New(t, engine, load(t))
			world.CutAt(cut)
			if _, err := world.Run(t.Context()); err != nil && !phasetest.Crashed(err) {
				t.Fatal(err)
			}
			outcome, err := world.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			world.Check()
			if got := world.Tree(); got != tree {
				t.Errorf("the branch has\n%s\nwant\n%s", got, tree)
			}
			if len(world.Pulls()) != 1 || len(world.Comments()) != len(whole.Comments()) || outcome.State != task.Done {
				t.Errorf("%s, pull requests %d, comments %v", outcome.State, len(world.Pulls()), world.Comments())
			}
			if t.Failed() {
				t.Log(world.JournalText())
			}
		})
	}
}

// TestSavedWorkThatIsGone takes away what a run has saved before it goes on, as a server does that
// was restored from a backup. What is verified is what is there, so the model does it again.
func TestSavedWorkThatIsGone(t *testing.T) {
	t.Parallel()
	scenario, err := phasetest.Load("testdata/crash/comment.txtar")
	if err != nil {
		t.Fatal(err)
	}
	engine := phasetest.Engine(t)
	whole := phasetest.New(t, engine, scenario)
	if _, err := whole.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	world := phasetest.New(t, engine, scenario)
	world.CutAt(phasetest.Cut{Entry: whole.EntryOf("verification/active")})
	if _, err := world.Run(t.Context()); !phasetest.Crashed(err) {
		t.Fatal(err)
	}
	world.LoseSavedWork()
	if _, err := world.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	world.Check()
	if text := world.JournalText(); !strings.Contains(text, "The work in progress of the earlier run is lost") {
		t.Errorf("nobody is told that the work is gone:\n%s", text)
	}
}
