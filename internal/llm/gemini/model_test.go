package gemini_test

import (
	"testing"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/llm/gemini"
	"github.com/toryo-dev/toryo/internal/llm/llmtest"
)

func connect(endpoint llm.Endpoint) (llm.Model, error) { return gemini.New(endpoint) }

func TestConformance(t *testing.T) {
	t.Parallel()
	llmtest.Run(t, llmtest.OverHTTP(connect, ""), llmtest.Features{
		Counts: true, ErrorFlag: true, Network: true, Thoughts: llmtest.ThoughtsSigned,
		Reasoning: []llmtest.Asked{
			{Reasoning: llm.Reasoning{Effort: "low"}, Want: map[string]string{"generationConfig.thinkingConfig": `{"thinkingLevel":"low"}`}},
			{Reasoning: llm.Reasoning{Budget: 4000}, Want: map[string]string{"generationConfig.thinkingConfig": `{"thinkingBudget":4000}`}},
			{Reasoning: llm.Reasoning{Budget: 20_000}, Want: map[string]string{"generationConfig.thinkingConfig": `{"thinkingBudget":8000}`}},
			{Reasoning: llm.Reasoning{Budget: llm.NoBudget}, Want: map[string]string{"generationConfig.thinkingConfig": `{"thinkingBudget":0}`}},
			{Reasoning: llm.Reasoning{Budget: 4000, MinBudget: 128}, MaxTokens: 16, Want: map[string]string{"generationConfig.thinkingConfig": ""}},
			{Reasoning: llm.Reasoning{Budget: 4000}, MaxTokens: 1, Want: map[string]string{"generationConfig.thinkingConfig": ""}},
		},
	})
}

func TestIndependentServer(t *testing.T) {
	t.Parallel()
	llmtest.Independent(t, connect, "")
}
