package turn_test

import (
	"context"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/llm/script"
	"github.com/toryo-dev/toryo/internal/phase/conversation"
	"github.com/toryo-dev/toryo/internal/task"
)

// failingAfter is a model that answers so often, and then no more.
type failingAfter struct {
	llm.Model
	answers int
}

func (f *failingAfter) Chat(ctx context.Context, request llm.Request, sink llm.Sink) (llm.Response, error) {
	if f.answers--; f.answers < 0 {
		return llm.Response{}, llm.NewError(llm.Overloaded, "test", nil)
	}
	return f.Model.Chat(ctx, request, sink)
}

// The fallback takes less than the first model: the conversation is made to fit, by the same way as
// ever, and goes on. One that cannot be made to fit ends with that reason.
func TestTheConversationFitsTheFallback(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		context int64
		reason  task.Reason
	}{
		"it can be made to fit": {6000, task.ReasonCompleted},
		"it cannot":             {300, task.ReasonContextExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := begin(t, finish())
			s.echo.answer = func(string) (string, error) { return strings.Repeat("long output ", 1000), nil }
			large := played(t, 200_000, script.Rule{Answer: script.Answer{Calls: []script.Call{call(map[string]any{"n": 1})}}})
			small := played(t, test.context, finish())
			s.options.Model = llm.WithFallback(llm.Fallback{First: &failingAfter{large, 3}, Probe: large, Second: small, Outages: &llm.Outages{}})
			s.options.Limits.Repeats = 100
			talk, err := conversation.New(t.Context(), conversation.Options{
				System: "You are an agent.", Tools: s.options.Box.Definitions(), Pinned: []conversation.Block{{Name: "request", Text: "Do it."}},
				ContextLength: 200_000, Answer: 100, KeepRecent: 2,
			})
			if err != nil {
				t.Fatal(err)
			}
			s.options.Conversation = talk
			outcome := s.run(t)
			if outcome.Reason != test.reason {
				t.Fatalf("%+v", outcome)
			}
			if test.reason != task.ReasonCompleted {
				return
			}
			records := small.Records()
			if len(records) != 1 || records[0].Request.Size() > 30_000 || s.rec.compactions != 1 || s.echo.calls != 3 {
				t.Errorf("%d requests, %d compactions, %d calls", len(records), s.rec.compactions, s.echo.calls)
			}
			if by := s.rec.answers[len(s.rec.answers)-1].Standin; by == nil {
				t.Error("the answer does not say who gave it")
			}
		})
	}
}

func played(t *testing.T, context int64, rules ...script.Rule) *script.Model {
	t.Helper()
	made, err := script.New(script.Script{Rules: rules})
	if err != nil {
		t.Fatal(err)
	}
	return script.NewModel(made, llm.Endpoint{ContextLength: context, MaxTokens: 100})
}
