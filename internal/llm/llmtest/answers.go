package llmtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/llm/script"
	"github.com/toryo-dev/toryo/internal/task"
)

func asError(err error, target **llm.Error) bool { return errors.As(err, target) }

func (s suite) text(t *testing.T) {
	const said = "The port is 8080, which the configuration sets in its third line."
	prices := llm.Prices{Input: 3 * llm.Unit, Cached: llm.Unit, Output: 15 * llm.Unit}
	model, player := s.playWith(t, llm.Endpoint{Prices: prices, MaxTokens: 100, ContextLength: 1000},
		answer(script.Answer{Text: said, Usage: &llm.Usage{Input: 1000, Cached: 400, Output: 20}}))
	var streamed strings.Builder
	pieces := 0
	response := mustChat(t, model, ask("Which port?"), func(delta llm.Delta) {
		streamed.WriteString(delta.Text)
		pieces++
	})
	if got := response.Message.Text(); got != said {
		t.Errorf("text %q, want %q", got, said)
	}
	if streamed.String() != said || pieces < 2 {
		t.Errorf("%d pieces came that make %q, want several that make %q", pieces, streamed.String(), said)
	}
	if response.Stop != llm.StopEnd || response.Message.Role != llm.Assistant {
		t.Errorf("stop %q and role %q", response.Stop, response.Message.Role)
	}
	if want := (llm.Usage{Input: 1000, Cached: 400, Output: 20}); response.Usage != want {
		t.Errorf("usage %+v, want %+v", response.Usage, want)
	}
	// 600 fresh at 3, 400 cached at 1 and 20 written at 15 a million.
	if want := llm.Money(600*3 + 400 + 20*15); response.Cost != want {
		t.Errorf("cost %s, want %s", response.Cost, want)
	}
	if !response.Scripted || response.Model != "scripted" {
		t.Errorf("scripted %v, model %q", response.Scripted, response.Model)
	}
	if info := model.Info(); info.ContextLength != 1000 || info.MaxTokens != 100 || info.Prices != prices {
		t.Errorf("info %+v", info)
	}
	if got := player.Records()[0].Request; got.System != "You are tested." || got.Messages[0].Text() != "Which port?" {
		t.Errorf("the model was asked %+v", got)
	}
}

// atHand are images that a test has.
type atHand map[string][]byte

func (a atHand) Image(hash string) []byte { return a[hash] }

func (atHand) Refused(context.Context, error) {}

// images checks that images arrive whole and in their places, after results too; that a model
// which takes none is told so in words; and that a model that writes its calls as text sees them.
func (s suite) images(t *testing.T) {
	model, player := s.play(t, answer(script.Answer{Text: "I see."}))
	data := map[string][]byte{"a": bytes.Repeat([]byte("\x89PNG\x00\xff"), 50_000), "b": []byte("\xff\xd8\xff second")}
	look := llm.Message{Role: llm.User, Parts: []llm.Part{
		llm.ResultPart(llm.Result{CallID: "c1", Name: "read", Text: "content"}),
		llm.TextPart("first:"), llm.ImagePart(llm.Image{Hash: "a", Type: "image/png", Width: 40, Height: 30}),
		llm.TextPart("second:"), llm.ImagePart(llm.Image{Hash: "b", Type: "image/jpeg", Width: 7, Height: 8}),
		llm.TextPart("third:"), llm.ImagePart(llm.Image{Hash: "gone", Type: "image/png", Width: 5, Height: 6}),
	}}
	request := withTools(ask("Look."))
	request.Messages = append(request.Messages, llm.Message{Role: llm.Assistant, Parts: []llm.Part{llm.CallPart(llm.Call{ID: "c1", Name: "read", Arguments: `{"path":"x"}`})}}, look)
	const gone = "[An image of 5×6 pixels (image/png) was here. It is not shown.]"
	for _, c := range []struct {
		layers llm.Layers
		want   string
	}{
		{llm.Layers{Images: true}, "=content|first:|image/png:a|second:|image/jpeg:b|third:|" + gone},
		{llm.Layers{Images: true, TextCalls: true}, "The result of read:|content|first:|image/png:a|second:|image/jpeg:b|third:|" + gone},
		{llm.Layers{}, "=content|first:|[An image of 40×30 pixels (image/png) was here. It is not shown.]|second:|[An image of 7×8 pixels (image/jpeg) was here. It is not shown.]|third:|" + gone},
	} {
		mustChat(t, llm.WithImages(llm.Wrap(model, c.layers), atHand(data)), request, nil)
		records := player.Records()
		messages := records[len(records)-1].Request.Messages
		var got []string
		for _, part := range messages[len(messages)-1].Parts {
			switch {
			case part.Image != nil:
				name := "another"
				for hash, one := range data {
					if bytes.Equal(part.Image.Data, one) {
						name = hash
					}
				}
				got = append(got, part.Image.Type+":"+name)
			case part.Result != nil:
				got = append(got, "="+part.Result.Text)
			default:
				got = append(got, strings.ReplaceAll(part.Text, "\n", "|")) // some formats join texts
			}
		}
		if joined := strings.Join(got, "|"); joined != c.want {
			t.Errorf("%+v: the model was shown\n%s\nwant\n%s", c.layers, joined, c.want)
		}
	}
}

