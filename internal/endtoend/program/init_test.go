package program

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	sdk "code.gitea.io/sdk/gitea"

	"github.com/toryo-dev/toryo/internal/app/drill"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
)

// firstDay is a folder in which a newcomer runs toryo init.
type firstDay struct {
	*testing.T
	folder string
	addr   string
	stderr bytes.Buffer // of the last run
}

func newFirstDay(t *testing.T) *firstDay {
	t.Helper()
	port, err := testkit.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	d := &firstDay{T: t, folder: t.TempDir(), addr: fmt.Sprint("127.0.0.1:", port)}
	d.write("script.yaml", firstDayScript)
	return d
}

// editCall is how the model changes the file.
const editCall = `{name: edit, arguments: {command: create, path: hello.sh, overwrite: true, new: "echo hello\n"}}`

// firstDayScript is what the model says: it does what the mark in the code asks for.
const firstDayScript = `model: script
rules:
  - name: understand
    when: {phase: pre_planning}
    answer: {text: '{"goal": "hello.sh greets"}'}
  - name: plan
    when: {phase: planning}
    answer:
      text: |
        {"goal_understanding": {"goal": "hello.sh greets"},
         "task_decomposition": {"subtasks": [{"id": "t1", "description": "greet"}]},
         "action_plan": {"actions": [{"id": "a1", "subtask": "t1", "what": "write it"}]},
         "selected_environment": {"name": "python", "reason": "nothing else is needed", "detected_files": [],
           "setup_commands": ["true"], "verification": [{"command": "echo OK", "expected_output": "OK"}]}}
  - name: reflect
    when: {phase: reflection}
    answer: {text: '{"assessment": "well", "decision": "continue", "advice": "go on"}'}
  - name: write
    when: {phase: execution, turn: 1}
    answer: {calls: [` + editCall + `, {name: tick, arguments: {action: a1}}]}
  - name: finish
    when: {phase: execution}
    answer: {calls: [{name: finish, arguments: {summary: "It greets."}}]}
  - name: judge
    when: {phase: verification}
    answer: {text: '{"satisfied": true, "assessment": "good"}'}
  - name: letter
    when: {phase: complete}
    answer: {text: '{"commit_message": "Greet people", "title": "Greet people", "summary": "It greets."}'}
`

// markedCode is a file in which detection finds a first issue.
const markedCode = "# TODO: greet everybody who starts this\n"

func (d *firstDay) write(name, content string) string {
	d.Helper()
	path := filepath.Join(d.folder, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		d.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		d.Fatal(err)
	}
	return path
}

// command is toryo init in a folder of its own, without a terminal.
func (d *firstDay) command(flags ...string) *exec.Cmd {
	d.Helper()
	all := append([]string{"init", "--config", filepath.Join(d.folder, "toryo.yaml"), "--data", filepath.Join(d.folder, "data"), "--addr", d.addr}, flags...)
	command := exec.CommandContext(d.Context(), "toryo", all...)
	command.Env = drill.WithoutSettings(os.Environ())
	command.Dir = filepath.Join(d.folder, "code")
	if err := os.MkdirAll(command.Dir, 0o700); err != nil {
		d.Fatal(err)
	}
	return command
}

// said is what the summary tells.
type said struct {
	Issue string `json:"issue"`
	Pull  string `json:"pull"`
}

// run runs toryo init to its end.
func (d *firstDay) run(flags ...string) (summary said, err error) {
	d.Helper()
	d.stderr.Reset()
	command := d.command(append(flags, "--json")...)
	command.Stderr = &d.stderr
	out, err := command.Output()
	if len(out) > 0 {
		if err := json.Unmarshal(out, &summary); err != nil {
			d.Errorf("%v: %s", err, out)
		}
	}
	return summary, err
}

// script are the flags that say to see a first issue through with the scripted model.
func (d *firstDay) script() []string {
	return []string{"--provider", "script", "--script", filepath.Join(d.folder, "script.yaml"), "--sandbox", "bubblewrap", "--first-issue", "yes", "--start", "once"}
}

// boardRepository makes the folder a git repository.
func (d *firstDay) boardRepository() []string {
	d.Helper()
	d.write("code/hello.sh", markedCode)
	d.write("code/README.md", "# Hello\n")
	code := filepath.Join(d.folder, "code")
	gitOf(d.T, code, "init", "-q", "-b", "main")
	gitOf(d.T, code, "add", ".")
	gitOf(d.T, code, "-c", "user.name=ann", "-c", "user.email=ann@example.com", "commit", "-q", "-m", "first")
	return []string{"--forge", "board", "--repository", "team/hello"}
}

// With flags alone, toryo init sees a first issue through on the board.
func TestInitSeesTheFirstIssueThrough(t *testing.T) {
	t.Parallel()
	needBubblewrap(t)
	d := newFirstDay(t)
	got, err := d.run(append(d.boardRepository(), d.script()...)...)
	if err != nil {
		t.Fatalf("%v: %s", err, d.stderr.String())
	}
	base := "http://" + d.addr + "/board/team/hello/"
	if !strings.HasPrefix(got.Issue, base+"issues/") || !strings.HasPrefix(got.Pull, base+"pulls/") {
		t.Errorf("the summary is %+v", got)
	}
	for _, text := range []string{"hello.sh:1 is marked TODO", "running: ", "✓ pull request " + got.Pull} {
		if !strings.Contains(d.stderr.String(), text) {
			t.Errorf("%q is not shown: %s", text, d.stderr.String())
		}
	}
}

