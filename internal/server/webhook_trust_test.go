package server_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/broker"
	"github.com/toryo-dev/toryo/internal/broker/comments"
	"github.com/toryo-dev/toryo/internal/broker/intake"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/dummy"
	"github.com/toryo-dev/toryo/internal/forge/gitea"
	"github.com/toryo-dev/toryo/internal/items"
	"github.com/toryo-dev/toryo/internal/review/verdicts"
	"github.com/toryo-dev/toryo/internal/server"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/store/postgres"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
)

// trusted is a trust in everything that the events of a repository tell of.
func trusted(t testing.TB, now func() time.Time, of task.Forge, events forge.WebhookEvents, name string) *items.WebhookTrust {
	t.Helper()
	trust := items.NewWebhookTrust(items.TrustOptions{
		Store: openStore(t), Events: map[task.Forge]forge.WebhookEvents{of: events}, Ages: items.DefaultAges, Now: now,
	})
	must(t, trust.SetRepositories(t.Context(), of, []string{name}))
	for _, event := range events {
		for range items.DefaultAges.LongestAfter {
			trust.Delivered(forge.Delivery{Forge: of, Repository: name, Enabled: event.Name}, now())
		}
	}
	must(t, trust.Refresh(t.Context()))
	return trust
}

// pollClock is a time that only the test moves.
type pollClock struct {
	mu sync.Mutex
	at time.Time
}

