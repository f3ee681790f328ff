package llm_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/llm/llmtest"
)

// named is a model that says who it is, and fails for as long as it is told to.
type named struct {
	name    string
	context int64
	images  bool

	mu    sync.Mutex
	fails error
	asked []llm.Request

	cannotCount error
	counted     int
	countedOf   llm.Request
}

func (m *named) Info() llm.Info {
	return llm.Info{Provider: "test", Model: m.name, MaxTokens: 100, ContextLength: m.context, Images: m.images}
}

func (m *named) CountTokens(_ context.Context, request llm.Request) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.counted++
	m.countedOf = request
	return m.context, m.cannotCount
}

func (m *named) Chat(_ context.Context, request llm.Request, sink llm.Sink) (llm.Response, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked = append(m.asked, request)
	sink.Send(llm.Delta{Text: m.name})
	if m.fails != nil {
		return llm.Response{}, m.fails
	}
	return llm.Response{Message: llmtest.AssistantText(m.name), Model: m.name}, nil
}

func (m *named) set(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fails = err
}

func (m *named) calls() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.asked)
}

func withFallback(first, second llm.Model) llm.Model {
	return llm.WithFallback(llm.Fallback{First: first, Probe: first, Second: second, Server: "a", Outages: &llm.Outages{}})
}

func TestTheFallbackIsAskedForSomeErrorsOnly(t *testing.T) {
	t.Parallel()
	asks := map[llm.Kind]bool{
		llm.RateLimited: true, llm.Overloaded: true, llm.ServerFault: true, llm.CutStream: true,
		llm.TimedOut: true, llm.Unreachable: true, llm.QuotaUsedUp: true,
	}
	for _, k := range llm.Kinds() {
		first, second := &named{name: "first", fails: kind(k)}, &named{name: "second"}
		var shown []string
		response, err := withFallback(first, second).Chat(t.Context(), llm.Request{}, func(delta llm.Delta) {
			if delta.Restart {
				shown = nil
				return
			}
			shown = append(shown, delta.Text)
		})
		if asks[k] != (err == nil && response.Model == "second" && second.calls() == 1) {
			t.Errorf("%s: %+v, %v", k, response, err)
		}
		if !asks[k] && (llm.KindOf(err) != k || second.calls() != 0) {
			t.Errorf("%s: %v, want the error of the first", k, err)
		}
		if len(shown) != 1 {
			t.Errorf("%s: shown is %q, want one answer", k, shown)
		}
		if by := response.Standin; asks[k] && (by == nil || by.Instead != "test first" || by.Model != "test second" || by.Since.IsZero() || !strings.Contains(by.Reason, "the model provider test")) {
			t.Errorf("%s: %+v", k, by)
		}
	}
}

// What a provider says may name accounts, and the reason of an outage is shown to others.
func TestTheReasonHasNotTheProvidersWords(t *testing.T) {
	t.Parallel()
	first := &named{name: "first", fails: &llm.Error{Kind: llm.QuotaUsedUp, Provider: "test", Status: 402, Detail: "account 4711"}}
	response, err := withFallback(first, &named{name: "second"}).Chat(t.Context(), llm.Request{}, nil)
	if err != nil || response.Standin.Reason != "the model provider test says that the account's credit is used up (status 402)" {
		t.Errorf("%+v, %v", response.Standin, err)
	}
}

