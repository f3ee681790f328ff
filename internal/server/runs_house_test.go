package server

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace/noop"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/broker"
	"github.com/toryo-dev/toryo/internal/broker/comments"
	"github.com/toryo-dev/toryo/internal/broker/intake"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/dummy"
	"github.com/toryo-dev/toryo/internal/inspect"
	"github.com/toryo-dev/toryo/internal/items"
	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/llm/ledger"
	"github.com/toryo-dev/toryo/internal/metrics"
	"github.com/toryo-dev/toryo/internal/outbox"
	"github.com/toryo-dev/toryo/internal/review"
	"github.com/toryo-dev/toryo/internal/review/verdicts"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/store/postgres"
	"github.com/toryo-dev/toryo/internal/store/sqlite"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
	"github.com/toryo-dev/toryo/internal/wire"
)

// onBoth runs a test on both databases.
func onBoth(t *testing.T, test func(t *testing.T, database store.Store)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		database, err := sqlite.Open(t.Context(), testkit.SQLite(t, sqlite.Open))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = database.Close() })
		test(t, database)
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		database, err := postgres.Open(t.Context(), testkit.Postgres(t))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = database.Close() })
		test(t, database)
	})
}

// lockedBuffer is a log that many write to.
type lockedBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.String()
}

// maskedSecret is a secret of the server.
const maskedSecret = "correct-horse-battery"

// workshop is a server with everything that runs need, on a forge in memory.
type workshop struct {
	house
	forge      *dummy.Forge
	sender     *outbox.Sender
	snapshots  *items.Snapshots
	changes    *items.Feed
	notifier   *broker.Notifier
	runs       *broker.Runs
	controller *broker.Controller
	talk       *comments.Log
	steering   *items.Steering
	watcher    *broker.Watcher
	intake     *intake.Intake
	pauseFile  string
	later      atomic.Int64 // how far the clock is ahead, in nanoseconds
	published  sync.Map     // branch to commit
	findings   sync.Map     // by the commit in which they are: []inspect.Found, or an error
	retracted  sync.Map     // commits
	coAuthors  sync.Map     // by the commit that was published: []string
	drafts     sync.Map     // whether the pull request was a draft when that was pushed
	rejected   sync.Map     // by the commit that is not taken: an error
	logged     *lockedBuffer
}

// workshopAttempts is how many attempts a task has.
const workshopAttempts = 3

func (w *workshop) now() time.Time { return time.Now().Add(time.Duration(w.later.Load())) }

// pass lets time pass, for everyone but the database.
func (w *workshop) pass(d time.Duration) { w.later.Add(int64(d)) }

// setting is what a workshop can be told.
type setting struct {
	accept  items.Accept
	reviews bool
	// patience is how long a caller may take to read.
	patience time.Duration
	limits   Limits
	refuse   bool // what nobody asked for is not even published as a draft
	silent   bool // comments are not taken up while runs work
}

// addressBook has the addresses of people.
type addressBook map[string]forge.Address

// Address implements forge.Addresses.
func (b addressBook) Address(_ context.Context, login string) (forge.Address, error) {
	if login == "ill" {
		return forge.Address{}, task.Errorf(task.Unavailable, "the forge does not answer")
	}
	return b[login], nil
}

const (
	repository = "team/app"
	bot        = "toryo-bot"
)

