package openai_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/llm/openai"
)

// account is a server of Responses that knows what it handed out with each key, as the vendor's does.
type account struct {
	reasons bool
	bodies  []string
}

func (a *account) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	a.bodies = append(a.bodies, string(body))
	key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	var asked struct {
		Include []string
		Input   []struct {
			Type      string
			Encrypted string `json:"encrypted_content"`
		}
	}
	refuse := func(message string) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = fmt.Fprintf(w, `{"error":{"message":%q,"type":"invalid_request_error"}}`, message)
	}
	if err := json.Unmarshal(body, &asked); err != nil {
		refuse(err.Error())
		return
	}
	if !a.reasons && len(asked.Include) > 0 {
		refuse("Encrypted content is not supported with this model.")
		return
	}
	for _, item := range asked.Input {
		if item.Type == "reasoning" && item.Encrypted != "of "+key {
			refuse("The encrypted content could not be verified. Reason: Encrypted content organization_id did not match the target organization.")
			return
		}
	}
	w.Header().Set("Content-Type", "text/event-stream")
	if a.reasons {
		_, _ = fmt.Fprintf(w, "data: {\"type\":\"response.output_item.done\",\"item\":{\"type\":\"reasoning\",\"id\":\"r\",\"summary\":[],\"encrypted_content\":\"of %s\"}}\n\n", key)
	}
	for _, event := range []string{
		`{"type":"response.output_item.done","item":{"type":"message","id":"m","role":"assistant","content":[{"type":"output_text","text":"Yes."}]}}`,
		`{"type":"response.completed","response":{"model":"m","usage":{"input_tokens":5,"output_tokens":9}}}`,
	} {
		_, _ = fmt.Fprintf(w, "data: %s\n\n", event)
	}
}

func (a *account) start(t *testing.T) func(key string, noReasoning bool) llm.Model {
	t.Helper()
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	return func(key string, noReasoning bool) llm.Model {
		model, err := openai.New(llm.Endpoint{Model: "m", BaseURL: server.URL, Key: key, NoReasoning: noReasoning}, openai.Responses)
		if err != nil {
			t.Fatal(err)
		}
		return model
	}
}

// Models that do not reason refuse to be asked for what they thought. Known ones are not asked, and
// others are asked once.
func TestModelsWithoutReasoning(t *testing.T) {
	t.Parallel()
	for noReasoning, want := range map[bool]int{false: 3, true: 2} {
		server := new(account)
		model := server.start(t)("k", noReasoning)
		for range 2 {
			if response, err := model.Chat(t.Context(), question(), nil); err != nil || response.Message.Text() != "Yes." {
				t.Fatalf("%+v, %v", response, err)
			}
		}
		if len(server.bodies) != want {
			t.Errorf("known: %v: %d requests, want %d", noReasoning, len(server.bodies), want)
		}
	}
}

// What a model thought for one account cannot be read by another: a conversation that goes on with the
// key of another account goes on without.
func TestReasoningOfAnotherAccount(t *testing.T) {
	t.Parallel()
	server := &account{reasons: true}
	with := server.start(t)
	request := question()
	first, err := with("one", false).Chat(t.Context(), request, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Messages = append(request.Messages, first.Message, llm.UserText("And then?"))
	for key, want := range map[string]int{"one": 1, "other": 2} {
		server.bodies = nil
		model := with(key, false)
		response, err := model.Chat(t.Context(), request, nil)
		if err != nil || response.Message.Text() != "Yes." || len(server.bodies) != want {
			t.Errorf("%s: %+v, %v after %d requests", key, response, err, len(server.bodies))
		}
		if _, err := model.Chat(t.Context(), request, nil); err != nil || len(server.bodies) != want+1 {
			t.Errorf("%s, asked again: %v after %d requests", key, err, len(server.bodies))
		}
		if last := server.bodies[len(server.bodies)-1]; strings.Contains(last, "of one") != (key == "one") || !strings.Contains(last, "And then?") {
			t.Errorf("%s sent %s", key, last)
		}
	}
}