func TestTheFirstModelIsAskedAgainAfterAWhile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		first, second := &named{name: "first", context: 1000, fails: kind(llm.Overloaded)}, &named{name: "second", context: 500}
		model := withFallback(first, second)
		ask := func(want string) *llm.Standin {
			t.Helper()
			response, err := model.Chat(t.Context(), llm.Request{}, nil)
			if err != nil || response.Model != want {
				t.Fatalf("%q answered, %v; want %q", response.Model, err, want)
			}
			return response.Standin
		}
		begun := ask("second").Since
		for i, pause := range []time.Duration{5 * time.Minute, 10 * time.Minute, 20 * time.Minute, 40 * time.Minute, time.Hour, time.Hour} {
			calls := first.calls()
			<-time.After(pause - time.Second) // the time of a synctest bubble
			if by := ask("second"); first.calls() != calls || !by.Since.Equal(begun) {
				t.Errorf("pause %d: the first was asked %d times more; since %v", i, first.calls()-calls, by.Since)
			}
			if model.Info().Model != "second" {
				t.Errorf("pause %d: the model says it is %+v", i, model.Info())
			}
			if tokens, err := model.CountTokens(t.Context(), llm.Request{}); tokens != 500 || err != nil {
				t.Errorf("pause %d: %d tokens, %v", i, tokens, err)
			}
			<-time.After(time.Second) // the time of a synctest bubble
			if model.Info().Model != "first" {
				t.Errorf("pause %d: the next call goes to %+v", i, model.Info())
			}
			if ask("second"); first.calls() != calls+1 {
				t.Errorf("pause %d: the first was asked %d times, want once", i, first.calls()-calls)
			}
		}
		first.set(nil)
		<-time.After(time.Hour) // the time of a synctest bubble
		if by := ask("first"); by != nil {
			t.Errorf("the first answers as %+v", by)
		}
		first.set(kind(llm.Overloaded)) // another outage begins with the first pause
		ask("second")
		first.set(nil)
		<-time.After(5 * time.Minute) // the time of a synctest bubble
		ask("first")
	})
}

// held is a model whose calls wait.
type held struct {
	named
	begun chan struct{}
	goOn  chan struct{}
}

func (h *held) Chat(ctx context.Context, request llm.Request, sink llm.Sink) (llm.Response, error) {
	h.begun <- struct{}{}
	<-h.goOn
	return h.named.Chat(ctx, request, sink)
}

// One call finds out whether the first model is back; the others do not wait for it.
func TestOneCallFindsOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		probe := &held{named: named{name: "first", fails: kind(llm.Overloaded)}, begun: make(chan struct{}), goOn: make(chan struct{})}
		first, second := &named{name: "first", fails: kind(llm.Overloaded)}, &named{name: "second"}
		model := llm.WithFallback(llm.Fallback{First: first, Probe: probe, Second: second, Outages: &llm.Outages{}})
		ask := func() { _, _ = model.Chat(t.Context(), llm.Request{}, nil) }
		ask()
		<-time.After(5 * time.Minute) // the time of a synctest bubble
		var wait sync.WaitGroup
		wait.Go(ask)
		<-probe.begun
		for range 10 {
			wait.Go(ask)
		}
		synctest.Wait()
		if first.calls() != 1 || second.calls() != 11 {
			t.Errorf("the first was asked %d times and the second %d times, want 1 and 11", first.calls(), second.calls())
		}
		close(probe.goOn)
		wait.Wait()
		if second.calls() != 12 || probe.calls() != 1 {
			t.Errorf("the second was asked %d times, the probe %d times", second.calls(), probe.calls())
		}
	})
}

// A call that began before the outage neither counts as the one that finds out nor ends it.
func TestAnOldCallFindsNothingOut(t *testing.T) {
	t.Parallel()
	for name, ends := range map[string]error{"given up": context.Canceled, "failed": kind(llm.Overloaded)} {
		synctest.Test(t, func(t *testing.T) {
			old := &held{named: named{name: "first", fails: ends}, begun: make(chan struct{}), goOn: make(chan struct{})}
			probe := &held{named: named{name: "first", fails: kind(llm.Overloaded)}, begun: make(chan struct{}), goOn: make(chan struct{})}
			first, second, outages := &named{name: "first", fails: kind(llm.Overloaded)}, &named{name: "second"}, &llm.Outages{}
			ask := func(first llm.Model) {
				model := llm.WithFallback(llm.Fallback{First: first, Probe: probe, Second: second, Outages: outages})
				if response, err := model.Chat(t.Context(), llm.Request{}, nil); err == nil && (response.Standin == nil || response.Standin.Since.IsZero()) {
					t.Errorf("%s: %+v", name, response.Standin)
				}
			}
			var wait sync.WaitGroup
			wait.Go(func() { ask(old) })
			<-old.begun
			ask(first)                    // finds the outage
			<-time.After(5 * time.Minute) // the time of a synctest bubble
			wait.Go(func() { ask(first) })
			<-probe.begun
			close(old.goOn)
			synctest.Wait()
			ask(first) // while the probe is under way
			if probe.calls() != 0 || first.calls() != 1 {
				t.Errorf("%s: another call went to the first model", name)
			}
			close(probe.goOn)
			wait.Wait()
			<-time.After(10*time.Minute - time.Second) // the time of a synctest bubble
			probed := probe.calls()
			ask(first)
			if probed != 1 || probe.calls() != 1 {
				t.Errorf("%s: the first model was asked %d and %d times, want once", name, probed, probe.calls())
			}
			outcome := make(chan struct{})
			<-time.After(time.Second) // the time of a synctest bubble
			go func() { defer close(outcome); ask(first) }()
			<-probe.begun // after ten minutes, not twenty
			<-outcome
		})
	}
}

