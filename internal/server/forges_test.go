package server_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "code.gitea.io/sdk/gitea"

	"github.com/toryo-dev/toryo/internal/broker"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/gitea"
	"github.com/toryo-dev/toryo/internal/forge/transport"
	"github.com/toryo-dev/toryo/internal/items"
	"github.com/toryo-dev/toryo/internal/mirror"
	"github.com/toryo-dev/toryo/internal/outbox"
	"github.com/toryo-dev/toryo/internal/server"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
)

// plant is the whole forge side of the server, put together as the program does
// it, with a real Gitea at the other end.
type plant struct {
	gitea      *testkit.GiteaServer
	owner, bot string
	repository *sdk.Repository
	store      store.Store
	way        *transport.Transport
	forge      *gitea.Forge
	snapshots  *items.Snapshots
	changes    *items.Feed
	trust      *items.WebhookTrust
	sender     *outbox.Sender
	mirrors    *mirror.Mirrors
	url        string
	holder     mirror.Holder
	heard      chan forge.Delivery
	later      atomic.Int64 // how far the time is ahead by which webhooks are judged
}

func newPlant(t testing.TB) *plant {
	t.Helper()
	p := &plant{gitea: testkit.Gitea(t), store: openStore(t), heard: make(chan forge.Delivery, 1000)}
	p.owner, p.bot = p.gitea.User(t, "owner"), p.gitea.User(t, "bot")
	p.repository = p.gitea.Repository(t, p.owner, true)
	write := sdk.AccessModeWrite
	_, err := p.gitea.Client(t, p.owner).AddCollaborator(p.owner, p.repository.Name, p.bot, sdk.AddCollaboratorOption{Permission: &write})
	must(t, err)

	p.way = transport.New(transport.Options{Name: "gitea", Cache: broker.Answers{Store: p.store}})
	p.forge, err = gitea.New(gitea.Options{URL: p.gitea.URL, Token: p.gitea.Token(t, p.bot), HTTP: forge.HTTPClient(p.way)})
	must(t, err)
	p.snapshots = items.NewSnapshots(map[task.Forge]forge.Reader{task.Gitea: p.forge}, items.DefaultAges, nil)
	p.changes = items.NewFeed(p.snapshots)
	t.Cleanup(p.snapshots.Stop)
	p.trust = items.NewWebhookTrust(items.TrustOptions{
		Store: p.store, Events: map[task.Forge]forge.WebhookEvents{task.Gitea: gitea.WebhookEvents}, Ages: items.DefaultAges,
		Now: func() time.Time { return time.Now().Add(time.Duration(p.later.Load())) },
	})
	p.snapshots.TrustWebhooks(p.trust)
	must(t, p.trust.SetRepositories(t.Context(), task.Gitea, []string{p.repository.FullName}))
	p.mirrors, err = mirror.Open(t.Context(), mirror.Options{
		Root: t.TempDir(),
		Remote: func(ctx context.Context, r task.Repository) (forge.Remote, error) {
			return p.forge.Remote(ctx, r.Name)
		},
	})
	must(t, err)
	t.Cleanup(p.mirrors.Stop)
	p.sender = outbox.NewSender(outbox.SenderOptions{
		Outbox: p.store, Tasks: p.store, Forges: map[task.Forge]forge.Forge{task.Gitea: p.forge}, Snapshots: p.snapshots,
		Publish: func(ctx context.Context, b outbox.Publication) (outbox.Published, error) {
			commit, err := p.mirrors.Publish(ctx, mirror.Publication(b))
			return outbox.Published{Commit: commit}, err
		},
	})
	p.sender.Start(t.Context())
	t.Cleanup(func() { p.sender.Stop(context.WithoutCancel(t.Context())) })
	p.serve(t)
	return p
}

