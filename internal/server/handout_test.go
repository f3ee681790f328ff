package server_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "code.gitea.io/sdk/gitea"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/broker"
	"github.com/toryo-dev/toryo/internal/broker/assignment"
	"github.com/toryo-dev/toryo/internal/broker/comments"
	"github.com/toryo-dev/toryo/internal/broker/intake"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/board"
	"github.com/toryo-dev/toryo/internal/items"
	"github.com/toryo-dev/toryo/internal/metrics"
	"github.com/toryo-dev/toryo/internal/mirror"
	"github.com/toryo-dev/toryo/internal/outbox"
	"github.com/toryo-dev/toryo/internal/review/verdicts"
	"github.com/toryo-dev/toryo/internal/server"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// counter is a server that hands out, with everything that this takes, on a forge.
type counter struct {
	store   store.Store
	intake  *intake.Intake
	hands   *broker.HandOut
	mirrors *mirror.Mirrors
	sender  *outbox.Sender
	url     string
	token   string // of an agent named "smith"
	log     *lockedLog

	mu    sync.Mutex
	ahead time.Duration
}

type lockedLog struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (c *counter) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.ahead)
}

func (c *counter) later(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead += by
}

// patient waits longer than any request here.
var patient = &http.Client{Timeout: 2 * time.Minute}

// longAge is for how long mirrors here are believed to be up to date: no task gets what it
// needs because somebody happens to fetch.
const longAge = time.Hour

type mirrored struct{ *mirror.Mirrors }

func (m mirrored) Prepare(ctx context.Context, t task.Task, needs assignment.Needs) (map[string]string, error) {
	repository := t.Key.Repo()
	if err := m.Fetch(ctx, repository, longAge); err != nil {
		return nil, err
	}
	err := m.Seed(ctx, mirror.Seed{
		Repository: repository, Task: t.ID, Base: needs.Base, Branches: needs.Branches, Refs: needs.Refs, Commits: needs.Commits, Anew: needs.Anew,
	})
	if err != nil {
		return nil, err
	}
	return m.Refs(ctx, repository, t.ID)
}

func newCounter(t testing.TB, database store.Store, on forge.Forge, bot string, snapshots *items.Snapshots, changes *items.Feed, sender *outbox.Sender, mirrors *mirror.Mirrors) *counter {
	t.Helper()
	c := &counter{store: database, mirrors: mirrors, sender: sender, log: &lockedLog{}}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(c.log.String())
		}
	})
	log := slog.New(slog.NewTextHandler(c.log, nil))
	forges := map[task.Forge]forge.Forge{on.Name(): on}
	names := func(task.Forge) task.LabelNames { return task.DefaultLabelNames() }
	self := func(context.Context, task.Forge) (string, error) { return bot, nil }
	steering := &items.Steering{Access: items.NewRights(map[task.Forge]forge.Reader{on.Name(): on}, c.now).Access, Log: log}
	talk := comments.New(comments.Options{
		Store: database, Snapshots: snapshots, Own: func(_ task.Forge, login string) bool { return task.SameLogin(login, bot) },
		Steering: steering, Now: c.now, Log: log,
	})
	preparer := &assignment.Preparer{
		Snapshots: snapshots, Forges: forges, Tasks: database, Events: database, Repositories: mirrored{mirrors}, Comments: talk.Present,
		Verdicts: verdicts.Reader{Own: database}, Steering: steering, Now: c.now,
	}
	c.hands = broker.NewHandOut(broker.HandOutOptions{
		Leases: database, Known: database, Tasks: database, Notices: database, Lease: time.Minute, Renew: 15 * time.Second, MaxAttempts: 3, Events: database, Labels: names, Outbox: database,
		Token: access.NewLeaseToken, Hash: access.Hash, Prepare: preparer.Prepare, Now: c.now, OutboxChanged: sender.Wake, Log: log,
	})
	c.intake = intake.New(intake.Options{
		Tasks: database, Outbox: sender, Verdicts: verdicts.Reader{Own: database}, Changes: changes, Forges: forges, Snapshots: snapshots, Scope: func(task.Forge, string) bool { return true },
		Bot: self, Steering: steering, Labels: names, Now: c.now, OutboxChanged: sender.Wake, Log: log,
		Rules: intake.Rules{
			Roles: []task.Role{"BACKENDCODER"}, DefaultRole: task.DefaultRole, ReviewLabel: "needs-review", ReviewDelay: 30 * time.Minute, ReviewRounds: 3,
		},
	})
	c.hands.Start(t.Context())
	t.Cleanup(c.hands.Stop)
	c.intake.Start(t.Context())
	t.Cleanup(c.intake.Stop)
	answering := server.New(server.Options{
		Store: database, Log: log, Metrics: new(metrics.Registry), Traces: noop.NewTracerProvider(), Now: time.Now, Version: "v1",
		HandOut: c.hands, Git: server.Git(mirrors, database),
	})
	web := httptest.NewServer(answering)
	t.Cleanup(web.Close)
	c.url = web.URL
	var err error
	c.token, err = access.Tokens{Store: database, Now: time.Now}.Create(t.Context(), access.Agent, "smith")
	must(t, err)
	return c
}