func (s suite) calls(t *testing.T) {
	model, _ := s.play(t, answer(script.Answer{
		Text: "I look.",
		Calls: []script.Call{
			{ID: "a1", Name: "read", Arguments: map[string]any{"path": "日本語/naïve \"x\".go"}},
			{ID: "a2", Name: "run", Arguments: map[string]any{"command": "ls -l\necho ${HOME}"}},
			{ID: "a3", Name: "run"},
		},
	}))
	begun := 0
	response := mustChat(t, model, withTools(ask("go")), func(delta llm.Delta) {
		if delta.CallName != "" {
			begun++
		}
	})
	want := []llm.Call{
		{ID: "a1", Name: "read", Arguments: `{"path":"日本語/naïve \"x\".go"}`},
		{ID: "a2", Name: "run", Arguments: `{"command":"ls -l\necho ${HOME}"}`},
		{ID: "a3", Name: "run", Arguments: `{}`},
	}
	compareCalls(t, response.Message.Calls(), want)
	if response.Stop != llm.StopCalls || response.Message.Text() != "I look." || begun != 3 {
		t.Errorf("stop %q, text %q, %d calls announced", response.Stop, response.Message.Text(), begun)
	}
}

func compareCalls(t *testing.T, got, want []llm.Call) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d calls, want %d: %+v", len(got), len(want), got)
	}
	for i := range want {
		if got[i].ID != want[i].ID || got[i].Name != want[i].Name || got[i].Arguments != want[i].Arguments {
			t.Errorf("call %d is %+v, want %+v", i, got[i], want[i])
		}
	}
}

// conversation has everything that a conversation can have.
func conversation() llm.Request {
	request := withTools(ask("Fix it."))
	request.Pinned = 1
	request.MaxTokens = 77
	request.Messages = append(request.Messages,
		llm.Message{Role: llm.Assistant, Parts: []llm.Part{
			llm.TextPart("I read two files."),
			llm.CallPart(llm.Call{ID: "c1", Name: "read", Arguments: `{"path":"a"}`}),
			llm.CallPart(llm.Call{ID: "c2", Name: "read", Arguments: `{"path":"b"}`}),
		}},
		llm.Message{Role: llm.User, Parts: []llm.Part{
			llm.ResultPart(llm.Result{CallID: "c1", Name: "read", Text: "content of a"}),
			llm.ResultPart(llm.Result{CallID: "c2", Name: "read", Text: "no such file", Error: true}),
			llm.TextPart("A person says: hurry."),
		}},
		AssistantText("Thinking about it."),
		llm.UserText("Go on."),
	)
	return request
}

