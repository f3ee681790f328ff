package llm_test

import (
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/llm"
)

// A key that is not there is not called wrong.
func TestAMissingKeyIsSaidToBeMissing(t *testing.T) {
	t.Parallel()
	for missing, want := range map[bool]string{
		true:  "the model provider test wants a key, and none is set: cause; set TORYO_LLM_API_KEY, or llm.api_key_file in toryo.yaml",
		false: "the model provider test does not accept the key",
	} {
		refusal := &llm.Error{Kind: llm.Unauthorized, Provider: "test", Detail: "cause"}
		model := llm.Wrap(&failing{errors: []error{refusal}}, llm.Layers{NoKey: missing, Logger: quiet()})
		if _, err := model.Chat(t.Context(), llm.Request{}, nil); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
