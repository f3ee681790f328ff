package endtoend

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	sdk "code.gitea.io/sdk/gitea"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/gitea"
	"github.com/toryo-dev/toryo/internal/phase/phasetest"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
	"github.com/toryo-dev/toryo/internal/wire"
)

// giteaSite is a real Gitea, with a proxy before it that can refuse what the server
// asks.
type giteaSite struct {
	t      testing.TB
	server *testkit.GiteaServer
	owner  string // of all repositories
	secret string // of webhooks; empty if there are none
	events []string
	hook   string // where they go
	reader forge.Forge
	token  string // of the owner
	proxy  *testkit.FaultProxy
}

const giteaBot = "toryo-bot"

// giteaPeople makes the accounts that scenarios have.
func giteaPeople(t *testing.T, server *testkit.GiteaServer) {
	t.Helper()
	stay := false
	for _, name := range append([]string{giteaBot}, "alice", "bob", "carol", "dave", "erin", "mallory") {
		_, _, err := server.Client(t, "").AdminCreateUser(sdk.CreateUserOption{
			Username: name, Email: name + "@example.com", Password: "correct-Horse-1", MustChangePassword: &stay,
		})
		must(t, err)
	}
}

// giteaHouse makes a house that works for one owner on a Gitea, with webhooks or
// without.
func giteaHouse(t *testing.T, server *testkit.GiteaServer, owner, secret string, p plan) (*house, *giteaSite) {
	t.Helper()
	g := &giteaSite{t: t, server: server, owner: owner, secret: secret, token: server.Token(t, owner), proxy: testkit.Faults(t, server.URL)}
	g.events = []string{"push", "issues", "issue_comment", "issue_label", "issue_assign", "pull_request", "status"}
	g.reader = g.with(g.token)
	p.settings += fmt.Sprintf("gitea: {url: %q, owner: %s, bot_name: %s}\nsync_interval: 1s\n", g.proxy.URL, owner, giteaBot)
	p.env = append(p.env, "TORYO_GITEA_TOKEN="+server.Token(t, giteaBot))
	if secret != "" {
		p.env = append(p.env, "TORYO_GITEA_WEBHOOK_SECRET="+secret)
	}
	h := build(t, p)
	g.hook = h.urls[0] + "/webhooks/gitea"
	return h, g
}

func (*giteaSite) bot() string { return giteaBot }

func (g *giteaSite) look() forge.Forge { return g.reader }

func (g *giteaSite) as(login string) forge.Forge { return g.with(g.server.Token(g.t, login)) }

func (g *giteaSite) with(token string) forge.Forge {
	made, err := gitea.New(gitea.Options{URL: g.server.URL, Token: token, HTTP: forge.HTTPClient(nil)})
	if err != nil {
		g.t.Fatal(err)
	}
	return made
}

// mute plans faults for what the server reads of items and comments.
func (g *giteaSite) mute(repository string, requests int) {
	for range requests {
		g.proxy.Next(http.MethodGet, repository+"/issues/", testkit.Respond(http.StatusBadGateway, nil, "bad gateway"))
	}
}

func (g *giteaSite) client(as string) *sdk.Client { return g.server.Client(g.t, as) }

func (g *giteaSite) short(repository string) string {
	return strings.TrimPrefix(repository, g.owner+"/")
}

func (g *giteaSite) address(repository string) string {
	address, err := url.Parse(g.server.URL + "/" + repository + ".git")
	if err != nil {
		return err.Error()
	}
	address.User = url.UserPassword(g.owner, g.token)
	return address.String()
}

func (g *giteaSite) repository(ctx context.Context, name, source string) (string, error) {
	if _, _, err := g.client(g.owner).CreateRepo(sdk.CreateRepoOption{Name: name, Private: true, DefaultBranch: "main"}); err != nil {
		return "", err
	}
	allowed := maps.Clone(people)
	allowed[giteaBot] = forge.WriteAccess
	delete(allowed, g.owner)
	for login, access := range allowed {
		mode := sdk.AccessMode(access.String())
		if _, err := g.client(g.owner).AddCollaborator(g.owner, name, login, sdk.AddCollaboratorOption{Permission: &mode}); err != nil {
			return "", err
		}
	}
	if g.secret != "" {
		_, _, err := g.client(g.owner).CreateRepoHook(g.owner, name, sdk.CreateHookOption{
			Type: sdk.HookTypeGitea, Active: true,
			Events: g.events,
			Config: map[string]string{"url": g.hook, "content_type": "json", "secret": g.secret},
		})
		if err != nil {
			return "", err
		}
	}
	repository := g.owner + "/" + name
	_, err := git(ctx, source, "push", "--quiet", "--mirror", g.address(repository))
	return repository, err
}