// A server that does not answer a count is out; one that only does not count is not.
func TestACountThatFails(t *testing.T) {
	t.Parallel()
	for k, out := range map[llm.Kind]bool{llm.Unreachable: true, llm.TimedOut: true, llm.RateLimited: false, llm.CannotCount: false} {
		first, second := &named{name: "first", context: 1000, cannotCount: kind(k)}, &named{name: "second", context: 500}
		model := withFallback(first, second)
		tokens, err := model.CountTokens(t.Context(), llm.Request{})
		if out != (err == nil && tokens == 500) || !out && llm.KindOf(err) != k {
			t.Errorf("%s: %d, %v", k, tokens, err)
		}
		response, err := model.Chat(t.Context(), llm.Request{}, nil)
		if err != nil || out != (response.Model == "second") || first.counted != 1 {
			t.Errorf("%s: %q answers, %v", k, response.Model, err)
		}
	}
}

// A call that was given up says nothing about the model.
func TestACallThatWasGivenUpIsNoOutage(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	first, second := &named{name: "first", fails: kind(llm.Unreachable)}, &named{name: "second"}
	model := withFallback(first, second)
	if _, err := model.Chat(ctx, llm.Request{}, nil); err == nil || second.calls() != 0 {
		t.Errorf("%v, the second was asked %d times", err, second.calls())
	}
	first.set(nil)
	if response, err := model.Chat(t.Context(), llm.Request{}, nil); err != nil || response.Model != "first" {
		t.Errorf("%q, %v", response.Model, err)
	}
}

// Nor does it say that the model is back, whatever the error: the next call finds out.
func TestACallThatWasGivenUpEndsNoOutage(t *testing.T) {
	t.Parallel()
	for _, ends := range []llm.Kind{llm.BadAnswer, llm.Refused, llm.CutStream} {
		synctest.Test(t, func(t *testing.T) {
			first, second := &named{name: "first", fails: kind(llm.Overloaded)}, &named{name: "second"}
			probe := &named{name: "first", fails: kind(ends)}
			model := llm.WithFallback(llm.Fallback{First: first, Probe: probe, Second: second, Outages: &llm.Outages{}})
			ask := func(ctx context.Context) (llm.Response, error) { return model.Chat(ctx, llm.Request{}, nil) }
			_, _ = ask(t.Context())       // finds the outage
			<-time.After(5 * time.Minute) // the time of a synctest bubble
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := ask(ctx); err == nil || probe.calls() != 1 {
				t.Errorf("%s: %v, the probe was asked %d times", ends, err, probe.calls())
			}
			probe.set(kind(llm.Overloaded))
			if response, err := ask(t.Context()); err != nil || response.Model != "second" || first.calls() != 1 || probe.calls() != 2 {
				t.Errorf("%s: then %q answered, %v; the first was asked %d times, the probe %d times", ends, response.Model, err, first.calls(), probe.calls())
			}
		})
	}
}

func TestTheFallbackHasLimitsOfItsOwn(t *testing.T) {
	t.Parallel()
	first, second := &named{name: "first", context: 100_000, fails: kind(llm.Overloaded)}, &named{name: "second", context: 1000}
	model := withFallback(first, second)
	_, err := model.Chat(t.Context(), llm.Request{InputTokens: 901}, nil)
	if llm.KindOf(err) != llm.TooLong || second.calls() != 0 || !strings.Contains(err.Error(), "about 901 tokens, and the fallback second takes 900") {
		t.Errorf("%v after %d calls", err, second.calls())
	}
	if _, err := model.Chat(t.Context(), llm.Request{InputTokens: 900, MaxTokens: 5000}, nil); err != nil || second.asked[0].MaxTokens != 100 {
		t.Errorf("%+v, %v", second.asked, err)
	}
}