func (s suite) roundTrip(t *testing.T) {
	model, player := s.play(t, answer(script.Answer{Text: "ok"}))
	sent := conversation()
	mustChat(t, model, sent, nil)
	got := player.Records()[0].Request
	if got.System != sent.System || got.MaxTokens != 77 || len(got.Messages) != len(sent.Messages) {
		t.Fatalf("the model was asked %+v", got)
	}
	if len(got.Tools) != 2 || got.Tools[0].Name != "read" || got.Tools[1].Description != "Runs a command." ||
		!strings.Contains(string(got.Tools[0].Schema), `"required"`) {
		t.Errorf("tools %+v", got.Tools)
	}
	compareCalls(t, got.Messages[1].Calls(), sent.Messages[1].Calls())
	results := got.Messages[2].Results()
	if len(results) != 2 || results[0].Text != "content of a" || results[0].Error || results[1].Name != "read" {
		t.Fatalf("results %+v", results)
	}
	if s.features.ErrorFlag {
		if !results[1].Error || results[1].Text != "no such file" {
			t.Errorf("the error came as %+v", results[1])
		}
	} else if !strings.Contains(results[1].Text, "Error: no such file") {
		t.Errorf("the error came as %+v", results[1])
	}
	if got.Messages[2].Text() != "A person says: hurry." || got.Messages[3].Text() != "Thinking about it." {
		t.Errorf("messages %+v", got.Messages)
	}
}

// stablePrefix checks that a longer conversation begins with the bytes of the
// shorter one, which is what a provider's cache needs.
func (s suite) stablePrefix(t *testing.T) {
	model, player := s.play(t, answer(script.Answer{Text: "ok"}))
	request := conversation()
	for range 3 {
		mustChat(t, model, request, nil)
		request.Messages = append(request.Messages, AssistantText("ok"), llm.UserText("next"))
	}
	records := player.Records()
	for i := 1; i < len(records); i++ {
		before, after := string(records[i-1].Ordered), string(records[i].Ordered)
		before = strings.TrimSuffix(before, "]") // the list goes on
		if !strings.HasPrefix(after, before) {
			at := script.CommonPrefix(before, after)
			t.Errorf("request %d departs from the one before at byte %d of %d: %.80q", i+1, at, len(before), before[at:])
		}
	}
}

func (s suite) invalidArguments(t *testing.T) {
	model, _ := s.play(t,
		script.Rule{When: script.When{Turn: 1}, Answer: script.Answer{Calls: []script.Call{{ID: "x", Name: "read", Raw: `{"path": `}}}},
		answer(script.Answer{Text: "ok"}))
	request := withTools(ask("go"))
	response := mustChat(t, model, request, nil)
	calls := response.Message.Calls()
	if len(calls) != 1 || calls[0].Name != "read" {
		t.Fatalf("calls %+v", calls)
	}
	if s.features.RawArguments && calls[0].Arguments != `{"path": ` {
		t.Errorf("arguments %q, want them as the model wrote them", calls[0].Arguments)
	}
	// The call can go back to the model with an error, whatever it was.
	request.Messages = append(request.Messages, response.Message, llm.Message{Role: llm.User, Parts: []llm.Part{
		llm.ResultPart(llm.Result{CallID: "x", Name: "read", Text: "not JSON", Error: true}),
	}})
	mustChat(t, model, request, nil)
}

