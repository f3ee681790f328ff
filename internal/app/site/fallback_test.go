package site

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/agent"
	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/llm/script"
	"github.com/toryo-dev/toryo/internal/task"
)

// modelServer is a scripted server that notes the keys it was shown.
type modelServer struct {
	url    string
	player *script.Player

	mu    sync.Mutex
	keys  []string
	paths []string
}

// last is the path of the last request and what it was shown with it.
func (s *modelServer) last() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.paths[len(s.paths)-1] + " " + s.keys[len(s.keys)-1]
}

func (s *modelServer) shown() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.keys, ", ")
}

func serveModel(t *testing.T, rules ...script.Rule) *modelServer {
	t.Helper()
	made, err := script.New(script.Script{Model: "served", Rules: rules})
	if err != nil {
		t.Fatal(err)
	}
	server := script.NewServer(made)
	s := &modelServer{player: server.Player}
	listening := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.keys = append(s.keys, strings.TrimSpace(r.Header.Get("X-Api-Key")+r.Header.Get("Api-Key")+" "+r.Header.Get("Authorization")))
		s.paths = append(s.paths, r.URL.RequestURI())
		s.mu.Unlock()
		server.ServeHTTP(w, r)
	}))
	t.Cleanup(listening.Close)
	s.url = listening.URL
	return s
}

func configured(t *testing.T, text string, environ ...string) config.Config {
	t.Helper()
	file := filepath.Join(t.TempDir(), "toryo.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, report := config.Load(file, environ, nil)
	if err := report.Err(); err != nil {
		t.Fatal(err)
	}
	return c
}

// twoModels configures a first model and a fallback on another server, each with its own key, prices
// and limits.
func twoModels(t *testing.T, first, second *modelServer) config.Config {
	t.Helper()
	text := fmt.Sprintf(`llm:
  provider: anthropic
  model: first-model
  base_url: %s
  retries: 0
  context_length: 100000
  prices: {input: 1, output: 10}
  fallback:
    provider: openai
    model: second-model
    base_url: %s/v1
    context_length: 5000
    max_tokens: 100
    prices: {input: 2, output: 20}
budget: {day_tokens: 1000000}
`, first.url, second.url)
	return configured(t, text, "TORYO_LLM_API_KEY=key-of-first", "TORYO_LLM_FALLBACK_API_KEY=key-of-second")
}

// While the first model is down or out of quota the second answers: with its own key, at its own
// prices, and the first is left alone. It is said once in the log.
func TestTheFallbackAnswers(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]script.Failure{
		"down":        {Status: 503, Message: "no capacity"},
		"overloaded":  {Status: 529, Message: "overloaded"},
		"no credit":   {Status: 402, Message: "pay first"},
		"quota":       {Status: 429, Type: "insufficient_quota", Message: "insufficient_quota"},
		"rate":        {Status: 429, Message: "slow down"},
		"gone midway": {Status: 503, Type: "overloaded_error", Message: "overloaded_error", After: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first := serveModel(t, script.Rule{Answer: script.Answer{Text: "An answer of the first that breaks off.", Error: &failure}})
			second := serveModel(t, script.Rule{Answer: script.Answer{Text: "From the second.", Usage: &llm.Usage{Input: 100, Output: 10}}})
			var log bytes.Buffer
			outages := new(llm.Outages)
			ledger := llm.NewMemoryLedger(llm.Limits{}, time.Now)
			made, err := NewModels(twoModels(t, first, second), ledger, outages, slog.New(slog.NewTextHandler(&log, nil)))
			if err != nil {
				t.Fatal(err)
			}
			for i := range 3 {
				model, err := made.Model(llm.Account{Task: "task"}) // as each run makes its own
				if err != nil {
					t.Fatal(err)
				}
				var shown strings.Builder
				response, err := model.Chat(t.Context(), llm.Request{Messages: []llm.Message{llm.UserText("hi")}}, func(delta llm.Delta) {
					if delta.Restart {
						shown.Reset()
					}
					shown.WriteString(delta.Text)
				})
				if err != nil || response.Message.Text() != "From the second." || shown.String() != "From the second." || response.Cost != 400 {
					t.Fatalf("%d: %+v, shown %q, %v", i, response, shown.String(), err)
				}
				if by := response.Standin; by == nil || by.Instead != "anthropic first-model" || by.Model != "openai second-model" || by.Reason == "" {
					t.Errorf("%d: %+v", i, by)
				}
				if info := model.Info(); info.Model != "second-model" || info.ContextLength != 5000 || info.MaxTokens != 100 {
					t.Errorf("%d: the model is %+v", i, info)
				}
			}
			if first.shown() != "key-of-first" || second.shown() != "Bearer key-of-second, Bearer key-of-second, Bearer key-of-second" {
				t.Errorf("the first was shown %q, the second %q", first.shown(), second.shown())
			}
			if count := strings.Count(log.String(), "the fallback answers"); count != 1 || strings.Contains(log.String(), "key-of") {
				t.Errorf("said %d times:\n%s", count, log.String())
			}
			if ofTask, _, err := ledger.Spent(t.Context(), "task"); err != nil || name != "gone midway" && ofTask != (llm.Amount{Tokens: 330, Money: 1200}) {
				t.Errorf("spent is %+v, %v", ofTask, err)
			} else if name == "gone midway" && (ofTask.Tokens <= 330 || ofTask.Money <= 1200) { // what the first has used before it broke off
				t.Errorf("spent is %+v", ofTask)
			}
			if outages.Switches() != 1 {
				t.Errorf("counted are %d switches", outages.Switches())
			}
		})
	}
}

