package phase_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/phase/phasetest"
	"github.com/toryo-dev/toryo/internal/task"
)

// shellWorld is a world whose run succeeds when nothing interferes.
func shellWorld(t *testing.T) *phasetest.World {
	t.Helper()
	scenario, err := phasetest.Load("testdata/scenarios/shell.txtar")
	if err != nil {
		t.Fatal(err)
	}
	return phasetest.New(t, phasetest.Engine(t), scenario)
}

// faulty is a model that fails in one phase, so many times.
type faulty struct {
	llm.Model
	phase task.Phase
	left  *atomic.Int64
	err   error
}

func (f faulty) Chat(ctx context.Context, request llm.Request, sink llm.Sink) (llm.Response, error) {
	if request.Phase == f.phase && f.left.Add(-1) >= 0 {
		return llm.Response{}, f.err
	}
	return f.Model.Chat(ctx, request, sink)
}

func failing(world *phasetest.World, in task.Phase, times int64, err error) {
	left := &atomic.Int64{}
	left.Store(times)
	world.Adjust = func(options *phase.Options) {
		model := options.Model
		options.Model = func(asked task.Phase) llm.Model { return faulty{model(asked), in, left, err} }
	}
}

func TestABudgetThatIsUsedUpPausesTheRun(t *testing.T) {
	t.Parallel()
	world := shellWorld(t)
	failing(world, task.Execution, 1, llm.NewError(llm.BudgetExhausted, "script", nil))
	outcome, err := world.Run(t.Context())
	if err != nil || outcome.State != task.Paused || outcome.Reason != task.ReasonBudgetExhausted {
		t.Fatalf("%+v, %v", outcome, err)
	}
	if _, err := world.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	world.Check()
}

func TestAModelThatCannotBeReachedIsAnError(t *testing.T) {
	t.Parallel()
	for _, in := range []task.Phase{task.PrePlanning, task.Planning, task.Execution, task.Verification, task.Complete} {
		t.Run(string(in), func(t *testing.T) {
			t.Parallel()
			world := shellWorld(t)
			failing(world, in, 1, llm.NewError(llm.Unreachable, "script", errors.New("no route")))
			if _, err := world.Run(t.Context()); llm.KindOf(err) != llm.Unreachable {
				t.Fatalf("%v", err)
			}
			if _, err := world.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			world.Check()
		})
	}
}

func TestARunThatIsNoLongerOursEndsWithTheCause(t *testing.T) {
	t.Parallel()
	world := shellWorld(t)
	lost := task.Errorf(task.LeaseLost, "the task is someone else's")
	world.Adjust = func(options *phase.Options) {
		options.AfterEntry = func(number int, _ task.EventKind) {
			if number == 20 {
				world.Cancel(lost)
			}
		}
	}
	outcome, err := world.Run(t.Context())
	if !errors.Is(err, lost) || outcome.State != "" || len(world.Pulls()) != 0 {
		t.Fatalf("%+v, %v", outcome, err)
	}
}

// refusing refuses pull requests, as the server does while a stop is pending.
type refusing struct {
	phase.Forge
	world *phasetest.World
}

func (r refusing) OpenPull(context.Context, phase.OpenPull) (phase.Pulled, error) {
	time.AfterFunc(0, func() {
		r.world.Cancel(&phase.Halt{Signal: task.SignalStop, Reason: task.ReasonUnassigned, Since: time.Now()})
	})
	return phase.Pulled{}, task.Errorf(task.Conflict, "a stop is pending")
}

func TestAStopWinsOverAPullRequest(t *testing.T) {
	t.Parallel()
	world := shellWorld(t)
	world.Around = func(forge phase.Forge) phase.Forge { return refusing{forge, world} }
	outcome, err := world.Run(t.Context())
	if err != nil || outcome.State != task.Stopped || outcome.Reason != task.ReasonUnassigned || outcome.Kept == "" {
		t.Fatalf("%+v, %v", outcome, err)
	}
}

// mute is a forge whose comments cannot be made.
type mute struct{ phase.Forge }

func (mute) Progress(context.Context, string) error { return errors.New("no forge") }

func TestProgressThatCannotBeShownStopsNothing(t *testing.T) {
	t.Parallel()
	world := shellWorld(t)
	world.Around = func(forge phase.Forge) phase.Forge { return mute{forge} }
	if _, err := world.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	world.Check()
}

func TestPromptsAndTheRoleAreConfigurable(t *testing.T) {
	t.Parallel()
	world := shellWorld(t)
	world.Adjust = func(options *phase.Options) {
		options.Prompts = fstest.MapFS{"execution.md": {Data: []byte("Do it our way.")}}
		options.Role = phase.Role{Description: "Writes scripts.", Prompt: "You like shells.", Tools: []string{"edit", "tick", "test"}}
	}
	if _, err := world.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	world.Check()
	request := world.Requests(task.Execution)[0]
	for text, want := range map[string]bool{"Do it our way.": true, "## Your role: CODER\n\nWrites scripts.\n\nYou like shells.\n": true, "Follow the plan with the tools": false} {
		if strings.Contains(request.System, text) != want {
			t.Errorf("%q: want %v in\n%s", text, want, request.System)
		}
	}
	var names []string
	for _, one := range request.Tools {
		names = append(names, one.Name)
	}
	if got := strings.Join(names, " "); got != "edit test tick comments ask finish" {
		t.Errorf("the tools are %s", got)
	}
}

