package script_test

import (
	"testing"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/llm/llmtest"
	"github.com/toryo-dev/toryo/internal/llm/script"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	direct := func(_ testing.TB, s *script.Script, endpoint llm.Endpoint) (llm.Model, *script.Player) {
		model := script.NewModel(s, endpoint)
		return model, model.Player
	}
	llmtest.Run(t, direct, llmtest.Features{Counts: true, RawArguments: true, ErrorFlag: true})
}
