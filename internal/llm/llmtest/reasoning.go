package llmtest

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/llm/script"
)

// Asked is how an adapter writes a wish for reasoning into its request. Want has the JSON
// at paths of the body, "" where there is nothing.
type Asked struct {
	Reasoning llm.Reasoning
	MaxTokens int64 // of the request; 0 means 10,000
	Want      map[string]string
}

const thought = "The port is set in main.go, I think."

// thinkingTurns are rules of a model that thinks before it calls, and then again before
// it answers.
func thinkingTurns() []script.Rule {
	usage := &llm.Usage{Input: 100, Output: 50, Reasoning: 30}
	return []script.Rule{
		{When: script.When{Turn: 1}, Answer: script.Answer{Thinking: thought, Text: "I look.", Calls: []script.Call{{ID: "x", Name: "run"}, {ID: "y", Name: "read"}}, Usage: usage}},
		{When: script.When{Turn: 2}, Answer: script.Answer{Redacted: true, Calls: []script.Call{{ID: "z", Name: "run"}}, Usage: usage}},
		{Answer: script.Answer{Thinking: "So it is.", Text: "It is 8080.", Usage: usage}},
	}
}

// answerCalls is the request with the answer and a result for each of its calls. What was
// said has been through the journal in between.
func answerCalls(t *testing.T, request llm.Request, message llm.Message) llm.Request {
	t.Helper()
	data, err := json.Marshal(message)
	if err != nil {
		t.Fatal(err)
	}
	var kept llm.Message
	if err := json.Unmarshal(data, &kept); err != nil {
		t.Fatal(err)
	}
	results := llm.Message{Role: llm.User}
	for _, call := range kept.Calls() {
		results.Parts = append(results.Parts, llm.ResultPart(llm.Result{CallID: call.ID, Name: call.Name, Text: "result of " + call.ID}))
	}
	request.Messages = append(slices.Clone(request.Messages), kept, results)
	return request
}

// reasoningAsked checks the control in the request.
func (s suite) reasoningAsked(t *testing.T) {
	warm := 0.5
	for _, asked := range append(s.features.Reasoning, Asked{Want: s.features.nothing()}) {
		model, player := s.playWith(t, llm.Endpoint{MaxTokens: 10_000, Temperature: &warm, Reasoning: asked.Reasoning}, answer(script.Answer{Text: "ok"}))
		request := ask("go")
		request.MaxTokens = asked.MaxTokens
		mustChat(t, model, request, nil)
		body := player.Records()[0].Body
		for path, want := range asked.Want {
			if got := at(t, body, path); got != want {
				t.Errorf("%+v: %s is %q, want %q", asked.Reasoning, path, got, want)
			}
		}
	}
}

// nothing says that none of the controls is there, and that the temperature is.
func (f Features) nothing() map[string]string {
	want := map[string]string{}
	for _, asked := range f.Reasoning {
		for path := range asked.Want {
			want[path] = ""
		}
	}
	for path := range want {
		if strings.HasSuffix(path, "temperature") {
			want[path] = "0.5"
		}
	}
	return want
}

// at is the JSON at a path of a body, "" if there is none.
func at(t *testing.T, body []byte, path string) string {
	t.Helper()
	for name := range strings.SplitSeq(path, ".") {
		var object map[string]json.RawMessage
		if err := json.Unmarshal(body, &object); err != nil {
			t.Fatalf("%s: %v in %s", path, err, body)
		}
		if body = object[name]; body == nil {
			return ""
		}
	}
	return string(body)
}

// reasoningReturned checks that what the model thought comes back to it as it was, is
// counted once, and is no part of what it said. The scripted server refuses signatures
// that it did not make.
func (s suite) reasoningReturned(t *testing.T) {
	prices := llm.Prices{Input: llm.Unit, Output: 10 * llm.Unit}
	for _, asked := range append(s.features.Reasoning, Asked{}) {
		model, player := s.playWith(t, llm.Endpoint{MaxTokens: 10_000, Prices: prices, Reasoning: asked.Reasoning}, thinkingTurns()...)
		request := withTools(ask("Which port?"))
		for turn, said := range []string{"I look.", "", "It is 8080."} {
			response := mustChat(t, model, request, nil)
			if got := response.Message.Text(); got != said {
				t.Errorf("turn %d says %q, want %q", turn, got, said)
			}
			if want := (llm.Usage{Input: 100, Output: 50, Reasoning: 30}); response.Usage != want {
				t.Errorf("usage %+v, want %+v", response.Usage, want)
			}
			if want := llm.Money(100 + 50*10); response.Cost != want {
				t.Errorf("cost %d, want %d", response.Cost, want)
			}
			request = answerCalls(t, request, response.Message)
		}
		s.checkReturned(t, player)
	}
}

