package turntest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"time"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/llm/anthropic"
	"github.com/toryo-dev/toryo/internal/llm/openai"
	"github.com/toryo-dev/toryo/internal/llm/script"
	"github.com/toryo-dev/toryo/internal/messages"
	"github.com/toryo-dev/toryo/internal/phase/conversation"
	"github.com/toryo-dev/toryo/internal/phase/tool"
	"github.com/toryo-dev/toryo/internal/phase/turn"
	"github.com/toryo-dev/toryo/internal/task"
)

// The size of the scenario.
const (
	Turns = 50
	Tools = 20
)

// Connect makes a model that talks to the server of the script at the URL, or
// plays the script by itself.
type Connect func(url string, played *script.Script) (llm.Model, error)

// Connections are the ways to the model.
var Connections = map[string]Connect{
	"in-process": func(_ string, played *script.Script) (llm.Model, error) {
		return script.NewModel(played, llm.Endpoint{}), nil
	},
	"anthropic": func(url string, _ *script.Script) (llm.Model, error) {
		return anthropic.New(llm.Endpoint{Model: "m", BaseURL: url, Key: "k"}), nil
	},
	"openai-chat":      openaiBy(openai.Chat),
	"openai-responses": openaiBy(openai.Responses),
}

func openaiBy(api openai.API) Connect {
	return func(url string, _ *script.Script) (llm.Model, error) {
		return openai.New(llm.Endpoint{Model: "m", BaseURL: url + "/v1", Key: "k"}, api)
	}
}

// Scenario is the run before it has begun: each turn calls one tool, whose output
// has about a page.
type Scenario struct {
	options   turn.Options
	server    *script.Server
	listening *httptest.Server
	served    atomic.Int64 // nanoseconds that the server took
}

// New prepares a run. Close it when it is over. A context length of 0 means that
// nothing is compacted.
func New(ctx context.Context, connect Connect, contextLength int64) (*Scenario, error) {
	played, err := script.New(script.Script{Rules: []script.Rule{
		{Name: "notes", When: script.When{System: "You keep the memory"}, Answer: script.Answer{Text: strings.Repeat("Findings: the port is set in config.go line 14. ", 20)}},
		{Name: "end", When: script.When{Last: fmt.Sprintf("step %d:", Turns-1)}, Answer: script.Answer{Calls: []script.Call{{Name: "finish", Arguments: map[string]any{"summary": "Done."}}}}},
		{Name: "go", Answer: script.Answer{Text: "I look at the next file.", Calls: []script.Call{{Name: "look", Arguments: map[string]any{"path": "internal/config/config.go"}}}}},
	}})
	if err != nil {
		return nil, err
	}
	s := &Scenario{server: script.NewServer(played)}
	s.listening = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begun := time.Now()
		s.server.ServeHTTP(w, r)
		s.served.Add(int64(time.Since(begun)))
	}))
	if s.options, err = options(ctx, s.listening.URL, played, connect, contextLength); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func options(ctx context.Context, url string, played *script.Script, connect Connect, contextLength int64) (turn.Options, error) {
	box, err := tools()
	if err != nil {
		return turn.Options{}, err
	}
	adapter, err := connect(url, played)
	if err != nil {
		return turn.Options{}, err
	}
	model := llm.Wrap(adapter, llm.Layers{})
	talk, err := conversation.New(ctx, conversation.Options{
		System: strings.Repeat("You are a careful agent. ", 100) + llm.UntrustedRule, Tools: box.Definitions(),
		Pinned:        []conversation.Block{{Name: "request", Text: "Make the port configurable."}, {Name: "plan", Text: "1. look\n2. change\n3. test"}},
		ContextLength: contextLength, Answer: 1000, Summarizer: model,
	})
	return turn.Options{Model: model, Conversation: talk, Box: box, MustFinish: true}, err
}

func tools() (*tool.Box, error) {
	step := 0
	page := strings.Repeat("\tif config.Port == 0 { return errors.New(\"the port is not set\") }\n", 24)
	used := &numbered{name: "look", answer: func() string { step++; return fmt.Sprintf("step %d:\n%s", step, page) }}
	all := []tool.Tool{used, tool.Finish(nil), tool.Ask()}
	for len(all) < Tools {
		all = append(all, &numbered{name: fmt.Sprintf("tool_%d", len(all))})
	}
	return tool.NewBox(all...)
}

// numbered is a tool among many.
type numbered struct {
	name   string
	answer func() string // nil for a tool that the run does not use
}

func (n *numbered) Definition() llm.Tool {
	return llm.Tool{
		Name:        n.name,
		Description: "One of many tools, which is described in a sentence or two as they usually are, with what it takes and what it gives.",
		Schema:      []byte(`{"type":"object","properties":{"path":{"type":"string","description":"the file, relative to the project's root"},"limit":{"type":"integer"}}}`),
	}
}

func (n *numbered) ReadOnly() bool { return false }

func (n *numbered) Call(context.Context, llm.Call, json.RawMessage) (tool.Output, error) {
	if n.answer == nil {
		return tool.Output{}, tool.Mistake("the scenario does not use %s", n.name)
	}
	text := n.answer()
	return tool.Output{Text: text, Whole: text}, nil
}

// Run runs it, once.
func (s *Scenario) Run(ctx context.Context) (turn.Outcome, error) {
	outcome, err := turn.Run(ctx, s.options)
	if err == nil && (outcome.Reason != task.ReasonCompleted || outcome.Turns != Turns) {
		err = fmt.Errorf("the run ended after %d turns because %s", outcome.Turns, messages.Reason(task.English, outcome.Reason))
	}
	return outcome, err
}

// Served is how much of the run's time the server took, which stands in for the
// model.
func (s *Scenario) Served() time.Duration { return time.Duration(s.served.Load()) }

// Close ends the server.
func (s *Scenario) Close() { s.listening.Close() }

// Sent is what the run sent over the network.
type Sent struct {
	First, All int // bytes of the first request, and of all
	// OfRequest and OfPrevious are how much of each request but the first is a
	// prefix of the one before: as a share of the request, and of the one before.
	OfRequest, OfPrevious float64
}

// Sent looks at what a run has sent. A model in this process sends nothing.
func (s *Scenario) Sent() Sent {
	records := s.server.Records()
	if len(records) < 2 {
		return Sent{}
	}
	sent := Sent{First: len(records[0].Body), All: len(records[0].Body)}
	for i := 1; i < len(records); i++ {
		common := float64(script.CommonPrefix(string(records[i-1].Ordered), string(records[i].Ordered)))
		sent.OfRequest += common / float64(len(records[i].Ordered))
		sent.OfPrevious += common / float64(len(records[i-1].Ordered))
		sent.All += len(records[i].Body)
	}
	n := float64(len(records) - 1)
	sent.OfRequest /= n
	sent.OfPrevious /= n
	return sent
}
