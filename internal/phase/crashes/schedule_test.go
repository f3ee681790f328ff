package crashes_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/phase/phasetest"
	"github.com/toryo-dev/toryo/internal/task"
)

// TestRandomSchedules lets comments, pauses, crashes, a stop and a forge that does
// not answer happen at random moments, and holds the end against a simple model:
// every comment that came before the work was handed over is with the model that does
// the work, once and in order, and the run ends as the last of what happened to it says.
func TestRandomSchedules(t *testing.T) {
	t.Parallel()
	engine := phasetest.Engine(t)
	for seed := range uint64(16) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			scenario, err := phasetest.Load("testdata/crash/comment.txtar")
			if err != nil {
				t.Fatal(err)
			}
			scenario.Events = nil
			world := phasetest.New(t, engine, scenario)
			plan := newSchedule(seed, world)
			world.Adjust = func(options *phase.Options) { options.AfterEntry = plan.happen }
			plan.runToTheEnd(t)
			plan.check(t)
		})
	}
}

// schedule is what happens after which entry of the journal.
type schedule struct {
	world    *phasetest.World
	random   *rand.Rand
	at       map[int]string
	comments int // that were made
	due      int // of which before the work was handed over
	handed   bool
	stopped  bool
}

func newSchedule(seed uint64, world *phasetest.World) *schedule {
	s := &schedule{world: world, random: rand.New(rand.NewPCG(seed, 7)), at: map[int]string{}}
	for range 1 + s.random.IntN(8) {
		s.at[1+s.random.IntN(120)] = []string{"comment", "comment", "comments", "pause", "crash", "deaf"}[s.random.IntN(6)]
	}
	if s.random.IntN(4) == 0 {
		s.at[1+s.random.IntN(90)] = "stop"
	}
	return s
}

func (s *schedule) happen(number int, kind task.EventKind) {
	s.handed = s.handed || kind == task.Summed
	what := s.at[number]
	delete(s.at, number)
	halt := func(signal task.Signal, reason task.Reason) {
		s.world.Cancel(&phase.Halt{Signal: signal, Reason: reason, Since: time.Now()})
	}
	switch what {
	case "comment":
		s.addComments(1)
	case "comments":
		s.addComments(1 + s.random.IntN(5))
	case "deaf":
		s.world.FailCommentChecks(1 + s.random.IntN(3))
	case "crash":
		s.world.Crash()
	case "pause":
		halt(task.SignalPause, task.ReasonPauseRequested)
	case "stop":
		s.stopped = true
		halt(task.SignalStop, task.ReasonUnassigned)
	}
}

func (s *schedule) addComments(count int) {
	for range count {
		s.comments++
		s.world.AddComment(phasetest.Comment{Author: "bob", Access: "write", Body: fmt.Sprintf("Comment %d.", s.comments)})
	}
	if !s.handed {
		s.due = s.comments
	}
}

func (s *schedule) runToTheEnd(t *testing.T) {
	t.Helper()
	for range 20 {
		outcome, err := s.world.Run(t.Context())
		if err != nil && !phasetest.Crashed(err) {
			t.Fatal(err)
		}
		if err == nil && outcome.State != task.Paused {
			return
		}
	}
	t.Fatal("the run does not come to an end")
}

func (s *schedule) check(t *testing.T) {
	t.Helper()
	last := s.world.Outcomes[len(s.world.Outcomes)-1]
	want := task.Done
	if s.stopped && last.State == task.Stopped {
		want = task.Stopped
	}
	ledger := s.world.Ledger()
	for i, taken := range ledger {
		if taken != fmt.Sprintf("%d:new", i+1) {
			t.Fatalf("the comments were taken as %v", ledger)
		}
	}
	switch {
	case last.State != want:
		t.Errorf("the run ended %s/%s: %s", last.State, last.Reason, last.Comment)
	case want == task.Done && len(s.world.Pulls()) == 0:
		t.Errorf("%s with %d pull requests", last.State, len(s.world.Pulls()))
	case want == task.Done && len(ledger) < s.due:
		t.Errorf("%d comments were taken of %d that were due", len(ledger), s.due)
	}
	if want == task.Done {
		s.checkExecuting(t)
	}
	if t.Failed() {
		t.Log(s.world.JournalText())
	}
}

// checkExecuting looks at the last that the model was sent that does the work. It has the
// whole conversation.
func (s *schedule) checkExecuting(t *testing.T) {
	t.Helper()
	requests := s.world.Requests(task.Execution)
	text := phasetest.TextOf(requests[len(requests)-1])
	before := 0
	for i := range s.due {
		said := fmt.Sprintf("\nComment %d.\n", i+1)
		switch at := strings.Index(text, said); {
		case at < before:
			t.Errorf("comment %d of %d is not there, or not in its order", i+1, s.due)
		case strings.Count(text, said) != 1:
			t.Errorf("comment %d is there %d times", i+1, strings.Count(text, said))
		default:
			before = at
		}
	}
}