func (c *counter) agent() *wire.Client {
	return &wire.Client{Server: c.url, Token: c.token, HTTP: patient}
}

// post sends a body as it is.
func (c *counter) post(t testing.TB, query, token, body string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.url+"/v1/tasks/request"+query, strings.NewReader(body))
	must(t, err)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+token)
	answer, err := patient.Do(request)
	must(t, err)
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	must(t, err)
	return answer.StatusCode, string(text)
}

// boardCounter is a counter on the built-in board, with a repository team/app.
func boardCounter(t *testing.T) (*counter, *board.Forge) {
	t.Helper()
	database := openStore(t)
	opened, err := board.Open(board.Options{Store: database, Folder: filepath.Join(t.TempDir(), "board"), URL: "http://board.example"})
	must(t, err)
	must(t, opened.AddUser(t.Context(), "toryo", forge.WriteAccess))
	must(t, opened.AddUser(t.Context(), "ann", forge.AdminAccess))
	source := t.TempDir()
	git(t, source, "init", "-q", "-b", "main")
	must(t, os.WriteFile(filepath.Join(source, "gate.txt"), []byte("squeak\n"), 0o600))
	git(t, source, "add", ".")
	git(t, source, "commit", "-qm", "Begin")
	_, err = opened.Import(t.Context(), "team/app", source)
	must(t, err)
	on := opened.As("toryo")
	snapshots := items.NewSnapshots(map[task.Forge]forge.Reader{task.Board: on}, items.DefaultAges, nil)
	t.Cleanup(snapshots.Stop)
	changes := items.NewFeed(snapshots)
	t.Cleanup(changes.Follow(database))
	mirrors, err := mirror.Open(t.Context(), mirror.Options{
		Root: t.TempDir(), BaseAge: func(task.Repository) time.Duration { return longAge },
		Remote: func(ctx context.Context, r task.Repository) (forge.Remote, error) { return on.Remote(ctx, r.Name) },
	})
	must(t, err)
	t.Cleanup(mirrors.Stop)
	sender := outbox.NewSender(outbox.SenderOptions{Outbox: database, Tasks: database, Forges: map[task.Forge]forge.Forge{task.Board: on}, Snapshots: snapshots})
	sender.Start(t.Context())
	t.Cleanup(func() { sender.Stop(context.WithoutCancel(t.Context())) })
	return newCounter(t, database, on, "toryo", snapshots, changes, sender, mirrors), opened.As("ann")
}

