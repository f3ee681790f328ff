package program

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/llm/script"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
)

const passPhrase = "a long pass phrase"

// storyComment is what a person says in the middle of the work. The scripted model
// waits for it.
const storyComment = "Please say in the README that it adds."

const storyScript = `
model: story
rules:
  - name: review
    when: {system: You review work}
    answer: {text: '{"verdict": "approve", "overall_review": "It adds now.", "strengths": [{"text": "The change is small.", "paragraph_numbers": [2]}], "weaknesses": [], "important_points": [], "future_considerations": []}'}
  - name: chat
    when: {system: You are the reviewer of an answer}
    answer: {text: 'In §2 "echo" adds the two numbers. There is nothing in §9.', pace: 1ms}
  - name: understand
    when: {phase: pre_planning}
    answer: {text: '{"goal": "add.sh adds"}'}
  - name: plan
    when: {phase: planning}
    answer:
      text: |
        {"goal_understanding": {"goal": "add.sh adds"},
         "task_decomposition": {"subtasks": [{"id": "t1", "description": "fix it"}]},
         "action_plan": {"actions": [{"id": "a1", "subtask": "t1", "what": "Fix add.sh"}]},
         "selected_environment": {"name": "shell", "reason": "It is a script.", "detected_files": ["add.sh"],
           "setup_commands": ["true"], "verification": [{"command": "echo OK", "expected_output": "OK"}]}}
  - name: go on
    when: {phase: reflection}
    answer: {text: '{"assessment": "It is going well.", "decision": "continue", "advice": "Go on."}'}
  - name: finish
    when: {phase: execution, tool: tick}
    answer: {calls: [{name: finish, arguments: {summary: "It adds now."}}]}
  - name: fix
    when: {phase: execution, last: "` + storyComment + `"}
    answer:
      text: It subtracts, and somebody asks for a line in the README.
      calls:
        - {name: edit, arguments: {command: replace, path: add.sh, old: "$$1 - $$2", new: "$$1 + $$2"}}
        - {name: edit, arguments: {command: replace, path: README.md, old: "A calculator.", new: "A calculator that adds."}}
        - {name: tick, arguments: {action: a1}}
  - name: wait for the comment
    when: {phase: execution}
    answer: {text: I look around., delay: 300ms, calls: [{name: run, arguments: {command: "echo look ${turn}"}}]}
  - name: judge
    when: {phase: verification}
    answer: {text: '{"satisfied": true, "assessment": "good"}'}
  - name: letter
    when: {phase: complete}
    answer: {text: '{"commit_message": "Fix add.sh\n\nIt subtracted.", "title": "Fix add.sh", "summary": "It adds now."}'}
`

// stage is a scripted model that waits for its cues before it goes on with the
// execution phase: one for what it does before it knows of the comment, and one
// for what it does after that.
type stage struct {
	model               http.Handler
	begun               cue // the first request of the work has come
	commented, unheeded cue
}

// cue is given once.
type cue struct {
	once  sync.Once
	given chan struct{}
}

func newCue() cue { return cue{given: make(chan struct{})} }

func (c *cue) give() { c.once.Do(func() { close(c.given) }) }

func newStage(t *testing.T) (*stage, string) {
	t.Helper()
	parsed, err := script.Parse("story", []byte(storyScript))
	if err != nil {
		t.Fatal(err)
	}
	s := &stage{model: script.NewServer(parsed), begun: newCue(), commented: newCue(), unheeded: newCue()}
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)
	t.Cleanup(func() { // so that no request is waited for
		s.commented.give()
		s.unheeded.give()
	})
	return s, web.URL
}

