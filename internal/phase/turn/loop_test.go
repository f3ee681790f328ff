package turn_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/llm/anthropic"
	"github.com/toryo-dev/toryo/internal/llm/script"
	"github.com/toryo-dev/toryo/internal/phase/conversation"
	"github.com/toryo-dev/toryo/internal/phase/tool"
	"github.com/toryo-dev/toryo/internal/phase/turn"
	"github.com/toryo-dev/toryo/internal/task"
)

// echo is a tool that says what it was told.
type echo struct {
	readOnly bool
	answer   func(arguments string) (string, error)
	calls    int
}

func (e *echo) Definition() llm.Tool {
	return llm.Tool{Name: "echo", Description: "Says what it is told.", Schema: []byte(`{"type":"object"}`)}
}
func (e *echo) ReadOnly() bool { return e.readOnly }
func (e *echo) Call(_ context.Context, _ llm.Call, arguments json.RawMessage) (tool.Output, error) {
	e.calls++
	if e.answer == nil {
		return tool.Output{Text: string(arguments)}, nil
	}
	text, err := e.answer(string(arguments))
	return tool.Output{Text: text, Whole: "whole " + text}, err
}

// recorder keeps what a phase records.
type recorder struct {
	answers     []llm.Response
	done        []tool.Done
	compactions int
	fail        error
}

func (r *recorder) Answered(_ context.Context, response llm.Response) error {
	r.answers = append(r.answers, response)
	return r.fail
}
func (r *recorder) Done(_ context.Context, done tool.Done) error {
	r.done = append(r.done, done)
	return nil
}
func (r *recorder) Compacted(context.Context, conversation.Compaction) error {
	r.compactions++
	return nil
}

type setup struct {
	player  *script.Player
	talk    *conversation.Conversation
	echo    *echo
	rec     *recorder
	options turn.Options
}

// begin connects the real Anthropic adapter to the scripted server, which refuses
// what the vendor would refuse.
func begin(t testing.TB, rules ...script.Rule) *setup {
	t.Helper()
	made, err := script.New(script.Script{Rules: rules})
	if err != nil {
		t.Fatal(err)
	}
	server := script.NewServer(made)
	listening := httptest.NewServer(server)
	t.Cleanup(listening.Close)
	model := anthropic.New(llm.Endpoint{Model: "m", BaseURL: listening.URL, Key: "k"})
	s := &setup{player: server.Player, echo: &echo{}, rec: &recorder{}}
	box, err := tool.NewBox(s.echo, tool.Finish(nil), tool.Ask())
	if err != nil {
		t.Fatal(err)
	}
	s.talk, err = conversation.New(t.Context(), conversation.Options{
		System: "You are an agent.", Tools: box.Definitions(), Pinned: []conversation.Block{{Name: "request", Text: "Do it."}},
	})
	if err != nil {
		t.Fatal(err)
	}
	wrapped := llm.Wrap(model, llm.Layers{Retry: llm.RetryPolicy{First: time.Millisecond, Longest: time.Millisecond}})
	s.options = turn.Options{Model: wrapped, Conversation: s.talk, Box: box, Recorder: s.rec, MustFinish: true}
	return s
}

func (s *setup) run(t testing.TB) turn.Outcome {
	t.Helper()
	outcome, err := turn.Run(t.Context(), s.options)
	if err != nil {
		t.Fatal(err)
	}
	return outcome
}

func call(arguments map[string]any) script.Call {
	return script.Call{Name: "echo", Arguments: arguments}
}

func finish() script.Rule {
	return script.Rule{Name: "finish", Answer: script.Answer{Calls: []script.Call{{Name: "finish", Arguments: map[string]any{"summary": "Done."}}}}}
}

func first(answer script.Answer) script.Rule {
	return script.Rule{Name: "first", Times: 1, Answer: answer}
}

