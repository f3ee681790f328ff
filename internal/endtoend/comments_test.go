package endtoend

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/toryo-dev/toryo/internal/phase/phasetest"
	"github.com/toryo-dev/toryo/internal/task"
)

// commentsEach is about how many comments people make while one run goes on.
const commentsEach = 50

// tally is what became of comments.
type tally struct {
	mutex                                          sync.Mutex
	runs, made, late, lost, twice, own, disordered int
}

// TestCommentsAtRandomMoments has people comment at random moments of runs, and the bot in
// between, and looks at what the model was sent that does the work. TORYO_TEST_COMMENTS
// says how many comments there are to be.
func TestCommentsAtRandomMoments(t *testing.T) {
	t.Parallel()
	count := 50
	if text := os.Getenv("TORYO_TEST_COMMENTS"); text != "" {
		var err error
		count, err = strconv.Atoi(text)
		must(t, err)
	}
	h := build(t, plan{agents: 4})
	board, err := openBoard(t.Context(), h)
	must(t, err)
	var sum tally
	var all errgroup.Group
	all.SetLimit(len(h.agents))
	for seed := range uint64(max(1, count/commentsEach)) {
		all.Go(func() error {
			t.Run(fmt.Sprint(seed), func(t *testing.T) { h.commentAtRandom(t, board, seed, &sum) })
			return nil
		})
	}
	must(t, all.Wait())
	t.Logf("%d comments over %d runs: %d after the work was handed over, %d lost, %d twice, %d of the bot, %d out of order",
		sum.made, sum.runs, sum.late, sum.lost, sum.twice, sum.own, sum.disordered)
	if sum.lost+sum.twice+sum.own+sum.disordered > 0 {
		t.Fail()
	}
}

func (h *house) commentAtRandom(t *testing.T, at site, seed uint64, sum *tally) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 15))
	scenario := crashScenario(t, fmt.Sprint("random", seed), 0)
	scenario.Events = nil
	for made := 0; made < commentsEach; {
		event := phasetest.Event{When: phasetest.When{Entry: 1 + random.IntN(100)}}
		for range 1 + random.IntN(5) {
			made++
			event.Comments = append(event.Comments, phasetest.Comment{Author: "bob", Body: fmt.Sprintf("Comment %d.", made)})
		}
		if random.IntN(3) == 0 {
			event.Comments = append(event.Comments, phasetest.Comment{Author: "bot", Body: fmt.Sprintf("I am the bot (%d).", made)})
		}
		scenario.Events = append(scenario.Events, event)
	}
	s := h.begin(t, at, scenario)
	s.seeThrough(t)
	o := s.read(t)
	if o.task.State != task.Done {
		t.Errorf("the task is %s/%s", o.task.State, o.task.Reason)
	}
	records := s.model.Records()
	text := ""
	for _, record := range records {
		if record.Request.Phase == task.Execution {
			text = phasetest.TextOf(record.Request) // the last has the whole conversation
		}
	}
	sum.add(s, o, text)
}

// add counts what the last request has of what people said.
func (c *tally) add(s *story, o outcome, text string) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.runs++
	before := 0
	for _, said := range s.spoken {
		c.made++
		line := "\n" + said.body + "\n"
		at := strings.Index(text, line)
		switch times := strings.Count(text, line); {
		case times == 0 && said.handed:
			c.late++
		case times == 0:
			c.lost++
		case times > 1:
			c.twice++
		case at < before:
			c.disordered++
		default:
			before = at
		}
	}
	c.own += strings.Count(o.asked, "I am the bot")
}