func (s suite) thinking(t *testing.T) {
	model, player := s.play(t,
		script.Rule{When: script.When{Turn: 1}, Answer: script.Answer{Thinking: "Let me see where the port is set.", Calls: []script.Call{{ID: "x", Name: "run"}}}},
		answer(script.Answer{Text: "ok"}))
	var thought strings.Builder
	request := withTools(ask("go"))
	response := mustChat(t, model, request, func(delta llm.Delta) { thought.WriteString(delta.Thinking) })
	if thought.String() != "Let me see where the port is set." || response.Message.Text() != "" {
		t.Errorf("thought %q, text %q", thought.String(), response.Message.Text())
	}
	request.Messages = append(request.Messages, response.Message, llm.Message{Role: llm.User, Parts: []llm.Part{
		llm.ResultPart(llm.Result{CallID: "x", Name: "run", Text: "fine"}),
	}})
	mustChat(t, model, request, nil)
	if got := player.Records()[1].Request.Messages[2].Results(); len(got) != 1 {
		t.Errorf("results %+v", got)
	}
	// What another provider's model thought is nobody else's business.
	foreign := llm.Request{Messages: []llm.Message{
		llm.UserText("hello"),
		{Role: llm.Assistant, Parts: []llm.Part{{Thinking: &llm.Thinking{Maker: "elsewhere m", Text: "hm", Data: []byte("{}")}}, llm.TextPart("hi")}},
		llm.UserText("more"),
	}}
	mustChat(t, model, foreign, nil)
	if s.features.Network && strings.Contains(string(player.Records()[2].Body), `hm`) {
		t.Error("another provider's thinking was sent")
	}
}

func (s suite) maxTokens(t *testing.T) {
	model, _ := s.play(t, answer(script.Answer{Text: "cut sho", Stop: "max_tokens"}))
	if got := mustChat(t, model, ask("x"), nil); got.Stop != llm.StopMaxTokens || got.Message.Text() != "cut sho" {
		t.Errorf("got %+v", got)
	}
}

func (s suite) refusal(t *testing.T) {
	model, player := s.play(t, answer(script.Answer{Text: "I will not.", Stop: "refusal"}))
	failed := mustFail(t, model, ask("x"), llm.Refused)
	if failed.Kind.Retry() || task.CodeOf(failed) != task.ProviderError {
		t.Errorf("a refusal is final: %v, code %s", failed, task.CodeOf(failed))
	}
	if !strings.Contains(failed.Error(), "refused") || len(player.Records()) != 1 {
		t.Errorf("%v after %d requests", failed, len(player.Records()))
	}
}

func (s suite) empty(t *testing.T) {
	model, _ := s.play(t, answer(script.Answer{Stop: "end"}))
	if got := mustChat(t, model, ask("x"), nil); !got.Message.Empty() || got.Stop != llm.StopEnd {
		t.Errorf("got %+v", got)
	}
}

func (s suite) megabyte(t *testing.T) {
	long := strings.Repeat("0123456789abcdef", 1<<16)
	model, _ := s.play(t, answer(script.Answer{Text: long}))
	if got := mustChat(t, model, ask("x"), nil); got.Message.Text() != long {
		t.Errorf("%d bytes came back, want %d", len(got.Message.Text()), len(long))
	}
}

func (s suite) manyCalls(t *testing.T) {
	const many = 10_000
	var calls []script.Call
	for i := range many {
		calls = append(calls, script.Call{ID: fmt.Sprintf("c%d", i), Name: "run"})
	}
	model, _ := s.play(t, answer(script.Answer{Calls: calls}))
	got := mustChat(t, model, withTools(ask("x")), nil).Message.Calls()
	if len(got) != many || got[many-1].ID != fmt.Sprintf("c%d", many-1) {
		t.Errorf("%d calls came back, want %d", len(got), many)
	}
}

func (s suite) count(t *testing.T) {
	model, _ := s.play(t, answer(script.Answer{Text: "ok"}))
	count, err := model.CountTokens(context.Background(), conversation())
	if !s.features.Counts {
		if llm.KindOf(err) != llm.CannotCount || task.CodeOf(err) != task.Unsupported {
			t.Errorf("%d, %v: want an error that says that it cannot count", count, err)
		}
		return
	}
	if err != nil || count < 50 {
		t.Fatalf("%d, %v", count, err)
	}
	longer := conversation()
	longer.System += strings.Repeat(" more", 100)
	if more, err := model.CountTokens(context.Background(), longer); err != nil || more <= count {
		t.Errorf("a longer system prompt gives %d after %d, %v", more, count, err)
	}
}