func TestAPhaseFromBeginningToEnd(t *testing.T) {
	t.Parallel()
	s := begin(t,
		script.Rule{When: script.When{Turn: 1}, Answer: script.Answer{Text: "I look.", Calls: []script.Call{call(map[string]any{"n": 1}), call(map[string]any{"n": 2})}, Usage: &llm.Usage{Input: 100, Output: 10}}},
		script.Rule{When: script.When{Last: `{"n":2}`}, Answer: script.Answer{Calls: []script.Call{call(map[string]any{"n": 3})}, Usage: &llm.Usage{Input: 150, Output: 10}}},
		finish())
	var points []turn.Point
	s.options.Checkpoint = func(_ context.Context, point turn.Point) error { points = append(points, point); return nil }
	outcome := s.run(t)
	if outcome.Reason != task.ReasonCompleted || outcome.End == nil || outcome.End.Summary != "Done." || outcome.Turns != 3 {
		t.Errorf("%+v", outcome)
	}
	if s.echo.calls != 3 || len(s.rec.done) != 4 || len(s.rec.answers) != 3 || outcome.Usage.Input < 250 {
		t.Errorf("%d calls, %d recorded, %d answers, %+v", s.echo.calls, len(s.rec.done), len(s.rec.answers), outcome.Usage)
	}
	want := "before_turn after_answer after_results before_turn after_answer after_results before_turn after_answer after_results"
	if got := strings.Trim(fmt.Sprint(points), "[]"); got != want {
		t.Errorf("checkpoints %s", got)
	}
}

func TestTextEndsAPhaseThatNeedsNoTool(t *testing.T) {
	t.Parallel()
	s := begin(t, script.Rule{Answer: script.Answer{Text: "日本語の答えです。"}})
	s.options.MustFinish = false
	if outcome := s.run(t); outcome.Reason != task.ReasonCompleted || outcome.Text != "日本語の答えです。" || outcome.End != nil {
		t.Errorf("%+v", outcome)
	}
}

func TestAQuestionWaitsForAPerson(t *testing.T) {
	t.Parallel()
	s := begin(t, script.Rule{Answer: script.Answer{Calls: []script.Call{{Name: "ask", Arguments: map[string]any{"question": "Which port?"}}}}})
	if outcome := s.run(t); outcome.Reason != task.ReasonAwaitingAnswer || outcome.End.Question != "Which port?" {
		t.Errorf("%+v", outcome)
	}
}

