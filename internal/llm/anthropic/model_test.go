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
	llmtest.Run(t, llmtest.OverHTTP(connect, ""), llmtest.Features{Counts: true, RawArguments: true, ErrorFlag: true, Network: true})
}

func TestIndependentServer(t *testing.T) {
	t.Parallel()
	llmtest.Independent(t, connect, "")
}
