package gitea_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	sdk "code.gitea.io/sdk/gitea"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/gitea"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
)

// fixture is a real Gitea server from outside.
type fixture struct {
	server *testkit.GiteaServer
	forge  *gitea.Forge
	owner  string
	bot    string
}

// newFixture returns a fixture whose forge reaches the server at the address.
func newFixture(t *testing.T, server *testkit.GiteaServer, address string) *fixture {
	t.Helper()
	bot := server.User(t, "Bot")
	made, err := gitea.New(gitea.Options{URL: address, Token: server.Token(t, bot)})
	if err != nil {
		t.Fatal(err)
	}
	return &fixture{server: server, forge: made, owner: server.User(t, "Owner"), bot: bot}
}

func (f *fixture) Forge() forge.Forge { return f.forge }

// check fails the test if the server refused.
func check[T any](t testing.TB) func(T, *sdk.Response, error) T {
	t.Helper()
	return func(value T, _ *sdk.Response, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func split(key task.Key) (owner, name string, number int64) {
	owner, name, _ = strings.Cut(key.Repository, "/")
	return owner, name, key.Number
}

func (f *fixture) Repository(t testing.TB) string {
	t.Helper()
	repository := f.server.Repository(t, f.owner, true)
	f.allow(t, repository.FullName, f.bot, sdk.AccessModeWrite)
	f.Commit(t, repository.FullName, "main", map[string]string{"README.md": "one\ntwo\nthree\n"})
	return repository.FullName
}

func (f *fixture) allow(t testing.TB, repository, login string, mode sdk.AccessMode) {
	t.Helper()
	owner, name, _ := strings.Cut(repository, "/")
	if _, err := f.server.Client(t, owner).AddCollaborator(owner, name, login, sdk.AddCollaboratorOption{Permission: &mode}); err != nil {
		t.Fatal(err)
	}
}

func (f *fixture) Person(t testing.TB, repository string, access forge.Access) string {
	t.Helper()
	login := f.server.User(t, "Person")
	if access != forge.NoAccess {
		f.allow(t, repository, login, sdk.AccessMode(access.String()))
	}
	return login
}

func (f *fixture) RemovePerson(t testing.TB, login string) {
	t.Helper()
	if _, err := f.server.Client(t, "").AdminDeleteUser(login); err != nil {
		t.Fatal(err)
	}
}

func (f *fixture) RenameRepository(t testing.TB, repository string) string {
	t.Helper()
	owner, name, _ := strings.Cut(repository, "/")
	renamed := name + "-renamed"
	return check[*sdk.Repository](t)(f.server.Client(t, owner).EditRepo(owner, name, sdk.EditRepoOption{Name: &renamed})).FullName
}

func (f *fixture) Issue(t testing.TB, repository, author, title, body string) task.Key {
	t.Helper()
	owner, name, _ := strings.Cut(repository, "/")
	issue := check[*sdk.Issue](t)(f.server.Client(t, author).CreateIssue(owner, name, sdk.CreateIssueOption{Title: title, Body: body}))
	return task.Key{Forge: task.Gitea, Repository: repository, Kind: task.Issue, Number: issue.Index}
}

func (f *fixture) Comment(t testing.TB, key task.Key, author, body string) string {
	t.Helper()
	owner, name, number := split(key)
	return fmt.Sprint(check[*sdk.Comment](t)(f.server.Client(t, author).CreateIssueComment(owner, name, number, sdk.CreateIssueCommentOption{Body: body})).ID)
}

func (f *fixture) EditComment(t testing.TB, key task.Key, author, id, body string) {
	t.Helper()
	owner, name, _ := split(key)
	check[*sdk.Comment](t)(f.server.Client(t, author).EditIssueComment(owner, name, number(t, id), sdk.EditIssueCommentOption{Body: body}))
}

func (f *fixture) RemoveComment(t testing.TB, key task.Key, author, id string) {
	t.Helper()
	owner, name, _ := split(key)
	if _, err := f.server.Client(t, author).DeleteIssueComment(owner, name, number(t, id)); err != nil {
		t.Fatal(err)
	}
}

func number(t testing.TB, id string) (number int64) {
	t.Helper()
	if _, err := fmt.Sscan(id, &number); err != nil {
		t.Fatal(err)
	}
	return number
}

func (f *fixture) Label(t testing.TB, key task.Key, actor string, on bool, labels ...string) {
	t.Helper()
	owner, name, index := split(key)
	client := f.server.Client(t, actor)
	known := map[string]int64{}
	for _, label := range check[[]*sdk.Label](t)(client.ListRepoLabels(owner, name, sdk.ListLabelsOptions{})) {
		known[label.Name] = label.ID
	}
	for _, label := range labels {
		if known[label] == 0 {
			known[label] = check[*sdk.Label](t)(client.CreateLabel(owner, name, sdk.CreateLabelOption{Name: label, Color: "#00ff00"})).ID
		}
		if on {
			check[[]*sdk.Label](t)(client.AddIssueLabels(owner, name, index, sdk.IssueLabelsOption{Labels: []int64{known[label]}}))
		} else if _, err := client.DeleteIssueLabel(owner, name, index, known[label]); err != nil {
			t.Fatal(err)
		}
	}
}

func (f *fixture) Assign(t testing.TB, key task.Key, actor string, logins ...string) {
	t.Helper()
	owner, name, index := split(key)
	check[*sdk.Issue](t)(f.server.Client(t, actor).EditIssue(owner, name, index, sdk.EditIssueOption{Assignees: logins}))
}

func (f *fixture) Close(t testing.TB, key task.Key, actor string) {
	t.Helper()
	owner, name, index := split(key)
	closed := sdk.StateClosed
	check[*sdk.Issue](t)(f.server.Client(t, actor).EditIssue(owner, name, index, sdk.EditIssueOption{State: &closed}))
}

func (f *fixture) React(t testing.TB, key task.Key, actor string, reaction forge.Reaction) {
	t.Helper()
	owner, name, index := split(key)
	check[*sdk.Reaction](t)(f.server.Client(t, actor).PostIssueReaction(owner, name, index, string(reaction)))
}

func (f *fixture) Commit(t testing.TB, repository, branch string, files map[string]string) string {
	t.Helper()
	owner, name, _ := strings.Cut(repository, "/")
	client := f.server.Client(t, owner)
	change := sdk.ChangeFilesOptions{Message: "Change files", Branch: branch}
	if _, _, err := client.GetRepoBranch(owner, name, branch); err != nil {
		change.Branch, change.NewBranch = "main", branch
	}
	for path, content := range files {
		operation := sdk.ChangeFileOperation{Operation: "create", Path: path, Content: base64.StdEncoding.EncodeToString([]byte(content))}
		if there, _, err := client.GetContents(owner, name, change.Branch, path); err == nil {
			operation.Operation, operation.SHA = "update", there.SHA
		}
		change.Files = append(change.Files, &operation)
	}
	check[*sdk.FileResponse](t)(client.ChangeFiles(owner, name, change))
	return check[*sdk.Branch](t)(client.GetRepoBranch(owner, name, branch)).Commit.ID
}

func (f *fixture) Pull(t testing.TB, repository, author, head, base, title, body string) task.Key {
	t.Helper()
	owner, name, _ := strings.Cut(repository, "/")
	pull := check[*sdk.PullRequest](t)(f.server.Client(t, author).CreatePullRequest(owner, name, sdk.CreatePullRequestOption{
		Head: head, Base: base, Title: title, Body: body,
	}))
	return task.Key{Forge: task.Gitea, Repository: repository, Kind: task.Pull, Number: pull.Index}
}

func (f *fixture) Review(t testing.TB, key task.Key, author string, verdict forge.Verdict, body string, comments map[forge.Anchor]string) {
	t.Helper()
	owner, name, index := split(key)
	states := map[forge.Verdict]sdk.ReviewStateType{
		forge.Approve: sdk.ReviewStateApproved, forge.RequestChanges: sdk.ReviewStateRequestChanges, forge.Remark: sdk.ReviewStateComment,
	}
	review := sdk.CreatePullReviewOptions{State: states[verdict], Body: body}
	for anchor, text := range comments {
		comment := sdk.CreatePullReviewComment{Path: anchor.Path, Body: text}
		if anchor.Side == forge.OldSide {
			comment.OldLineNum = int64(anchor.Line)
		} else {
			comment.NewLineNum = int64(anchor.Line)
		}
		review.Comments = append(review.Comments, comment)
	}
	check[*sdk.PullReview](t)(f.server.Client(t, author).CreatePullReview(owner, name, index, review))
}

func (f *fixture) Reply(t testing.TB, key task.Key, author string, thread forge.ReviewThread, body string) string {
	t.Helper()
	person, err := gitea.New(gitea.Options{URL: f.server.URL, Token: f.server.Token(t, author)})
	if err != nil {
		t.Fatal(err)
	}
	made, err := person.Reply(t.Context(), key, thread.ID, forge.Post{Text: forge.Neutraliser{}.Text(body)})
	if err != nil {
		t.Fatal(err)
	}
	return made.ID
}

func (f *fixture) EditReview(t testing.TB, key task.Key, author, id, body string) {
	t.Helper()
	f.EditComment(t, key, author, f.textOf(t, key, id), body)
}

func (f *fixture) Dismiss(t testing.TB, key task.Key, actor, id string) {
	t.Helper()
	owner, name, index := split(key)
	if _, err := f.server.Client(t, actor).DismissPullReview(owner, name, index, number(t, id), sdk.DismissPullReviewOptions{Message: "It is outdated."}); err != nil {
		t.Fatal(err)
	}
}

// textOf is the comment that has the text of a review: the one that people edit and
// delete on the page.
func (f *fixture) textOf(t testing.TB, key task.Key, review string) string {
	t.Helper()
	address := fmt.Sprintf("%s/api/v1/repos/%s/issues/%d/timeline", f.server.URL, key.Repository, key.Number)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "token "+f.server.Admin)
	answer, err := new(http.Client).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	var events []struct {
		ID     int64  `json:"id"`
		Type   string `json:"type"`
		Review int64  `json:"review_id"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&events); err != nil {
		t.Fatal(err)
	}
	for _, event := range events {
		if event.Type == "review" && fmt.Sprint(event.Review) == review {
			return fmt.Sprint(event.ID)
		}
	}
	t.Fatalf("the text of the review %s is not in the timeline: %+v", review, events)
	return ""
}

func (f *fixture) Merge(t testing.TB, key task.Key, actor string) {
	t.Helper()
	owner, name, index := split(key)
	// Gitea finds out by and by whether it can be merged.
	for range 200 {
		if check[*sdk.PullRequest](t)(f.server.Client(t, actor).GetPullRequest(owner, name, index)).Mergeable {
			break
		}
	}
	merged := check[bool](t)(f.server.Client(t, actor).MergePullRequest(owner, name, index, sdk.MergePullRequestOption{Style: sdk.MergeStyleMerge}))
	if !merged {
		t.Fatalf("%s is not merged", key)
	}
}

func (f *fixture) Check(t testing.TB, _, _, _ string, _ forge.StatusState, _ string) {
	t.Helper()
	t.Fatal("jobs need a runner, which the server of the tests does not have")
}