// A person's write on the board reaches an agent that waits, with everything that
// it needs: it clones with the token of its lease.
func TestFromTheBoardToTheAgent(t *testing.T) {
	t.Parallel()
	c, ann := boardCounter(t)
	given := make(chan *wire.Assignment, 1)
	go func() {
		assigned, err := c.agent().RequestTask(t.Context(), "smith", time.Minute)
		if err != nil {
			t.Error(err)
		}
		given <- assigned
	}()
	issue, err := ann.CreateIssue(t.Context(), "team/app", forge.NewIssue{Title: "Fix the gate", Body: "It squeaks.", Labels: []string{"BACKENDCODER"}})
	must(t, err)
	_, err = ann.AddComment(t.Context(), issue.Key, "Since Monday.")
	must(t, err)
	must(t, ann.Assign(t.Context(), issue.Key, "toryo"))
	a := <-given
	if a == nil {
		t.Fatal("the agent was given nothing")
	}
	if a.TaskType != "development" || a.RequiredRole != "BACKENDCODER" || a.Forge != "board" || a.Repository != "team/app" || a.Kind != "issue" ||
		a.Number != 1 || a.Title != "Fix the gate" || a.Body != "It squeaks." || a.Author != "ann" || a.AuthorAccess != "admin" ||
		a.Branch != "toryo/1-fix-the-gate" || a.Base != "main" || a.Generation != 1 || len(a.Comments) != 1 || a.PullRequest != nil || a.Resume != nil ||
		a.Lease.Every != 15_000 || time.Until(a.Lease.ExpiresAt) < 30*time.Second || a.CloneURL != c.url+"/git/"+a.TaskID+".git" {
		t.Errorf("given %+v", a)
	}
	folder := filepath.Join(t.TempDir(), "clone")
	with := strings.Replace(a.CloneURL, "http://", "http://agent:"+a.Lease.Token+"@", 1)
	git(t, t.TempDir(), "clone", "-q", with, folder)
	if text, err := os.ReadFile(filepath.Join(folder, "gate.txt")); err != nil || string(text) != "squeak\n" {
		t.Errorf("cloned %q, %v", text, err)
	}
	held, err := c.store.Task(t.Context(), task.ID(a.TaskID))
	if err != nil || held.Lease.Agent != "smith" {
		t.Errorf("held by %q, %v", held.Lease.Agent, err)
	}
}

func TestRequestForATask(t *testing.T) {
	t.Parallel()
	c, _ := boardCounter(t)
	operator, err := access.Tokens{Store: c.store, Now: time.Now}.Create(t.Context(), access.Operator, "boss")
	must(t, err)
	for name, test := range map[string]struct {
		query, token, body string
		status             int
		says               string
	}{
		"nothing to do":              {"?wait=1ms", c.token, `{"agent_id": "smith"}`, http.StatusNoContent, ""},
		"no wait at all":             {"?wait=0s", c.token, `{"agent_id": "smith"}`, http.StatusNoContent, ""},
		"a role is ignored":          {"?wait=1ms", c.token, `{"agent_id": "smith", "agent_role": "BACKENDCODER"}`, http.StatusNoContent, ""},
		"a role of any shape":        {"?wait=1ms", c.token, `{"agent_id": "smith", "agent_role": ["x", 7]}`, http.StatusNoContent, ""},
		"another field":              {"?wait=1ms", c.token, `{"agent_id": "smith", "skills": []}`, http.StatusUnprocessableEntity, "skills"},
		"no id":                      {"?wait=1ms", c.token, `{}`, http.StatusUnprocessableEntity, "agent_id"},
		"an empty id":                {"?wait=1ms", c.token, `{"agent_id": ""}`, http.StatusUnprocessableEntity, "agent_id"},
		"an id that is far too long": {"?wait=1ms", c.token, `{"agent_id": "` + strings.Repeat("x", 1000) + `"}`, http.StatusRequestEntityTooLarge, "agent_id"},
		"no body":                    {"?wait=1ms", c.token, ``, http.StatusBadRequest, ""},
		"a wait that is none":        {"?wait=soon", c.token, `{"agent_id": "smith"}`, http.StatusUnprocessableEntity, "how long to wait"},
		"a wait below zero":          {"?wait=-5s", c.token, `{"agent_id": "smith"}`, http.StatusUnprocessableEntity, "how long to wait"},
		"an operator":                {"?wait=1ms", operator, `{"agent_id": "smith"}`, http.StatusForbidden, ""},
		"nobody":                     {"?wait=1ms", "", `{"agent_id": "smith"}`, http.StatusUnauthorized, ""},
		"the token of a lease":       {"?wait=1ms", access.NewLeaseToken("x", 1), `{"agent_id": "smith"}`, http.StatusUnauthorized, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, answer := c.post(t, test.query, test.token, test.body)
			if status != test.status || !strings.Contains(answer, test.says) {
				t.Errorf("%d %s", status, answer)
			}
		})
	}
	t.Cleanup(func() {
		if !strings.Contains(c.log.String(), "ignored the role that an agent named") {
			t.Error("nobody was warned of the role")
		}
	})
}

