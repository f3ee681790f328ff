package llmtest

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/llm/script"
	"github.com/toryo-dev/toryo/internal/task"
)

func (s suite) statuses(t *testing.T) {
	for _, c := range []struct {
		name    string
		failure script.Failure
		want    llm.Kind
		retry   bool
		code    task.Code
	}{
		{"400", script.Failure{Status: 400, Message: "bad thing"}, llm.BadRequest, false, task.ProviderError},
		{"401", script.Failure{Status: 401, Message: "invalid key"}, llm.Unauthorized, false, task.ProviderError},
		{"403", script.Failure{Status: 403, Message: "not yours"}, llm.Unauthorized, false, task.ProviderError},
		{"404", script.Failure{Status: 404, Message: "no such model"}, llm.UnknownModel, false, task.ProviderError},
		{"413", script.Failure{Status: 413, Message: "too big"}, llm.TooLong, false, task.TooLarge},
		{"context", script.Failure{Status: 400, Message: "prompt is too long: 300000 tokens > 200000 maximum"}, llm.TooLong, false, task.TooLarge},
		{"429", script.Failure{Status: 429, Message: "slow down", RetryAfter: 7 * time.Second}, llm.RateLimited, true, task.Unavailable},
		{"quota", script.Failure{Status: 429, Type: "insufficient_quota", Message: "insufficient_quota: pay first"}, llm.QuotaUsedUp, false, task.Unavailable},
		{"500", script.Failure{Status: 500, Message: "oops"}, llm.ServerFault, true, task.Unavailable},
		{"502", script.Failure{Status: 502, Message: "bad gateway"}, llm.ServerFault, true, task.Unavailable},
		{"503", script.Failure{Status: 503, Message: "busy"}, llm.Overloaded, true, task.Unavailable},
		{"529", script.Failure{Status: 529, Message: "overloaded"}, llm.Overloaded, true, task.Unavailable},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			model, player := s.play(t, answer(script.Answer{Error: &c.failure}))
			failed := mustFail(t, model, ask("x"), c.want)
			if failed.Status != c.failure.Status || failed.RetryAfter != c.failure.RetryAfter {
				t.Errorf("status %d and wait %s, want %d and %s", failed.Status, failed.RetryAfter, c.failure.Status, c.failure.RetryAfter)
			}
			if failed.Kind.Retry() != c.retry || task.CodeOf(failed) != c.code {
				t.Errorf("retry %v and code %s, want %v and %s", failed.Kind.Retry(), task.CodeOf(failed), c.retry, c.code)
			}
			if !strings.Contains(failed.Error(), c.failure.Message) {
				t.Errorf("%q does not say what the provider says: %q", failed, c.failure.Message)
			}
			if got := len(player.Records()); got != 1 {
				t.Errorf("the adapter asked %d times: it may not try again by itself", got)
			}
		})
	}
}

// cutStream breaks an answer off at every piece, also inside a tool call.
func (s suite) cutStream(t *testing.T) {
	for at := 1; at <= 5; at++ {
		model, player := s.play(t, answer(script.Answer{
			Text:  "I will remove it all.",
			Calls: []script.Call{{ID: "c", Name: "run", Arguments: map[string]any{"command": "rm -rf build && echo this is long enough for several pieces"}}},
			Cut:   at,
		}))
		failed := mustFail(t, model, withTools(ask("x")), llm.CutStream)
		if !failed.Kind.Retry() || len(player.Records()) != 1 {
			t.Errorf("cut after %d: %v after %d requests", at, failed, len(player.Records()))
		}
	}
}

func (s suite) errorInStream(t *testing.T) {
	model, _ := s.play(t, answer(script.Answer{
		Text:  "This answer will not be finished, and nothing of it may be used.",
		Error: &script.Failure{Status: 503, Type: "overloaded_error", Message: "overloaded_error: too much to do", After: 2},
	}))
	if failed := mustFail(t, model, ask("x"), llm.Overloaded); !failed.Kind.Retry() {
		t.Errorf("%v is to be tried again", failed)
	}
}

func (s suite) cancelled(t *testing.T) {
	model, _ := s.play(t, answer(script.Answer{Text: strings.Repeat("It goes on and on. ", 20), Pace: time.Hour}))
	ctx, cancel := context.WithCancelCause(context.Background())
	stopped := errors.New("the run was stopped")
	timer := time.AfterFunc(20*time.Millisecond, func() { cancel(stopped) })
	defer timer.Stop()
	_, err := model.Chat(ctx, ask("x"), nil)
	if !errors.Is(err, stopped) && !errors.Is(err, context.Canceled) {
		t.Fatalf("%v, want the error of the context", err)
	}
	if llm.KindOf(err) != "" {
		t.Errorf("a stopped call looks like a failure of the kind %s", llm.KindOf(err))
	}
}