func (s suite) atOnce(t *testing.T) {
	model, _ := s.play(t, script.Rule{When: script.When{LastMatches: `number (\d+)`}, Answer: script.Answer{Text: "You are ${1}."}})
	var group sync.WaitGroup
	for i := range 32 {
		group.Go(func() {
			response, err := model.Chat(context.Background(), ask(fmt.Sprintf("I am number %d", i)), nil)
			if want := fmt.Sprintf("You are %d.", i); err != nil || response.Message.Text() != want {
				t.Errorf("%q, %v, want %q", response.Message.Text(), err, want)
			}
		})
	}
	group.Wait()
}

func (s suite) otherLanguage(t *testing.T) {
	const said = "はい、テストを直します。😀 Готово."
	model, player := s.play(t, answer(script.Answer{Text: said, Calls: []script.Call{{ID: "j", Name: "run", Arguments: map[string]any{"command": "echo 終わり"}}}}))
	got := mustChat(t, model, withTools(ask("テストを直してください")), nil)
	if got.Message.Text() != said || !strings.Contains(got.Message.Calls()[0].Arguments, "終わり") {
		t.Errorf("got %+v", got.Message)
	}
	if asked := player.Records()[0].Request.Messages[0].Text(); asked != "テストを直してください" {
		t.Errorf("asked %q", asked)
	}
}

func (s suite) runsAndPhases(t *testing.T) {
	model, _ := s.play(t,
		script.Rule{Name: "plan", When: script.When{Phase: task.Planning}, Times: 1, Answer: script.Answer{Text: "planned"}},
		script.Rule{Name: "rest", Answer: script.Answer{Text: "rest"}})
	for _, step := range []struct {
		run   string
		phase task.Phase
		want  string
	}{
		{"one", task.Execution, "rest"}, {"one", task.Planning, "planned"}, {"one", task.Planning, "rest"}, {"two", task.Planning, "planned"},
	} {
		request := ask("x")
		request.Run, request.Phase = step.run, step.phase
		if got := mustChat(t, model, request, nil).Message.Text(); got != step.want {
			t.Errorf("run %s in %s gives %q, want %q", step.run, step.phase, got, step.want)
		}
	}
}

func (s suite) textCalls(t *testing.T) {
	model, player := s.play(t,
		script.Rule{When: script.When{Turn: 1}, Answer: script.Answer{Text: "I look.\n```tool_calls\n[{'name': 'read', 'arguments': {'path': 'go.mod',}}]\n```"}},
		script.Rule{When: script.When{Last: "module x"}, Answer: script.Answer{Text: "Done."}})
	driven := llm.TextCalls(model)
	request := withTools(ask("go"))
	response := mustChat(t, driven, request, nil)
	calls := response.Message.Calls()
	if len(calls) != 1 || calls[0].Name != "read" || calls[0].Arguments != `{"path":"go.mod"}` || response.Stop != llm.StopCalls {
		t.Fatalf("got %+v, %s", response.Message, response.Stop)
	}
	if response.Message.Text() != "I look." {
		t.Errorf("text %q", response.Message.Text())
	}
	request.Messages = append(request.Messages, response.Message, llm.Message{Role: llm.User, Parts: []llm.Part{
		llm.ResultPart(llm.Result{CallID: calls[0].ID, Name: "read", Text: "module x"}),
	}})
	if got := mustChat(t, driven, request, nil); got.Message.Text() != "Done." {
		t.Errorf("got %+v", got.Message)
	}
	for _, record := range player.Records() {
		if len(record.Request.Tools) > 0 || !strings.Contains(record.Request.System, "Reads a file.") {
			t.Errorf("the tools are not in the text: %+v", record.Request)
		}
	}
}