// What is wrong with the configuration or the request is told and not hidden by the fallback.
func TestTheFallbackHidesNoMistake(t *testing.T) {
	t.Parallel()
	for _, status := range []int{400, 401, 403, 404, 413} {
		first := serveModel(t, script.Rule{Answer: script.Answer{Error: &script.Failure{Status: status, Message: "no"}}})
		second := serveModel(t, script.Rule{Answer: script.Answer{Text: "From the second."}})
		made, err := NewModels(twoModels(t, first, second), nil, new(llm.Outages), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		model, err := made.Model(llm.Account{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = model.Chat(t.Context(), llm.Request{Messages: []llm.Message{llm.UserText("hi")}}, nil)
		if err == nil || !strings.Contains(err.Error(), fmt.Sprint("status ", status)) || second.shown() != "" {
			t.Errorf("%d: %v; the second was shown %q", status, err, second.shown())
		}
	}
}

// An agent whose model is out of quota can do tasks while the fallback works.
func TestAnAgentWithAFallbackIsNotOut(t *testing.T) {
	t.Parallel()
	first := serveModel(t, script.Rule{Answer: script.Answer{Error: &script.Failure{Status: 402, Message: "pay first"}}})
	second := serveModel(t, script.Rule{Answer: script.Answer{Text: "yes"}})
	c := twoModels(t, first, second)
	check := newCheckup(c, &imagesOnly{}, "owner", []string{t.TempDir()}, slog.New(slog.DiscardHandler))
	if err := check.check(t.Context(), nil); err != nil || second.shown() != "Bearer key-of-second" {
		t.Errorf("%v, the second was shown %q", err, second.shown())
	}
	c.LLM.Fallback = config.ModelOverride{}
	check = newCheckup(c, &imagesOnly{}, "owner", []string{t.TempDir()}, slog.New(slog.DiscardHandler))
	if err := check.check(t.Context(), nil); err == nil {
		t.Error("an agent whose only model is out of quota is said to work")
	}
}

// An agent is out if its model and the fallback are both out, whichever of them a run met. It is
// back when one of them is.
func TestAnAgentWithoutModelAndFallbackIsOut(t *testing.T) {
	t.Parallel()
	credit, key, down := &script.Failure{Status: 402, Message: "pay first"}, &script.Failure{Status: 401, Message: "who are you"}, &script.Failure{Status: 503, Message: "no capacity"}
	first := &agent.UnableError{Reason: task.ReasonCreditUsedUp, Provider: "anthropic", Model: "first-model"}
	second := &agent.UnableError{Reason: task.ReasonCreditUsedUp, Provider: "openai", Model: "second-model"}
	for name, test := range map[string]struct {
		first, second *script.Failure
		doubt         *agent.UnableError
		reason        task.Reason // empty if it is not out
		model         string
		partial       bool
		unknown       bool
	}{
		"both without credit":                {credit, credit, nil, task.ReasonCreditUsedUp, "first-model", false, false},
		"both, and the first in doubt":       {credit, credit, first, task.ReasonCreditUsedUp, "first-model", false, false},
		"both, and the fallback in doubt":    {credit, credit, second, task.ReasonCreditUsedUp, "first-model", false, false},
		"the key of the fallback":            {credit, key, first, task.ReasonCreditUsedUp, "first-model", false, false},
		"the fallback is down":               {credit, down, first, task.ReasonCreditUsedUp, "first-model", false, false},
		"the first may come back":            {down, credit, nil, "", "", false, true},
		"both down":                          {down, down, nil, "", "", false, true},
		"only the first":                     {credit, nil, first, "", "", false, false},
		"only the fallback":                  {nil, credit, nil, "", "", false, false},
		"only the fallback, and it in doubt": {nil, credit, second, task.ReasonCreditUsedUp, "second-model", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			serve := func(failure *script.Failure) *modelServer {
				return serveModel(t, script.Rule{Answer: script.Answer{Text: "yes", Error: failure}})
			}
			one, other := serve(test.first), serve(test.second)
			check := newCheckup(twoModels(t, one, other), &imagesOnly{}, "owner", []string{t.TempDir()}, slog.New(slog.DiscardHandler))
			err := check.check(t.Context(), test.doubt)
			unable := agent.UnableOf(err)
			if (unable != nil) != (test.reason != "") || unable != nil && (unable.Reason != test.reason || unable.Model != test.model || unable.Partial != test.partial) {
				t.Errorf("it found %+v (%v)", unable, err)
			}
			if unable == nil && (err != nil) != test.unknown {
				t.Errorf("it found %v", err)
			}
			if strings.Contains(one.shown(), ",") || strings.Contains(other.shown(), ",") {
				t.Errorf("asked more than once: %q, %q", one.shown(), other.shown())
			}
		})
	}
}

// The models of the clouds are made from the configuration.
func TestCloudsOfTheConfiguration(t *testing.T) {
	t.Parallel()
	server := serveModel(t, script.Rule{Answer: script.Answer{Text: "hello"}})
	for section, want := range map[string]string{
		"provider: azure, model: m, deployment: team":                                                            "/openai/v1/responses k",
		"provider: azure, model: m, api_version: 2024-10-21, api: responses":                                     "/openai/responses?api-version=2024-10-21 k",
		"provider: azure, model: m, api_version: 2024-10-21":                                                     "/openai/deployments/m/chat/completions?api-version=2024-10-21 k",
		"provider: bedrock, model: 'eu.anthropic.claude-x-v1:0', region: eu-central-1, credentials: environment": "/model/eu.anthropic.claude-x-v1%3A0/invoke-with-response-stream AWS4-HMAC-SHA256 Credential=id/",
		"provider: vertex, model: gemini-x, region: global, project: p":                                          "/v1/projects/p/locations/global/publishers/google/models/gemini-x:streamGenerateContent?alt=sse Bearer k",
		"provider: vertex, model: claude-x@1, region: global, project: p":                                        "/v1/projects/p/locations/global/publishers/anthropic/models/claude-x@1:streamRawPredict Bearer k",
	} {
		c := configured(t, "llm: {"+section+", base_url: '"+server.url+"'}\n", "TORYO_LLM_API_KEY=k", "AWS_ACCESS_KEY_ID=id", "AWS_SECRET_ACCESS_KEY=secret-of-aws")
		made, err := NewModels(c, nil, new(llm.Outages), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		model, err := made.Model(llm.Account{})
		if err != nil {
			t.Fatalf("%s: %v", section, err)
		}
		response, err := model.Chat(t.Context(), llm.Request{Messages: []llm.Message{llm.UserText("hi")}}, nil)
		if err != nil || response.Message.Text() != "hello" || model.Info().Provider != c.LLM.Provider {
			t.Errorf("%s: %+v, %v", section, response, err)
		}
		if got := server.last(); !strings.HasPrefix(got, want) || strings.Contains(got, "secret-of-aws") {
			t.Errorf("%s: the server got %q", section, got)
		}
	}
	for want, chosen := range map[string]config.LLM{
		"only those of Anthropic are":            {Provider: "bedrock", Model: "amazon.nova-pro", APIKey: "k", Cloud: config.Cloud{Region: "eu-central-1"}},
		"only those of Anthropic and Gemini are": {Provider: "vertex", Model: "meta/llama", APIKey: "k", Cloud: config.Cloud{Region: "global", Project: "p"}},
	} {
		if _, err := Connect(chosen); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", chosen.Model, err)
		}
	}
}