func (s *stage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if r.Header.Get(llm.PhaseHeader) == string(task.Execution) {
		s.begun.give()
		wait := &s.commented
		if bytes.Contains(body, []byte(storyComment)) {
			wait = &s.unheeded
		}
		select {
		case <-wait.given:
		case <-r.Context().Done(): // the run was stopped
			return
		}
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	s.model.ServeHTTP(w, r)
}

// newStoryPlace is a place for a server whose model is on the stage, with a
// repository beside it.
func newStoryPlace(t *testing.T, model string) (here place, config, repository string) {
	t.Helper()
	here = newPlace(t, "sqlite")
	here.environ = append(here.environ, "TORYO_LLM_API_KEY=none")
	folder := t.TempDir()
	config = filepath.Join(folder, "toryo.yaml")
	text := "llm: {provider: anthropic, model: story, base_url: '" + model + "'}\n" +
		"sandbox: {kind: bubblewrap}\nreview: {delay: 0s}\nsync_interval: 1s\nlanguage: en\n" +
		"oidc: {issuer: 'http://127.0.0.1:1', name: Nowhere, client_id: toryo, redirect_url: 'http://127.0.0.1/signin/oidc/callback', users: ['*']}\n" +
		"command_executor: {environments: {shell: 'busybox:1'}, default_environment: shell}\n"
	files := map[string]string{config: text}
	repository = filepath.Join(folder, "calculator")
	files[filepath.Join(repository, "add.sh")] = "echo $(($1 - $2))\n"
	files[filepath.Join(repository, "README.md")] = "# Calculator\n\nA calculator.\n"
	if err := os.Mkdir(repository, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "."}, {"-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-q", "-m", "Begin"}} {
		command := exec.CommandContext(t.Context(), "git", args...)
		command.Dir = repository
		if said, err := command.CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v\n%s", args, err, said)
		}
	}
	return here, config, repository
}

// createUser makes an account whose password is passPhrase.
func (p place) createUser(t *testing.T, login, role string) {
	t.Helper()
	command := p.command(t, "user", "create", login, "--role", role)
	command.Stdin = strings.NewReader(passPhrase + "\n")
	if said, err := command.CombinedOutput(); err != nil {
		t.Fatalf("toryo user create: %v\n%s", err, said)
	}
}

// People carry an issue to a merged pull request with the mouse, in front of a real
// server with a real agent, and talk about the review. The model follows a script;
// it waits where a person has to be quicker.
func TestStoryInTheBrowser(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("bwrap"); err != nil {
		testkit.LeaveOut(t, "bubblewrap")
	}
	model, address := newStage(t)
	here, config, repository := newStoryPlace(t, address)
	up := here.start(t, "up", "--config", config)
	defer up.stop(t)
	line, err := up.stdout.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	_, link, _ := strings.Cut(line, up.url)
	link, _, found := strings.Cut(link, " ")
	if !found {
		t.Fatalf("there is no link in %q", line)
	}
	here.createUser(t, "bob", "operator")

	alice := testkit.OpenWindow(t, up.url)
	alice.Open(link)
	importByHand(alice, repository)
	createIssue(alice)
	bob := testkit.OpenWindow(t, up.url)
	signInAsBob(bob)
	watchWork(alice, bob, model)
	stopAndBeginAgain(alice, bob, model)
	reviewAndMerge(alice, bob)
	chatAboutReview(alice)
}

// importByHand puts the repository on the board.
func importByHand(alice *testkit.Window, repository string) {
	alice.Click(`nav a[href="/board"]`)
	alice.Click(`details.card > summary`)
	alice.Fill(`form[action="/board/import"] input[name=name]`, "team/calculator")
	alice.Fill(`input[name=source]`, repository)
	alice.Click(`form[action="/board/import"] button`)
	alice.At("/board/team/calculator")
}

// createIssue writes an issue and assigns the bot.
func createIssue(alice *testkit.Window) {
	alice.Click(`a[href="/board/team/calculator/issues/new"]`)
	alice.Fill(`input[name=title]`, "It subtracts")
	alice.Fill(`textarea[name=body]`, "`add.sh 2 2` prints 0. It should print **4**.")
	alice.Click(`form.card button.primary`)
	alice.At("/board/team/calculator/issues/1")
	alice.Click(`#bot-card form[action$="/assign"] button`)
	alice.Sees("#assignees", "toryo")
}

func signInAsBob(bob *testkit.Window) {
	bob.Open("/board")
	bob.At("/signin")
	bob.Allowed = []string{"503"} // the provider is down, which keeps nobody else out
	bob.Click(`a[href^="/signin/oidc"]`)
	bob.Sees(".detail", "Nowhere cannot be asked who you are")
	bob.Open("/board")
	bob.Fill(`input[name=login]`, "bob")
	bob.Fill(`input[name=password]`, passPhrase)
	bob.Click(`form[action="/signin"] button`)
	bob.At("/board")
	bob.Click(`a[href="/board/team/calculator"]`)
	bob.Click(`a[href="/board/team/calculator/issues/1"]`)
	bob.At("/board/team/calculator/issues/1")
}