func (c *pollClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *pollClock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// countingStore counts how often deliveries are written down.
type countingStore struct {
	store.Store
	writes atomic.Int64
}

func (s *countingStore) AddDelivered(ctx context.Context, all []store.DeliveredCount, lapsed time.Time) error {
	if len(all) > 0 {
		s.writes.Add(1)
	}
	return s.Store.AddDelivered(ctx, all, lapsed)
}

// post is a server with its webhooks and its polling, on a forge in memory that speaks as
// Gitea does.
type post struct {
	*testing.T
	clock     *pollClock
	store     *countingStore
	forge     *dummy.Forge
	snapshots *items.Snapshots
	trust     *items.WebhookTrust
	intake    *intake.Intake
	watcher   *broker.Watcher
	handler   http.Handler
	sent      *atomic.Int64 // webhooks
}

const (
	postRepository = "team/app"
	postBot        = "toryo-bot"
)

func newPost(t *testing.T) *post {
	t.Helper()
	return newPostOn(t, openStore(t))
}

func newPostOn(t *testing.T, database store.Store) *post {
	t.Helper()
	p := &post{
		T: t, clock: &pollClock{at: time.Date(2031, 5, 6, 12, 0, 0, 0, time.UTC)},
		store: &countingStore{Store: database}, forge: dummy.New(task.Gitea, postBot), sent: new(atomic.Int64),
	}
	p.forge.SetClock(p.clock.now)
	p.forge.AddRepository(postRepository, forge.Remote{})
	p.forge.SetAccess(postRepository, "ann", forge.WriteAccess)
	p.start()
	p.sync(time.Time{})
	return p
}

// another is a second server, with a connection of its own to the database.
func (p *post) another(database store.Store) *post {
	p.Helper()
	second := *p
	second.store = &countingStore{Store: database}
	second.start()
	must(p, second.trust.Refresh(p.Context()))
	return &second
}

func (p *post) start() {
	p.Helper()
	readers := map[task.Forge]forge.Reader{task.Gitea: p.forge}
	p.snapshots = items.NewSnapshots(readers, items.DefaultAges, p.clock.now)
	p.Cleanup(p.snapshots.Stop)
	p.snapshots.ReadReviews(map[task.Forge]items.ReviewSource{task.Gitea: p.forge})
	p.trust = items.NewWebhookTrust(items.TrustOptions{
		Store: p.store, Events: map[task.Forge]forge.WebhookEvents{task.Gitea: gitea.WebhookEvents}, Ages: items.DefaultAges, Now: p.clock.now,
	})
	p.snapshots.TrustWebhooks(p.trust)
	changes := items.NewFeed(p.snapshots)
	steering := &items.Steering{Access: items.NewRights(readers, p.clock.now).Access, Log: slog.New(slog.DiscardHandler)}
	p.intake = intake.New(intake.Options{
		Tasks: p.store, Verdicts: verdicts.Reader{Own: p.store}, Changes: changes, Forges: map[task.Forge]forge.Forge{task.Gitea: p.forge}, Snapshots: p.snapshots, Trust: p.trust,
		Scope:    func(_ task.Forge, name string) bool { return name == postRepository },
		Bot:      func(context.Context, task.Forge) (string, error) { return postBot, nil },
		Steering: steering, Labels: func(task.Forge) task.LabelNames { return task.DefaultLabelNames() }, Now: p.clock.now,
		Rules: intake.Rules{DefaultRole: task.DefaultRole, ReviewLabel: "needs-review"},
	})
	own := func(_ task.Forge, login string) bool { return task.SameLogin(login, postBot) }
	talk := comments.New(comments.Options{Store: p.store, Snapshots: p.snapshots, Own: own, Steering: steering, Now: p.clock.now})
	p.watcher = broker.NewWatcher(broker.WatchOptions{
		Tasks: p.store, Changes: changes, Snapshots: p.snapshots, Comments: talk, Wanted: p.intake.Look, Now: p.clock.now,
	})
	hooks := &server.Webhooks{
		Forges: map[task.Forge]server.Webhook{task.Gitea: {Signed: gitea.SignedWebhook, Parse: gitea.ParseWebhook, Secret: secret, Self: postBot}},
		Seen:   p.store, Changes: changes, Count: p.trust.Delivered, Log: slog.New(slog.DiscardHandler), Now: p.clock.now,
	}
	mux := http.NewServeMux()
	hooks.Register(mux)
	p.handler = mux
}

// sync looks for what webhooks did not tell of.
func (p *post) sync(since time.Time) {
	p.Helper()
	must(p, p.intake.Sync(p.Context(), []task.Forge{task.Gitea}, since))
}

// poll does what the background work does when time has passed.
func (p *post) poll(after time.Duration) {
	p.Helper()
	p.clock.pass(after)
	must(p, p.watcher.GoThrough(p.Context()))
	must(p, p.trust.Refresh(p.Context()))
}

// deliver has the forge send webhooks about an item.
func (p *post) deliver(key task.Key, times int, actions ...string) {
	p.Helper()
	for range times {
		for _, action := range actions {
			if got := send(p.handler, p.hook(key, action)); got != http.StatusNoContent {
				p.Fatalf("a webhook was answered %d", got)
			}
		}
	}
	must(p, p.trust.Refresh(p.Context()))
}

// hook is a webhook as Gitea sends it. The action "commented" is a new comment.
func (p *post) hook(key task.Key, action string) *http.Request {
	item, event := "issue", "issues"
	if key.Kind == task.Pull {
		item, event = "pull_request", "pull_request"
	}
	body := fmt.Sprintf(`{"action":%q,%q:{"number":%d},"repository":{"full_name":%q},"sender":{"login":"ann"}}`, action, item, key.Number, key.Repository)
	if action == "commented" {
		event = "issue_comment"
		body = fmt.Sprintf(`{"action":"created","is_pull":%t,"comment":{"id":1},"issue":{"number":%d},"repository":{"full_name":%q},"sender":{"login":"ann"}}`,
			key.Kind == task.Pull, key.Number, key.Repository)
	}
	return signed(task.Gitea, strconv.FormatInt(p.sent.Add(1), 10), event, body)
}

// everyAction is one action of each event that tells of issues.
var everyAction = []string{"edited", "assigned", "label_updated", "commented"}

// running makes an issue with a task that is running.
func (p *post) running() task.Key {
	p.Helper()
	key := p.forge.AddItem(postRepository, task.Issue, "ann", "Repair the roof")
	must(p, p.forge.Assign(p.Context(), key, postBot))
	must(p, p.intake.Look(p.Context(), key, 0))
	made, err := p.store.TaskOf(p.Context(), key, task.Development)
	must(p, err)
	_, err = p.store.Claim(p.Context(), []store.Claim{{
		Task: made.ID, Generation: made.Generation, Agent: "smith", TokenHash: []byte(key.String()), ExpiresAt: time.Now().Add(time.Hour),
	}}, nil)
	must(p, err)
	must(p, p.watcher.GoThrough(p.Context()))
	return key
}

func (p *post) state(key task.Key) task.State {
	p.Helper()
	is, err := p.store.TaskOf(p.Context(), key, task.Development)
	must(p, err)
	return is.State
}

func (p *post) wantAge(what string, key task.Key, want time.Duration) {
	p.Helper()
	if got := p.snapshots.MaxAge(key); got != want {
		p.Errorf("%s: the item may be %s old, want %s", what, got, want)
	}
}

// event is what is known of an event of the repository.
func (p *post) event(name string) store.WebhookEvent {
	p.Helper()
	all, err := p.store.ListWebhookEvents(p.Context())
	must(p, err)
	for _, event := range all {
		if event.Repository == postRepository && event.Event == name {
			return event
		}
	}
	return store.WebhookEvent{}
}

// A webhook for comments says nothing about assignments: these are found by polling as
// if there were no webhook at all.
func TestAWebhookForCommentsOnly(t *testing.T) {
	t.Parallel()
	p := newPost(t)
	key := p.running()
	p.deliver(key, 2*items.DefaultAges.LongestAfter, "commented")
	p.wantAge("only comments are delivered", key, items.DefaultAges.Shortest)
	must(t, p.forge.Unassign(t.Context(), key, postBot))
	p.poll(items.DefaultAges.Shortest - time.Second)
	if got := p.state(key); got != task.Running {
		t.Fatalf("the task is %s before the item is read again", got)
	}
	p.poll(time.Second)
	if got := p.state(key); got != task.Stopped {
		t.Errorf("the bot was taken off, and after %s the task is %s", items.DefaultAges.Shortest, got)
	}
}

// Trust grows with deliveries of every event that tells of an item, and ends some time
// after the last of each.
func TestWebhooksEarnTrust(t *testing.T) {
	t.Parallel()
	p := newPost(t)
	ages := items.DefaultAges
	key := p.running()
	p.wantAge("nothing was delivered", key, ages.Shortest)
	p.deliver(key, 1, everyAction[:3]...)
	p.wantAge("comments were not", key, ages.Shortest)
	p.deliver(key, 1, everyAction[3])
	step := (ages.Longest - ages.Shortest) / time.Duration(ages.LongestAfter)
	p.wantAge("each was delivered once", key, ages.Shortest+step)
	p.deliver(key, ages.LongestAfter/2-1, everyAction...)
	p.wantAge("each was delivered ten times", key, ages.Shortest+10*step)
	p.deliver(key, ages.LongestAfter, everyAction...)
	p.wantAge("each was delivered often", key, ages.Longest)
	pull := p.forge.AddItem(postRepository, task.Pull, "ann", "A pull request")
	p.wantAge("a pull request", pull, ages.Shortest)

	p.clock.pass(ages.TrustFor - time.Second)
	p.wantAge("just before it ends", key, ages.Longest)
	p.deliver(key, 1, "edited", "assigned", "label_updated")
	p.clock.pass(time.Second)
	p.wantAge("no comment came for long", key, ages.Shortest)
	p.deliver(key, 1, "commented")
	p.wantAge("one comment came after long", key, ages.Shortest+step)
	p.forge.Change(key, func(item *forge.Item) { item.Confidential = true })
	if _, err := p.snapshots.Get(t.Context(), key, 0); err != nil {
		t.Fatal(err)
	}
	p.wantAge("the item is confidential now", key, ages.Shortest)
}

// A change that polling finds ends the trust in the event that should have told of it,
// and in no other. One whose webhook comes late does not.
func TestAMissedWebhookEndsTrust(t *testing.T) {
	t.Parallel()
	ages := items.DefaultAges
	tests := []struct {
		name, event, action string
		change              func(p *post, key task.Key)
	}{
		{"a comment", "issue_comment", "commented", func(p *post, key task.Key) { p.forge.AddComment(key, "ann", "And a door.") }},
		{"a label", "issue_label", "label_updated", func(p *post, key task.Key) { must(p, p.forge.AddLabel(p.Context(), key, "urgent")) }},
		{"an assignment", "issue_assign", "assigned", func(p *post, key task.Key) { must(p, p.forge.Assign(p.Context(), key, "bob")) }},
		{"another title", "issues", "edited", func(p *post, key task.Key) {
			p.forge.Change(key, func(item *forge.Item) { item.Title = "Repair the door" })
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p := newPost(t)
			key := p.running()
			p.deliver(key, ages.LongestAfter, everyAction...)
			p.poll(time.Second)
			p.clock.pass(time.Minute)

			test.change(p, key) // and its webhook comes when polling has found it
			p.poll(ages.Longest)
			p.clock.pass(ages.Grace - time.Second)
			must(t, p.trust.Refresh(t.Context()))
			p.deliver(key, 1, test.action)
			p.poll(2 * time.Second)
			p.poll(ages.Grace)
			p.wantAge("the webhook was late", key, ages.Longest)

			p.clock.pass(time.Minute)
			other := p.forge.AddItem(postRepository, task.Issue, "ann", "Another issue")
			must(t, p.intake.Look(t.Context(), key, 0))
			p.clock.pass(time.Minute)
			undo(p, key, test.event)
			p.poll(ages.Longest)
			p.deliver(other, 1, test.action) // which says nothing about this item
			for _, action := range everyAction {
				if action != test.action {
					p.deliver(key, 1, action) // which says nothing about this change
				}
			}
			p.wantAge("within the grace", key, ages.Longest)
			p.poll(ages.Grace)
			p.wantAge("no webhook came", key, ages.Shortest)
			for _, event := range []string{"issues", "issue_assign", "issue_label", "issue_comment"} {
				is := p.event(event)
				if missed := event == test.event; missed != (is.Missed == key.String()) || missed != (is.Trusted == 0) || missed == is.MissedAt.IsZero() {
					t.Errorf("%s: %+v", event, is)
				}
			}
		})
	}
}

// undo changes once more what a test has changed.
func undo(p *post, key task.Key, event string) {
	p.Helper()
	switch event {
	case "issue_comment":
		p.forge.AddComment(key, "ann", "No, no door.")
	case "issue_label":
		must(p, p.forge.RemoveLabel(p.Context(), key, "urgent"))
	case "issue_assign":
		must(p, p.forge.Unassign(p.Context(), key, "bob"))
	default:
		p.forge.Change(key, func(item *forge.Item) { item.Title = "Repair the roof" })
	}
}

// A webhook that led to a reading says nothing about what happened right after that.
func TestAWebhookIsMissedRightAfterAnother(t *testing.T) {
	t.Parallel()
	p := newPost(t)
	ages := items.DefaultAges
	key := p.running()
	p.deliver(key, ages.LongestAfter, everyAction...)
	p.poll(time.Minute)
	p.clock.pass(time.Minute)
	p.forge.AddComment(key, "ann", "And a door.")
	p.clock.pass(time.Second)
	p.deliver(key, 1, "commented")
	p.clock.pass(time.Millisecond)
	must(t, p.intake.Look(t.Context(), key, ages.Longest)) // as it does when it is told
	p.clock.pass(time.Second)
	p.forge.AddComment(key, "ann", "And a window.")
	p.poll(2 * ages.Longest)
	p.poll(ages.Grace)
	p.wantAge("the second comment was missed", key, ages.Shortest)
}

// A new issue that only the listing shows is something that no webhook told of.
func TestAnAssignmentThatOnlyTheListingShows(t *testing.T) {
	t.Parallel()
	ages := items.DefaultAges
	for _, told := range []bool{false, true} {
		p := newPost(t)
		key := p.running()
		p.deliver(key, ages.LongestAfter, everyAction...)
		last := p.clock.now()
		p.clock.pass(time.Minute)
		added := p.forge.AddItem(postRepository, task.Issue, "ann", "Paint the wall")
		must(t, p.forge.Assign(t.Context(), added, postBot))
		p.sync(last)
		if got := p.state(added); got != task.Queued {
			t.Fatalf("the new task is %s", got)
		}
		want := ages.Shortest
		if told {
			p.deliver(added, 1, "opened")
			want = ages.Longest
		}
		p.poll(ages.Grace)
		p.wantAge(fmt.Sprintf("told of it: %t", told), key, want)
	}
}

// Several servers share one trust: a webhook that one received tells of what another
// finds.
func TestServersShareTrust(t *testing.T) {
	t.Parallel()
	address := testkit.Postgres(t)
	connect := func() store.Store {
		opened, err := postgres.Open(t.Context(), address)
		must(t, err)
		t.Cleanup(func() { _ = opened.Close() })
		return opened
	}
	ages := items.DefaultAges
	one := newPostOn(t, connect())
	key := one.running()
	two := one.another(connect())
	two.deliver(key, ages.LongestAfter/2, everyAction...)
	one.deliver(key, ages.LongestAfter/2, everyAction...)
	must(t, two.trust.Refresh(t.Context()))
	one.wantAge("both have received half", key, ages.Longest)
	two.wantAge("both have received half", key, ages.Longest)

	one.poll(time.Minute)
	one.clock.pass(time.Minute)
	one.forge.AddComment(key, "ann", "And a door.")
	two.deliver(key, 1, "commented")
	one.poll(ages.Longest)
	one.poll(ages.Grace)
	one.wantAge("the other server was told", key, ages.Longest)

	one.clock.pass(time.Minute)
	one.forge.AddComment(key, "ann", "And a window.")
	one.poll(ages.Longest)
	one.poll(ages.Grace)
	must(t, two.trust.Refresh(t.Context()))
	one.wantAge("nobody was told", key, ages.Shortest)
	two.wantAge("nobody was told", key, ages.Shortest)
}

// What comes twice, unsigned, from elsewhere or as a test earns nothing and leaves
// nothing behind; and many webhooks are one write.
func TestWebhooksThatEarnNothing(t *testing.T) {
	t.Parallel()
	p := newPost(t)
	key := p.running()
	elsewhere := task.Key{Forge: task.Gitea, Repository: "someone/else", Kind: task.Issue, Number: 1}
	unsigned := p.hook(key, "edited")
	unsigned.Header.Set("X-Gitea-Signature", signature("something else"))
	for _, test := range []struct {
		what    string
		request *http.Request
		status  int
	}{
		{"not signed by us", unsigned, 401},
		{"from elsewhere", p.hook(elsewhere, "edited"), 204},
		{"a test", signed(task.Gitea, "t1", "push", `{"ref":"refs/heads/main","repository":{"full_name":"team/app"}}`), 204},
		{"an action that is not known", p.hook(key, "whatever"), 204},
		{"a milestone", p.hook(key, "milestoned"), 204},
		{"a repository that cannot be", signed(task.Gitea, "t2", "repository", `{"action":"created","repository":{"full_name":"a\u0000b"}}`), 204},
	} {
		if got := send(p.handler, test.request); got != test.status {
			t.Errorf("%s: answered %d, want %d", test.what, got, test.status)
		}
	}
	must(t, p.trust.Refresh(t.Context()))
	all, err := p.store.ListWebhookEvents(t.Context())
	must(t, err)
	if len(all) != 1 || all[0].Repository != postRepository || all[0].Event != "" {
		t.Errorf("known are %+v, want the one repository without any event", all)
	}

	const many = 500
	for range many {
		send(p.handler, p.hook(key, "edited"))
	}
	for range 10 { // the last one again
		p.sent.Add(-1)
		send(p.handler, p.hook(key, "edited"))
	}
	must(t, p.trust.Refresh(t.Context()))
	if is := p.event("issues"); is.Delivered != many || p.store.writes.Load() != 1 {
		t.Errorf("%d deliveries are counted in %d writes, want %d in one", is.Delivered, p.store.writes.Load(), many)
	}
}