func (g *giteaSite) open(ctx context.Context, repository, as string, scenario *phasetest.Scenario) (task.Key, error) {
	if scenario.Pull != nil {
		return g.openPull(ctx, repository, as, scenario.Pull)
	}
	made, _, err := g.client(as).CreateIssue(g.owner, g.short(repository), sdk.CreateIssueOption{Title: scenario.Title, Body: scenario.Body})
	if err != nil {
		return task.Key{}, err
	}
	key := task.Key{Forge: task.Gitea, Repository: repository, Kind: task.Issue, Number: made.Index}
	for _, label := range scenario.Labels {
		if err := g.reader.AddLabel(ctx, key, label); err != nil {
			return key, err
		}
	}
	return key, nil
}

func (g *giteaSite) openPull(ctx context.Context, repository, as string, pull *phasetest.Pull) (task.Key, error) {
	var made *sdk.PullRequest
	for {
		var answer *sdk.Response
		var err error
		made, answer, err = g.client(as).CreatePullRequest(g.owner, g.short(repository), sdk.CreatePullRequestOption{
			Head: taskBranch, Base: "main", Title: pull.Title, Body: pull.Body,
		})
		if err == nil {
			break
		}
		// Gitea knows of a branch some time after it was pushed.
		if answer == nil || answer.StatusCode != http.StatusNotFound || !pause(ctx) {
			return task.Key{}, err
		}
	}
	key := task.Key{Forge: task.Gitea, Repository: repository, Kind: task.Pull, Number: made.Index}
	for _, thread := range pull.Threads {
		if _, err := g.review(ctx, key, thread.Author, string(forge.RequestChanges), thread.Body, wire.BoardLine{Path: thread.Path, Line: thread.Line}); err != nil {
			return key, err
		}
	}
	return key, nil
}

func (g *giteaSite) review(ctx context.Context, item task.Key, as, verdict, body string, on wire.BoardLine) (string, error) {
	states := map[string]sdk.ReviewStateType{
		"approve": sdk.ReviewStateApproved, "request_changes": sdk.ReviewStateRequestChanges, "comment": sdk.ReviewStateComment,
	}
	option := sdk.CreatePullReviewOptions{State: states[verdict], Body: body}
	if on.Path != "" {
		option.Body, option.Comments = "", []sdk.CreatePullReviewComment{{Path: on.Path, NewLineNum: int64(on.Line), Body: body}}
		if option.State != sdk.ReviewStateComment {
			option.Body = "Please see below."
		}
	}
	made, _, err := g.client(as).CreatePullReview(g.owner, g.short(item.Repository), item.Number, option)
	if err != nil {
		return "", err
	}
	if on.Path == "" {
		return g.reviewText(ctx, item, made.ID)
	}
	written, _, err := g.client(as).ListPullReviewComments(g.owner, g.short(item.Repository), item.Number, made.ID)
	if err != nil || len(written) == 0 {
		return "", fmt.Errorf("there is no comment in the review %d: %w", made.ID, err)
	}
	return strconv.FormatInt(written[0].ID, 10), nil
}