// In every phase the model is told its role, also when the configuration says nothing of it.
func TestTheModelIsToldItsRole(t *testing.T) {
	t.Parallel()
	world := shellWorld(t)
	if _, err := world.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	world.Check()
	asked := 0
	for _, in := range task.Phases {
		for _, request := range world.Requests(in) {
			asked++
			if !strings.Contains(request.System, "\n## Your role: CODER\n") {
				t.Errorf("in %s the model is not told its role:\n%s", in, request.System)
			}
		}
	}
	if asked == 0 {
		t.Error("the model was not asked anything")
	}
}

// hiding is a redactor for one word.
type hiding struct{}

func (hiding) String(text string) string { return strings.ReplaceAll(text, "hunter2", "[secret]") }

func TestSecretsAreNowhere(t *testing.T) {
	t.Parallel()
	scenario, err := phasetest.Load("testdata/scenarios/shell.txtar")
	if err != nil {
		t.Fatal(err)
	}
	scenario.Body += " The password is hunter2."
	for i := range scenario.Script.Rules {
		answer := &scenario.Script.Rules[i].Answer
		answer.Text = strings.ReplaceAll(answer.Text, "It adds now.", "It adds now, hunter2.")
	}
	scenario.Files["test.sh"] = "echo hunter2; [ \"$(sh add.sh 2 2)\" = 4 ]\n"
	scenario.Expect.Pull, scenario.Expect.Files = []string{"It adds now, [secret]."}, nil
	world := phasetest.New(t, phasetest.Engine(t), scenario)
	world.Adjust = func(options *phase.Options) {
		options.Redactor = hiding{}
		model := options.Model
		options.Model = func(asked task.Phase) llm.Model { return llm.Redacting(model(asked), hiding{}) }
	}
	outcome, err := world.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	world.Check()
	for place, text := range map[string]string{"the journal": world.Journal(), "the model": world.Prompts(), "the comment": outcome.Comment, "the summary": outcome.Summary, "the commit": world.Log()} {
		if strings.Contains(text, "hunter2") {
			t.Errorf("%s has the secret: %s", place, text[max(0, strings.Index(text, "hunter2")-300):])
		}
	}
}

func TestALongConversationIsMadeShorter(t *testing.T) {
	t.Parallel()
	scenario, err := phasetest.Load("testdata/long/compaction.txtar")
	if err != nil {
		t.Fatal(err)
	}
	world := phasetest.New(t, phasetest.Engine(t), scenario)
	world.Adjust = func(options *phase.Options) {
		model := options.Model
		options.Model = func(asked task.Phase) llm.Model { return short{model(asked)} }
	}
	if _, err := world.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	world.Check()
	if !strings.Contains(world.Journal(), `"kind":"compaction"`) {
		t.Error("nothing was compacted")
	}
	requests := world.Requests(task.Execution)
	last := requests[len(requests)-1].Messages[0].Text()
	for _, pinned := range []string{"It should add, and mind the gap.", "Mind the zero too.", "a1: fix add.sh"} {
		if !strings.Contains(last, pinned) {
			t.Errorf("%q is not in the head any more:\n%s", pinned, last)
		}
	}
}

// short is a model with a short memory.
type short struct{ llm.Model }

func (s short) Info() llm.Info {
	info := s.Model.Info()
	info.ContextLength, info.MaxTokens = 9000, 500
	return info
}

func TestARunnerNeedsItsParts(t *testing.T) {
	t.Parallel()
	if _, err := phase.NewRunner(phase.Options{}); task.CodeOf(err) != task.BadConfig {
		t.Errorf("%v", err)
	}
}

func TestAJournalThatCannotBeReadIsRefused(t *testing.T) {
	t.Parallel()
	for name, data := range map[string]string{"no JSON": "{", "not whole": "{}"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			world := shellWorld(t)
			world.AddEvent(task.Event{Kind: task.ModelUsed, Position: 1, Data: []byte(data)})
			if _, err := world.Run(t.Context()); task.CodeOf(err) != task.Invalid {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestCommentsThatCannotBeAddedAreTakenLater(t *testing.T) {
	t.Parallel()
	scenario, err := phasetest.Load("testdata/scenarios/comments.txtar")
	if err != nil {
		t.Fatal(err)
	}
	world := phasetest.New(t, phasetest.Engine(t), scenario)
	world.RefuseSignals = 2
	if _, err := world.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if world.RefuseSignals != 0 {
		t.Error("nothing was refused")
	}
	world.Check()
}

// pushedTo is a forge on which others push each time that the work is to be published.
type pushedTo struct {
	phase.Forge
	world *phasetest.World
	times *int
}

func (p pushedTo) OpenPull(ctx context.Context, open phase.OpenPull) (phase.Pulled, error) {
	*p.times++
	p.world.Push(map[string]string{"NOTES": strings.Repeat("a person's line\n", *p.times)})
	return p.Forge.OpenPull(ctx, open)
}

// People who push again and again do not keep a run for ever, and are told what to do.
func TestPushesThatNeverEnd(t *testing.T) {
	t.Parallel()
	world := shellWorld(t)
	times := 0
	world.Around = func(forge phase.Forge) phase.Forge { return pushedTo{forge, world, &times} }
	outcome, err := world.Run(t.Context())
	if err != nil || outcome.State != task.Failed || outcome.Reason != task.ReasonBranchMoved || times != 4 {
		t.Fatalf("after %d times: %+v, %v", times, outcome, err)
	}
	if !strings.Contains(outcome.Comment, "no work of other people was overwritten") || outcome.Kept == "" {
		t.Errorf("people are told %s", outcome.Comment)
	}
}
