package program

import (
	"bufio"
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/llm/ledger"
	"github.com/toryo-dev/toryo/internal/store/sqlite"
)

const served = `model: demo
rules:
  - name: call
    when: {last: look}
    answer: {text: I look., calls: [{name: read, arguments: {path: go.mod}}], usage: {input: 100, output: 20}}
  - name: in text
    when: {system: tool_calls}
    answer: {text: "I look.\n` + "```tool_calls\\n[{\\\"name\\\": \\\"read\\\", \\\"arguments\\\": {\\\"path\\\": \\\"go.mod\\\"}}]\\n```" + `"}
  - name: rest
    answer: {text: Hello.}
`

// serveScript starts the program as a user does and returns where it listens. It
// ends with the test, by SIGTERM.
func serveScript(t *testing.T, text string) (url string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "script.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(context.WithoutCancel(t.Context()), "toryo", "script", "serve", "--addr", "127.0.0.1:0", file)
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	command.Stderr = os.Stderr
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "listening on http://127.0.0.1:") {
		t.Fatalf("it says %q, %v", line, err)
	}
	t.Cleanup(func() {
		if err := command.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if err := command.Wait(); err != nil {
			t.Errorf("on SIGTERM it ends with %v", err)
		}
	})
	return strings.TrimSpace(strings.TrimPrefix(line, "listening on "))
}

// TestEveryProviderOfTheConfiguration makes each model from a configuration file
// and talks through it to the program's own server of scripts: the text, a tool
// call, what it cost, and the budget that is settled with it.
func TestEveryProviderOfTheConfiguration(t *testing.T) {
	t.Parallel()
	url := serveScript(t, served)
	for name, section := range map[string]string{
		"anthropic": "provider: anthropic, base_url: '" + url + "'",
		"chat":      "provider: openai, base_url: '" + url + "/v1'",
		"responses": "provider: openai, api: responses, base_url: '" + url + "/v1'",
		"gemini":    "provider: gemini, base_url: '" + url + "'",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			file := filepath.Join(folder, "toryo.yaml")
			text := "llm: {" + section + ", model: m, max_tokens: 50, context_length: 4096, prices: {input: 1, output: 10}}\n" +
				"llm_overrides:\n  planning: {function_calling: false}\nbudget: {day_tokens: 2000}\n"
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			c, report := config.Load(file, nil, nil)
			if err := report.Err(); err != nil {
				t.Fatal(err)
			}
			database, err := sqlite.Open(t.Context(), filepath.Join(folder, "toryo.db"))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = database.Close() }()
			books := ledger.Ledger{Store: database, Limits: site.LimitsOf(c.Budget), Now: time.Now}
			made, err := site.NewModels(c, books, new(llm.Outages), slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			model, err := made.Model(llm.Account{})
			if err != nil {
				t.Fatal(err)
			}
			if info := model.Info(); info.ContextLength != 4096 || info.MaxTokens != 50 {
				t.Errorf("the model is %+v", info)
			}
			tools := []llm.Tool{{Name: "read", Description: "Read a file.", Schema: []byte(`{"type":"object","properties":{"path":{"type":"string"}}}`)}}
			response, err := model.Chat(t.Context(), llm.Request{Tools: tools, Messages: []llm.Message{llm.UserText("look")}}, nil)
			if err != nil || response.Message.Text() != "I look." || !response.Scripted || response.Cost != 300 {
				t.Fatalf("%+v, %v", response, err)
			}
			wantCall(t, response)
			if _, ofDay, err := books.Spent(t.Context(), ""); err != nil || ofDay != (llm.Amount{Tokens: 120, Money: 300}) {
				t.Errorf("the books say %+v, %v", ofDay, err)
			}
			inText, err := made.Model(llm.Account{}, "BACKENDCODER", "planning")
			if err != nil {
				t.Fatal(err)
			}
			response, err = inText.Chat(t.Context(), llm.Request{Tools: tools, Messages: []llm.Message{llm.UserText("go")}}, nil)
			if err != nil {
				t.Fatal(err)
			}
			wantCall(t, response)
			if _, err := model.Chat(t.Context(), llm.Request{MaxTokens: 1900, Messages: []llm.Message{llm.UserText("hi")}}, nil); llm.KindOf(err) != llm.BudgetExhausted {
				t.Errorf("%v, want the budget to be used up", err)
			}
		})
	}
}

func wantCall(t *testing.T, response llm.Response) {
	t.Helper()
	calls := response.Message.Calls()
	if len(calls) != 1 || calls[0].Name != "read" || !strings.Contains(calls[0].Arguments, "go.mod") {
		t.Errorf("the model calls %+v and says %q", calls, response.Message.Text())
	}
}
