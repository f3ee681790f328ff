package anthropic_test

import (
	"testing"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/llm/anthropic"
	"github.com/toryo-dev/toryo/internal/llm/llmtest"
)

func connect(endpoint llm.Endpoint) (llm.Model, error) { return anthropic.New(endpoint), nil }

func TestConformance(t *testing.T) {
	t.Parallel()
	llmtest.Run(t, llmtest.OverHTTP(connect, ""), llmtest.Features{
		Counts: true, RawArguments: true, ErrorFlag: true, Network: true, Thoughts: llmtest.ThoughtsWhole,
		Reasoning: []llmtest.Asked{
			{Reasoning: llm.Reasoning{Budget: 4000, MinBudget: 1024}, Want: map[string]string{
				"thinking.type": `"enabled"`, "thinking.budget_tokens": "4000", "output_config": "", "temperature": "",
			}},
			{Reasoning: llm.Reasoning{Budget: 20_000, MinBudget: 1024}, Want: map[string]string{"thinking.budget_tokens": "8000"}},
			{Reasoning: llm.Reasoning{Budget: 4000, MinBudget: 1024}, MaxTokens: 1200, Want: map[string]string{"thinking": "", "temperature": "0.5"}},
			{Reasoning: llm.Reasoning{Type: "adaptive", Effort: "high"}, Want: map[string]string{
				"thinking": `{"type":"adaptive"}`, "output_config.effort": `"high"`, "temperature": "",
			}},
			{Reasoning: llm.Reasoning{Type: "between_tools"}, Want: map[string]string{"thinking.type": `"between_tools"`}},
			{Reasoning: llm.Reasoning{Type: "disabled"}, Want: map[string]string{"thinking": `{"type":"disabled"}`, "temperature": "0.5"}},
		},
	})
}

func TestIndependentServer(t *testing.T) {
	t.Parallel()
	llmtest.Independent(t, connect, "")
}
