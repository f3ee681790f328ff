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

// serve answers every request with the events, and keeps the bodies of the requests.
func serve(t *testing.T, api openai.API, reasoning llm.Reasoning, events ...string) (llm.Model, *[]string) {
	t.Helper()
	var bodies []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		bodies = append(bodies, string(body))
		w.Header().Set("Content-Type", "text/event-stream")
		for _, event := range events {
			_, _ = fmt.Fprintf(w, "data: %s\n\n", event)
		}
	}))
	t.Cleanup(server.Close)
	model, err := openai.New(llm.Endpoint{Model: "m", BaseURL: server.URL, Reasoning: reasoning}, api)
	if err != nil {
		t.Fatal(err)
	}
	return model, &bodies
}

func delta(fields string) string {
	return `{"model":"m","choices":[{"index":0,"delta":{` + fields + `}}]}`
}

const finished = `{"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`

func question() llm.Request { return llm.Request{Messages: []llm.Message{llm.UserText("q")}} }

// TestThoughtsOfServers has the ways in which servers mix what a model thinks into what
// it says.
func TestThoughtsOfServers(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		events         []string
		said, thought  string
		field, another string // in which it goes back, and in which it does not
	}{
		"reasoning_content": {[]string{delta(`"reasoning_content":"hm "`), delta(`"reasoning_content":"yes"`), delta(`"content":"It is."`)}, "It is.", "hm yes", `"reasoning_content":"hm yes"`, `"reasoning":`},
		"reasoning":         {[]string{delta(`"reasoning":"hm","content":""`), delta(`"content":"It is."`)}, "It is.", "hm", `"reasoning":"hm"`, `"reasoning_content":`},
		"pieces of Mistral": {[]string{
			delta(`"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}]`), delta(`"content":[{"type":"text","text":"It is."}]`), delta(`"content":" So."`),
		}, "It is. So.", "hm", "", "hm"},
		"tags":               {[]string{delta(`"content":"<th"`), delta(`"content":"ink>hm </t"`), delta(`"content":"hink>\n\nIt "`), delta(`"content":"is."`)}, "It is.", "hm ", "", "hm"},
		"tags in one":        {[]string{delta(`"content":"\n<think>hm</think>It is."`)}, "It is.", "hm", "", "hm"},
		"tags without end":   {[]string{delta(`"content":"<think>hm </thi"`)}, "", "hm </thi", "", "hm"},
		"tags in the middle": {[]string{delta(`"content":"It is <think>.</think>"`)}, "It is <think>.</think>", "", "", "reasoning"},
		"almost a tag":       {[]string{delta(`"content":"<thi"`)}, "<thi", "", "", "reasoning"},
		"null":               {[]string{delta(`"content":null,"reasoning_content":null`), delta(`"content":"It is."`)}, "It is.", "", "", "reasoning"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			model, bodies := serve(t, openai.Chat, llm.Reasoning{}, append(test.events, finished)...)
			var said, thought strings.Builder
			request := question()
			response, err := model.Chat(t.Context(), request, func(delta llm.Delta) {
				said.WriteString(delta.Text)
				thought.WriteString(delta.Thinking)
			})
			if err != nil {
				t.Fatal(err)
			}
			if response.Message.Text() != test.said || said.String() != test.said || thought.String() != test.thought {
				t.Errorf("says %q, shown as %q and thought %q; want %q and %q", response.Message.Text(), said.String(), thought.String(), test.said, test.thought)
			}
			request.Messages = append(request.Messages, response.Message, llm.UserText("and?"))
			if _, err := model.Chat(t.Context(), request, nil); err != nil {
				t.Fatal(err)
			}
			if body := (*bodies)[1]; !strings.Contains(body, test.field) || strings.Contains(body, test.another) {
				t.Errorf("sent back %s, want %s and not %s", body, test.field, test.another)
			}
		})
	}
}

// TestServersThatInsist has a server that wants the field with every call.
func TestServersThatInsist(t *testing.T) {
	t.Parallel()
	model, bodies := serve(t, openai.Chat, llm.Reasoning{Returned: "reasoning_content"}, delta(`"content":"ok"`), finished)
	request := question()
	request.Messages = append(request.Messages,
		llm.Message{Role: llm.Assistant, Parts: []llm.Part{llm.CallPart(llm.Call{ID: "a", Name: "run", Arguments: "{}"})}},
		llm.Message{Role: llm.User, Parts: []llm.Part{llm.ResultPart(llm.Result{CallID: "a", Name: "run", Text: "x"})}},
		llm.Message{Role: llm.Assistant, Parts: []llm.Part{llm.TextPart("done")}}, llm.UserText("more"))
	if _, err := model.Chat(t.Context(), request, nil); err != nil {
		t.Fatal(err)
	}
	var body struct {
		Messages []map[string]any `json:"messages"`
	}
	if err := json.Unmarshal([]byte((*bodies)[0]), &body); err != nil {
		t.Fatal(err)
	}
	if got, there := body.Messages[1]["reasoning_content"]; !there || got != "" {
		t.Errorf("the call has %v", body.Messages[1])
	}
	if _, there := body.Messages[3]["reasoning_content"]; there {
		t.Errorf("the text has %v", body.Messages[3])
	}
}