// watchWork has Alice look at the run while Bob comments on the issue.
func watchWork(alice, bob *testkit.Window, model *stage) {
	alice.Click(`#bot-card a[href^="/tasks/"]`)
	alice.Sees(".phases li.active", "Execution")
	alice.Sees("#plan .checklist li", "Fix add.sh")
	alice.Sees("#journal .entry-receipt", "shell")
	alice.IsLive()
	<-model.begun.given // it does not have the comment
	bob.Fill(`#comment-form textarea`, storyComment)
	bob.Click(`#comment-form button`)
	bob.Sees("#conversation .comment", storyComment)
	model.commented.give()
	alice.Sees("#journal .entry", "look 1")
	alice.Sees("#journal .comment.person", storyComment)
	alice.Sees("#ledger li", "bob")
	alice.Sees("#ledger .badge-ok", "Included")
	alice.Shot("story-1-comment-taken-up")
}

// stopAndBeginAgain has Bob take the bot off the issue in the middle of its work,
// and put it on again.
func stopAndBeginAgain(alice, bob *testkit.Window, model *stage) {
	bob.Sees("#bot-card .badge", "Running")
	bob.Click(`#bot-card .confirm > summary`)
	bob.Click(`#bot-card .confirm-body button`)
	alice.Sees("#task-head .badge", "Stopped")
	bob.Sees("#bot-card .badge", "Stopped")
	bob.Shot("story-2-stopped")
	model.unheeded.give()
	bob.Click(`#bot-card form[action$="/assign"] button`)
	bob.Sees("#linked", "team/calculator#2")
}

// reviewAndMerge has Bob review what the bot has made, and Alice merge it.
func reviewAndMerge(alice, bob *testkit.Window) {
	bob.Click(`#linked a`)
	bob.At("/board/team/calculator/pulls/2")
	bob.Sees("#conversation .comment.bot", "It adds now.")
	bob.Sees("#conversation .comment.bot", "The change is small.") // the bot reviews what no person has reviewed yet
	bob.Click(`.tabs a[href$="tab=changes"]`)
	bob.Sees("td.del", "$1 - $2")
	bob.Sees("td.add", "$1 + $2")
	bob.Sees("td.add", "A calculator that adds.")
	bob.Click(`td.n a[href*="new%3A1%3Aadd.sh"]`)
	bob.Fill(`#line-form textarea`, "Does it add negative numbers?")
	bob.Click(`#line-form button`)
	bob.Sees(".talk .comment", "Does it add negative numbers?")
	bob.Sees("td.add", "A calculator that adds.") // small changes stay on one page
	bob.Shot("story-3-line-comment")
	bob.Click(`details.card > summary`)
	bob.Click(`input[value=approve]`)
	bob.Fill(`form[action$="/review"] textarea`, "Good work.")
	bob.Click(`form[action$="/review"] button`)
	bob.Sees("#conversation .comment", "Good work.")
	bob.IsLive()

	alice.Click(`nav a[href="/board"]`)
	alice.Click(`a[href="/board/team/calculator"]`)
	alice.Click(`.tabs a[href*="/pulls"]`)
	alice.Click(`a[href="/board/team/calculator/pulls/2"]`)
	alice.Click(`#item-head .confirm > summary`)
	alice.Click(`#item-head .confirm-body button`)
	alice.Sees("#item-head .badge", "Merged")
	bob.Sees("#item-head .badge", "Merged")
	bob.Shot("story-4-merged")
	alice.Open("/board/team/calculator/issues/1")
	alice.Sees("#item-head .badge", "Closed")
}

// chatAboutReview has Alice ask about a section of the bot's review.
func chatAboutReview(alice *testkit.Window) {
	alice.Click(`nav a[href="/reviews"]`)
	alice.Click(`td.main a[href^="/reviews/"]`)
	alice.Until(`location.pathname.startsWith("/reviews/") && document.readyState === "complete"`)
	alice.Click(`[data-cite="§2"]`)
	alice.Fill(`#chat-form textarea`, "does it add?")
	alice.Click(`#chat-form [data-submit]`)
	alice.Sees("#messages .message.user .text", "§2 does it add?")
	alice.Sees("#messages .message.assistant .text", "adds the two numbers")
	alice.Sees("#messages .cites .badge-ok", "Confirmed")
	alice.Sees("#messages .cites .badge-bad", "No such section")
	alice.Shot("story-5-chat")
}
