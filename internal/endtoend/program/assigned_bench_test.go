package program

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"maps"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	gitea "code.gitea.io/sdk/gitea"

	"github.com/toryo-dev/toryo/internal/llm/script"
	"github.com/toryo-dev/toryo/internal/testkit"
)

// shortScript is a model whose run changes a file and is done.
const shortScript = planScript + `  - when: {phase: execution, turn: 1}
    answer: {calls: [{name: run, arguments: {command: "echo counted >>counted.txt"}}]}
` + endScript

// goScript is a model whose run corrects a project in Go, and tests it.
const goScript = `rules:
  - when: {phase: pre_planning}
    answer: {text: '{"goal": "double"}'}
  - when: {phase: planning}
    answer:
      text: |
        {"goal_understanding": {"goal": "double"},
         "task_decomposition": {"subtasks": [{"id": "t1", "description": "correct it"}]},
         "action_plan": {"actions": [{"id": "a1", "subtask": "t1", "what": "correct Double"}]},
         "proof": {"tests": ["TestDouble"]},
         "selected_environment": {"name": "go", "reason": "go.mod", "detected_files": ["go.mod"],
           "setup_commands": ["go mod download"], "verification": [{"command": "go version >/dev/null && echo OK", "expected_output": "OK"}]}}
  - when: {phase: execution, turn: 1}
    answer: {calls: [{name: run, arguments: {command: "sed -i 's/return n$/return n * 2/' double.go && go test ./..."}}]}
` + endScript

const endScript = `  - when: {phase: execution}
    answer: {calls: [{name: finish, arguments: {summary: "It is done."}}]}
  - when: {phase: verification}
    answer: {text: '{"satisfied": true, "missing": [], "problems": [], "assessment": "It is done."}'}
  - when: {phase: complete}
    answer: {text: '{"commit_message": "Count", "title": "Count", "summary": "It is done."}'}
`

// goProject is a project with a mistake that its test shows.
var goProject = map[string]string{
	"go.mod":         "module example.com/double\n\ngo 1.24\n",
	"double.go":      "package double\n\nfunc Double(n int) int {\n\treturn n\n}\n",
	"double_test.go": "package double\n\nimport \"testing\"\n\nfunc TestDouble(t *testing.T) {\n\tif Double(2) != 4 {\n\t\tt.Error(\"not doubled\")\n\t}\n}\n",
}

