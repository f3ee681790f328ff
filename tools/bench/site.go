package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/toryo-dev/toryo/internal/lifecycle"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// site is a server and an agent, each a process of its own, with the board and a
// scripted model.
type site struct {
	program, dir string
	address      string
	token        string // of an operator, who is also a person on the board
	client       *wire.Client
	server       *exec.Cmd
	agent        *exec.Cmd
	tasks        int // the agent works on so many at a time
}

const (
	siteRepository = "bench/app"
	// patience is how long we wait for anything to happen.
	patience = 3 * time.Minute
)

// What the model does in execution: it waits for a command that does not end, and
// for the same again when it was interrupted; or it takes small steps that lead
// nowhere.
var (
	longCommand = `{name: run, arguments: {command: "sleep ` + longTime + `", timeout_seconds: 900}}`
	smallSteps  = `{name: run, arguments: {command: "sleep 0.1; echo ${turn}"}}`
)

// longTime is how long the command takes, by which it is told from those of others.
var longTime = fmt.Sprintf("600.%d", os.Getpid())

// siteScript is what the model answers; what it does in execution is put in.
const siteScript = `rules:
  - when: {phase: pre_planning}
    answer: {text: '{"goal": "wait"}'}
  - when: {phase: planning}
    answer:
      text: |
        {"goal_understanding": {"goal": "wait"},
         "task_decomposition": {"subtasks": [{"id": "t1", "description": "wait"}]},
         "action_plan": {"actions": [{"id": "a1", "subtask": "t1", "what": "wait"}]},
         "selected_environment": {"name": "python", "reason": "none", "detected_files": [],
           "setup_commands": ["true"], "verification": [{"command": "echo OK", "expected_output": "OK"}]}}
  - when: {phase: reflection}
    answer: {text: '{"assessment": "good", "decision": "continue", "advice": "go on"}'}
  - when: {phase: execution}
    answer: {calls: [%s]}
`

// newSite starts the server and puts a repository on its board.
func newSite(ctx context.Context, folder, name, work string) (*site, error) {
	s := &site{program: filepath.Join(folder, "toryo"), dir: filepath.Join(folder, name), tasks: 1}
	if err := os.Mkdir(s.dir, 0o700); err != nil {
		return nil, err
	}
	script := filepath.Join(s.dir, "script.yaml")
	settings := "log: {level: warn}\nserver: {requests_per_token: 0, requests_per_address: 0}\nlanguage: en\nsandbox: {kind: bubblewrap}\nllm: {provider: script, script: " + script + "}\n"
	if err := errors.Join(os.WriteFile(script, fmt.Appendf(nil, siteScript, work), 0o600), os.WriteFile(filepath.Join(s.dir, "toryo.yaml"), []byte(settings), 0o600)); err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it is at once
	if err != nil {
		return nil, err
	}
	s.address = listener.Addr().String() // which is kept over restarts
	if err := errors.Join(listener.Close(), s.startServer(ctx), s.fillBoard(ctx)); err != nil {
		return nil, errors.Join(err, s.close())
	}
	token, err := s.toryo(ctx, "token", "create", "--role", "admin", "--name", "bench")
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	s.token = strings.TrimSpace(token)
	s.client = &wire.Client{Server: "http://" + s.address, Token: s.token, HTTP: new(http.Client)}
	return s, nil
}

func (s *site) fillBoard(ctx context.Context) error {
	project := filepath.Join(s.dir, "app")
	if err := errors.Join(os.Mkdir(project, 0o700), os.WriteFile(filepath.Join(project, "README.md"), []byte("# Wait\n"), 0o600)); err != nil {
		return err
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "."}, {"-c", "user.name=b", "-c", "user.email=b@localhost", "commit", "-q", "-m", "Begin"}} {
		git := exec.CommandContext(ctx, "git", args...)
		git.Dir = project
		if said, err := git.CombinedOutput(); err != nil {
			return fmt.Errorf("git %s: %w: %s", args[0], err, said)
		}
	}
	_, imported := s.toryo(ctx, "board", "import", project, "--name", siteRepository)
	_, added := s.toryo(ctx, "board", "user", "add", "bench", "--access", "admin")
	return errors.Join(imported, added)
}

// toryo runs a command beside the server, on the same data.
func (s *site) toryo(ctx context.Context, args ...string) (string, error) {
	command := exec.CommandContext(ctx, s.program, append(args, "--data", filepath.Join(s.dir, "server"))...)
	command.Dir = s.dir
	var trouble bytes.Buffer
	command.Stderr = &trouble
	said, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("toryo %s: %w: %s", strings.Join(args, " "), err, trouble.String())
	}
	return string(said), nil
}

func (s *site) startServer(ctx context.Context) (err error) {
	s.server, err = s.start(ctx, "listening on", "serve", "--addr", s.address, "--data", filepath.Join(s.dir, "server"))
	return err
}

