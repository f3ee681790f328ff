package script_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/llm/llmtest"
	"github.com/toryo-dev/toryo/internal/llm/script"
	"github.com/toryo-dev/toryo/internal/task"
)

const whole = `# everything that a script can say
model: demo
rules:
  - name: plan
    when: {phase: planning, system: Toryo, last: failing, last_matches: 'port (\d+)', turn: 1}
    times: 1
    answer:
      thinking: Let me see.
      text: The port is ${1} in turn ${turn}, and costs $$5.
      calls:
        - {name: read, arguments: {path: "${1}.txt", deep: {list: ["a ${1}"]}}}
        - {name: read, raw: '{"path": ', id: x1}
      stop: calls
      delay: 1ms
      pace: 1ms
      usage: {input: 10, cached: 4, output: 5}
  - name: result
    when: {tool: read, failed: true}
    answer:
      error: {status: 429, type: rate_limit_error, message: slow, retry_after: 2s}
  - name: broken
    when: {last: cut}
    answer: {text: this is long enough for several pieces, cut: 2}
  - name: rest
    answer: {text: Done.}
`

func TestParseWhole(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "demo.yaml")
	if err := os.WriteFile(file, []byte(whole), 0o600); err != nil {
		t.Fatal(err)
	}
	loaded, err := script.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	model := script.NewModel(loaded, llm.Endpoint{})
	request := llm.Request{System: "I am Toryo.", Phase: task.Planning, Messages: []llm.Message{llm.UserText("failing on port 8080")}}
	response, err := model.Chat(t.Context(), request, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := response.Message.Text(); got != "The port is 8080 in turn 1, and costs $5." {
		t.Errorf("text %q", got)
	}
	calls := response.Message.Calls()
	if len(calls) != 2 || calls[0].Arguments != `{"deep":{"list":["a 8080"]},"path":"8080.txt"}` || calls[0].ID == "" ||
		calls[1].Arguments != `{"path": ` || calls[1].ID != "x1" {
		t.Errorf("calls %+v", calls)
	}
	if response.Usage != (llm.Usage{Input: 10, Cached: 4, Output: 5}) || !model.Info().Scripted {
		t.Errorf("usage %+v", response.Usage)
	}
	// The same request again: the rule is used up.
	if response, err = model.Chat(t.Context(), request, nil); err != nil || response.Message.Text() != "Done." {
		t.Errorf("%+v, %v", response.Message, err)
	}
	records := model.Records()
	if len(records) != 2 || records[0].Rule != "plan" || records[1].Rule != "rest" || records[0].Wire != "direct" {
		t.Errorf("records %+v", records)
	}
}

func TestParseToolResult(t *testing.T) {
	t.Parallel()
	parsed, err := script.Parse("x.yaml", []byte(whole))
	if err != nil {
		t.Fatal(err)
	}
	model := script.NewModel(parsed, llm.Endpoint{})
	for failed, want := range map[bool]llm.Kind{true: llm.RateLimited, false: ""} {
		_, err := model.Chat(t.Context(), llm.Request{Messages: []llm.Message{
			llm.UserText("go"),
			{Role: llm.Assistant, Parts: []llm.Part{llm.CallPart(llm.Call{ID: "a", Name: "read"})}},
			{Role: llm.User, Parts: []llm.Part{llm.ResultPart(llm.Result{CallID: "a", Name: "read", Text: "t", Error: failed})}},
		}}, nil)
		if llm.KindOf(err) != want {
			t.Errorf("failed %v: %v", failed, err)
		}
	}
}

