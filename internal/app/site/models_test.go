package site

import (
	"errors"
	"net/http"
	"testing"

	"github.com/toryo-dev/toryo/internal/app/config"
)

type roundTrips func(*http.Request) (*http.Response, error)

func (r roundTrips) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

// Whatever the provider, a model is asked by the transport that is given, and by no other.
func TestAModelIsAskedByTheTransport(t *testing.T) {
	t.Parallel()
	for _, provider := range []string{"anthropic", "openai", "gemini"} {
		llm := config.Default().LLM
		llm.Provider, llm.Model, llm.BaseURL, llm.APIKey, llm.Retries = provider, "m", "http://models.invalid/v1", "k", 0
		asked := ""
		err := askThrough(t.Context(), llm, roundTrips(func(request *http.Request) (*http.Response, error) {
			asked = request.URL.Host
			return nil, errors.New("not today")
		}))
		if err == nil || asked != "models.invalid" {
			t.Errorf("%s was asked at %q: %v", provider, asked, err)
		}
	}
}