// TestThoughtsAreCountedOnce has servers that count what was thought in the completion,
// and one that does not.
func TestThoughtsAreCountedOnce(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		total int64
		want  llm.Usage
	}{
		"part of the completion": {150, llm.Usage{Input: 100, Output: 50, Reasoning: 30}},
		"besides the completion": {180, llm.Usage{Input: 100, Output: 80, Reasoning: 30}},
		"no total":               {0, llm.Usage{Input: 100, Output: 50, Reasoning: 30}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			model, _ := serve(t, openai.Chat, llm.Reasoning{}, delta(`"content":"ok"`), finished, fmt.Sprintf(
				`{"choices":[],"usage":{"prompt_tokens":100,"completion_tokens":50,"total_tokens":%d,"completion_tokens_details":{"reasoning_tokens":30}}}`, test.total))
			response, err := model.Chat(t.Context(), question(), nil)
			if err != nil || response.Usage != test.want {
				t.Errorf("%+v, %v; want %+v", response.Usage, err, test.want)
			}
		})
	}
}

// TestOrderOfReasoning has an answer of Responses in which the model thinks several times.
// Each thought goes back before what it led to, and one that led to nothing does not.
func TestOrderOfReasoning(t *testing.T) {
	t.Parallel()
	item := func(fields string) string { return `{"type":"response.output_item.done","item":{` + fields + `}}` }
	model, bodies := serve(t, openai.Responses, llm.Reasoning{Effort: "high"},
		item(`"type":"reasoning","id":"r1","summary":[{"type":"summary_text","text":"first"}],"encrypted_content":"e1"`),
		item(`"type":"function_call","id":"f1","call_id":"c1","name":"run","arguments":"{}"`),
		item(`"type":"reasoning","id":"r2","summary":[],"encrypted_content":"e2"`),
		item(`"type":"message","id":"m1","role":"assistant","content":[{"type":"output_text","text":"Then this."}]`),
		item(`"type":"function_call","id":"f2","call_id":"c2","name":"run","arguments":""`),
		item(`"type":"reasoning","id":"r3","summary":[],"encrypted_content":"e3"`),
		`{"type":"response.completed","response":{"model":"m","usage":{"input_tokens":5,"output_tokens":9,"output_tokens_details":{"reasoning_tokens":4}}}}`)
	request := question()
	response, err := model.Chat(t.Context(), request, nil)
	if err != nil || response.Stop != llm.StopCalls || response.Message.Text() != "Then this." {
		t.Fatalf("%+v, %v", response, err)
	}
	results := llm.Message{Role: llm.User}
	for _, call := range response.Message.Calls() {
		results.Parts = append(results.Parts, llm.ResultPart(llm.Result{CallID: call.ID, Name: call.Name, Text: "x"}))
	}
	request.Messages = append(request.Messages, response.Message, results)
	if _, err := model.Chat(t.Context(), request, nil); err != nil {
		t.Fatal(err)
	}
	var body struct {
		Input []struct {
			Type, Role, ID string
			CallID         string `json:"call_id"`
			Encrypted      string `json:"encrypted_content"`
			Summary        []struct{ Text string }
		}
		Store   bool
		Include []string
	}
	if err := json.Unmarshal([]byte((*bodies)[1]), &body); err != nil {
		t.Fatal(err)
	}
	var order []string
	for _, one := range body.Input {
		order = append(order, one.Type+one.Role+" "+one.ID+one.CallID+one.Encrypted)
	}
	want := "user |reasoning r1e1|function_call c1|reasoning r2e2|assistant |function_call c2|function_call_output c1|function_call_output c2"
	if got := strings.Join(order, "|"); got != want {
		t.Errorf("order\n%s, want\n%s", got, want)
	}
	if body.Store || len(body.Include) != 1 || body.Input[1].Summary[0].Text != "first" {
		t.Errorf("sent %s", (*bodies)[1])
	}
}