func TestParseSaysWhereAndWhat(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"not YAML":        {"rules: [", []string{"s.yaml:1:"}},
		"unknown key":     {"rules:\n  - answer:\n      txt: x\n", []string{"s.yaml:3:", "txt"}},
		"wrong type":      {"rules:\n  - times: many\n    answer: {text: x}\n", []string{"s.yaml:2:"}},
		"bad duration":    {"rules:\n  - answer:\n      text: x\n      delay: soon\n", []string{"s.yaml:4:"}},
		"no rules":        {"model: x\n", []string{"there are no rules"}},
		"empty answer":    {"rules:\n  - name: a\n    answer: {delay: 1s}\n", []string{"s.yaml:3: rules[0].answer: answers nothing"}},
		"bad expression":  {"rules:\n  - when:\n      last_matches: '('\n    answer: {text: x}\n", []string{"s.yaml:3: rules[0].when.last_matches:", "missing closing )"}},
		"unknown phase":   {"rules:\n  - when:\n      phase: dreaming\n    answer: {text: x}\n", []string{`s.yaml:3: rules[0].when.phase: there is no phase "dreaming"`}},
		"bad stop":        {"rules:\n  - answer:\n      text: x\n      stop: never\n", []string{"s.yaml:4: rules[0].answer.stop"}},
		"bad status":      {"rules:\n  - answer:\n      error: {status: 200}\n", []string{"s.yaml:3: rules[0].answer.error.status: 200 is not an HTTP error"}},
		"call, no name":   {"rules:\n  - answer:\n      calls:\n        - {arguments: {}}\n", []string{"s.yaml:4: rules[0].answer.calls[0]: the call has no name"}},
		"raw and object":  {"rules:\n  - answer:\n      calls:\n        - {name: a, raw: x, arguments: {}}\n", []string{"s.yaml:4:", "both set"}},
		"same name":       {"rules:\n  - {name: a, answer: {text: x}}\n  - {name: a, answer: {text: y}}\n", []string{`s.yaml:3: rules[1].name: "a" is the name of rule 1 already`}},
		"negative":        {"rules:\n  - times: -1\n    answer:\n      text: x\n      cut: -2\n", []string{"s.yaml:2: rules[0].times: is negative", "s.yaml:5: rules[0].answer.cut: is negative"}},
		"failed, no tool": {"rules:\n  - when:\n      failed: true\n    answer: {text: x}\n", []string{"s.yaml:3: rules[0].when.failed: needs tool beside it"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := script.Parse("s.yaml", []byte(c.text))
			var wrong *script.ProblemsError
			if !errors.As(err, &wrong) || task.CodeOf(err) != task.BadConfig {
				t.Fatalf("%v, want problems with the code bad_config", err)
			}
			for _, want := range c.want {
				if all := strings.Join(wrong.List, "\n"); !strings.Contains(all, want) {
					t.Errorf("%q does not have %q", all, want)
				}
			}
			if strings.Contains(err.Error(), "\n") || len(wrong.List) > 1 && !strings.HasSuffix(err.Error(), `; "toryo script check s.yaml" shows this and 1 more`) {
				t.Errorf("the error is %q", err)
			}
		})
	}
	if _, err := script.Load("/nonexistent"); task.CodeOf(err) != task.NotFound {
		t.Errorf("%v", err)
	}
}

func TestNoRuleHolds(t *testing.T) {
	t.Parallel()
	parsed, err := script.Parse("x.yaml", []byte("rules:\n  - when: {last: a}\n    answer: {text: x}\n"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = script.NewModel(parsed, llm.Endpoint{}).Chat(t.Context(), llm.Request{Messages: []llm.Message{llm.UserText("b")}}, nil)
	if llm.KindOf(err) != llm.BadRequest || !strings.Contains(err.Error(), `no rule of the script holds for turn 1 in phase "" whose last message is "b"`) {
		t.Errorf("got %v", err)
	}
}

func TestUsagePlaysTheCache(t *testing.T) {
	t.Parallel()
	made, err := script.New(script.Script{Rules: []script.Rule{{Answer: script.Answer{Text: "ok"}}}})
	if err != nil {
		t.Fatal(err)
	}
	model := script.NewModel(made, llm.Endpoint{})
	request := llm.Request{System: strings.Repeat("long ", 1000), Messages: []llm.Message{llm.UserText("a")}}
	first, err := model.Chat(t.Context(), request, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Messages = append(request.Messages, llmtest.AssistantText("ok"), llm.UserText("b"))
	second, err := model.Chat(t.Context(), request, nil)
	if err != nil {
		t.Fatal(err)
	}
	if first.Usage.Cached != 0 || second.Usage.Cached < first.Usage.Input*9/10 || second.Usage.Cached > second.Usage.Input {
		t.Errorf("first %+v, second %+v", first.Usage, second.Usage)
	}
}

func TestServe(t *testing.T) {
	t.Parallel()
	parsed, err := script.Parse("s.yaml", []byte(whole))
	if err != nil {
		t.Fatal(err)
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- script.Serve(ctx, parsed, listener) }()
	url := "http://" + listener.Addr().String()
	for path, body := range map[string]string{
		"/v1/messages":                     `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`,
		"/v1/chat/completions":             `{"model":"m","messages":[{"role":"user","content":"hi"}]}`,
		"/v1/responses":                    `{"model":"m","input":"hi"}`,
		"/v1beta/models/m:generateContent": `{"contents":[{"parts":[{"text":"hi"}]}]}`,
	} {
		status, answer := post(t, url+path, body)
		if status != 200 || !strings.Contains(answer, "Done.") {
			t.Errorf("%s: %d %s", path, status, answer)
		}
		if status, answer := post(t, url+path, "{"); status != 400 || !strings.Contains(answer, "not JSON") {
			t.Errorf("%s with broken JSON: %d %s", path, status, answer)
		}
	}
	if status, _ := post(t, url+"/v1beta/models/m:fly", "{}"); status != 404 {
		t.Errorf("an unknown method gives %d", status)
	}
	stop()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("Serve: %v", err)
		}
	case <-time.After(30 * time.Second):
		t.Error("the server does not stop")
	}
}
