package turn_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/llm/anthropic"
	"github.com/toryo-dev/toryo/internal/llm/openai"
	"github.com/toryo-dev/toryo/internal/llm/script"
	"github.com/toryo-dev/toryo/internal/phase/conversation"
	"github.com/toryo-dev/toryo/internal/phase/tool"
	"github.com/toryo-dev/toryo/internal/phase/turn"
	"github.com/toryo-dev/toryo/internal/task"
)

// longTurns is the length of the measured scenario.
const longTurns = 50

// numbered is a tool among many.
type numbered struct {
	echo
	name string
}

func (n *numbered) Definition() llm.Tool {
	return llm.Tool{Name: n.name, Description: "One of many tools, which is described in a sentence or two as they usually are, with what it takes and what it gives.",
		Schema: []byte(`{"type":"object","properties":{"path":{"type":"string","description":"the file, relative to the project's root"},"limit":{"type":"integer"}}}`)}
}

// scenario is a fixed run of fifty turns with twenty tools: each turn calls one
// tool, whose output has about a page.
type scenario struct {
	server  *script.Server
	served  atomic.Int64 // nanoseconds that the server took
	options turn.Options
}

func newScenario(tb testing.TB, connect func(url string, server *script.Script) llm.Model, contextLength int64) *scenario {
	tb.Helper()
	made, err := script.New(script.Script{Rules: []script.Rule{
		{Name: "notes", When: script.When{System: "You keep the memory"}, Answer: script.Answer{Text: strings.Repeat("Findings: the port is set in config.go line 14. ", 20)}},
		{Name: "end", When: script.When{Last: fmt.Sprintf("step %d:", longTurns-1)}, Answer: finish().Answer},
		{Name: "go", Answer: script.Answer{Text: "I look at the next file.", Calls: []script.Call{{Name: "echo", Arguments: map[string]any{"path": "internal/config/config.go"}}}}},
	}})
	if err != nil {
		tb.Fatal(err)
	}
	s := &scenario{server: script.NewServer(made)}
	listening := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begun := time.Now()
		s.server.ServeHTTP(w, r)
		s.served.Add(int64(time.Since(begun)))
	}))
	tb.Cleanup(listening.Close)
	step := 0
	page := strings.Repeat("\tif config.Port == 0 { return errors.New(\"the port is not set\") }\n", 24)
	used := &echo{answer: func(string) (string, error) { step++; return fmt.Sprintf("step %d:\n%s", step, page), nil }}
	tools := []tool.Tool{used, tool.Finish(), tool.Ask()}
	for len(tools) < 20 {
		tools = append(tools, &numbered{name: fmt.Sprintf("tool_%d", len(tools))})
	}
	box, err := tool.NewBox(tools...)
	if err != nil {
		tb.Fatal(err)
	}
	model := llm.Wrap(connect(listening.URL, made), llm.Layers{})
	talk, err := conversation.New(tb.Context(), conversation.Options{
		System: strings.Repeat("You are a careful agent. ", 100) + llm.UntrustedRule, Tools: box.Definitions(),
		Pinned:        []conversation.Block{{Name: "request", Text: "Make the port configurable."}, {Name: "plan", Text: "1. look\n2. change\n3. test"}},
		ContextLength: contextLength, Answer: 1000, Summarizer: model,
	})
	if err != nil {
		tb.Fatal(err)
	}
	s.options = turn.Options{Model: model, Conversation: talk, Box: box, MustFinish: true}
	return s
}

func (s *scenario) run(tb testing.TB) turn.Outcome {
	tb.Helper()
	outcome, err := turn.Run(tb.Context(), s.options)
	if err != nil || outcome.Reason != task.ReasonCompleted || outcome.Turns != longTurns {
		tb.Fatalf("%+v, %v", outcome, err)
	}
	return outcome
}

func anthropicModel(url string, _ *script.Script) llm.Model {
	return anthropic.New(llm.Endpoint{Model: "m", BaseURL: url, Key: "k"})
}

func openaiModel(api openai.API) func(string, *script.Script) llm.Model {
	return func(url string, _ *script.Script) llm.Model {
		model, err := openai.New(llm.Endpoint{Model: "m", BaseURL: url + "/v1", Key: "k"}, api)
		if err != nil {
			panic(err)
		}
		return model
	}
}