// TestBadAnswers sends what models send when they go wrong. Each has a defined
// result, and each leaves a conversation that the provider takes.
func TestBadAnswers(t *testing.T) {
	t.Parallel()
	many := make([]script.Call, 10_000)
	for i := range many {
		many[i] = script.Call{ID: fmt.Sprintf("c%d", i), Name: "echo", Arguments: map[string]any{"n": i}}
	}
	for name, c := range map[string]struct {
		answer script.Answer
		calls  int    // of echo
		want   string // in the second request
	}{
		"arguments that are not JSON":   {script.Answer{Calls: []script.Call{{Name: "echo", Raw: `{"n": `}}}, 0, "not a JSON object"},
		"arguments that are a list":     {script.Answer{Calls: []script.Call{{Name: "echo", Raw: `[1]`}}}, 0, "not a JSON object"},
		"unknown tool":                  {script.Answer{Calls: []script.Call{{Name: "fly", Arguments: map[string]any{}}}}, 0, "there is no tool \"fly\"; there are echo, finish, ask"},
		"a name that no tool can have":  {script.Answer{Calls: []script.Call{{Name: "fly away!", Arguments: map[string]any{}}}}, 0, "there is no tool \"fly_away\""},
		"a prefixed name":               {script.Answer{Calls: []script.Call{{Name: "functions.echo", Arguments: map[string]any{}}}}, 1, "{}"},
		"no id":                         {script.Answer{Calls: []script.Call{{NoID: true, Name: "echo"}, {NoID: true, Name: "echo", Arguments: map[string]any{"n": 2}}}}, 2, `{"n":2}`},
		"two of the same id":            {script.Answer{Calls: []script.Call{{ID: "same", Name: "echo"}, {ID: "same", Name: "echo", Arguments: map[string]any{"n": 2}}}}, 2, `{"n":2}`},
		"an empty answer":               {script.Answer{Stop: "end"}, 0, "Your last answer was empty"},
		"a blank answer":                {script.Answer{Text: " \n\t"}, 0, "Your last answer was empty"},
		"a megabyte":                    {script.Answer{Text: strings.Repeat("lorem ipsum\n", 90_000)}, 0, "bytes in"},
		"another language":              {script.Answer{Text: "ツールを使います。", Calls: []script.Call{{Name: "echo", Arguments: map[string]any{"言葉": "はい"}}}}, 1, "はい"},
		"ten thousand calls":            {script.Answer{Calls: many}, 32, "Your answer had 10000 calls. The first 32 were done"},
		"no call where one is needed":   {script.Answer{Text: "I am done."}, 0, "You have called no tool"},
		"cut at the length limit":       {script.Answer{Text: "I begin to", Stop: "max_tokens"}, 0, "cut off at the length limit"},
		"calls cut at the length limit": {script.Answer{Calls: []script.Call{{Name: "echo", Arguments: map[string]any{"n": 1}}, {Name: "echo", Raw: `{"n": 1`}}, Stop: "max_tokens"}, 0, "none of its calls was done"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := begin(t, first(c.answer), finish())
			outcome := s.run(t)
			if outcome.Reason != task.ReasonCompleted || outcome.Turns != 2 || s.echo.calls != c.calls {
				t.Errorf("%+v after %d calls, want %d", outcome, s.echo.calls, c.calls)
			}
			records := s.player.Records()
			second, err := json.Marshal(records[len(records)-1].Request.Messages)
			if err != nil {
				t.Fatal(err)
			}
			var said strings.Builder
			for _, message := range records[len(records)-1].Request.Messages {
				said.WriteString(message.Text())
				for _, result := range message.Results() {
					said.WriteString(result.Text)
				}
			}
			if !strings.Contains(said.String(), c.want) {
				t.Errorf("%q was not said: %s", c.want, tool.Shorten(said.String(), 2000))
			}
			if len(second) > 200_000 {
				t.Errorf("the next request has %d bytes", len(second))
			}
		})
	}
}

func TestThreeEmptyAnswersEndThePhase(t *testing.T) {
	t.Parallel()
	s := begin(t, script.Rule{Answer: script.Answer{Stop: "end"}})
	if outcome := s.run(t); outcome.Reason != task.ReasonEmptyAnswers || outcome.Turns != 3 {
		t.Errorf("%+v", outcome)
	}
	s = begin(t, script.Rule{Answer: script.Answer{Text: "I am thinking."}})
	if outcome := s.run(t); outcome.Reason != task.ReasonEmptyAnswers || outcome.Turns != 3 {
		t.Errorf("%+v", outcome)
	}
}

func TestIDsOfEarlierTurnsAreNotUsedAgain(t *testing.T) {
	t.Parallel()
	same := script.Call{ID: "call_0", Name: "echo"}
	s := begin(t,
		script.Rule{When: script.When{Turn: 1}, Answer: script.Answer{Calls: []script.Call{same}}},
		script.Rule{When: script.When{Turn: 2}, Answer: script.Answer{Calls: []script.Call{same}}},
		finish())
	s.run(t)
	seen := map[string]bool{}
	for _, message := range s.talk.Request().Messages {
		for _, c := range message.Calls() {
			if seen[c.ID] {
				t.Errorf("the id %s is used twice", c.ID)
			}
			seen[c.ID] = true
		}
	}
}

