package program

import (
	"fmt"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	gitea "code.gitea.io/sdk/gitea"

	"github.com/toryo-dev/toryo/internal/llm/script"
	"github.com/toryo-dev/toryo/internal/testkit"
)

// shortScript is a model whose run changes a file and is done. The project has no tests.
const shortScript = planScript + `  - when: {phase: execution, turn: 1}
    answer: {calls: [{name: run, arguments: {command: "echo counted >>counted.txt"}}]}
  - when: {phase: execution}
    answer: {calls: [{name: finish, arguments: {summary: "It is counted."}}]}
  - when: {phase: verification}
    answer: {text: '{"satisfied": true, "missing": [], "problems": [], "assessment": "It is counted."}'}
  - when: {phase: complete}
    answer: {text: '{"commit_message": "Count", "title": "Count", "summary": "It is counted."}'}
`

// BenchmarkRunOnGitea assigns issues on a real Gitea, with a server and an agent as processes,
// and measures what a run takes besides its work: from the assignment to the first request to
// the model, and from the request with the last result of a tool to the pull request. The model
// answers at once, and the project has no tests.
func BenchmarkRunOnGitea(b *testing.B) {
	forge := testkit.Gitea(b)
	owner, bot := forge.User(b, "owner"), forge.User(b, "bot")
	token := forge.Token(b, bot)
	for _, way := range []struct {
		name     string
		webhooks bool
		runs     int
	}{{"webhooks", true, 5}, {"polling", false, 3}} {
		b.Run(way.name, func(b *testing.B) {
			played, err := script.Parse("bench", []byte(shortScript))
			if err != nil {
				b.Fatal(err)
			}
			model := script.NewServer(played)
			models := httptest.NewServer(model)
			b.Cleanup(models.Close)
			repository := repositoryFor(b, forge, owner, bot)
			server := startPair(b, fmt.Sprintf("review: {delay: 10m}\nllm: {provider: anthropic, model: bench, base_url: %q}\ngitea: {url: %q, owner: %s, bot_name: %s}\n",
				models.URL, forge.URL, owner, bot), token)
			people := forge.Client(b, owner)
			if way.webhooks {
				hook(b, people, owner, repository, server)
			}
			var first, last []time.Duration
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
				first = append(first, records[0].At.Sub(begun))
				last = append(last, ended.Sub(lastTurn(b, records)))
			}
			for name, times := range map[string][]time.Duration{"first-request": first, "last-result-to-pull-request": last} {
				slices.Sort(times)
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

// awaitNewPull waits for another pull request than those that there were: each run opens one.
func awaitNewPull(b *testing.B, people *gitea.Client, owner, repository string, issue int64) {
	b.Helper()
	eventually(b, func() bool {
		pulls, _, err := people.ListRepoPullRequests(owner, repository, gitea.ListPullRequestsOptions{State: gitea.StateOpen})
		return err == nil && slices.ContainsFunc(pulls, func(p *gitea.PullRequest) bool { return p.Index > issue })
	})
}
