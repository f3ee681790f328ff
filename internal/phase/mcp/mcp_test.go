package mcp_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/phase/mcp"
	"github.com/toryo-dev/toryo/internal/phase/tool"
	"github.com/toryo-dev/toryo/internal/task"
)

// asServer makes the test program serve MCP on its standard input and output.
const asServer = "TORYO_TEST_MCP_SERVER"

func TestMain(m *testing.M) {
	if os.Getenv(asServer) != "" {
		if err := newServer().Run(context.Background(), &sdk.StdioTransport{}); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		return
	}
	os.Exit(m.Run())
}

type say struct {
	Text string `json:"text"`
}

// newServer is a real server with tools that behave well and badly.
func newServer() *sdk.Server {
	server := sdk.NewServer(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	text := func(text string) *sdk.CallToolResult {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}
	}
	add := func(name, about string, readOnly bool, handle func(ctx context.Context, in say) (*sdk.CallToolResult, error)) {
		sdk.AddTool(server, &sdk.Tool{Name: name, Description: about, Annotations: &sdk.ToolAnnotations{ReadOnlyHint: readOnly}},
			func(ctx context.Context, _ *sdk.CallToolRequest, in say) (*sdk.CallToolResult, any, error) {
				result, err := handle(ctx, in)
				return result, nil, err
			})
	}
	calls := 0
	add("echo", "Says it again. "+strings.Repeat("long ", 1000), true, func(_ context.Context, in say) (*sdk.CallToolResult, error) {
		calls++
		return text(fmt.Sprintf("%s, call %d of process %d, token %q, path %v", in.Text, calls, os.Getpid(), os.Getenv("TOKEN"), os.Getenv("HOME"))), nil
	})
	add("fail", "Fails.", false, func(context.Context, say) (*sdk.CallToolResult, error) { return nil, errors.New("it failed") })
	add("hang", "Hangs.", false, func(ctx context.Context, _ say) (*sdk.CallToolResult, error) { <-ctx.Done(); return nil, ctx.Err() })
	add("die", "Dies.", false, func(context.Context, say) (*sdk.CallToolResult, error) {
		return nil, syscall.Kill(os.Getpid(), syscall.SIGKILL)
	})
	add("big", "Says much.", false, func(context.Context, say) (*sdk.CallToolResult, error) {
		return text(strings.Repeat("much ", 200_000)), nil
	})
	add("picture", "Shows.", false, func(context.Context, say) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.ImageContent{MIMEType: "image/png", Data: []byte("abc")}}}, nil
	})
	return server
}

func stdio(name string) mcp.Server {
	return mcp.Server{Name: name, Command: []string{os.Args[0]}, Environment: map[string]string{asServer: "1", "TOKEN": "given"}, OnHost: true}
}

