package llmtest

import (
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/testkit"
)

const independentFixtures = `{"fixtures": [
  {"match": {"userMessage": "hello"},
   "response": {"content": "Hi there. This is a text that takes several pieces. こんにちは。",
                "usage": {"input_tokens": 12, "output_tokens": 34, "prompt_tokens": 12, "completion_tokens": 34, "total_tokens": 46,
                          "promptTokenCount": 12, "candidatesTokenCount": 34, "totalTokenCount": 46}}},
  {"match": {"userMessage": "look", "hasToolResult": false},
   "response": {"content": "I look.", "toolCalls": [
     {"id": "call_1", "name": "read", "arguments": {"path": "a \"quoted\" name"}},
     {"id": "call_2", "name": "run", "arguments": {"command": "ls"}}]}},
  {"match": {"userMessage": "look", "hasToolResult": true, "toolResultContains": "no such file"}, "response": {"content": "Both are there."}},
  {"match": {"userMessage": "limit"}, "response": {"error": {"message": "slow down", "type": "rate_limit_error"}, "status": 429, "retryAfter": 3}},
  {"match": {"userMessage": "broken"}, "response": {"error": {"message": "oops", "type": "api_error"}, "status": 500}},
  {"match": {"userMessage": "key"}, "response": {"error": {"message": "invalid x-api-key", "type": "authentication_error"}, "status": 401}},
  {"match": {"userMessage": "cut"}, "response": {"content": "I will do it all at once, and I will not ask.", "toolCalls": [{"id": "call_9", "name": "run", "arguments": {"command": "echo one two three four five six seven eight nine ten"}}]},
   "chunkSize": 5, "truncateAfterChunks": 3}
]}`

// Independent checks an adapter against a server of its wire format that was not
// written by us.
func Independent(t *testing.T, connect func(endpoint llm.Endpoint) (llm.Model, error), path string) {
	t.Helper()
	model, err := connect(llm.Endpoint{Model: "some-model", Key: "any", BaseURL: testkit.ModelServer(t, independentFixtures) + path})
	if err != nil {
		t.Fatal(err)
	}
	t.Run("Text", func(t *testing.T) {
		var streamed strings.Builder
		response := mustChat(t, model, ask("hello"), func(delta llm.Delta) { streamed.WriteString(delta.Text) })
		const said = "Hi there. This is a text that takes several pieces. こんにちは。"
		if response.Message.Text() != said || streamed.String() != said || response.Stop != llm.StopEnd || response.Scripted {
			t.Errorf("got %+v, streamed %q", response, streamed.String())
		}
		if response.Usage.Input != 12 || response.Usage.Output != 34 {
			t.Errorf("usage %+v", response.Usage)
		}
	})
	t.Run("Tools", func(t *testing.T) {
		request := withTools(ask("look"))
		response := mustChat(t, model, request, nil)
		compareCalls(t, response.Message.Calls(), []llm.Call{
			{ID: "call_1", Name: "read", Arguments: `{"path":"a \"quoted\" name"}`},
			{ID: "call_2", Name: "run", Arguments: `{"command":"ls"}`},
		})
		if response.Stop != llm.StopCalls || response.Message.Text() != "I look." {
			t.Errorf("stop %q, text %q", response.Stop, response.Message.Text())
		}
		request.Messages = append(request.Messages, response.Message, llm.Message{Role: llm.User, Parts: []llm.Part{
			llm.ResultPart(llm.Result{CallID: "call_1", Name: "read", Text: "content"}),
			llm.ResultPart(llm.Result{CallID: "call_2", Name: "run", Text: "no such file", Error: true}),
		}})
		if got := mustChat(t, model, request, nil); got.Message.Text() != "Both are there." {
			t.Errorf("got %+v", got.Message)
		}
	})
	t.Run("Errors", func(t *testing.T) {
		if failed := mustFail(t, model, ask("limit"), llm.RateLimited); failed.RetryAfter < time.Second {
			t.Errorf("wait %s, and the server says to wait", failed.RetryAfter)
		}
		mustBe(t, model, ask("broken"), llm.ServerFault)
		mustBe(t, model, ask("key"), llm.Unauthorized)
	})
	t.Run("CutStream", func(t *testing.T) {
		mustBe(t, model, withTools(ask("cut")), llm.CutStream)
	})
}