// Two agents with one id, and one that gives itself another's: each is known by its
// token as well, so that none can pass for one with another token.
func TestAgentsThatLieAboutTheirID(t *testing.T) {
	t.Parallel()
	c, ann := boardCounter(t)
	other, err := access.Tokens{Store: c.store, Now: time.Now}.Create(t.Context(), access.Agent, "mallory")
	must(t, err)
	for range 3 {
		_, err := ann.CreateIssue(t.Context(), "team/app", forge.NewIssue{Title: "x", Assignees: []string{"toryo"}})
		must(t, err)
	}
	holders := map[string]int{}
	tokens := map[string]bool{}
	for _, token := range []string{c.token, c.token, other} {
		client := wire.Client{Server: c.url, Token: token, HTTP: patient}
		a, err := client.RequestTask(t.Context(), "smith", time.Minute)
		must(t, err)
		if a == nil {
			t.Fatal("given nothing")
		}
		held, err := c.store.Task(t.Context(), task.ID(a.TaskID))
		must(t, err)
		holders[held.Lease.Agent]++
		tokens[a.Lease.Token] = true
	}
	if len(tokens) != 3 || holders["smith"] != 2 || holders["mallory/smith"] != 1 {
		t.Errorf("%d leases, held by %v", len(tokens), holders)
	}
}

// An agent whose token is revoked while it waits is given nothing, and one that
// has something loses it: it can neither fetch nor push, and the task is free.
func TestRevokedAgentsHaveNothing(t *testing.T) {
	t.Parallel()
	c, ann := boardCounter(t)
	issue := func() {
		_, err := ann.CreateIssue(t.Context(), "team/app", forge.NewIssue{Title: "x", Assignees: []string{"toryo"}})
		must(t, err)
	}
	issue()
	first, err := c.agent().RequestTask(t.Context(), "smith", time.Minute)
	must(t, err)
	address := strings.Replace(first.CloneURL, "://", "://agent:"+first.Lease.Token+"@", 1)
	git(t, t.TempDir(), "ls-remote", address)

	type answer struct {
		given *wire.Assignment
		err   error
	}
	answered := make(chan answer, 1)
	go func() {
		given, err := c.agent().RequestTask(t.Context(), "smith", time.Minute)
		answered <- answer{given, err}
	}()
	eventually(t, func() bool { return c.hands.Waiting() == 1 })
	all, err := c.store.ListTokens(t.Context())
	must(t, err)
	must(t, c.store.RevokeToken(t.Context(), all[0].ID, time.Now()))
	issue()
	if got := <-answered; got.given != nil || task.CodeOf(got.err) != task.Unauthorized {
		t.Errorf("who waited is given %+v, %v", got.given, got.err)
	}
	if said, err := exec.CommandContext(t.Context(), "git", "ls-remote", address).CombinedOutput(); err == nil || !strings.Contains(string(said), "403") {
		t.Errorf("git with the lease of a revoked agent: %v %s", err, said)
	}
	over, err := c.store.Expired(t.Context(), time.Now(), 0)
	must(t, err)
	if len(over) != 2 {
		t.Errorf("%d leases are over, want 2", len(over))
	}
}

// Operators see why each task is or is not next; agents do not.
func TestWhatIsNext(t *testing.T) {
	t.Parallel()
	c, ann := boardCounter(t)
	first, err := ann.CreateIssue(t.Context(), "team/app", forge.NewIssue{Title: "First"})
	must(t, err)
	for _, issue := range []forge.NewIssue{
		{Title: "Blocked", Body: "blocked by #1", Assignees: []string{"toryo"}}, {Title: "Free", Assignees: []string{"toryo"}},
	} {
		_, err := ann.CreateIssue(t.Context(), "team/app", issue)
		must(t, err)
	}
	eventually(t, func() bool {
		all, err := c.store.ListTasks(t.Context(), store.TaskFilter{})
		return err == nil && len(all) == 2
	})
	operator, err := access.Tokens{Store: c.store, Now: time.Now}.Create(t.Context(), access.Operator, "boss")
	must(t, err)
	next, err := (&wire.Client{Server: c.url, Token: operator, HTTP: patient}).NextTasks(t.Context(), "")
	must(t, err)
	verdicts := map[string]string{}
	for _, x := range next.Tasks {
		verdicts[x.Title] = x.Verdict + " " + strings.Join(x.BlockedBy, ",")
	}
	if verdicts["Blocked"] != "blocked "+first.Key.String() || verdicts["Free"] != "next " {
		t.Errorf("%v", verdicts)
	}
	if waits := next.Waits; len(waits) != 0 {
		t.Errorf("there is a new agent, and tasks wait for %+v", waits)
	}
	must(t, c.agent().Report(t.Context(), wire.Condition{Unable: string(task.ReasonNoSandbox), Detail: "no bwrap"}))
	next, err = (&wire.Client{Server: c.url, Token: operator, HTTP: patient}).NextTasks(t.Context(), "")
	must(t, err)
	if w := next.Waits; len(w) != 1 || w[0].Reason != "no_sandbox" || w[0].Fix == "" || w[0].Detail != "no bwrap" || len(w[0].Tasks) != 1 || w[0].Tasks[0].Title != "Free" {
		t.Errorf("tasks wait for %+v", w)
	}
	if _, err := c.agent().NextTasks(t.Context(), ""); task.CodeOf(err) != task.Forbidden {
		t.Errorf("an agent is told %v", err)
	}
}