// reviewText is the comment that has the text of a review: the one that people edit and
// delete on the page.
func (g *giteaSite) reviewText(ctx context.Context, item task.Key, review int64) (string, error) {
	address := fmt.Sprintf("%s/api/v1/repos/%s/issues/%d/timeline", g.server.URL, item.Repository, item.Number)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return "", err
	}
	request.Header.Set("Authorization", "token "+g.token)
	answer, err := new(http.Client).Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = answer.Body.Close() }()
	var events []struct {
		ID     int64  `json:"id"`
		Type   string `json:"type"`
		Review int64  `json:"review_id"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&events); err != nil {
		return "", err
	}
	for _, event := range events {
		if event.Type == "review" && event.Review == review {
			return strconv.FormatInt(event.ID, 10), nil
		}
	}
	return "", fmt.Errorf("the text of the review %d is not in the timeline", review)
}

func (g *giteaSite) reply(ctx context.Context, item task.Key, as, thread, body string) (string, error) {
	made, err := g.as(as).Reply(ctx, item, thread, forge.Post{Text: forge.Neutraliser{}.Text(body)})
	return made.ID, err
}

func (g *giteaSite) addComment(_ context.Context, item task.Key, as, body string) (string, error) {
	made, _, err := g.client(as).CreateIssueComment(g.owner, g.short(item.Repository), item.Number, sdk.CreateIssueCommentOption{Body: body})
	if err != nil {
		return "", err
	}
	return strconv.FormatInt(made.ID, 10), nil
}

func (g *giteaSite) edit(_ context.Context, item task.Key, as, id, body string) error {
	number, err := strconv.ParseInt(id, 10, 64)
	if err == nil {
		_, _, err = g.client(as).EditIssueComment(g.owner, g.short(item.Repository), number, sdk.EditIssueCommentOption{Body: body})
	}
	return err
}

func (g *giteaSite) remove(_ context.Context, item task.Key, as, id string) error {
	number, err := strconv.ParseInt(id, 10, 64)
	if err == nil {
		_, err = g.client(as).DeleteIssueComment(g.owner, g.short(item.Repository), number)
	}
	return err
}

func (g *giteaSite) assign(_ context.Context, item task.Key, there bool) error {
	assignees := []string{}
	if there {
		assignees = append(assignees, giteaBot)
	}
	_, _, err := g.client(g.owner).EditIssue(g.owner, g.short(item.Repository), item.Number, sdk.EditIssueOption{Assignees: assignees})
	return err
}

func (g *giteaSite) close(_ context.Context, item task.Key) error {
	closed := sdk.StateClosed
	_, _, err := g.client(g.owner).EditIssue(g.owner, g.short(item.Repository), item.Number, sdk.EditIssueOption{State: &closed})
	return err
}

// TestOnGitea lets a selection of the scenarios happen on a real Gitea: with webhooks,
// and in another house without any.
func TestOnGitea(t *testing.T) {
	t.Parallel()
	server := testkit.Gitea(t)
	giteaPeople(t, server)
	t.Run("webhooks", func(t *testing.T) {
		t.Parallel()
		h, site := giteaHouse(t, server, "alice", "hook-secret-of-the-test", plan{agents: 2, settings: "polling: {webhook_grace: 1m}\n"})
		h.runStories(t, site, pick(load(t, "../phase/testdata/scenarios/*.txtar", "testdata/signals/*.txtar", "testdata/gitea/*.txtar", "testdata/gate/*.txtar"),
			"shell", "japanese", "lies_on", "comments", "comments_bot", "stop_late_command", "stop_closed", "stop_again",
			"pause_execution", "ask", "deaf_comment", "deaf_stop", "gate_draft", "gate_secret",
			"written_review", "written_changes", "written_late"))
		h.wantDoctor(t, "gitea:alice/shell: ", "issue_assign: ")
		if said, _ := h.run(t, nil, "doctor", "--data", h.data(0)); strings.Contains(said, "not reported by a webhook") {
			t.Errorf("every webhook is enabled, but doctor says that some were missed:\n%s", said)
		}
	})
	// What the webhook does not tell of is found as if there were none.
	t.Run("webhooks for comments", func(t *testing.T) {
		t.Parallel()
		h, site := giteaHouse(t, server, "erin", "hook-secret-of-the-test", plan{agents: 2, settings: "polling: {shortest: 2s}\n"})
		site.events = []string{"issue_comment"}
		h.runStories(t, site, pick(load(t, "../phase/testdata/scenarios/*.txtar"), "stop_command", "comments"))
		h.wantDoctor(t, "gitea:erin/stop_command: issues are polled every 2s", "issue_comment: ", "none yet: Issues, Issue Assigned, Issue Labeled")
	})
	t.Run("polling", func(t *testing.T) {
		t.Parallel()
		h, site := giteaHouse(t, server, "carol", "", plan{agents: 2})
		h.runStories(t, site, pick(load(t, "../phase/testdata/scenarios/*.txtar", "testdata/signals/*.txtar", "testdata/gitea/*.txtar"),
			"comments_result", "stop_command", "written_changes"))
	})
}

// wantDoctor waits until doctor says all of these: what webhooks deliver is written down
// every few seconds.
func (h *house) wantDoctor(t *testing.T, wanted ...string) {
	t.Helper()
	again, late := time.NewTicker(100*time.Millisecond), time.NewTimer(5*time.Minute)
	defer again.Stop()
	defer late.Stop()
	for {
		said, _ := h.run(t, nil, "doctor", "--data", h.data(0))
		if !slices.ContainsFunc(wanted, func(text string) bool { return !strings.Contains(said, text) }) {
			return
		}
		select {
		case <-again.C:
		case <-late.C:
			t.Fatalf("doctor does not say %q:\n%s", wanted, said)
		}
	}
}

// pick takes the scenarios with the names.
func pick(all []*phasetest.Scenario, names ...string) (some []*phasetest.Scenario) {
	for _, name := range names {
		for _, scenario := range all {
			if scenario.Name == name {
				some = append(some, scenario)
			}
		}
	}
	return some
}
