package script_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/llm/script"
)

func post(t *testing.T, url, body string) (status int, answer string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := (&http.Client{Timeout: time.Minute}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(data)
}

// Other programs send what only the real services take: system messages between the others, and
// tools that are the provider's own. Each answer has an id of its own, or they take it for a part of
// the one before.
func TestRequestsOfOtherPrograms(t *testing.T) {
	t.Parallel()
	parsed, err := script.Parse("s.yaml", []byte("rules:\n  - when: {turn: 2, system: be brief}\n    answer: {text: The second.}\n  - answer: {text: The first.}\n"))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(script.NewServer(parsed))
	t.Cleanup(server.Close)
	ids := map[string]bool{}
	for messages, want := range map[string]string{
		`{"role":"user","content":"hi"},{"role":"system","content":"be brief"}`:                                                                         "The first.",
		`{"role":"user","content":"hi"},{"role":"system","content":"be brief"},{"role":"assistant","content":"Yes."},{"role":"user","content":"go on"}`: "The second.",
	} {
		status, text := post(t, server.URL+"/v1/messages", `{"model":"m","max_tokens":9,"messages":[`+messages+`]}`)
		var answer struct {
			ID      string
			Content []struct{ Text string }
		}
		if err := json.Unmarshal([]byte(text), &answer); err != nil || status != 200 || len(answer.Content) != 1 || answer.Content[0].Text != want {
			t.Errorf("%s: %d %s", messages, status, text)
		}
		ids[answer.ID] = true
	}
	for range 2 {
		for path, body := range map[string]string{"/v1/chat/completions": `"messages":[{"role":"user","content":"hi"}]`, "/v1/responses": `"input":"hi"`} {
			_, text := post(t, server.URL+path, `{"model":"m",`+body+`}`)
			var answer struct{ ID string }
			if err := json.Unmarshal([]byte(text), &answer); err != nil || answer.ID == "" {
				t.Errorf("%s: %s", path, text)
			}
			ids[answer.ID] = true
		}
	}
	if len(ids) != 6 {
		t.Errorf("the ids are %v", ids)
	}
	if status, text := post(t, server.URL+"/v1/messages", `{"model":"m","max_tokens":9,"messages":[{"role":"system","content":"first"},{"role":"user","content":"hi"}]}`); status != 400 {
		t.Errorf("a system message that is the first: %d %s", status, text)
	}
	if status, text := post(t, server.URL+"/v1/responses", `{"model":"m","input":"hi","tools":[{"type":"web_search"}]}`); status != 200 {
		t.Errorf("a tool of the provider: %d %s", status, text)
	}
	if status, text := post(t, server.URL+"/v1/responses", `{"model":"m","input":"hi","tools":[{"name":"f","parameters":{"type":"object"}}]}`); status != 400 {
		t.Errorf("a tool without a type: %d %s", status, text)
	}
	if status, text := post(t, server.URL+"/v1/responses", `{"model":"m","input":"hi","tools":[{"type":"function","name":"f"}]}`); status != 400 {
		t.Errorf("a function without a schema: %d %s", status, text)
	}
}