func directModel(_ string, made *script.Script) llm.Model {
	return script.NewModel(made, llm.Endpoint{})
}

// prefixShare is how much of each request is a prefix of the one before: as a
// share of the request itself, and of the one before. The first request counts
// for nothing.
func prefixShare(records []script.Record) (ofRequest, ofPrevious float64) {
	for i := 1; i < len(records); i++ {
		common := float64(script.CommonPrefix(string(records[i-1].Ordered), string(records[i].Ordered)))
		ofRequest += common / float64(len(records[i].Ordered))
		ofPrevious += common / float64(len(records[i-1].Ordered))
	}
	n := float64(len(records) - 1)
	return ofRequest / n, ofPrevious / n
}

// TestPrefixIsStable measures on the wire, in every format, that what was sent
// before is sent again byte for byte.
func TestPrefixIsStable(t *testing.T) {
	t.Parallel()
	for name, connect := range map[string]func(string, *script.Script) llm.Model{
		"anthropic": anthropicModel, "chat": openaiModel(openai.Chat), "responses": openaiModel(openai.Responses),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScenario(t, connect, 0)
			s.run(t)
			ofRequest, ofPrevious := prefixShare(s.server.Records())
			t.Logf("%.4f of each request, %.4f of the one before", ofRequest, ofPrevious)
			if ofRequest < 0.95 || ofPrevious < 0.999 {
				t.Errorf("%.4f of each request is a prefix of the one before, which is %.4f of that; want 0.95 and 0.999", ofRequest, ofPrevious)
			}
		})
	}
}

func TestCompactionSavesTokens(t *testing.T) {
	t.Parallel()
	with, without := newScenario(t, anthropicModel, 16_000), newScenario(t, anthropicModel, 0)
	saved, whole := with.run(t).Usage, without.run(t).Usage
	if saved.Input >= whole.Input*6/10 {
		t.Errorf("%d tokens sent with compaction and %d without", saved.Input, whole.Input)
	}
}

// BenchmarkTurn is the time and memory of a turn with a model that answers at
// once: fifty turns, twenty tools. Our own time is without that of the server,
// which stands in for the model; memory is with it.
func BenchmarkTurn(b *testing.B) {
	for name, connect := range map[string]func(string, *script.Script) llm.Model{
		"in-process": directModel, "anthropic": anthropicModel, "openai-chat": openaiModel(openai.Chat), "openai-responses": openaiModel(openai.Responses),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			var served time.Duration
			for b.Loop() {
				b.StopTimer()
				s := newScenario(b, connect, 0)
				b.StartTimer()
				s.run(b)
				served += time.Duration(s.served.Load())
			}
			turns := float64(b.N * longTurns)
			b.ReportMetric(float64(b.Elapsed().Microseconds())/turns, "µs/turn")
			b.ReportMetric(float64((b.Elapsed()-served).Microseconds())/turns, "own-µs/turn")
		})
	}
}

// BenchmarkPrefixShare is the share of stable bytes over fifty turns.
func BenchmarkPrefixShare(b *testing.B) {
	var ofRequest, ofPrevious float64
	var first, all int
	for b.Loop() {
		s := newScenario(b, anthropicModel, 0)
		s.run(b)
		records := s.server.Records()
		ofRequest, ofPrevious = prefixShare(records)
		first, all = len(records[0].Body), 0
		for _, record := range records {
			all += len(record.Body)
		}
	}
	b.ReportMetric(ofRequest, "share-of-request")
	b.ReportMetric(ofPrevious, "share-of-previous")
	b.ReportMetric(float64(first), "first-request-bytes")
	b.ReportMetric(float64(all)/1000, "kB-sent")
}

// BenchmarkTokensSent is what fifty turns send, with and without compaction.
func BenchmarkTokensSent(b *testing.B) {
	for name, length := range map[string]int64{"without": 0, "context-16k": 16_000, "context-32k": 32_000} {
		b.Run(name, func(b *testing.B) {
			var usage llm.Usage
			for b.Loop() {
				usage = newScenario(b, anthropicModel, length).run(b).Usage
			}
			b.ReportMetric(float64(usage.Input), "tokens-sent")
			b.ReportMetric(float64(usage.Input-usage.Cached), "tokens-not-cached")
		})
	}
}
