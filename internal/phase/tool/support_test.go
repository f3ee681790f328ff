package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/phase/tool"
)

// shell runs commands in a directory of this machine, without a sandbox.
type shell struct {
	dir  string
	fail error
}

func (s shell) Run(ctx context.Context, command tool.Command, output io.Writer) (tool.Exit, error) {
	if s.fail != nil {
		return tool.Exit{}, s.fail
	}
	limited, cancel := context.WithTimeout(ctx, command.Timeout)
	defer cancel()
	program := exec.CommandContext(limited, "bash", "-c", command.Line)
	program.Dir, program.Stdout, program.Stderr = s.dir, output, output
	program.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	program.Cancel = func() error { return syscall.Kill(-program.Process.Pid, syscall.SIGKILL) }
	err := program.Run()
	if limited.Err() != nil {
		return tool.Exit{Code: -1, TimedOut: true}, ctx.Err()
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return tool.Exit{Code: exit.ExitCode()}, nil
	}
	return tool.Exit{}, err
}

// workspace makes a workspace with these files.
func workspace(t testing.TB, files map[string]string) (tool.Workspace, string) {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	opened, err := tool.OpenDirectory(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = opened.Close() })
	return tool.Workspace{Files: opened, Runner: shell{dir: dir}, Mount: "/workspace"}, dir
}

// use calls one tool with arguments given as an object.
func use(t *testing.T, subject tool.Tool, arguments map[string]any) tool.Done {
	t.Helper()
	data, err := json.Marshal(arguments)
	if err != nil {
		t.Fatal(err)
	}
	return useRaw(t, subject, string(data))
}

func useRaw(t *testing.T, subject tool.Tool, arguments string) tool.Done {
	t.Helper()
	box, err := tool.NewBox(subject)
	if err != nil {
		t.Fatal(err)
	}
	done, err := box.Execute(t.Context(), []llm.Call{{ID: "1", Name: subject.Definition().Name, Arguments: arguments}})
	if err != nil || len(done) != 1 || done[0].Result.CallID != "1" {
		t.Fatalf("%+v, %v", done, err)
	}
	return done[0]
}

func wantText(t *testing.T, done tool.Done, failed bool, parts ...string) {
	t.Helper()
	if done.Result.Error != failed {
		t.Errorf("error %v, want %v: %s", done.Result.Error, failed, tool.Shorten(done.Result.Text, 2000))
	}
	for _, part := range parts {
		if !strings.Contains(done.Result.Text, part) {
			t.Errorf("%q is not in\n%s", part, tool.Shorten(done.Result.Text, 2000))
		}
	}
}

func content(t *testing.T, dir, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