// serve starts our server and tells Gitea to send webhooks to it.
func (p *plant) serve(t testing.TB) {
	t.Helper()
	hooks := &server.Webhooks{
		Forges: map[task.Forge]server.Webhook{task.Gitea: {Signed: gitea.SignedWebhook, Parse: gitea.ParseWebhook, Secret: secret, Self: p.bot}},
		Seen:   p.store, Changes: p.changes, Log: slog.New(slog.DiscardHandler), Now: time.Now,
		Count: func(delivery forge.Delivery, at time.Time) {
			p.trust.Delivered(delivery, at)
			p.heard <- delivery
		},
	}
	mux := http.NewServeMux()
	hooks.Register(mux)
	mux.Handle("/git/", http.StripPrefix("/git", p.mirrors.Handler(func(_ context.Context, _ task.ID, token string) (mirror.Holder, error) {
		if token != "lease" {
			return mirror.Holder{}, task.Errorf(task.LeaseLost, "the run is over")
		}
		return p.holder, nil
	})))
	ours := httptest.NewServer(mux)
	t.Cleanup(ours.Close)
	p.url = ours.URL
	_, _, err := p.gitea.Client(t, p.owner).CreateRepoHook(p.owner, p.repository.Name, sdk.CreateHookOption{
		Type: sdk.HookTypeGitea, Active: true, Events: []string{"push", "issues", "issue_comment", "issue_label", "issue_assign", "pull_request"},
		Config: map[string]string{"url": ours.URL + "/webhooks/gitea", "content_type": "json", "secret": secret},
	})
	must(t, err)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// issue opens an issue and makes a task of it.
func (p *plant) issue(t testing.TB) (task.Key, task.Task) {
	t.Helper()
	issue, _, err := p.gitea.Client(t, p.owner).CreateIssue(p.owner, p.repository.Name, sdk.CreateIssueOption{Title: "Fix the roof"})
	must(t, err)
	key := task.Key{Forge: task.Gitea, Repository: p.repository.FullName, Kind: task.Issue, Number: issue.Index}
	made, _, err := p.store.Assign(t.Context(), store.NewTask{Key: key, Type: task.Development, Branch: "toryo/1", Reason: task.ReasonAssigned}, nil)
	must(t, err)
	p.holder = mirror.Holder{Task: made.ID, Generation: made.Generation, Repository: task.Repository{Forge: task.Gitea, Name: key.Repository}}
	return key, made
}

// deliver puts an action and waits until it is delivered.
func (p *plant) deliver(t testing.TB, key task.Key, run task.Task, what string, payload outbox.Payload) store.Action {
	t.Helper()
	action, err := outbox.NewAction(outbox.Write{Item: key, Task: run.ID, Generation: run.Generation, What: what}, payload)
	must(t, err)
	_, err = p.sender.Put(t.Context(), action)
	must(t, err)
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		stored, err := p.store.Action(t.Context(), action.IdempotencyKey)
		must(t, err)
		switch stored.Status {
		case store.Delivered:
			return stored
		case store.Refused:
			t.Fatalf("%s was refused: %s", what, stored.LastError)
		}
		select {
		case <-t.Context().Done():
			t.Fatalf("%s was not delivered: %s", what, stored.LastError)
		case <-again.C:
		}
	}
}

// await waits for a webhook that the test is about.
func (p *plant) await(t testing.TB, wanted func(forge.Delivery) bool) {
	t.Helper()
	for {
		select {
		case delivery := <-p.heard:
			if wanted(delivery) {
				return
			}
		case <-time.After(5 * time.Minute):
			t.Fatal("Gitea did not send the webhook")
		}
	}
}

// awaitTrust waits until every event that tells of the item was delivered.
func (p *plant) awaitTrust(t testing.TB, key task.Key) {
	t.Helper()
	again, late := time.NewTicker(20*time.Millisecond), time.NewTimer(5*time.Minute)
	defer again.Stop()
	defer late.Stop()
	for {
		must(t, p.trust.Refresh(t.Context()))
		if p.trust.MaxAge(key) > items.DefaultAges.Shortest {
			return
		}
		select {
		case <-again.C:
		case <-late.C:
			known, err := p.store.ListWebhookEvents(t.Context())
			t.Fatalf("webhooks earned no trust; delivered were %+v, %v", known, err)
		}
	}
}

func git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "git", args...)
	command.Dir = dir
	command.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org")
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", args[0], err, output)
	}
	return strings.TrimSpace(string(output))
}

