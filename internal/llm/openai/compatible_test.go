package openai_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/llm/llmtest"
	"github.com/toryo-dev/toryo/internal/llm/openai"
	"github.com/toryo-dev/toryo/internal/llm/script"
	"github.com/toryo-dev/toryo/internal/task"
)

// compatible is a server that answers as some compatible ones do, and keeps what it was sent.
type compatible struct {
	mu   sync.Mutex
	sent []string
}

func (c *compatible) serve(t *testing.T, api openai.API, answer func(body string) (status int, kind, text string)) llm.Model {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client has gone
		}
		c.mu.Lock()
		c.sent = append(c.sent, string(body))
		c.mu.Unlock()
		status, kind, text := answer(string(body))
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text) // a client that has gone cannot be told
	}))
	t.Cleanup(server.Close)
	model, err := openai.New(llm.Endpoint{Model: "m", BaseURL: server.URL + "/v1", MaxTokens: 100}, api)
	if err != nil {
		t.Fatal(err)
	}
	return model
}

var hello = llm.Request{Messages: []llm.Message{llm.UserText("hello")}}

const events = "text/event-stream"

func TestAnswersOfCompatibleServers(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		kind, text string
		said       string
		calls      string
		thought    string
	}{
		"all in one chunk": {
			events, `data: {"model":"m","choices":[{"delta":{"role":"assistant","content":"Hi."},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":2}}` + "\n\ndata: [DONE]\n\n", "Hi.", "", "",
		},
		"no done": {
			events, `data: {"choices":[{"delta":{"content":"Hi."}}]}` + "\n\n" + `data: {"choices":[{"delta":{},"finish_reason":"stop"}]}` + "\n\n", "Hi.", "", "",
		},
		"not streamed": {
			"application/json", `{"model":"m","choices":[{"message":{"role":"assistant","content":"Hi."},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":2}}`, "Hi.", "", "",
		},
		"not streamed, on several lines": {
			"application/json", "{\n \"choices\": [\n  {\n   \"message\": {\"content\": null, \"tool_calls\": [{\"function\": {\"name\": \"read\", \"arguments\": \"{}\"}}]},\n   \"finish_reason\": \"tool_calls\"\n  }\n ]\n}\n", "", "read {}", "",
		},
		"not streamed, on many lines": {
			"application/json", "{\n \"choices\": [{\"message\": {\"content\": \"Hi.\"}, \"finish_reason\": \"stop\"}],\n \"padding\": [\n" + strings.Repeat("  0,\n", 50_000) + "  0\n ]\n}\n", "Hi.", "", "",
		},
		"calls without ids and indexes": {
			events, `data: {"choices":[{"delta":{"tool_calls":[{"function":{"name":"read","arguments":"{\"a\":1}"}},{"function":{"name":"run","arguments":"{\"b\":2}"}}]},"finish_reason":"stop"}]}` + "\n\n", "", `read {"a":1}, run {"b":2}`, "",
		},
		"calls without ids in pieces": {
			events, `data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"read","arguments":"{\"a\""}}]}}]}` + "\n\n" +
				`data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]}}]}` + "\n\n" +
				`data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"run","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}` + "\n\n", "", `read {"a":1}, run {}`, "",
		},
		"thoughts apart": {
			events, `data: {"choices":[{"delta":{"reasoning_content":"Hm."}}]}` + "\n\n" + `data: {"choices":[{"delta":{"content":"Hi."},"finish_reason":"stop"}]}` + "\n\n", "Hi.", "", "Hm.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var server compatible
			model := server.serve(t, openai.Chat, func(string) (int, string, string) { return 200, test.kind, test.text })
			var shown, thought strings.Builder
			response, err := model.Chat(t.Context(), hello, func(delta llm.Delta) {
				shown.WriteString(delta.Text)
				thought.WriteString(delta.Thinking)
			})
			var calls []string
			for _, call := range response.Message.Calls() {
				calls = append(calls, call.Name+" "+call.Arguments)
			}
			if err != nil || response.Message.Text() != test.said || shown.String() != test.said || strings.Join(calls, ", ") != test.calls || thought.String() != test.thought {
				t.Errorf("%+v, shown %q, thought %q, %v", response, shown.String(), thought.String(), err)
			}
			if want := map[bool]llm.StopReason{true: llm.StopCalls, false: llm.StopEnd}[test.calls != ""]; response.Stop != want {
				t.Errorf("it stops with %s", response.Stop)
			}
		})
	}
}