func (s suite) silence(t *testing.T) {
	for name, a := range map[string]script.Answer{
		"before the answer": {Text: "late", Delay: time.Hour},
		"inside the answer": {Text: strings.Repeat("slow ", 50), Pace: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			model, _ := s.playWith(t, llm.Endpoint{Silence: 50 * time.Millisecond}, answer(a))
			if failed := mustFail(t, model, ask("x"), llm.TimedOut); !failed.Kind.Retry() {
				t.Errorf("%v is to be tried again", failed)
			}
		})
	}
}

// unreachable points the adapter to a port where nobody listens.
func (s suite) unreachable(t *testing.T) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	free := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	dial := &net.Dialer{}
	transport := transportTo(func(ctx context.Context, network, _ string) (net.Conn, error) {
		return dial.DialContext(ctx, network, free)
	})
	model, player := s.playWith(t, llm.Endpoint{Transport: transport}, answer(script.Answer{Text: "never"}))
	if failed := mustFail(t, model, ask("x"), llm.Unreachable); !failed.Kind.Retry() {
		t.Errorf("%v is to be tried again", failed)
	}
	if len(player.Records()) != 0 {
		t.Error("the server was reached")
	}
}

// pageInstead puts something between adapter and server that answers with a page of
// its own and says that all is well, as networks do that want people to sign in.
func (s suite) pageInstead(t *testing.T) {
	page := roundTrip(func(r *http.Request) (*http.Response, error) {
		return &http.Response{
			StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/html"}}, Request: r,
			Body: io.NopCloser(strings.NewReader("<html>\n<p>Please sign in</p>\n</html>\n")),
		}, nil
	})
	model, player := s.playWith(t, llm.Endpoint{Transport: page}, answer(script.Answer{Text: "never"}))
	failed := mustFail(t, model, ask("x"), llm.BadAnswer)
	if !failed.Kind.Retry() || !strings.Contains(failed.Error(), "sign in") || len(player.Records()) != 0 {
		t.Errorf("%v after %d requests", failed, len(player.Records()))
	}
}

// sentElsewhere answers with a redirect to another host. The key may not go there.
func (s suite) sentElsewhere(t *testing.T) {
	var hosts []string
	elsewhere := roundTrip(func(r *http.Request) (*http.Response, error) {
		hosts = append(hosts, r.URL.Host)
		return &http.Response{
			StatusCode: http.StatusTemporaryRedirect, Header: http.Header{"Location": {"https://elsewhere.example/"}}, Request: r,
			Body: io.NopCloser(strings.NewReader("moved")),
		}, nil
	})
	model, _ := s.playWith(t, llm.Endpoint{Transport: elsewhere}, answer(script.Answer{Text: "never"}))
	_, err := model.Chat(t.Context(), ask("x"), nil)
	if err == nil || len(hosts) != 1 || hosts[0] == "elsewhere.example" {
		t.Errorf("the requests went to %q, %v", hosts, err)
	}
}

// retried puts the retry layer on top: what may go better is tried until it does,
// and whoever watches is told that the answer begins again.
func (s suite) retried(t *testing.T) {
	long := strings.Repeat("an answer that takes several pieces ", 4)
	model, player := s.play(t,
		script.Rule{Times: 1, Answer: script.Answer{Error: &script.Failure{Status: 429, Message: "slow down", RetryAfter: 5 * time.Millisecond}}},
		script.Rule{Times: 1, Answer: script.Answer{Error: &script.Failure{Status: 529, Message: "overloaded"}}},
		script.Rule{Times: 1, Answer: script.Answer{Text: long, Cut: 4, Pace: time.Millisecond}},
		answer(script.Answer{Text: long}))
	patient := llm.Retrying(model, llm.RetryPolicy{First: time.Millisecond, Longest: 5 * time.Millisecond}, slog.New(slog.DiscardHandler))
	var shown strings.Builder
	response := mustChat(t, patient, ask("x"), func(delta llm.Delta) {
		if delta.Restart {
			shown.Reset()
		}
		shown.WriteString(delta.Text)
	})
	if response.Message.Text() != long || shown.String() != long {
		t.Errorf("answer %q, shown %q", response.Message.Text(), shown.String())
	}
	if got := len(player.Records()); got != 4 {
		t.Errorf("%d requests, want 4", got)
	}
}

// badConversation checks that the server refuses what the vendors refuse, so that
// a test against it means something.
func (s suite) badConversation(t *testing.T) {
	model, _ := s.play(t, answer(script.Answer{Text: "ok"}))
	request := conversation()
	request.Messages = request.Messages[:2] // calls without results
	mustBe(t, model, request, llm.BadRequest)
	request = conversation()
	request.Messages = append(request.Messages[:1:1], request.Messages[2:]...) // results without calls
	mustBe(t, model, request, llm.BadRequest)
}