// With flags alone, toryo init connects a Gitea and sees a first issue through there. Undone, it
// leaves nothing behind but what tasks have made.
func TestOnGiteaInit(t *testing.T) {
	t.Parallel()
	needBubblewrap(t)
	server := testkit.Gitea(t)
	on := newGiteaPlace(t, server)
	access := sdk.AccessModeAdmin
	if _, err := on.client.AddCollaborator(on.owner, on.name, on.bot, sdk.AddCollaboratorOption{Permission: &access}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := on.client.CreateFile(on.owner, on.name, "hello.sh", sdk.CreateFileOptions{Content: "IyBUT0RPOiBncmVldCBldmVyeWJvZHkgd2hvIHN0YXJ0cyB0aGlzCg=="}); err != nil {
		t.Fatal(err)
	}
	d := newFirstDay(t)
	token := d.write("token", server.ScopedToken(t, on.bot, "write:repository", "write:issue", "read:user")+"\n")
	got, err := d.run(append(d.script(), "--forge", "gitea", "--url", server.URL, "--token-file", token, "--repository", on.owner+"/"+on.name, "--public-url", "http://"+d.addr)...)
	if err != nil {
		t.Fatalf("%v: %s", err, d.stderr.String())
	}
	issue, _, err := on.client.GetIssue(on.owner, on.name, 1)
	if err != nil || issue.HTMLURL != got.Issue || issue.Title != "See to the TODO in hello.sh" {
		t.Errorf("the issue is %+v, %v; the summary is %+v", issue, err, got)
	}
	pull, _, err := on.client.GetPullRequest(on.owner, on.name, 2)
	if err != nil || pull.HTMLURL != got.Pull || pull.Title != "Greet people" {
		t.Errorf("the pull request is %+v, %v; the summary is %+v", pull, err, got)
	}
	// The listening address is the public one here.
	comments, _, err := on.client.ListIssueComments(on.owner, on.name, 1, sdk.ListIssueCommentOptions{})
	if err != nil || len(comments) < 2 {
		t.Errorf("there are %d comments, %v", len(comments), err)
	}
	for _, comment := range comments {
		if !strings.Contains(comment.Body, "(http://"+d.addr+"/tasks/") {
			t.Errorf("a comment does not link to the page of the task: %q", comment.Body)
		}
	}
	hooks := func() int {
		all, _, err := on.client.ListRepoHooks(on.owner, on.name, sdk.ListHooksOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	if !strings.Contains(d.stderr.String(), "delivery of a webhook: it has arrived") || hooks() != 1 {
		t.Errorf("%d webhooks: %s", hooks(), d.stderr.String())
	}
	if _, err := d.run("--remove", "--yes"); err != nil {
		t.Errorf("%v: %s", err, d.stderr.String())
	}
	if _, err := os.Stat(filepath.Join(d.folder, "toryo.yaml")); !os.IsNotExist(err) || hooks() != 0 {
		t.Errorf("after --remove there are %d webhooks and the file: %v", hooks(), err)
	}
	if _, err := os.Stat(filepath.Join(d.folder, "token")); err != nil {
		t.Errorf("the file of the token, which was there before, is gone: %v", err)
	}
}

// codeOfExit is the code that the program has ended with.
func codeOfExit(err error) task.Code {
	exit, is := errors.AsType[*exec.ExitError](err)
	if !is {
		return ""
	}
	for _, info := range task.Codes {
		if info.Exit == exit.ExitCode() {
			return info.Code
		}
	}
	return ""
}

// A task that waits for a person ends toryo init where nobody is asked, with an error that says so.
func TestInitWhoseFirstIssueWaits(t *testing.T) {
	t.Parallel()
	needBubblewrap(t)
	d := newFirstDay(t)
	d.write("script.yaml", strings.Replace(firstDayScript, editCall, `{name: ask, arguments: {question: "Whom?"}}`, 1))
	got, err := d.run(append(d.boardRepository(), d.script()...)...)
	if codeOfExit(err) != task.Conflict || got.Issue == "" || got.Pull != "" {
		t.Errorf("it ended with %v and %+v: %s", err, got, d.stderr.String())
	}
	if !strings.Contains(d.stderr.String(), "the task is paused: ") {
		t.Errorf("it does not say that the task waits: %s", d.stderr.String())
	}
}

// With --start yes the server goes on after the pull request, until it is interrupted.
func TestInitGoesOnServing(t *testing.T) {
	t.Parallel()
	needBubblewrap(t)
	d := newFirstDay(t)
	command := d.command(append(d.boardRepository(), append(d.script(), "--start", "yes")...)...)
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	command.Stderr = &d.stderr
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	pull, goesOn := false, false
	for lines := bufio.NewScanner(out); lines.Scan(); {
		pull = pull || strings.HasPrefix(lines.Text(), "✓ pull request http://"+d.addr)
		if strings.HasPrefix(lines.Text(), "The server and an agent run at http://"+d.addr) {
			goesOn = true
			if err := command.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := command.Wait(); err != nil || !pull || !goesOn {
		t.Errorf("it ended with %v; pull request: %t, went on: %t; %s", err, pull, goesOn, d.stderr.String())
	}
}
