package agent

import (
	"fmt"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/task"
)

// People are told what happened and how to fix it, in the one form of all that is
// said at the end of a run; what is a fault of our own is for the log.
func TestWhatPeopleAreToldOfAnError(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err      error
		language task.Language
		want     []string
		not      []string
	}{
		"a provider that does not accept the request": {
			fmt.Errorf("ask: %w", &llm.Error{Kind: llm.BadRequest, Provider: "openai", Status: 400, Detail: "max_tokens is too large"}), task.English,
			[]string{"**Failed.** ", "the model provider openai does not accept the request (status 400): max_tokens is too large", "llm.max_tokens"},
			[]string{"fault of Toryo"},
		},
		"in Japanese": {
			task.Errorf(task.NotFound, "nothing there").WithHint("look elsewhere"), task.Japanese,
			[]string{"**失敗しました。** ", "nothing there (look elsewhere)"}, nil,
		},
		"a fault of our own": {
			task.Errorf(task.Internal, "index 7 out of range in secret.go"), task.English,
			[]string{"**Failed.** ", "a fault of Toryo itself"}, []string{"secret.go"},
		},
	} {
		text := failureText(task.Development, test.language, test.err)
		for _, part := range test.want {
			if !strings.Contains(text, part) {
				t.Errorf("%s: %q is missing in %q", name, part, text)
			}
		}
		for _, part := range test.not {
			if strings.Contains(text, part) {
				t.Errorf("%s: %q is in %q", name, part, text)
			}
		}
	}
}