// A gateway passes on that the model behind it wants the limit by its newer name. The request is sent
// again with it, and all after it have it. No retry is needed.
func TestTheOtherNameOfTheLimit(t *testing.T) {
	t.Parallel()
	var server compatible
	model := server.serve(t, openai.Chat, func(body string) (int, string, string) {
		if strings.Contains(body, `"max_tokens"`) {
			return 400, "application/json", `{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.","type":"invalid_request_error"}}`
		}
		return 200, events, `data: {"choices":[{"delta":{"content":"Hi."},"finish_reason":"stop"}]}` + "\n\n"
	})
	for range 2 {
		if response, err := model.Chat(t.Context(), hello, nil); err != nil || response.Message.Text() != "Hi." {
			t.Fatalf("%+v, %v", response, err)
		}
	}
	if len(server.sent) != 3 || !strings.Contains(server.sent[2], `"max_completion_tokens":100`) {
		t.Errorf("sent was %s", strings.Join(server.sent, "\n"))
	}
}

// A server that refuses both names is not asked forever.
func TestNoNameOfTheLimitIsAccepted(t *testing.T) {
	t.Parallel()
	var server compatible
	model := server.serve(t, openai.Chat, func(string) (int, string, string) {
		return 400, "application/json", `{"error":{"message":"neither max_tokens nor max_completion_tokens"}}`
	})
	patient := llm.Retrying(model, llm.RetryPolicy{First: time.Millisecond}, slog.New(slog.DiscardHandler))
	if _, err := patient.Chat(t.Context(), hello, nil); llm.KindOf(err) != llm.BadRequest || len(server.sent) != 2 {
		t.Errorf("%v after %d requests", err, len(server.sent))
	}
}

// OpenAI's newer models take tools and reasoning together by Responses only, also behind a gateway.
func TestAModelThatNeedsResponses(t *testing.T) {
	t.Parallel()
	rules := script.Script{Rules: []script.Rule{{Answer: script.Answer{Text: "Hi."}}}}
	tools := llm.Request{Messages: hello.Messages, Tools: []llm.Tool{{Name: "run", Schema: []byte(`{"type":"object"}`)}}}
	for _, test := range []struct {
		model, effort string
		api           openai.API
		request       llm.Request
		refused       bool
	}{
		{"gpt-5.4", "high", openai.Chat, tools, true},
		{"gpt-5.4", "", openai.Chat, tools, false},
		{"gpt-5.4", "none", openai.Chat, tools, false},
		{"gpt-6-sol", "", openai.Chat, tools, true},
		{"gpt-6-sol", "none", openai.Chat, tools, false},
		{"gpt-6-sol", "high", openai.Chat, hello, false},
		{"gpt-6-sol", "high", openai.Responses, tools, false},
		{"gpt-5", "high", openai.Chat, tools, false},
	} {
		made, err := script.New(rules)
		if err != nil {
			t.Fatal(err)
		}
		connect := func(endpoint llm.Endpoint) (llm.Model, error) {
			endpoint.Model, endpoint.Reasoning.Effort = test.model, test.effort
			return openai.New(endpoint, test.api)
		}
		model, _ := llmtest.OverHTTP(connect, "/v1")(t, made, llm.Endpoint{})
		_, err = model.Chat(t.Context(), test.request, nil)
		coded, _ := task.AsError(err)
		if (err != nil) != test.refused || test.refused && (llm.KindOf(err) != llm.BadRequest || coded.Hint != "set llm.api: responses") {
			t.Errorf("%s with %q by %s: %v, %+v", test.model, test.effort, test.api, err, coded)
		}
	}
}

func TestAServerWithoutResponses(t *testing.T) {
	t.Parallel()
	var server compatible
	model := server.serve(t, openai.Responses, func(string) (int, string, string) { return 404, "text/plain", "404 page not found" })
	_, err := model.Chat(t.Context(), hello, nil)
	coded, is := task.AsError(err)
	if !is || llm.KindOf(err) != llm.UnknownModel || !strings.Contains(coded.Hint, "llm.api: chat") {
		t.Errorf("%v, hint %q", err, fmt.Sprint(coded))
	}
}

// A server that does not say what it used is counted by an estimate: it is not free.
func TestUsageThatIsNotTold(t *testing.T) {
	t.Parallel()
	var server compatible
	model := server.serve(t, openai.Chat, func(string) (int, string, string) {
		return 200, events, `data: {"choices":[{"delta":{"content":"` + strings.Repeat("word ", 200) + `"},"finish_reason":"stop"}]}` + "\n\n"
	})
	ledger := llm.NewMemoryLedger(llm.Limits{}, time.Now)
	counted := llm.Budgeted(model, ledger, llm.Account{Task: "t"}, slog.New(slog.DiscardHandler))
	response, err := counted.Chat(t.Context(), llm.Request{Messages: []llm.Message{llm.UserText(strings.Repeat("question ", 1000))}}, nil)
	if err != nil || response.Usage.Input < 2000 || response.Usage.Output < 200 {
		t.Errorf("%+v, %v", response.Usage, err)
	}
	if spent, _, err := ledger.Spent(t.Context(), "t"); err != nil || spent.Tokens != response.Usage.Total() {
		t.Errorf("%+v, %v", spent, err)
	}
}
