package openai_test

import (
	"testing"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/llm/llmtest"
	"github.com/toryo-dev/toryo/internal/llm/openai"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	features := map[openai.API]llmtest.Features{
		openai.Chat: {Thoughts: llmtest.ThoughtsTold, Reasoning: []llmtest.Asked{
			{Reasoning: llm.Reasoning{Effort: "high"}, Want: map[string]string{"reasoning_effort": `"high"`, "thinking": "", "temperature": ""}},
			{Reasoning: llm.Reasoning{Effort: "none"}, Want: map[string]string{"reasoning_effort": `"none"`, "temperature": "0.5"}},
			{Reasoning: llm.Reasoning{Type: "disabled"}, Want: map[string]string{"thinking": `{"type":"disabled"}`, "reasoning_effort": ""}},
			{Reasoning: llm.Reasoning{Budget: 4000}, Want: map[string]string{"enable_thinking": "true", "thinking_budget": "4000"}},
			{Reasoning: llm.Reasoning{Budget: llm.NoBudget}, Want: map[string]string{"enable_thinking": "false", "thinking_budget": ""}},
		}},
		openai.Responses: {Thoughts: llmtest.ThoughtsWhole, Reasoning: []llmtest.Asked{
			{Reasoning: llm.Reasoning{Effort: "high"}, Want: map[string]string{"reasoning": `{"effort":"high"}`, "temperature": ""}},
			{Reasoning: llm.Reasoning{Effort: "none"}, Want: map[string]string{"reasoning.effort": `"none"`, "temperature": "0.5"}},
		}},
	}
	for api, features := range features {
		t.Run(string(api), func(t *testing.T) {
			t.Parallel()
			features.RawArguments, features.Network = true, true
			connect := func(endpoint llm.Endpoint) (llm.Model, error) { return openai.New(endpoint, api) }
			llmtest.Run(t, llmtest.OverHTTP(connect, "/v1"), features)
		})
	}
}

func TestIndependentServer(t *testing.T) {
	t.Parallel()
	for _, api := range []openai.API{openai.Chat, openai.Responses} {
		t.Run(string(api), func(t *testing.T) {
			t.Parallel()
			connect := func(endpoint llm.Endpoint) (llm.Model, error) { return openai.New(endpoint, api) }
			llmtest.Independent(t, connect, "/v1")
		})
	}
}