// startAgent starts the agent, which enrols the first time.
func (s *site) startAgent(ctx context.Context) error {
	oneTime, err := s.toryo(ctx, "agent", "token", "create")
	if err != nil {
		return err
	}
	s.agent, err = s.start(ctx, "asks", "agent", "--server", "http://"+s.address, "--name", "bench", "--parallel", fmt.Sprint(s.tasks),
		"--enrol", strings.TrimSpace(oneTime), "--data", filepath.Join(s.dir, "agent"))
	return err
}

// start runs a process until it says that it is ready.
func (s *site) start(ctx context.Context, ready string, args ...string) (*exec.Cmd, error) {
	command := exec.CommandContext(ctx, s.program, args...)
	command.Dir, command.Stderr = s.dir, os.Stderr
	output, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		if strings.Contains(lines.Text(), ready) {
			go func() { _, _ = io.Copy(io.Discard, output) }() // it ends with the process
			return command, nil
		}
	}
	return nil, errors.Join(fmt.Errorf("toryo %s did not get ready", args[0]), command.Wait())
}

// kill ends a process without a warning.
func kill(process *exec.Cmd) error {
	if err := process.Process.Kill(); err != nil {
		return err
	}
	_ = process.Wait() // it says that it was killed
	return nil
}

func (s *site) close() error {
	var failed []error
	for _, process := range []*exec.Cmd{s.agent, s.server} {
		if process == nil || process.ProcessState != nil {
			continue
		}
		failed = append(failed, process.Process.Signal(syscall.SIGTERM), process.Wait())
	}
	return errors.Join(failed...)
}

// board asks the server's board for something.
func (s *site) board(ctx context.Context, method, path string, body, into any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, method, "http://"+s.address+"/api/board/repositories/"+siteRepository+path, bytes.NewReader(data))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+s.token)
	request.Header.Set("Content-Type", "application/json")
	client := http.Client{Timeout: time.Minute}
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	said, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode >= http.StatusMultipleChoices {
		err = fmt.Errorf("%s %s: %s: %s", method, path, answer.Status, said)
	}
	if err == nil && into != nil {
		err = json.Unmarshal(said, into)
	}
	return err
}

// job is one task.
type job struct {
	number int64
	id     task.ID
}

func (j job) path() string { return fmt.Sprintf("/issues/%d", j.number) }

// begin opens an issue for the bot and waits until there is a task.
func (s *site) begin(ctx context.Context, title string) (job, error) {
	var item wire.BoardItem
	if err := s.board(ctx, http.MethodPost, "/issues", wire.NewBoardIssue{Title: title, Assignees: []string{"toryo"}}, &item); err != nil {
		return job{}, err
	}
	made := job{number: item.Number}
	return made, until(ctx, func() (bool, error) {
		tasks, err := s.client.Tasks(ctx, nil, "", 0)
		for _, t := range tasks.Tasks {
			if t.Item == fmt.Sprintf("board:%s#%d", siteRepository, made.number) {
				made.id = task.ID(t.ID)
			}
		}
		return made.id != "", err
	})
}

// shows reports whether the issue has a label.
func (s *site) shows(ctx context.Context, j job, label string) (bool, error) {
	var item wire.BoardDetails
	err := s.board(ctx, http.MethodGet, j.path(), nil, &item)
	return slices.Contains(item.Labels, label), err
}

// until asks again and again until something is so.
func until(ctx context.Context, so func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		if is, err := so(); is || err != nil {
			return err
		}
		if err := lifecycle.Sleep(ctx, 2*time.Millisecond); err != nil {
			return errors.New("what was waited for did not happen")
		}
	}
}

// sleeping counts the commands of runs that are going on.
func sleeping() (int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0, err
	}
	count := 0
	for _, entry := range entries {
		line, err := os.ReadFile("/proc/" + entry.Name() + "/cmdline")
		if err == nil && string(line) == "sleep\x00"+longTime+"\x00" {
			count++
		}
	}
	return count, nil
}

// sleepers waits until so many commands are going on.
func sleepers(ctx context.Context, want int) error {
	return until(ctx, func() (bool, error) {
		count, err := sleeping()
		return count == want, err
	})
}

// playDemo runs the demo once.
func playDemo(ctx context.Context, folder string) (time.Duration, error) {
	demo := exec.CommandContext(ctx, filepath.Join(folder, "toryo"), "demo", "--json")
	demo.Dir = folder
	var said bytes.Buffer
	demo.Stdout, demo.Stderr = &said, &said
	begun := time.Now()
	if err := demo.Run(); err != nil {
		return 0, fmt.Errorf("%w: %s", err, said.String())
	}
	return time.Since(begun), nil
}
