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
		{"Begin of c2.", "It is a long story. It is a long story.", "read on with offset "}, {"End of start1."}, {"There are 60 comments", "- c29 by bob, "},
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
	for name, threads := range map[string]struct {
		tokens int64
		text   string
		first  string // of the threads that are still there
	}{
		"English":  {200_000, strings.Repeat("It is a long story. ", 1000), "more30"},
		"Japanese": {24_000, strings.Repeat("長い話です。", 1000), "more55"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scenario, err := phasetest.Load("testdata/scenarios/pull.txtar")
			if err != nil {
				t.Fatal(err)
			}
			scenario.Expect.Asked = nil
			for i := range 60 {
				scenario.Pull.Threads = append(scenario.Pull.Threads, phasetest.Thread{
					ID: fmt.Sprint("more", i), Path: "add.sh", Line: i, Author: "carol", Body: fmt.Sprintf("Begin of %d. %s End of %d.", i, threads.text, i),
				})
			}
			world := phasetest.New(t, phasetest.Engine(t), scenario)
			world.Adjust = func(options *phase.Options) {
				model := options.Model
				options.Model = func(asked task.Phase) llm.Model { return sized{model(asked), threads.tokens} }
			}
			if _, err := world.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			world.Check()
			request := world.Requests(task.Execution)[0]
			text := phasetest.TextOf(request)
			for _, want := range []string{"Begin of 59.", "End of 59.", "Review thread more59 at add.sh line 59", "Review thread " + threads.first + " at add.sh line"} {
				if !strings.Contains(text, want) {
					t.Errorf("%q is not in the request", want)
				}
			}
			// Japanese has about three bytes in a token.
			if tokens := int64(request.Size()) / 3; tokens > threads.tokens*7/10 {
				t.Errorf("the request has about %d tokens", tokens)
			}
		})
	}
}

// TestCommentsThatCannotBeKeptDoNotHoldTheRun refuses to write down comments, for ever.
func TestCommentsThatCannotBeKeptDoNotHoldTheRun(t *testing.T) {
	t.Parallel()
	scenario, err := phasetest.Load("testdata/scenarios/shell.txtar")
	if err != nil {
		t.Fatal(err)
	}
	scenario.Events = []phasetest.Event{{
		When:     phasetest.When{Kind: task.ToolCalled, Tool: "edit"},
		Comments: []phasetest.Comment{{Author: "bob", Access: "write", Body: "Mind the zero."}},
	}}
	world := phasetest.New(t, phasetest.Engine(t), scenario)
	world.RefuseSignals = 1_000_000
	outcome, err := world.Run(t.Context())
	if err != nil || outcome.State != task.Done {
		t.Fatalf("%s, %v", outcome.State, err)
	}
	verified := 0
	for _, phase := range world.Phases() {
		if phase == "verification/active" {
			verified++
		}
	}
	if verified > 2 {
		t.Errorf("it was verified %d times", verified)
	}
}

// TestCommentsThatNeverEnd has somebody comment during every verification.
func TestCommentsThatNeverEnd(t *testing.T) {
	t.Parallel()
	scenario, err := phasetest.Load("testdata/scenarios/shell.txtar")
	if err != nil {
		t.Fatal(err)
	}
	world := phasetest.New(t, phasetest.Engine(t), scenario)
	world.Adjust = func(options *phase.Options) {
		options.Limits.Rounds = 3
		options.AfterEntry = func(number int, kind task.EventKind) {
			if phases := world.Phases(); kind == task.PhaseChanged && phases[len(phases)-1] == "verification/active" {
				world.AddComment(phasetest.Comment{Author: "bob", Access: "write", Body: fmt.Sprintf("Comment after entry %d.", number)})
			}
		}
	}
	outcome, err := world.Run(t.Context())
	if err != nil || outcome.State != task.Done || !strings.Contains(outcome.Comment, "a comment by bob") {
		t.Fatalf("%s, %v: %s", outcome.State, err, outcome.Comment)
	}
}

// TestJournalsOfEarlierVersions goes on with a journal that has the text of comments in
// pinned blocks only.
func TestJournalsOfEarlierVersions(t *testing.T) {
	t.Parallel()
	scenario, err := phasetest.Load("testdata/scenarios/shell.txtar")
	if err != nil {
		t.Fatal(err)
	}
	scenario.Events = []phasetest.Event{
		{When: phasetest.When{Kind: task.PhaseChanged, Phase: task.Planning, Status: phase.PhaseActive},
			Comments: []phasetest.Comment{{Author: "bob", Access: "write", Body: "Mind the zero."}}},
		{When: phasetest.When{Kind: task.Planned}, Crash: true},
	}
	world := phasetest.New(t, phasetest.Engine(t), scenario)
	if _, err := world.Run(t.Context()); !phasetest.Crashed(err) {
		t.Fatal(err)
	}
	if !world.Rewrite(`,"body":"Mind the zero."`, "") {
		t.Fatal("the journal has no text of a comment to take out")
	}
	if _, err := world.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(world.Executing(), "Mind the zero.") {
		t.Error("the comment is lost")
	}
}
