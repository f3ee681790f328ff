package llm_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/llm/llmtest"
)

// failing is a model that gives one error after the other, and then an answer.
type failing struct {
	errors []error
	calls  []time.Time
}

func (f *failing) Info() llm.Info { return llm.Info{Provider: "test", MaxTokens: 100} }

func (f *failing) CountTokens(context.Context, llm.Request) (int64, error) { return 1, nil }

func (f *failing) Chat(_ context.Context, _ llm.Request, sink llm.Sink) (llm.Response, error) {
	f.calls = append(f.calls, time.Now())
	sink.Send(llm.Delta{Text: "a"})
	if n := len(f.calls); n <= len(f.errors) {
		return llm.Response{}, f.errors[n-1]
	}
	return llm.Response{Message: llmtest.AssistantText("ok"), Usage: llm.Usage{Input: 10, Output: 5}}, nil
}

func kind(k llm.Kind) error { return llm.NewError(k, "test", errors.New("cause")) }

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func TestEveryKindIsTriedAgainOrNotAsItSays(t *testing.T) {
	t.Parallel()
	for _, k := range llm.Kinds() {
		synctest.Test(t, func(t *testing.T) {
			model := &failing{errors: []error{kind(k)}}
			_, err := llm.Retrying(model, llm.RetryPolicy{}, quiet()).Chat(t.Context(), llm.Request{}, nil)
			if k.Retry() && (err != nil || len(model.calls) != 2) {
				t.Errorf("%s: %v after %d calls, want success after 2", k, err, len(model.calls))
			}
			if !k.Retry() && (llm.KindOf(err) != k || len(model.calls) != 1) {
				t.Errorf("%s: %v after %d calls, want the error after 1", k, err, len(model.calls))
			}
		})
	}
}

func TestRetryAfterIsHonoured(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asks := &llm.Error{Kind: llm.RateLimited, Provider: "test", RetryAfter: 90 * time.Second}
		model := &failing{errors: []error{asks, asks}}
		if _, err := llm.Retrying(model, llm.RetryPolicy{}, quiet()).Chat(t.Context(), llm.Request{}, nil); err != nil {
			t.Fatal(err)
		}
		for i := 1; i < len(model.calls); i++ {
			if wait := model.calls[i].Sub(model.calls[i-1]); wait != 90*time.Second {
				t.Errorf("call %d came after %s, and the provider asked for 90s", i+1, wait)
			}
		}
	})
}

func TestTooLongAWaitEndsTheCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		model := &failing{errors: []error{&llm.Error{Kind: llm.RateLimited, Provider: "test", RetryAfter: time.Hour}}}
		_, err := llm.Retrying(model, llm.RetryPolicy{}, quiet()).Chat(t.Context(), llm.Request{}, nil)
		if llm.KindOf(err) != llm.RateLimited || len(model.calls) != 1 {
			t.Errorf("%v after %d calls", err, len(model.calls))
		}
	})
}

func TestTriesEndAndWaitsGrow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var failures []error
		for range 100 {
			failures = append(failures, kind(llm.ServerFault))
		}
		model := &failing{errors: failures}
		_, err := llm.Retrying(model, llm.RetryPolicy{Tries: 4}, quiet()).Chat(t.Context(), llm.Request{}, nil)
		if llm.KindOf(err) != llm.ServerFault || len(model.calls) != 4 {
			t.Fatalf("%v after %d calls, want 4", err, len(model.calls))
		}
		first, last := model.calls[1].Sub(model.calls[0]), model.calls[3].Sub(model.calls[2])
		if last <= first/2 || first < 500*time.Millisecond {
			t.Errorf("waits of %s and %s do not grow", first, last)
		}
	})
}

func TestAStoppedRunDoesNotWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		stopped := errors.New("stopped")
		ctx, cancel := context.WithCancelCause(t.Context())
		model := &failing{errors: []error{kind(llm.Overloaded), kind(llm.Overloaded)}}
		time.AfterFunc(100*time.Millisecond, func() { cancel(stopped) })
		begun := time.Now()
		_, err := llm.Retrying(model, llm.RetryPolicy{First: time.Minute}, quiet()).Chat(ctx, llm.Request{}, nil)
		if !errors.Is(err, stopped) || time.Since(begun) != 100*time.Millisecond {
			t.Errorf("%v after %s", err, time.Since(begun))
		}
	})
}

func TestErrorThatIsNoneOfOursIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	own := errors.New("own")
	model := &failing{errors: []error{own}}
	if _, err := llm.Retrying(model, llm.RetryPolicy{}, quiet()).Chat(t.Context(), llm.Request{}, nil); !errors.Is(err, own) || len(model.calls) != 1 {
		t.Errorf("%v after %d calls", err, len(model.calls))
	}
}
