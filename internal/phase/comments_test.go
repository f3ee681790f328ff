package phase_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/phase/phasetest"
	"github.com/toryo-dev/toryo/internal/task"
)

// sized is a model that takes so many tokens.
type sized struct {
	llm.Model
	tokens int64
}

func (s sized) Info() llm.Info {
	info := s.Model.Info()
	info.ContextLength, info.MaxTokens = s.tokens, 1000
	return info
}

// longComment is 20,000 bytes of somebody's opinion.
func longComment(name string) phasetest.Comment {
	body := "Begin of " + name + ". " + strings.Repeat("It is a long story. ", 500) + "Middle of " + name + ". " + strings.Repeat("It goes on. ", 830) + "End of " + name + "."
	return phasetest.Comment{ID: name, Author: "bob", Access: "write", Body: body}
}

// TestALongDiscussionDoesNotEndTheRun has thirty long comments before the run and as many
// while it goes on, which is many times what the model takes.
func TestALongDiscussionDoesNotEndTheRun(t *testing.T) {
	t.Parallel()
	for _, tokens := range []int64{24_000, 200_000} {
		t.Run(fmt.Sprint(tokens, " tokens"), func(t *testing.T) {
			t.Parallel()
			scenario, err := phasetest.Load("testdata/long/discussion.txtar")
			if err != nil {
				t.Fatal(err)
			}
			for i := range 30 {
				scenario.Comments = append(scenario.Comments, longComment(fmt.Sprint("start", i)))
			}
			for turn := range 10 { // three at each of ten turns
				var said []phasetest.Comment
				for i := range 3 {
					said = append(said, longComment(fmt.Sprint("c", turn*3+i)))
				}
				scenario.Events = append(scenario.Events, phasetest.Event{
					When: phasetest.When{Kind: task.ToolCalled, Phase: task.Execution, Tool: "run", Step: int64(turn + 4)}, Comments: said,
				})
			}
			world := phasetest.New(t, phasetest.Engine(t), scenario)
			world.Adjust = func(options *phase.Options) {
				model := options.Model
				options.Model = func(asked task.Phase) llm.Model { return sized{model(asked), tokens} }
			}
			if _, err := world.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			world.Check()
			if taken := len(world.Ledger()); taken != 30 {
				t.Errorf("%d comments were taken up, want 30", taken)
			}
			checkDiscussion(t, world.Requests(task.Execution), tokens)
		})
	}
}

// checkDiscussion looks at what the model was sent that does the work.
func checkDiscussion(t *testing.T, requests []llm.Request, tokens int64) {
	t.Helper()
	first, last := phasetest.TextOf(requests[0]), phasetest.TextOf(requests[len(requests)-1])
	for _, request := range requests {
		if size := int64(request.Size()) / 4; size > tokens {
			t.Errorf("a request has about %d tokens", size)
		}
	}
	for _, text := range []string{"It should add, and mind the gap.", "Begin of start29.", "End of start29."} {
		if !strings.Contains(first, text) || !strings.Contains(last, text) {
			t.Errorf("%q is not before the model any more", text)
		}
	}
	for _, text := range []string{"Begin of c29.", "End of c29.", "Begin of c28.", "Read it whole with the tool comments and the id"} {
		if !strings.Contains(last, text) {
			t.Errorf("%q is not in the last request", text)
		}
	}
	results := requests[len(requests)-1].Messages[len(requests[len(requests)-1].Messages)-1].Results()
	if len(results) != 3 {
		t.Fatalf("there are %d results", len(results))
	}
	for i, wants := range [][]string{
		{"Begin of c2.", "It is a long story. It is a long story.", "read on with offset "}, {"End of start1."}, {"There are 60 comments", "- c29 bob, "},
	} {
		for _, want := range wants {
			if !strings.Contains(results[i].Text, want) {
				t.Errorf("%q is not in the answer %d of the tool: %.300s", want, i, results[i].Text)
			}
		}
	}
}

// TestPullRequestsWithManyReviewCommentsFit has more review comments than the model takes.
func TestPullRequestsWithManyReviewCommentsFit(t *testing.T) {
	t.Parallel()
	scenario, err := phasetest.Load("testdata/scenarios/pull.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 60 {
		scenario.Pull.Threads = append(scenario.Pull.Threads, phasetest.Thread{
			ID: fmt.Sprint("more", i), Path: "add.sh", Line: 1, Author: "carol", Body: longComment(fmt.Sprint("more", i)).Body,
		})
	}
	world := phasetest.New(t, phasetest.Engine(t), scenario)
	if _, err := world.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	world.Check()
	text := phasetest.TextOf(world.Requests(task.Execution)[0])
	for _, want := range []string{"Begin of more59.", "End of more59.", "Begin of more0.", "Review thread more0 at add.sh line 1"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in the request", want)
		}
	}
	if len(text) > 400_000 {
		t.Errorf("the request has %d bytes", len(text))
	}
}
