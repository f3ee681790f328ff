package turn_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/llm/anthropic"
	"github.com/toryo-dev/toryo/internal/llm/gemini"
	"github.com/toryo-dev/toryo/internal/llm/openai"
	"github.com/toryo-dev/toryo/internal/llm/script"
	"github.com/toryo-dev/toryo/internal/phase/conversation"
	"github.com/toryo-dev/toryo/internal/phase/tool"
	"github.com/toryo-dev/toryo/internal/phase/turn"
	"github.com/toryo-dev/toryo/internal/task"
)

// thinkers are the ways to models that think. The scripted server refuses a thought that
// does not come back as it was, as the vendors do.
var thinkers = map[string]func(endpoint llm.Endpoint) (llm.Model, error){
	"anthropic": func(e llm.Endpoint) (llm.Model, error) {
		e.Reasoning = llm.Reasoning{Type: "adaptive", Effort: "high"}
		return anthropic.New(e), nil
	},
	"anthropic with a budget": func(e llm.Endpoint) (llm.Model, error) {
		e.Reasoning = llm.Reasoning{Budget: 2000, MinBudget: 1024}
		return anthropic.New(e), nil
	},
	"anthropic by itself": func(e llm.Endpoint) (llm.Model, error) { return anthropic.New(e), nil },
	"responses": func(e llm.Endpoint) (llm.Model, error) {
		e.BaseURL += "/v1"
		e.Reasoning.Effort = "high"
		return openai.New(e, openai.Responses)
	},
	"chat": func(e llm.Endpoint) (llm.Model, error) {
		e.BaseURL += "/v1"
		e.Reasoning.Effort = "high"
		return openai.New(e, openai.Chat)
	},
	"gemini": func(e llm.Endpoint) (llm.Model, error) {
		e.Reasoning.Effort = "high"
		return gemini.New(e)
	},
}

const secretThought = "I THINK THAT"

// kept is the journal of a conversation, as it is on the disk.
type kept struct{ lines []string }

func (k *kept) Append(_ context.Context, entry conversation.Entry) error {
	line, err := json.Marshal(entry)
	k.lines = append(k.lines, string(line))
	return err
}

func (k *kept) entries(t *testing.T) []conversation.Entry {
	t.Helper()
	var all []conversation.Entry
	for _, line := range k.lines {
		var entry conversation.Entry
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatal(err)
		}
		all = append(all, entry)
	}
	return all
}

// TestThinkingGoesOn runs a phase that thinks in every turn, is compacted on the way, and
// is interrupted and taken up from its journal after every third turn.
func TestThinkingGoesOn(t *testing.T) {
	t.Parallel()
	for name, connect := range thinkers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made, err := script.New(script.Script{Rules: []script.Rule{
				{When: script.When{System: "You keep the memory"}, Answer: script.Answer{Thinking: secretThought + " a summary is due.", Text: "Notes: nothing yet."}},
				{When: script.When{Last: "step 60"}, Answer: script.Answer{Thinking: secretThought + " it is done.", Calls: []script.Call{{Name: "finish", Arguments: map[string]any{"summary": "Done."}}}}},
				{When: script.When{Last: "step 05"}, Answer: script.Answer{Redacted: true, Calls: []script.Call{call(nil)}}},
				{Answer: script.Answer{Thinking: secretThought + " turn ${turn} is next.", Text: "I look.", Calls: []script.Call{call(nil), call(nil)}}},
			}})
			if err != nil {
				t.Fatal(err)
			}
			server := script.NewServer(made)
			listening := httptest.NewServer(server)
			t.Cleanup(listening.Close)
			model, err := connect(llm.Endpoint{Model: "m", BaseURL: listening.URL, Key: "k", MaxTokens: 4000})
			if err != nil {
				t.Fatal(err)
			}
			run := thinkingRun{model: model, journal: &kept{}}
			outcome := run.toTheEnd(t)
			if outcome.Reason != task.ReasonCompleted || outcome.End == nil || strings.Contains(outcome.Text+outcome.End.Summary, secretThought) {
				t.Errorf("outcome %+v", outcome)
			}
			if run.usage.Reasoning == 0 || run.usage.Reasoning >= run.usage.Output {
				t.Errorf("usage %+v", run.usage)
			}
			checkThoughts(t, name, server.Records())
		})
	}
}

type thinkingRun struct {
	model   llm.Model
	journal *kept
	step    int
	usage   llm.Usage
}

var errInterrupted = errors.New("interrupted")

func (r *thinkingRun) toTheEnd(t *testing.T) turn.Outcome {
	t.Helper()
	tell := &echo{answer: func(string) (string, error) {
		r.step++
		return "step " + string(rune('0'+r.step/10)) + string(rune('0'+r.step%10)) + strings.Repeat(" and more", 40), nil
	}}
	box, err := tool.NewBox(tell, tool.Finish(nil))
	if err != nil {
		t.Fatal(err)
	}
	options := conversation.Options{
		System: "You are an agent.", Tools: box.Definitions(), Pinned: []conversation.Block{{Name: "request", Text: "Do it."}},
		ContextLength: 6000, Answer: 1000, KeepRecent: 3, Summarizer: r.model, Journal: r.journal,
	}
	talk, err := conversation.New(t.Context(), options)
	for range 20 {
		if err != nil {
			t.Fatal(err)
		}
		turns := 0
		outcome, ended := turn.Run(t.Context(), turn.Options{
			Model: r.model, Conversation: talk, Box: box, MustFinish: true,
			Checkpoint: func(_ context.Context, point turn.Point) error {
				if point == turn.AfterResults {
					if turns++; turns == 3 {
						return errInterrupted
					}
				}
				return nil
			},
		})
		r.usage = r.usage.Add(outcome.Usage)
		if ended == nil {
			return outcome
		}
		if !errors.Is(ended, errInterrupted) {
			t.Fatal(ended)
		}
		talk, err = conversation.Restore(options, r.journal.entries(t))
	}
	t.Fatal("the phase does not end")
	return turn.Outcome{}
}

// checkThoughts looks at what the model was sent: its thoughts where they belong, and in
// nothing that is said.
func checkThoughts(t *testing.T, name string, records []script.Record) {
	t.Helper()
	returned, summaries := 0, 0
	for i, record := range records {
		for _, message := range record.Request.Messages {
			if strings.Contains(message.Text(), secretThought) {
				t.Fatalf("request %d has a thought in a text: %s", i, message.Text())
			}
		}
		if strings.Contains(record.Request.System, "You keep the memory") {
			summaries++
			if strings.Contains(string(record.Body), secretThought) {
				t.Errorf("a thought is summarised: %s", record.Body)
			}
			continue
		}
		if last := len(record.Request.Messages) - 2; last > 0 {
			for _, part := range record.Request.Messages[last].Parts {
				if part.Thinking != nil || part.Call != nil && strings.HasPrefix(string(part.Call.Signature), "signed") {
					returned++
					break
				}
			}
		}
	}
	// After a compaction some thoughts are left out, and one that is redacted is not told
	// by every format.
	if summaries == 0 || returned*2 < len(records)-summaries {
		t.Errorf("%s: of %d requests, %d of them for summaries, %d had the last thought", name, len(records), summaries, returned)
	}
}
