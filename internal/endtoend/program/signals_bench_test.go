package program

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	gitea "code.gitea.io/sdk/gitea"

	"github.com/toryo-dev/toryo/internal/testkit"
)

// waitingScript is a model whose run waits for a command that does not end.
const waitingScript = planScript + `  - when: {phase: execution}
    answer: {calls: [{name: run, arguments: {command: "sleep %s", timeout_seconds: 900}}]}
`

// BenchmarkUnassignOnGitea unassigns the bot on a real Gitea in the middle of a
// command, with a server and an agent as processes, and measures how long it is
// until the command is gone and until the issue has its label and the comment that says
// so: with webhooks, and without any.
func BenchmarkUnassignOnGitea(b *testing.B) {
	forge := testkit.Gitea(b)
	owner, bot := forge.User(b, "owner"), forge.User(b, "bot")
	token := forge.Token(b, bot)
	for _, way := range []struct {
		name     string
		webhooks bool
		stops    int
	}{{"webhooks", true, 50}, {"polling", false, 5}} {
		b.Run(way.name, func(b *testing.B) {
			repository := repositoryFor(b, forge, owner, bot)
			people := forge.Client(b, owner)
			pause := fmt.Sprintf("601.%d", os.Getpid())
			script := filepath.Join(b.TempDir(), "script.yaml")
			if err := os.WriteFile(script, fmt.Appendf(nil, waitingScript, pause), 0o600); err != nil {
				b.Fatal(err)
			}
			server := startPair(b, fmt.Sprintf("llm: {provider: script, script: %s}\ngitea: {url: %q, owner: %s, bot_name: %s}\n", script, forge.URL, owner, bot), token)
			if way.webhooks {
				hook(b, people, owner, repository, server)
			}
			var cut, labelled, said []time.Duration
			for range b.N * way.stops {
				issue, _, err := people.CreateIssue(owner, repository, gitea.CreateIssueOption{Title: "Wait", Assignees: []string{bot}})
				if err != nil {
					b.Fatal(err)
				}
				eventually(b, func() bool { return commandsOf("sleep", pause) == 1 })
				begun := time.Now()
				if _, _, err := people.EditIssue(owner, repository, issue.Index, gitea.EditIssueOption{Assignees: []string{}}); err != nil {
					b.Fatal(err)
				}
				eventually(b, func() bool { return commandsOf("sleep", pause) == 0 })
				cut = append(cut, time.Since(begun))
				eventually(b, func() bool {
					is, _, err := people.GetIssue(owner, repository, issue.Index)
					return err == nil && slices.ContainsFunc(is.Labels, func(l *gitea.Label) bool { return l.Name == "coding agent stopped" })
				})
				labelled = append(labelled, time.Since(begun))
				eventually(b, func() bool {
					comments, _, err := people.ListIssueComments(owner, repository, issue.Index, gitea.ListIssueCommentOptions{})
					return err == nil && slices.ContainsFunc(comments, func(c *gitea.Comment) bool { return strings.Contains(c.Body, "**Stopped.**") })
				})
				said = append(said, time.Since(begun))
			}
			for name, times := range map[string][]time.Duration{"cut": cut, "label": labelled, "comment": said} {
				slices.Sort(times)
				b.ReportMetric(times[len(times)/2].Seconds(), "s-to-"+name+"-p50")
				b.ReportMetric(times[(len(times)-1)*99/100].Seconds(), "s-to-"+name+"-p99")
				b.ReportMetric(times[len(times)-1].Seconds(), "s-to-"+name+"-max")
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

const webhookSecret = "secret of the webhooks"

// startPair starts a server with these settings besides the usual ones, and an agent, and
// returns the server's address.
func startPair(b *testing.B, text, token string) string {
	b.Helper()
	dir := b.TempDir()
	settings := filepath.Join(dir, "toryo.yaml")
	text = "log: {level: error}\nlanguage: en\nsync_interval: 5s\nsandbox: {kind: bubblewrap}\n" + text
	if err := os.WriteFile(settings, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	environ := append(os.Environ(), "TORYO_GITEA_TOKEN="+token, "TORYO_GITEA_WEBHOOK_SECRET="+webhookSecret, "TORYO_LLM_API_KEY=bench")
	start := func(ready string, args ...string) string {
		command := exec.CommandContext(b.Context(), "toryo", args...)
		command.Dir, command.Env, command.Stderr = dir, environ, os.Stderr
		command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
		command.WaitDelay = time.Minute
		output, err := command.StdoutPipe()
		if err != nil {
			b.Fatal(err)
		}
		if err := command.Start(); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = command.Wait() }) // it is interrupted when the benchmark ends
		lines := bufio.NewScanner(output)
		for lines.Scan() {
			if strings.Contains(lines.Text(), ready) {
				go func() { _, _ = io.Copy(io.Discard, output) }() // until it ends
				return lines.Text()
			}
		}
		b.Fatalf("toryo %s did not get ready", args[0])
		return ""
	}
	data := filepath.Join(dir, "server")
	server := strings.TrimPrefix(start("listening on", "serve", "--addr", "127.0.0.1:0", "--data", data), "listening on ")
	once := exec.CommandContext(b.Context(), "toryo", "agent", "token", "create", "--data", data)
	once.Dir, once.Env = dir, environ
	oneTime, err := once.Output()
	if err != nil {
		b.Fatal(err)
	}
	start("asks", "agent", "--server", server, "--name", "bench", "--enrol", strings.TrimSpace(string(oneTime)), "--data", filepath.Join(dir, "agent"))
	return server
}

// eventually asks again and again until something is so.
func eventually(b *testing.B, so func() bool) {
	b.Helper()
	deadline, again := time.NewTimer(3*time.Minute), time.NewTicker(5*time.Millisecond)
	defer deadline.Stop()
	defer again.Stop()
	for !so() {
		select {
		case <-again.C:
		case <-deadline.C:
			b.Fatal("what was waited for did not happen")
		}
	}
}

// commandsOf counts the processes with this command line.
func commandsOf(words ...string) int {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline") // the pattern is good
	count := 0
	for _, file := range files {
		line, err := os.ReadFile(file)
		if err == nil && string(line) == strings.Join(words, "\x00")+"\x00" {
			count++
		}
	}
	return count
}