func (s suite) checkReturned(t *testing.T, player *script.Player) {
	t.Helper()
	records := player.Records()
	last := records[len(records)-1].Request
	if len(records) != 3 || len(last.Messages) != 5 {
		t.Fatalf("%d requests, the last with %d messages", len(records), len(last.Messages))
	}
	first, second := thoughts(last.Messages[1]), thoughts(last.Messages[3])
	switch s.features.Thoughts {
	case ThoughtsWhole:
		if len(first) != 1 || first[0].Text != thought || len(second) != 1 {
			t.Errorf("the model got back %+v and %+v", first, second)
		}
	case ThoughtsTold:
		if len(first) != 1 || first[0].Text != thought || len(second) != 0 {
			t.Errorf("the model got back %+v and %+v", first, second)
		}
	case ThoughtsSigned:
		if calls := last.Messages[1].Calls(); string(calls[0].Signature) != "signed run" || len(second) != 1 {
			t.Errorf("the model got back %+v and %+v", calls, second)
		}
	}
}

func thoughts(message llm.Message) []llm.Thinking {
	var all []llm.Thinking
	for _, part := range message.Parts {
		if part.Thinking != nil {
			all = append(all, *part.Thinking)
		}
	}
	return all
}

// reasoningOfOthers checks that no model gets what another one thought, neither of
// another name nor on another server.
func (s suite) reasoningOfOthers(t *testing.T) {
	for _, asked := range append(s.features.Reasoning, Asked{}) {
		endpoint := llm.Endpoint{MaxTokens: 10_000, Reasoning: asked.Reasoning}
		first, _ := s.playWith(t, endpoint, thinkingTurns()...)
		request := withTools(ask("Which port?"))
		request = answerCalls(t, request, mustChat(t, first, request, nil).Message)
		for _, name := range []string{"another", "scripted"} {
			endpoint.Model = name
			other, player := s.playWith(t, endpoint, thinkingTurns()...)
			mustChat(t, other, request, nil)
			record := player.Records()[0]
			if got := thoughts(record.Request.Messages[1]); len(got) > 0 || strings.Contains(string(record.Body), thought) {
				t.Errorf("%s was sent %+v", name, got)
			}
			if got := record.Request.Messages[1].Calls(); strings.Contains(string(got[0].Signature), "signed") {
				t.Errorf("%s was sent the signature %q", name, got[0].Signature)
			}
		}
	}
}

// reasoningAfterChange checks that a conversation goes on whose earlier part was made
// shorter: the server refuses what was thought behind another conversation.
func (s suite) reasoningAfterChange(t *testing.T) {
	for _, asked := range append(s.features.Reasoning, Asked{}) {
		model, _ := s.playWith(t, llm.Endpoint{MaxTokens: 10_000, Reasoning: asked.Reasoning}, thinkingTurns()...)
		request := withTools(ask("Which port? " + strings.Repeat("Look well. ", 10)))
		request = answerCalls(t, request, mustChat(t, model, request, nil).Message)
		request.Messages[0] = llm.UserText("Which port?")
		request = answerCalls(t, request, mustChat(t, model, request, nil).Message)
		mustChat(t, model, request, nil)
	}
}

// reasoningInterrupted checks that a conversation goes on whose calls were made without
// thinking, and one whose thoughts the journal has masked.
func (s suite) reasoningInterrupted(t *testing.T) {
	for _, asked := range append(s.features.Reasoning, Asked{}) {
		model, player := s.playWith(t, llm.Endpoint{MaxTokens: 10_000, Reasoning: asked.Reasoning}, thinkingTurns()...)
		request := withTools(ask("Which port?"))
		made := mustChat(t, model, request, nil).Message
		for _, part := range made.Parts {
			if part.Thinking != nil {
				part.Thinking.Text = strings.ReplaceAll(part.Thinking.Text, "main.go", "[masked]")
			}
		}
		mustChat(t, model, answerCalls(t, request, made), nil)
		if got := string(player.Records()[1].Body); s.features.Thoughts == ThoughtsWhole && strings.Contains(got, "[masked]") {
			t.Errorf("a thought that was changed was sent: %s", got)
		}
		unthought := llm.Message{Role: llm.Assistant, Parts: []llm.Part{llm.CallPart(llm.Call{ID: "q", Name: "run", Arguments: "{}"})}}
		mustChat(t, model, answerCalls(t, request, unthought), nil)
	}
}