func newWorkshop(t *testing.T, database store.Store, settings ...setting) *workshop {
	t.Helper()
	var set setting
	if len(settings) > 0 {
		set = settings[0]
	}
	w := &workshop{forge: dummy.New(task.Gitea, bot), notifier: new(broker.Notifier)}
	t.Cleanup(w.notifier.Follow(database))
	w.forge.AddRepository(repository, forge.Remote{})
	w.forge.SetBranch(repository, "main", "c0")
	log := new(lockedBuffer)
	w.logged = log
	logger := slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(log.String())
		}
	})
	w.snapshots = items.NewSnapshots(map[task.Forge]forge.Reader{task.Gitea: w.forge}, items.DefaultAges, nil)
	w.changes = items.NewFeed(w.snapshots)
	t.Cleanup(w.snapshots.Stop)
	if set.reviews {
		w.snapshots.ReadReviews(map[task.Forge]items.ReviewSource{task.Gitea: w.forge})
	}
	w.sender = outbox.NewSender(outbox.SenderOptions{
		Mask:   strings.NewReplacer(maskedSecret, "[masked]").Replace,
		Outbox: database, Tasks: database, Forges: map[task.Forge]forge.Forge{task.Gitea: w.forge}, Snapshots: w.snapshots, Log: logger,
		ProgressEvery: time.Millisecond,
		Publish: func(ctx context.Context, p outbox.Publication) (outbox.Published, error) {
			if why, is := w.rejected.Load(p.Commit); is {
				return outbox.Published{}, why.(error)
			}
			if pull, found, err := w.forge.FindPull(ctx, repository, p.Branch, ""); err == nil && found {
				w.drafts.Store(p.Commit, pull.Draft)
			}
			w.published.Store(p.Branch, p.Commit)
			w.coAuthors.Store(p.Commit, p.CoAuthors)
			w.forge.SetBranch(repository, p.Branch, p.Commit)
			return madeOf(p), nil
		},
	})
	w.sender.Start(t.Context())
	t.Cleanup(func() { w.sender.Stop(context.WithoutCancel(t.Context())) })
	own := func(_ task.Forge, login string) bool { return task.SameLogin(strings.TrimSuffix(login, "[bot]"), bot) }
	words := &broker.StatusText{
		Labels: func(task.Forge) task.LabelNames { return task.DefaultLabelNames() }, Language: "auto", Snapshots: w.snapshots,
		GitURL:  func(id task.ID) string { return "https://toryo.example/git/" + string(id) + ".git" },
		GitKept: 30 * 24 * time.Hour, Now: w.now,
	}
	rights := items.NewRights(map[task.Forge]forge.Reader{task.Gitea: w.forge}, w.now)
	w.steering = &items.Steering{Accept: cmp.Or(set.accept, items.FromAll), Access: rights.Access, Log: logger}
	receipts := &broker.Receipts{Store: database, URL: "https://toryo.example", Mask: strings.NewReplacer(maskedSecret, "[masked]").Replace}
	if err := receipts.MakeKey(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.talk = comments.New(comments.Options{
		Store: database, Snapshots: w.snapshots, Own: own, Steering: w.steering, Disabled: set.silent, Now: w.now, Log: logger,
	})
	w.runs = broker.NewRuns(broker.RunOptions{
		Receipts: receipts, Comments: w.talk, MaxAttempts: workshopAttempts, Watch: database.WatchPull,
		Store: database, Sender: w.sender, Snapshots: w.snapshots, Changes: w.changes, Notifier: w.notifier, Status: words, Own: own, Now: w.now, Log: logger,
		Base:   func(context.Context, task.Task) (string, error) { return "main", nil },
		Forges: map[task.Forge]forge.Reader{task.Gitea: w.forge}, Reviews: map[task.Forge]items.ReviewSource{task.Gitea: w.forge}, Steering: w.steering,
		Addresses: map[task.Forge]forge.Addresses{task.Gitea: addressBook{
			"alice": {Name: "Alice <A>\nX-By: x", Email: "1+alice@users.example.org"}, "bob": {Email: "bob@example.org"}, "eve": {Name: "Eve", Email: "no address"},
			"mallory": {Email: "mallory@example.org"}, bot: {Email: "bot@example.org"},
		}},
		Gate: broker.Gate{
			Refuse: set.refuse,
			Inspect: func(_ context.Context, p outbox.Publication) ([]inspect.Found, error) {
				found, _ := w.findings.Load(p.Commit)
				if wrong, is := found.(error); is {
					return nil, wrong
				}
				all, _ := found.([]inspect.Found)
				return all, nil
			},
			Retract: func(_ context.Context, p outbox.Publication) error {
				w.retracted.Store(p.Commit, true)
				return nil
			},
		},
	})
	w.pauseFile = filepath.Join(t.TempDir(), "pause_signal")
	w.controller = broker.NewController(broker.ControllerOptions{
		Store: database, Sender: w.sender, Status: words, Expiry: 30 * 24 * time.Hour, Now: w.now, Log: logger,
		PauseFile: w.pauseFile, PauseSource: "file", LookFirst: func(ctx context.Context, t task.Task) error { return w.watcher.LookNow(ctx, t) },
	})
	labels := func(task.Forge) task.LabelNames { return task.DefaultLabelNames() }
	w.intake = intake.New(intake.Options{
		Tasks: database, Outbox: w.sender, Verdicts: verdicts.Reader{Own: database}, Changes: w.changes, Forges: map[task.Forge]forge.Forge{task.Gitea: w.forge}, Snapshots: w.snapshots,
		Scope: func(task.Forge, string) bool { return true }, Bot: func(context.Context, task.Forge) (string, error) { return bot, nil },
		Steering: w.steering, Labels: labels, TakenUp: w.talk.TakenUp, Stop: w.controller.Unwanted, Now: w.now, OutboxChanged: w.sender.Wake, Log: logger,
	})
	w.watcher = broker.NewWatcher(broker.WatchOptions{
		Tasks: database, Changes: w.changes, Snapshots: w.snapshots, Comments: w.talk, Wanted: w.intake.Look, Answered: w.controller.Answered, Now: w.now, Log: logger,
	})
	w.watcher.Start(t.Context())
	t.Cleanup(w.watcher.Stop)
	books := ledger.Ledger{Store: database, Limits: llm.Limits{Task: llm.Amount{Tokens: 1000}}, Now: time.Now}
	reviews := review.New(review.Options{Store: database, Wake: w.sender.Wake, Now: w.now, Log: logger})
	t.Cleanup(reviews.Stop)
	s := New(Options{
		Store: database, Log: logger, Metrics: new(metrics.Registry), Traces: noop.NewTracerProvider(), Now: w.now, Version: "v1",
		Runs: w.runs, Reviews: reviews, Ledger: books, Controller: w.controller, Notifier: w.notifier, WriteTimeout: set.patience, Limits: set.limits,
		Needs: (&broker.Needs{Store: database, Now: w.now}).List,
	})
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)
	w.house = house{server: s, web: web, store: database}
	return w
}