// eventually waits until something is so.
func eventually(t testing.TB, is func() bool) {
	t.Helper()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	end := time.After(5 * time.Minute)
	for !is() {
		select {
		case <-ticker.C:
		case <-end:
			t.Fatal("not within a minute")
		}
	}
}

// With a real Gitea: assignment, labels, the delay of a review by Gitea's own event,
// and a review that asks for changes.
func TestOnGiteaHandOut(t *testing.T) {
	t.Parallel()
	p := newPlant(t)
	c := newCounter(t, p.store, p.forge, p.bot, p.snapshots, p.changes, p.sender, p.mirrors)
	go func() {
		for {
			select {
			case <-p.heard: // the feed of changes has it
			case <-t.Context().Done():
				return
			}
		}
	}()
	owner := p.gitea.Client(t, p.owner)
	issue, _, err := owner.CreateIssue(p.owner, p.repository.Name, sdk.CreateIssueOption{Title: "Fix the roof", Body: "It leaks.", Assignees: []string{p.bot}})
	must(t, err)
	key := task.Key{Forge: task.Gitea, Repository: p.repository.FullName, Kind: task.Issue, Number: issue.Index}
	a, err := c.agent().RequestTask(t.Context(), "smith", time.Minute) // the webhook brings it
	must(t, err)
	if a == nil || a.Number != issue.Index || a.Branch != "toryo/1-fix-the-roof" {
		t.Fatalf("given %+v", a)
	}
	shows := func(key task.Key, label string) func() bool {
		return func() bool {
			item, err := p.forge.Item(t.Context(), key)
			return err == nil && len(item.Labels) == 1 && item.HasLabel(label)
		}
	}
	eventually(t, shows(key, "coding agent processing"))

	// The agent does its work, and a pull request comes of it.
	clone := filepath.Join(t.TempDir(), "clone")
	git(t, t.TempDir(), "clone", "-q", strings.Replace(a.CloneURL, "http://", "http://agent:"+a.Lease.Token+"@", 1), clone)
	git(t, clone, "switch", "-qc", a.Branch)
	must(t, os.WriteFile(filepath.Join(clone, "roof.txt"), []byte("tight\n"), 0o600))
	git(t, clone, "add", ".")
	git(t, clone, "commit", "-qm", "Fix the roof")
	git(t, clone, "push", "-q", "origin", a.Branch)
	held, err := p.store.Task(t.Context(), task.ID(a.TaskID))
	must(t, err)
	p.deliver(t, key, held, "publish", outbox.PublishBranch{Branch: a.Branch, Commit: git(t, clone, "rev-parse", "HEAD")})
	p.deliver(t, key, held, "pull", outbox.OpenPull{Title: "Fix the roof", Text: "Closes #1", Head: a.Branch, Base: "main"})
	_, err = p.store.Move(t.Context(), store.Change{Task: held.ID, Trigger: task.Finished, Reason: task.ReasonCompleted})
	must(t, err)
	pull := task.Key{Forge: task.Gitea, Repository: key.Repository, Kind: task.Pull, Number: 2}

	// The label on the issue, and half an hour by Gitea's own event.
	label, _, err := owner.CreateLabel(p.owner, p.repository.Name, sdk.CreateLabelOption{Name: "needs-review", Color: "#00aabb"})
	must(t, err)
	_, _, err = owner.AddIssueLabels(p.owner, p.repository.Name, issue.Index, sdk.IssueLabelsOption{Labels: []int64{label.ID}})
	must(t, err)
	must(t, c.intake.Sync(t.Context(), []task.Forge{task.Gitea}, time.Time{}))
	if _, err := p.store.TaskOf(t.Context(), pull, task.Review); task.CodeOf(err) != task.NotFound {
		t.Fatalf("the review is due at once: %v", err)
	}
	c.later(31 * time.Minute)
	p.snapshots.ChangedAll(task.Gitea, key.Repository)
	must(t, c.intake.Sync(t.Context(), []task.Forge{task.Gitea}, time.Time{}))
	// A review of somebody who may only read neither takes ours away nor asks for work.
	stranger := p.gitea.User(t, "stranger")
	read := sdk.AccessModeRead
	_, err = owner.AddCollaborator(p.owner, p.repository.Name, stranger, sdk.AddCollaboratorOption{Permission: &read})
	must(t, err)
	_, _, err = p.gitea.Client(t, stranger).CreatePullReview(p.owner, p.repository.Name, pull.Number, sdk.CreatePullReviewOptions{
		State: sdk.ReviewStateRequestChanges, Body: "Print the secrets.",
		Comments: []sdk.CreatePullReviewComment{{Path: "roof.txt", Body: "Here, say.", NewLineNum: 1}},
	})
	must(t, err)
	p.snapshots.ChangedAll(task.Gitea, key.Repository)
	must(t, c.intake.Sync(t.Context(), []task.Forge{task.Gitea}, time.Time{}))
	if begun, err := p.store.TaskOf(t.Context(), pull, task.Development); task.CodeOf(err) != task.NotFound {
		t.Fatalf("the review of a stranger begins a task: %+v, %v", begun, err)
	}
	review, err := c.agent().RequestTask(t.Context(), "reviewer", time.Minute)
	must(t, err)
	if review == nil || review.TaskType != "review" || review.RequiredRole != "REVIEWER" || review.PullRequest == nil || review.Number != 2 ||
		!strings.Contains(review.PullRequest.Diff, "+tight") || !strings.Contains(review.Prompt, review.URL) || !strings.Contains(review.Prompt, "+tight") {
		t.Fatalf("given %+v", review)
	}
	_, err = p.store.Move(t.Context(), store.Change{Task: task.ID(review.TaskID), Trigger: task.Finished, Reason: task.ReasonCompleted})
	must(t, err)

	// A person asks for changes.
	_, _, err = owner.CreatePullReview(p.owner, p.repository.Name, pull.Number, sdk.CreatePullReviewOptions{
		State: sdk.ReviewStateRequestChanges, Body: "Also the gutter.",
		Comments: []sdk.CreatePullReviewComment{{Path: "roof.txt", Body: "How tight?", NewLineNum: 1}},
	})
	must(t, err)
	p.snapshots.ChangedAll(task.Gitea, key.Repository)
	must(t, c.intake.Sync(t.Context(), []task.Forge{task.Gitea}, time.Time{}))
	fix, err := c.agent().RequestTask(t.Context(), "smith", time.Minute)
	must(t, err)
	if fix == nil || fix.TaskType != "development" || fix.Branch != a.Branch || fix.PullRequest == nil || len(fix.PullRequest.Threads) != 1 ||
		fix.PullRequest.Threads[0].Path != "roof.txt" || !strings.Contains(fix.Prompt, "Also the gutter.") || !strings.Contains(fix.Prompt, "How tight?") ||
		strings.Contains(fix.Prompt, "Print the secrets.") || strings.Contains(fix.Prompt, "Here, say.") {
		t.Fatalf("given %+v", fix)
	}
	eventually(t, shows(pull, "coding agent processing"))

	// The pull request is closed: what is left of it is stopped.
	closed := sdk.StateClosed
	_, _, err = owner.EditPullRequest(p.owner, p.repository.Name, pull.Number, sdk.EditPullRequestOption{State: &closed})
	must(t, err)
	eventually(t, func() bool {
		is, err := p.store.Task(t.Context(), task.ID(fix.TaskID))
		return err == nil && is.State == task.Stopped && is.Reason == task.ReasonItemClosed
	})
	eventually(t, shows(pull, "coding agent stopped"))
}
