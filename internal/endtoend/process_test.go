package endtoend

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// patience is how long something may take that has to happen. It is so long that
// only what does not happen at all takes longer, on a busy machine too.
const patience = 8 * time.Minute

// process is a server or an agent.
type process struct {
	name  string
	dir   string // with the configuration and the log
	args  []string
	env   []string
	ready string // what its output has when it works

	mutex   sync.Mutex // one starts or ends it at a time
	command *exec.Cmd
	ended   chan struct{}
}

func (p *process) logFile() string { return filepath.Join(p.dir, p.name+".log") }

// start runs the program and returns when it works.
func (p *process) start(ctx context.Context) error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	log, err := os.OpenFile(p.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	command := exec.Command("toryo", p.args...) // it ends in end
	command.Env, command.Dir, command.Stderr = append(os.Environ(), p.env...), p.dir, log
	output, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	ready, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		defer func() { _ = log.Close() }()
		lines, works := bufio.NewScanner(output), false
		for lines.Scan() {
			_, _ = fmt.Fprintln(log, lines.Text())
			if !works && strings.Contains(lines.Text(), p.ready) {
				works = true
				close(ready)
			}
		}
		_, _ = io.Copy(io.Discard, output)
		_ = command.Wait() // however it ended
	}()
	p.command, p.ended = command, ended
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case <-ready:
		return nil
	case <-ended:
		return fmt.Errorf("%s has ended: %s", p.name, p.tail())
	case <-ctx.Done():
		return fmt.Errorf("%s does not get ready: %s", p.name, p.tail())
	}
}

// end ends the process with the signal and waits for that.
func (p *process) end(signal syscall.Signal) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.command == nil {
		return
	}
	_ = p.command.Process.Signal(signal) // it may have ended
	timer := time.NewTimer(time.Minute)
	defer timer.Stop()
	select {
	case <-p.ended:
	case <-timer.C:
		_ = p.command.Process.Kill()
		<-p.ended
	}
	p.command = nil
}

// again waits for the end of a process that ends by itself, and starts it again.
func (p *process) again(ctx context.Context) error {
	p.mutex.Lock()
	ended := p.ended
	p.mutex.Unlock()
	<-ended
	return p.start(ctx)
}

// tail is the end of what the process has said.
func (p *process) tail() string {
	text, err := os.ReadFile(p.logFile())
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-20_000):])
}

// toryo runs a command that ends by itself.
func (h *house) toryo(ctx context.Context, args ...string) (string, error) {
	command := exec.CommandContext(ctx, "toryo", args...)
	command.Dir, command.Env = h.dir, append(os.Environ(), h.env...)
	output, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("toryo %s: %w", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(output)), nil
}

// git runs git as a person would.
func git(ctx context.Context, dir string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, "git", args...)
	command.Dir = dir
	command.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C", "GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org",
	}
	output, err := command.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, output)
	}
	return strings.TrimSpace(string(output)), nil
}