func TestBothErrorsAreTold(t *testing.T) {
	t.Parallel()
	first, second := &named{name: "first", fails: kind(llm.Overloaded)}, &named{name: "second", fails: &llm.Error{Kind: llm.Unauthorized, Provider: "other"}}
	_, err := withFallback(first, second).Chat(t.Context(), llm.Request{}, nil)
	var failed *llm.Error
	if !errors.As(err, &failed) || failed.Kind != llm.Unauthorized || failed.Provider != "other" || !strings.Contains(err.Error(), "the model provider test is overloaded") {
		t.Errorf("%v", err)
	}
}

// withPicture is a request with a picture whose bytes are at hand.
var withPicture = llm.Request{Messages: []llm.Message{{Role: llm.User, Parts: []llm.Part{
	llm.ImagePart(llm.Image{Hash: "a", Type: "image/png", Width: 1, Height: 2}),
}}}}

func TestAFallbackThatTakesNoImagesIsSentNone(t *testing.T) {
	t.Parallel()
	for _, takes := range []bool{true, false} {
		first, second := &named{name: "first", images: true, fails: kind(llm.Overloaded)}, &named{name: "second", images: takes}
		first.cannotCount = &llm.Error{Kind: llm.Unreachable, Err: errors.New("refused")}
		model := llm.WithImages(withFallback(first, second), &album{data: map[string][]byte{"a": []byte("A")}})
		if _, err := model.CountTokens(t.Context(), withPicture); err != nil {
			t.Fatal(err)
		}
		if _, err := model.Chat(t.Context(), withPicture, nil); err != nil {
			t.Fatal(err)
		}
		for _, sent := range []llm.Request{second.countedOf, second.asked[0]} {
			part := sent.Messages[0].Parts[0]
			if image := part.Image != nil; image != takes || !takes && part.Text != "[An image of 1×2 pixels (image/png) was here. It is not shown.]" {
				t.Errorf("the second model takes images: %t; it was sent %+v", takes, part)
			}
		}
	}
	// When the pause is over, the first model is to be asked again: it goes out again with the call.
	synctest.Test(t, func(t *testing.T) {
		first, second := &named{name: "first", images: true, fails: kind(llm.Overloaded)}, &named{name: "second"}
		model := llm.WithImages(withFallback(first, second), &album{data: map[string][]byte{"a": []byte("A")}})
		for range 2 {
			if _, err := model.Chat(t.Context(), withPicture, nil); err != nil {
				t.Fatal(err)
			}
			<-time.After(time.Hour) // the time of a synctest bubble
			if _, err := model.CountTokens(t.Context(), withPicture); err != nil {
				t.Fatal(err)
			}
		}
		for _, sent := range append(second.asked, second.countedOf) {
			if part := sent.Messages[0].Parts[0]; part.Image != nil {
				t.Errorf("sent %+v", part)
			}
		}
	})
}

// refusesImages is a model that says that it takes images, but does not.
type refusesImages struct{ *named }

func (r refusesImages) Chat(ctx context.Context, request llm.Request, sink llm.Sink) (llm.Response, error) {
	if request.Messages[0].Parts[0].Image != nil {
		return llm.Response{}, kind(llm.BadRequest)
	}
	return r.named.Chat(ctx, request, sink)
}

func TestImagesThatAFallbackRefusesAreShownToTheModelAgain(t *testing.T) {
	t.Parallel()
	first, second := &named{name: "first", images: true, fails: kind(llm.Overloaded)}, &named{name: "second", images: true}
	images := &album{data: map[string][]byte{"a": []byte("A")}}
	response, err := llm.WithImages(withFallback(first, refusesImages{second}), images).Chat(t.Context(), withPicture, nil)
	if err != nil || response.Standin == nil || len(second.asked) != 1 {
		t.Errorf("%+v, %v; the second was asked %+v", response, err, second.asked)
	}
	if images.refused != nil {
		t.Errorf("the run goes on without images: %v", images.refused)
	}
}
