package gemini_test

import (
	"testing"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/llm/gemini"
	"github.com/toryo-dev/toryo/internal/llm/llmtest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	connect := func(endpoint llm.Endpoint) (llm.Model, error) { return gemini.New(endpoint) }
	llmtest.Run(t, llmtest.OverHTTP(connect, ""), llmtest.Features{Counts: true, ErrorFlag: true, Network: true})
}