// TestOnGitea carries an issue to a pull request on a real forge: reading,
// writing, webhooks and git, each through the parts that the server uses.
func TestOnGitea(t *testing.T) {
	t.Parallel()
	p := newPlant(t)
	ctx := t.Context()
	key, run := p.issue(t)

	p.deliver(t, key, run, "started", outbox.Comment{Text: "On it, @" + p.owner + " and @stranger.\n/close"})
	p.deliver(t, key, run, "label", outbox.StateLabel{Label: "coding agent processing", Others: []string{"coding agent"}})
	p.deliver(t, key, run, "progress/1", outbox.Progress{Name: "run", Text: "one"})
	p.deliver(t, key, run, "progress/2", outbox.Progress{Name: "run", Text: "two"})
	snapshot, err := p.snapshots.Get(ctx, key, 0)
	must(t, err)
	var bodies []string
	for _, comment := range snapshot.Comments {
		bodies = append(bodies, forge.StripMarker(comment.Body))
	}
	want := "On it, @" + p.owner + " and @\u200bstranger.\n\\/close|two"
	if got := strings.Join(bodies, "|"); got != want || !snapshot.Item.HasLabel("coding agent processing") {
		t.Errorf("the issue has the comments %q, want %q, and the labels %q", got, want, snapshot.Item.Labels)
	}

	// A person comments: the webhook makes the next snapshot a new one, however
	// old it might be.
	_, _, err = p.gitea.Client(t, p.owner).CreateIssueComment(p.owner, p.repository.Name, key.Number, sdk.CreateIssueCommentOption{Body: "stop"})
	must(t, err)
	p.await(t, func(d forge.Delivery) bool { return d.Event == "issue_comment" && d.Actor == p.owner })
	snapshot, err = p.snapshots.Get(ctx, key, 24*time.Hour)
	must(t, err)
	if last := snapshot.Comments[len(snapshot.Comments)-1]; last.Body != "stop" {
		t.Errorf("the last comment is %q", last.Body)
	}
	if got := p.trust.MaxAge(key); got != items.DefaultAges.Shortest {
		t.Errorf("no assignment was delivered yet, but snapshots may be %s old", got)
	}
	_, _, err = p.gitea.Client(t, p.owner).EditIssue(p.owner, p.repository.Name, key.Number, sdk.EditIssueOption{Assignees: []string{p.bot}})
	must(t, err)
	p.awaitTrust(t, key)

	// The agent's work goes through the mirror and is published with a pull
	// request.
	commit := p.work(t, run.ID)
	sent := p.deliver(t, key, run, "publish", outbox.PublishBranch{Branch: "toryo/1", Commit: commit})
	var published outbox.Published
	must(t, json.Unmarshal(sent.Result, &published))
	p.await(t, func(d forge.Delivery) bool { return d.Kind == forge.Pushed && d.Branch == "toryo/1" })
	opened := p.deliver(t, key, run, "pull", outbox.OpenPull{Title: "Fix it", Text: "Fixes #1", Head: "toryo/1", Base: "main"})
	var pulled outbox.Pulled
	must(t, json.Unmarshal(opened.Result, &pulled))
	pull, err := p.forge.Item(ctx, task.Key{Forge: task.Gitea, Repository: key.Repository, Kind: task.Pull, Number: pulled.Number})
	must(t, err)
	if pull.HeadCommit != published.Commit || published.Commit == commit || !pulled.Opened {
		t.Errorf("the pull request is at %s, published was %s of %s", pull.HeadCommit, published.Commit, commit)
	}

	// Somebody removes the webhook: the next comment is found by polling only.
	owner := p.gitea.Client(t, p.owner)
	hooks, _, err := owner.ListRepoHooks(p.owner, p.repository.Name, sdk.ListHooksOptions{})
	must(t, err)
	for _, hook := range hooks {
		_, err := owner.DeleteRepoHook(p.owner, p.repository.Name, hook.ID)
		must(t, err)
	}
	p.later.Add(int64(items.DefaultAges.Grace))
	must(t, p.trust.Refresh(ctx))
	if got := p.trust.MaxAge(key); got <= items.DefaultAges.Shortest {
		t.Errorf("every webhook came, but the trust was lost: snapshots may only be %s old", got)
	}
	_, _, err = owner.CreateIssueComment(p.owner, p.repository.Name, key.Number, sdk.CreateIssueCommentOption{Body: "go on"})
	must(t, err)
	_, err = p.snapshots.Get(ctx, key, 0)
	must(t, err)
	p.later.Add(int64(items.DefaultAges.Grace))
	must(t, p.trust.Refresh(ctx))
	if got := p.trust.MaxAge(key); got != items.DefaultAges.Shortest {
		t.Errorf("no webhook told of the comment, but snapshots may be %s old", got)
	}
	t.Logf("what it cost: %+v, %d fetches", p.way.Counts(), p.mirrors.Fetches())
}

// work clones from the mirror, commits and pushes as an agent does.
func (p *plant) work(t testing.TB, id task.ID) string {
	t.Helper()
	must(t, p.mirrors.Fetch(t.Context(), p.holder.Repository, time.Minute))
	must(t, p.mirrors.Seed(t.Context(), mirror.Seed{Repository: p.holder.Repository, Task: id, Base: "main"}))
	work := t.TempDir()
	git(t, "", "clone", "--quiet", p.address(id), work)
	git(t, work, "checkout", "--quiet", "-b", "toryo/1")
	must(t, os.WriteFile(filepath.Join(work, "roof.txt"), []byte("fixed\n"), 0o600))
	git(t, work, "add", "-A")
	git(t, work, "commit", "--quiet", "-m", "Fix the roof")
	git(t, work, "push", "--quiet", "origin", "toryo/1")
	return git(t, work, "rev-parse", "HEAD")
}

func (p *plant) address(id task.ID) string {
	return strings.Replace(p.url, "http://", "http://agent:lease@", 1) + "/git/" + string(id) + ".git"
}