func overHTTP(t *testing.T, name string) mcp.Server {
	t.Helper()
	server := newServer()
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil)
	listening := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer given" {
			http.Error(w, "no token", http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(listening.Close)
	return mcp.Server{Name: name, URL: listening.URL, Headers: map[string]string{"Authorization": "Bearer given"}}
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func connect(t *testing.T, servers ...mcp.Server) (*mcp.Connections, error) {
	t.Helper()
	connections, err := mcp.Connect(t.Context(), servers, mcp.Launchers{Host: mcp.Host{}}, quiet())
	t.Cleanup(func() {
		if err := connections.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return connections, err
}

func use(t *testing.T, connections *mcp.Connections, name, arguments string) tool.Done {
	t.Helper()
	box, err := tool.NewBox(connections.Tools()...)
	if err != nil {
		t.Fatal(err)
	}
	done, err := box.Execute(t.Context(), []llm.Call{{ID: "1", Name: name, Arguments: arguments}})
	if err != nil {
		t.Fatal(err)
	}
	return done[0]
}

func TestToolsOfServers(t *testing.T) {
	t.Parallel()
	for _, server := range []mcp.Server{stdio("my server"), overHTTP(t, "my server")} {
		kind := "stdio"
		if server.URL != "" {
			kind = "http"
		}
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			connections, err := connect(t, server)
			if err != nil || len(connections.Tools()) != 6 {
				t.Fatalf("%d tools, %v", len(connections.Tools()), err)
			}
			for _, found := range connections.Tools() {
				definition := found.Definition()
				if !strings.HasPrefix(definition.Name, "mcp_my_server_") || len(definition.Description) > 1700 {
					t.Errorf("%s: %d bytes", definition.Name, len(definition.Description))
				}
				if found.ReadOnly() != (definition.Name == "mcp_my_server_echo") {
					t.Errorf("%s is read-only: %v", definition.Name, found.ReadOnly())
				}
			}
			first, second := use(t, connections, "mcp_my_server_echo", `{"text":"hi"}`), use(t, connections, "mcp_my_server_echo", `{"text":"hi"}`)
			if !strings.Contains(first.Result.Text, "hi, call 1") || !strings.Contains(second.Result.Text, "hi, call 2") || first.Result.Error {
				t.Errorf("it is not the same server: %s\n%s", first.Result.Text, second.Result.Text)
			}
			if !strings.Contains(first.Result.Text, `<untrusted source="MCP server my server">`) {
				t.Errorf("the result is not quoted: %s", first.Result.Text)
			}
			for name, want := range map[string]string{
				"fail": "it failed", "picture": "[an image, image/png, 3 bytes]", "big": "are left out here", "none": "there is no tool",
			} {
				done := use(t, connections, "mcp_my_server_"+name, `{"text":""}`)
				if !strings.Contains(done.Result.Text, want) || len(done.Result.Text) > 20_000 || done.Result.Error != (name == "fail" || name == "none") {
					t.Errorf("%s: %.300s", name, done.Result.Text)
				}
			}
			if done := use(t, connections, "mcp_my_server_echo", `{"text":5}`); !done.Result.Error {
				t.Errorf("arguments that do not fit: %s", done.Result.Text)
			}
		})
	}
}

func TestOnlyTheConfiguredEnvironmentIsGiven(t *testing.T) {
	t.Setenv("HOME", "/home/of/the/agent")
	connections, err := connect(t, stdio("s"))
	if err != nil {
		t.Fatal(err)
	}
	text := use(t, connections, "mcp_s_echo", `{"text":"x"}`).Result.Text
	if !strings.Contains(text, `token "given"`) || strings.Contains(text, "/home/of/the/agent") {
		t.Errorf("got %s", text)
	}
}

func TestAServerThatHangsOrDies(t *testing.T) {
	t.Parallel()
	slow := stdio("s")
	slow.Timeout = 15 * time.Second // also for its start
	connections, err := connect(t, slow)
	if err != nil {
		t.Fatal(err)
	}
	if done := use(t, connections, "mcp_s_hang", `{"text":""}`); !done.Result.Error || !strings.Contains(done.Result.Text, "did not answer within 15s") {
		t.Errorf("hang: %s", done.Result.Text)
	}
	if done := use(t, connections, "mcp_s_die", `{"text":""}`); !done.Result.Error {
		t.Errorf("die: %s", done.Result.Text)
	}
	// The next call has a new server.
	if done := use(t, connections, "mcp_s_echo", `{"text":"back"}`); done.Result.Error || !strings.Contains(done.Result.Text, "back, call 1") {
		t.Errorf("after its death: %s", done.Result.Text)
	}
}

func TestAStoppedRunIsAnErrorOfTheRun(t *testing.T) {
	t.Parallel()
	connections, err := connect(t, stdio("s"))
	if err != nil {
		t.Fatal(err)
	}
	box, err := tool.NewBox(connections.Tools()...)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	if _, err := box.Execute(ctx, []llm.Call{{ID: "1", Name: "mcp_s_hang", Arguments: `{"text":""}`}}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestServersThatCannotBeHadAreLeftOut(t *testing.T) {
	t.Parallel()
	inSandbox := stdio("inside")
	inSandbox.OnHost = false
	wrongToken := overHTTP(t, "token")
	wrongToken.Headers = nil
	mute := mcp.Server{Name: "mute", Command: []string{"sleep", "600"}, OnHost: true, Timeout: 200 * time.Millisecond}
	connections, err := connect(t, mcp.Server{Name: "missing", Command: []string{"/nonexistent"}, OnHost: true}, inSandbox, wrongToken, mute,
		mcp.Server{}, mcp.Server{Name: "both", URL: "x", Command: []string{"y"}}, stdio("good"))
	if len(connections.Tools()) != 6 {
		t.Errorf("%d tools, want those of the good one", len(connections.Tools()))
	}
	for _, want := range []string{"missing", "inside", "token", "mute", "has no name", "both: give either"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
	if task.CodeOf(mcp.Server{}.Validate()) != task.BadConfig {
		t.Error("a bad entry is not a bad configuration")
	}
}

// sandbox launches on the host and notes that it was used.
type sandbox struct{ used chan []string }

func (s sandbox) Launch(ctx context.Context, command []string, environment map[string]string) (mcp.Process, error) {
	s.used <- command
	return mcp.Host{}.Launch(ctx, command, environment)
}

func TestCommandsRunInTheSandbox(t *testing.T) {
	t.Parallel()
	server := stdio("s")
	server.OnHost = false
	used := sandbox{make(chan []string, 1)}
	connections, err := mcp.Connect(t.Context(), []mcp.Server{server}, mcp.Launchers{Sandbox: used}, quiet())
	if err != nil || len(<-used.used) != 1 {
		t.Fatal(err)
	}
	if err := connections.Close(); err != nil {
		t.Fatal(err)
	}
	if done := use(t, connections, "mcp_s_echo", `{"text":"x"}`); !done.Result.Error {
		t.Errorf("a closed server answers: %s", done.Result.Text)
	}
}

func TestNamesAreUnique(t *testing.T) {
	t.Parallel()
	connections, err := connect(t, stdio("a b"), stdio("a!b"), stdio(strings.Repeat("long", 40)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tool.NewBox(connections.Tools()...); err != nil {
		t.Error(err)
	}
	for _, found := range connections.Tools() {
		if len(found.Definition().Name) > 64 {
			t.Errorf("%s is too long", found.Definition().Name)
		}
	}
}
