package openai_test

import (
	"testing"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/llm/llmtest"
	"github.com/toryo-dev/toryo/internal/llm/openai"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	for _, api := range []openai.API{openai.Chat, openai.Responses} {
		t.Run(string(api), func(t *testing.T) {
			t.Parallel()
			connect := func(endpoint llm.Endpoint) (llm.Model, error) { return openai.New(endpoint, api) }
			llmtest.Run(t, llmtest.OverHTTP(connect, "/v1"), llmtest.Features{RawArguments: true, Network: true})
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