func TestLoopsAreSeen(t *testing.T) {
	t.Parallel()
	t.Run("the same call", func(t *testing.T) {
		t.Parallel()
		s := begin(t, script.Rule{Answer: script.Answer{Calls: []script.Call{{Name: "echo", Raw: `{"a": 1, "b": 2}`}}}})
		outcome := s.run(t)
		if outcome.Reason != task.ReasonModelLoops || outcome.Turns != 5 {
			t.Errorf("%+v", outcome)
		}
		records := s.player.Records()
		if text := records[3].Request.Messages[len(records[3].Request.Messages)-1].Text(); !strings.Contains(text, "same arguments and the same result 3 times") {
			t.Errorf("the warning is %q", text)
		}
		if strings.Contains(records[2].Request.Messages[len(records[2].Request.Messages)-1].Text(), "same result") {
			t.Error("the warning came too early")
		}
	})
	t.Run("a circle of three", func(t *testing.T) {
		t.Parallel()
		var rules []script.Rule
		for i := range 60 {
			rules = append(rules, script.Rule{When: script.When{Turn: i + 1}, Answer: script.Answer{Calls: []script.Call{call(map[string]any{"n": i % 3})}}})
		}
		s := begin(t, rules...)
		if outcome := s.run(t); outcome.Reason != task.ReasonModelLoops || outcome.Turns != 13 {
			t.Errorf("%+v", outcome)
		}
	})
	t.Run("another result is no loop", func(t *testing.T) {
		t.Parallel()
		s := begin(t, script.Rule{When: script.When{Last: "count 20"}, Answer: finish().Answer}, script.Rule{Name: "go", Answer: script.Answer{Calls: []script.Call{call(nil)}}})
		n := 0
		s.echo.answer = func(string) (string, error) { n++; return fmt.Sprintf("count %d", n), nil }
		if outcome := s.run(t); outcome.Reason != task.ReasonCompleted || outcome.Turns != 21 {
			t.Errorf("%+v", outcome)
		}
	})
}

func TestTurnsAreLimited(t *testing.T) {
	t.Parallel()
	s := begin(t, script.Rule{Answer: script.Answer{Calls: []script.Call{call(nil)}}})
	n := 0
	s.echo.answer = func(string) (string, error) { n++; return fmt.Sprint(n), nil }
	s.options.Limits.Turns = 7
	if outcome := s.run(t); outcome.Reason != task.ReasonTurnsExhausted || outcome.Turns != 7 {
		t.Errorf("%+v", outcome)
	}
}

func TestARefusalEndsThePhase(t *testing.T) {
	t.Parallel()
	s := begin(t, script.Rule{Answer: script.Answer{Text: "no", Stop: "refusal"}})
	if outcome := s.run(t); outcome.Reason != task.ReasonModelRefused || !strings.Contains(outcome.Text, "refused") {
		t.Errorf("%+v", outcome)
	}
}

func TestACutAnswerIsNotActedOn(t *testing.T) {
	t.Parallel()
	s := begin(t,
		script.Rule{Times: 1, Answer: script.Answer{Text: "I do it.", Calls: []script.Call{call(map[string]any{"long": strings.Repeat("x", 500)})}, Cut: 9}},
		finish())
	if outcome := s.run(t); outcome.Reason != task.ReasonCompleted || s.echo.calls != 0 || outcome.Turns != 1 {
		t.Errorf("%+v after %d calls", outcome, s.echo.calls)
	}
}

