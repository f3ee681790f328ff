package connect

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/reach"
	"github.com/toryo-dev/toryo/internal/task"
)

// modelList is how the models of a provider are asked for, by provider.
var modelList = map[string]struct {
	address string // of the provider itself
	path    string
	header  string // of the key
	before  string // what stands before the key
}{
	"anthropic": {"https://api.anthropic.com", "/v1/models?limit=100", "X-Api-Key", ""},
	"openai":    {"https://api.openai.com/v1", "/models", "Authorization", "Bearer "},
	"gemini":    {"https://generativelanguage.googleapis.com", "/v1beta/models?pageSize=100", "X-Goog-Api-Key", ""},
}

// listing is how long a list of models may take.
const listing = 15 * time.Second

// maxModels is how much is read of a list of models.
const maxModels = 4 << 20

// Models lists the names of the models that a key can use, as the provider orders them. It is
// a help for people who choose one: where it fails they know the name themselves.
func Models(ctx context.Context, client *http.Client, llm config.LLM) ([]string, error) {
	ask, known := modelList[llm.Provider]
	if !known {
		return nil, task.Errorf(task.Unsupported, "%s has no list of models", llm.Provider)
	}
	ctx, cancel := context.WithTimeout(ctx, listing)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(cmp.Or(llm.BaseURL, ask.address), "/")+ask.path, http.NoBody)
	if err != nil {
		return nil, err
	}
	if key := llm.APIKey.Reveal(); key != "" {
		request.Header.Set(ask.header, ask.before+key)
	}
	if llm.Provider == "anthropic" {
		request.Header.Set("Anthropic-Version", "2023-06-01")
	}
	answer, err := client.Do(request)
	if err != nil {
		return nil, reach.Brief(err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the list of models is answered %d", answer.StatusCode)
	}
	var said struct {
		Data   []struct{ ID string }
		Models []struct{ Name string }
	}
	if err := json.NewDecoder(io.LimitReader(answer.Body, maxModels)).Decode(&said); err != nil {
		return nil, fmt.Errorf("the list of models cannot be read: %w", err)
	}
	var names []string
	for _, one := range said.Data {
		names = append(names, one.ID)
	}
	for _, one := range said.Models {
		names = append(names, strings.TrimPrefix(one.Name, "models/"))
	}
	return names, nil
}