// BenchmarkRunOnGitea assigns issues on a real Gitea, with a server and an agent as processes,
// and measures what a run takes besides its work: from the assignment to the first request to
// the model, and from the request with the last result of a tool to the pull request. The model
// answers at once. A project without tests shows what is Toryo's own; the one in Go is set up, tested
// before and after the change, and tested again by the verdict. Its first run, on an agent that has
// built nothing, is reported apart.
func BenchmarkRunOnGitea(b *testing.B) {
	forge := testkit.Gitea(b)
	owner, bot := forge.User(b, "owner"), forge.User(b, "bot")
	token := forge.Token(b, bot)
	for _, way := range []struct {
		name     string
		script   string
		files    map[string]string
		webhooks bool
		runs     int
	}{
		{"no-tests", shortScript, nil, true, 5},
		{"no-tests-polling", shortScript, nil, false, 5},
		{"go-tests", goScript, goProject, true, 5},
	} {
		b.Run(way.name, func(b *testing.B) {
			if program, err := exec.LookPath("go"); way.files != nil && (err != nil || !strings.HasPrefix(program, "/usr/")) {
				b.Log("not measured: a sandbox has no go, as of this machine it has /usr only")
				return
			}
			played, err := script.Parse("bench", []byte(way.script))
			if err != nil {
				b.Fatal(err)
			}
			model := script.NewServer(played)
			models := httptest.NewServer(model)
			b.Cleanup(models.Close)
			repository := repositoryFor(b, forge, owner, bot)
			people := forge.Client(b, owner)
			for _, name := range slices.Sorted(maps.Keys(way.files)) {
				if _, _, err := people.CreateFile(owner, repository, name, gitea.CreateFileOptions{Content: base64.StdEncoding.EncodeToString([]byte(way.files[name]))}); err != nil {
					b.Fatal(err)
				}
			}
			server := startPair(b, fmt.Sprintf("review: {delay: 10m}\nllm: {provider: anthropic, model: bench, base_url: %q}\ngitea: {url: %q, owner: %s, bot_name: %s}\n",
				models.URL, forge.URL, owner, bot), token)
			if way.webhooks {
				hook(b, people, owner, repository, server)
			}
			var first, last, whole []time.Duration
			for range b.N * way.runs {
				before := len(model.Records())
				begun := time.Now()
				issue, _, err := people.CreateIssue(owner, repository, gitea.CreateIssueOption{Title: "Count", Assignees: []string{bot}})
				if err != nil {
					b.Fatal(err)
				}
				awaitNewPull(b, people, owner, repository, issue.Index)
				ended := time.Now()
				records := model.Records()[before:]
				if len(records) == 0 {
					b.Fatal("the model was not asked")
				}
				awaitDone(b, people, owner, repository, issue.Index, way.files != nil)
				first = append(first, records[0].At.Sub(begun))
				last = append(last, ended.Sub(lastTurn(b, records)))
				whole = append(whole, ended.Sub(begun))
			}
			b.ReportMetric(whole[0].Seconds(), "s-first-run")
			for name, times := range map[string][]time.Duration{"first-request": first, "last-result-to-pull-request": last, "run": whole} {
				times = slices.Sorted(slices.Values(times[1:])) // the first one of this agent is reported apart
				b.ReportMetric(times[len(times)/2].Seconds(), "s-"+name+"-p50")
				b.ReportMetric(times[len(times)-1].Seconds(), "s-"+name+"-max")
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// lastTurn is when the model was sent the last result of a tool.
func lastTurn(b *testing.B, records []script.Record) time.Time {
	b.Helper()
	for _, record := range slices.Backward(records) {
		if record.Request.Phase == "execution" {
			return record.At
		}
	}
	b.Fatal("the model was not asked to work")
	return time.Time{}
}

// repositoryFor makes a repository to which the bot may write.
func repositoryFor(b *testing.B, forge *testkit.GiteaServer, owner, bot string) string {
	b.Helper()
	repository := forge.Repository(b, owner, false)
	write := gitea.AccessModeWrite
	if _, err := forge.Client(b, owner).AddCollaborator(owner, repository.Name, bot, gitea.AddCollaboratorOption{Permission: &write}); err != nil {
		b.Fatal(err)
	}
	return repository.Name
}

// hook has Gitea tell the server of what happens in the repository.
func hook(b *testing.B, people *gitea.Client, owner, repository, server string) {
	b.Helper()
	if _, _, err := people.CreateRepoHook(owner, repository, gitea.CreateHookOption{
		Type: gitea.HookTypeGitea, Active: true, Events: []string{"issues", "issue_assign", "issue_label", "issue_comment"},
		Config: map[string]string{"url": server + "/webhooks/gitea", "content_type": "json", "secret": webhookSecret},
	}); err != nil {
		b.Fatal(err)
	}
}

// awaitDone waits until a run has ended as done. One that is to be proven by tests has to have been: what
// a run takes whose environment or tests do not work says nothing.
func awaitDone(b *testing.B, people *gitea.Client, owner, repository string, issue int64, proven bool) {
	b.Helper()
	var said string
	eventually(b, func() bool {
		is, _, err := people.GetIssue(owner, repository, issue)
		if err != nil || !slices.ContainsFunc(is.Labels, func(l *gitea.Label) bool { return l.Name == "coding agent done" }) {
			return false
		}
		pulls, _, err := people.ListRepoPullRequests(owner, repository, gitea.ListPullRequestsOptions{State: gitea.StateOpen})
		if err != nil || len(pulls) == 0 {
			return false
		}
		said = slices.MaxFunc(pulls, func(one, other *gitea.PullRequest) int { return cmp.Compare(one.Index, other.Index) }).Body
		return true
	})
	if proven && !strings.Contains(said, "Shown by tests that fail without the change and pass with it") {
		b.Fatalf("the run ended without tests that show the change: %s", said)
	}
}

// awaitNewPull waits for another pull request than those that there were: each run opens one.
func awaitNewPull(b *testing.B, people *gitea.Client, owner, repository string, issue int64) {
	b.Helper()
	eventually(b, func() bool {
		pulls, _, err := people.ListRepoPullRequests(owner, repository, gitea.ListPullRequestsOptions{State: gitea.StateOpen})
		return err == nil && slices.ContainsFunc(pulls, func(p *gitea.PullRequest) bool { return p.Index > issue })
	})
}