// issue makes an issue that is assigned to the bot, and its task.
func (w *workshop) issue(t *testing.T, title string) task.Task {
	t.Helper()
	key := w.forge.AddItem(repository, task.Issue, "alice", title)
	if err := w.forge.Assign(t.Context(), key, bot); err != nil {
		t.Fatal(err)
	}
	made, _, err := w.store.Assign(t.Context(), store.NewTask{
		Key: key, Type: task.Development, Title: title, Branch: fmt.Sprint("toryo/", key.Number), Reason: task.ReasonAssigned,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// claim hands a task to an agent.
func (w *workshop) claim(t *testing.T, id task.ID) (*wire.RunClient, task.Task) {
	t.Helper()
	held, running := w.goOn(t, id)
	if _, err := w.talk.Begin(t.Context(), running); err != nil {
		t.Fatal(err)
	}
	return held, running
}

// goOn hands a task to an agent that goes on where another was.
func (w *workshop) goOn(t *testing.T, id task.ID) (*wire.RunClient, task.Task) {
	t.Helper()
	assigned, running := w.lease(t, id)
	client := &wire.Client{Server: w.web.URL, HTTP: w.web.Client()}
	return client.Run(&assigned), running
}

// lease leases a task to an agent.
func (w *workshop) lease(t *testing.T, id task.ID) (wire.Assignment, task.Task) {
	t.Helper()
	current, err := w.store.Task(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	token := access.NewLeaseToken(id, current.Generation)
	held, err := w.store.Claim(t.Context(), []store.Claim{{
		Task: id, Generation: current.Generation, Agent: "a1", TokenHash: access.Hash(token), ExpiresAt: w.now().Add(time.Minute),
	}}, nil)
	if err != nil || len(held) != 1 {
		t.Fatalf("claimed %v, %v", held, err)
	}
	return wire.Assignment{TaskID: string(id), Generation: held[0].Generation, TaskType: string(held[0].Type), Lease: wire.Lease{Token: token}}, held[0]
}

// settle waits until the outbox of an item is empty.
func (w *workshop) settle(t *testing.T, key task.Key) {
	t.Helper()
	rung, stop := w.notifier.ListenAll()
	defer stop()
	for {
		waiting, err := w.store.PendingActions(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		if len(waiting) == 0 {
			return
		}
		select {
		case <-rung:
		case <-time.After(100 * time.Millisecond): // actions without a task ring nobody
		case <-t.Context().Done():
			t.Fatal("the outbox was not emptied")
		}
	}
}

// madeOf is the commit that is published in place of one. Names that are no hashes have
// one that can be read.
func madeOf(p outbox.Publication) outbox.Published {
	if len(p.Commit) != 40 {
		return outbox.Published{Commit: "made-of-" + p.Commit}
	}
	if p.Commit == foreignCommit {
		return outbox.Published{Commit: p.Commit, Tree: strings.Repeat("7", 40)}
	}
	return outbox.Published{Commit: publishedHash(p.Commit), Own: true, Tree: strings.Repeat("7", 40), Base: strings.Repeat("8", 40)}
}

// foreignCommit is one that the forge has from somebody else.
const foreignCommit = "ffffffffffffffffffffffffffffffffffffffff"

// publishedHash is the hash of the commit that takes the place of another.
func publishedHash(commit string) string { return commit[1:] + commit[:1] }
