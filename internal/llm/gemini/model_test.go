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
	llmtest.Run(t, llmtest.OverHTTP(connect, ""), llmtest.Features{Counts: true, ErrorFlag: true, Network: true})
}

func TestIndependentServer(t *testing.T) {
	t.Parallel()
	llmtest.Independent(t, connect, "")
}
