package connect_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/connect"
	"github.com/toryo-dev/toryo/internal/forge"
)

func TestModels(t *testing.T) {
	t.Parallel()
	for provider, test := range map[string]struct{ path, header, key, answer string }{
		"anthropic": {"/v1/models", "X-Api-Key", "k", `{"data":[{"id":"one"},{"id":"two"}]}`},
		"openai":    {"/models", "Authorization", "Bearer k", `{"data":[{"id":"one"},{"id":"two"}]}`},
		"gemini":    {"/v1beta/models", "X-Goog-Api-Key", "k", `{"models":[{"name":"models/one"},{"name":"models/two"}]}`},
	} {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != test.path || r.Header.Get(test.header) != test.key {
					w.WriteHeader(http.StatusUnauthorized)
					return
				}
				_, _ = io.WriteString(w, test.answer)
			}))
			defer web.Close()
			names, err := connect.Models(t.Context(), forge.HTTPClient(nil), config.LLM{Provider: provider, BaseURL: web.URL, APIKey: "k"})
			if err != nil || !slices.Equal(names, []string{"one", "two"}) {
				t.Errorf("listed %v, %v", names, err)
			}
			if names, err := connect.Models(t.Context(), forge.HTTPClient(nil), config.LLM{Provider: provider, BaseURL: web.URL, APIKey: "x"}); err == nil {
				t.Errorf("listed %v without the key", names)
			}
		})
	}
}
