package doctor_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/doctor"
)

// The second model has a line of its own: whether it has its key, and whether it answers.
func TestFallback(t *testing.T) {
	t.Parallel()
	second := config.LLM{Provider: "openai", Model: "m", APIKey: "k"}
	works := func(context.Context) (string, error) { return "answered", nil }
	fails := func(context.Context) (string, error) { return "", errors.New("no route") }
	for name, test := range map[string]struct {
		llm  config.LLM
		ask  func(context.Context) (string, error)
		want doctor.Finding
	}{
		"works":  {second, works, doctor.Finding{Name: "fallback", Status: doctor.OK, Found: "openai m answered"}},
		"fails":  {second, fails, doctor.Finding{Name: "fallback", Status: doctor.Missing, Found: "no route", Hint: "see llm in toryo.yaml"}},
		"no key": {config.LLM{Provider: "bedrock", Model: "m", Cloud: config.Cloud{Region: "x"}}, works, doctor.Finding{Name: "fallback", Status: doctor.Warning, Found: "bedrock m, but no key is set, and no credentials", Hint: "set what is missing; docs/clouds.md has an example for bedrock"}},
	} {
		if diff := cmp.Diff(test.want, doctor.Fallback(t.Context(), test.llm, test.ask)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