func TestErrorsOfTheRunEndIt(t *testing.T) {
	t.Parallel()
	stop := errors.New("stop")
	for _, point := range []turn.Point{turn.BeforeTurn, turn.AfterAnswer, turn.AfterResults} {
		s := begin(t, script.Rule{Answer: script.Answer{Calls: []script.Call{call(nil)}}})
		s.options.Checkpoint = func(_ context.Context, at turn.Point) error {
			if at == point {
				return stop
			}
			return nil
		}
		if _, err := turn.Run(t.Context(), s.options); !errors.Is(err, stop) {
			t.Errorf("%s: %v", point, err)
		}
		// Whenever it ended, the conversation can go on.
		if err := s.talk.AddUserMessage(t.Context(), "go on"); err != nil {
			t.Fatal(err)
		}
		s.options.Checkpoint = nil
		s.options.Limits.Turns = 1
		if outcome := s.run(t); outcome.Turns != 1 {
			t.Errorf("%s: %+v", point, outcome)
		}
	}
	gone := errors.New("the sandbox is gone")
	s := begin(t, script.Rule{Answer: script.Answer{Calls: []script.Call{call(nil), call(map[string]any{"n": 2})}}})
	s.echo.answer = func(string) (string, error) { return "", gone }
	if _, err := turn.Run(t.Context(), s.options); !errors.Is(err, gone) {
		t.Errorf("%v", err)
	}
	if last := s.talk.Request().Messages[2].Results(); len(last) != 2 {
		t.Errorf("the calls are open: %+v", last)
	}
	full := begin(t, finish())
	full.rec.fail = errors.New("disk full")
	if _, err := turn.Run(t.Context(), full.options); !errors.Is(err, full.rec.fail) {
		t.Errorf("%v", err)
	}
}

type mask struct{}

func (mask) String(text string) string { return strings.ReplaceAll(text, "hunter22", "••••") }

func TestNothingSecretIsKept(t *testing.T) {
	t.Parallel()
	s := begin(t, first(script.Answer{Text: "The key is hunter22.", Calls: []script.Call{call(map[string]any{"key": "hunter22"})}}), finish())
	s.options.Redactor = mask{}
	told := ""
	s.echo.answer = func(arguments string) (string, error) { told = arguments; return "it was hunter22", nil }
	s.run(t)
	if !strings.Contains(told, "hunter22") {
		t.Errorf("the tool was told %s, and should be told what the model said", told)
	}
	for what, value := range map[string]any{"conversation": s.talk.Request(), "answers": s.rec.answers, "calls": s.rec.done, "requests": s.player.Records()[1].Request} {
		if data, err := json.Marshal(value); err != nil || strings.Contains(string(data), "hunter22") {
			t.Errorf("the secret is in the %s: %s %v", what, data, err)
		}
	}
}

func TestALongPhaseIsCompacted(t *testing.T) {
	t.Parallel()
	s := begin(t,
		script.Rule{Name: "notes", When: script.When{System: "You keep the memory"}, Answer: script.Answer{Text: "Notes."}},
		script.Rule{When: script.When{Last: "count 60"}, Answer: finish().Answer},
		script.Rule{Name: "go", Answer: script.Answer{Text: "I go on with the next.", Calls: []script.Call{call(nil)}}})
	n := 0
	s.echo.answer = func(string) (string, error) { n++; return fmt.Sprintf("count %d %s", n, strings.Repeat("x", 300)), nil }
	talk, err := conversation.New(t.Context(), conversation.Options{
		System: "You are an agent.", Tools: s.options.Box.Definitions(), Pinned: []conversation.Block{{Name: "request", Text: "Do it."}},
		ContextLength: 3000, Answer: 300, Summarizer: s.options.Model,
	})
	if err != nil {
		t.Fatal(err)
	}
	s.options.Conversation = talk
	outcome := s.run(t)
	if outcome.Reason != task.ReasonCompleted || s.rec.compactions < 2 {
		t.Errorf("%+v after %d compactions", outcome, s.rec.compactions)
	}
}

func TestAConversationThatDoesNotFitEndsThePhase(t *testing.T) {
	t.Parallel()
	s := begin(t, finish())
	talk, err := conversation.New(t.Context(), conversation.Options{
		System: "s", Pinned: []conversation.Block{{Name: "request", Text: strings.Repeat("long ", 5000)}}, ContextLength: 2000,
	})
	if err != nil {
		t.Fatal(err)
	}
	s.options.Conversation = talk
	if outcome := s.run(t); outcome.Reason != task.ReasonContextExceeded {
		t.Errorf("%+v", outcome)
	}
}
