package items

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/lifecycle"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// Ages says how old the snapshot of an item with a running task may become.
type Ages struct {
	// Shortest is for items of which an event could tell that is not trusted.
	Shortest time.Duration
	// Longest is for items whose events are all trusted in full: deliveries get lost.
	Longest time.Duration
	// LongestAfter is how many deliveries of an event it takes to trust it in full.
	// Fewer lengthen the age in proportion.
	LongestAfter int
	// TrustFor is how long after the last delivery of an event it is trusted.
	TrustFor time.Duration
	// Grace is how late a delivery may be. A change that polling finds is not taken for
	// missed before that.
	Grace time.Duration
}

// DefaultAges are used where a configuration does not say otherwise.
var DefaultAges = Ages{
	Shortest: 30 * time.Second, Longest: 15 * time.Minute, LongestAfter: 20, TrustFor: 72 * time.Hour, Grace: 30 * time.Second,
}

// With is how old a snapshot may become as far as one event is concerned.
func (a Ages) With(event store.WebhookEvent, now time.Time) time.Duration {
	if event.Trusted <= 0 || now.Sub(event.LastAt) >= a.TrustFor || a.Longest <= a.Shortest {
		return a.Shortest
	}
	full := int64(max(a.LongestAfter, 1))
	return a.Shortest + time.Duration(float64(a.Longest-a.Shortest)*float64(min(event.Trusted, full))/float64(full))
}

const (
	// trustEvery is how often deliveries are written down and what other servers have
	// seen is read. However many webhooks come, it is one write.
	trustEvery = 5 * time.Second
	// maxFindings is how many changes are remembered for which a delivery may still come.
	maxFindings = 4096
)

// TrustStore is what [WebhookTrust] needs of the store.
type TrustStore interface {
	store.Webhooks
	DeliveredAbout(ctx context.Context, subject string, since time.Time) ([]string, error)
}

// TrustOptions is what [NewWebhookTrust] needs. All but Now and Log have to be set. Now
// is the time by which deliveries are recorded.
type TrustOptions struct {
	Store  TrustStore
	Events map[task.Forge]forge.WebhookEvents
	Ages   Ages
	Now    func() time.Time
	Log    *slog.Logger
}

// WebhookTrust knows how far the webhooks of each repository can be relied on, event by
// event. Trust in an event grows with its deliveries, ends when none comes for long, and
// is lost when a change is found that it should have told of. What it knows is in the
// store, for all servers.
type WebhookTrust struct {
	options    TrustOptions
	background lifecycle.Group

	mu       sync.Mutex
	known    map[task.Repository]map[string]store.WebhookEvent // by event, as last read
	pending  map[eventOf]store.DeliveredCount                  // not in the store yet
	findings []finding                                         // for which a delivery may still come
}

type eventOf struct {
	repository task.Repository
	event      string
}

// finding is a change that a reading has found.
type finding struct {
	key    task.Key
	events []string // that could have told of it; the first is not trusted if none did
	any    bool     // any other event about the item will do too
	// since is when the item was last read. What was delivered before then has led to
	// that reading, and says nothing about what was found after it.
	since time.Time
	at    time.Time // when it was found
}

// NewWebhookTrust makes a trust that knows of no deliveries until it is started or
// [WebhookTrust.Refresh] is called.
func NewWebhookTrust(options TrustOptions) *WebhookTrust {
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	return &WebhookTrust{options: options, known: map[task.Repository]map[string]store.WebhookEvent{}, pending: map[eventOf]store.DeliveredCount{}}
}

// Start begins to call Refresh now and then. Every server does.
func (t *WebhookTrust) Start(ctx context.Context) {
	t.background.Start(ctx, func(ctx context.Context) {
		lifecycle.Every(ctx, trustEvery, func(ctx context.Context) {
			if err := t.Refresh(ctx); err != nil && ctx.Err() == nil {
				t.options.Log.WarnContext(ctx, "failed to store or read webhook deliveries; retrying", "error", err, "again", trustEvery)
			}
		})
	})
}

// Stop ends what Start began, waits for it, and writes down what was delivered last.
func (t *WebhookTrust) Stop(ctx context.Context) {
	t.background.Stop()
	if err := t.write(ctx); err != nil {
		t.options.Log.WarnContext(ctx, "failed to count the last webhook deliveries", "error", err)
	}
}

// Delivered counts a delivery that was dealt with, and not before. It does not wait.
func (t *WebhookTrust) Delivered(delivery forge.Delivery, at time.Time) {
	if !t.options.Events[delivery.Forge].Has(delivery.Enabled) {
		return
	}
	of := eventOf{task.Repository{Forge: delivery.Forge, Name: delivery.Repository}, delivery.Enabled}
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, worked := t.known[of.repository]; !worked {
		return
	}
	count := t.pending[of]
	t.pending[of] = store.DeliveredCount{
		Forge: of.repository.Forge, Repository: of.repository.Name, Event: of.event, Count: count.Count + 1, LastAt: later(count.LastAt, at),
	}
}

// SetRepositories says which repositories of a forge are worked on. Deliveries of others
// count for nothing.
func (t *WebhookTrust) SetRepositories(ctx context.Context, of task.Forge, names []string) error {
	if len(t.options.Events[of]) == 0 {
		return nil
	}
	if err := t.options.Store.SetWebhookRepositories(ctx, of, names); err != nil {
		return err
	}
	t.mu.Lock()
	added := slices.ContainsFunc(names, func(name string) bool { return t.known[task.Repository{Forge: of, Name: name}] == nil })
	t.mu.Unlock()
	if !added {
		return nil
	}
	return t.read(ctx)
}

// MaxAge is how old the snapshot of an item may be: as old as the least trusted of the
// events allows that tell of such items.
func (t *WebhookTrust) MaxAge(key task.Key) time.Duration {
	names := t.options.Events[key.Forge].About(key.Kind)
	if len(names) == 0 {
		return t.options.Ages.Shortest
	}
	now := t.options.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	events := t.known[key.Repo()]
	age := max(t.options.Ages.Longest, t.options.Ages.Shortest)
	for _, name := range names {
		age = min(age, t.options.Ages.With(events[name], now))
	}
	return age
}

// found says that a reading has found a change to an item that was not there at a time.
func (t *WebhookTrust) found(key task.Key, change forge.ItemChange, since time.Time) {
	t.add(finding{key: key, events: t.options.Events[key.Forge].For(key.Kind, change), since: since})
}

// foundNew is found for an item of which nothing was known: whatever tells of it will do.
func (t *WebhookTrust) foundNew(key task.Key, change forge.ItemChange, since time.Time) {
	t.add(finding{key: key, events: t.options.Events[key.Forge].For(key.Kind, change), any: true, since: since})
}

// add remembers a finding if there is trust to lose.
func (t *WebhookTrust) add(f finding) {
	if len(f.events) == 0 {
		return
	}
	f.at = t.options.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	event := t.known[f.key.Repo()][f.events[0]]
	if t.options.Ages.With(event, f.at) > t.options.Ages.Shortest && len(t.findings) < maxFindings {
		t.findings = append(t.findings, f)
	}
}

// Refresh writes down what was delivered, looks whether the changes that were found a
// while ago were told of, and reads what all servers know.
func (t *WebhookTrust) Refresh(ctx context.Context) error {
	return errors.Join(t.write(ctx), t.judge(ctx), t.read(ctx))
}

func (t *WebhookTrust) write(ctx context.Context) error {
	t.mu.Lock()
	pending := t.pending
	t.pending = map[eventOf]store.DeliveredCount{}
	t.mu.Unlock()
	all := make([]store.DeliveredCount, 0, len(pending))
	for _, count := range pending {
		all = append(all, count)
	}
	err := t.options.Store.AddDelivered(ctx, all, t.options.Now().Add(-t.options.Ages.TrustFor))
	if err == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for of, count := range pending {
		newer, came := t.pending[of]
		if came {
			count.Count, count.LastAt = count.Count+newer.Count, later(count.LastAt, newer.LastAt)
		}
		t.pending[of] = count
	}
	return fmt.Errorf("count webhooks: %w", err)
}

// judge ends the trust in events that did not tell of a change in time.
func (t *WebhookTrust) judge(ctx context.Context) error {
	now := t.options.Now()
	var due []finding
	t.mu.Lock()
	t.findings = slices.DeleteFunc(t.findings, func(f finding) bool {
		ripe := now.Sub(f.at) >= t.options.Ages.Grace
		if ripe {
			due = append(due, f)
		}
		return ripe
	})
	t.mu.Unlock()
	var failed error
	for _, f := range due {
		if err := t.judgeOne(ctx, f, now); err != nil {
			failed = errors.Join(failed, fmt.Errorf("look whether a webhook told of %s: %w", f.key, err))
			t.mu.Lock()
			t.findings = append(t.findings, f)
			t.mu.Unlock()
		}
	}
	return failed
}

func (t *WebhookTrust) judgeOne(ctx context.Context, f finding, now time.Time) error {
	told, err := t.wasDelivered(ctx, f)
	if err != nil || told {
		return err
	}
	t.options.Log.WarnContext(ctx, "polling found a change that no webhook reported; polling more often for this event until webhooks arrive again",
		"item", f.key.String(), "event", f.events[0])
	return t.options.Store.SetMissed(ctx, f.key.Forge, f.key.Repository, f.events[0], f.key.String(), now)
}

// wasDelivered reports whether any server received a webhook about a change. One about the whole
// repository, such as a label with a new name, tells of everything in it.
func (t *WebhookTrust) wasDelivered(ctx context.Context, f finding) (bool, error) {
	came, err := t.options.Store.DeliveredAbout(ctx, f.key.String(), f.since)
	if err != nil {
		return false, err
	}
	if f.any && len(came) > 0 || slices.ContainsFunc(came, func(event string) bool { return slices.Contains(f.events, event) }) {
		return true, nil
	}
	came, err = t.options.Store.DeliveredAbout(ctx, f.key.Repo().String(), f.since)
	return len(came) > 0, err
}

func (t *WebhookTrust) read(ctx context.Context) error {
	all, err := t.options.Store.ListWebhookEvents(ctx)
	if err != nil {
		return fmt.Errorf("read what webhooks deliver: %w", err)
	}
	known := map[task.Repository]map[string]store.WebhookEvent{}
	for _, event := range all {
		of := task.Repository{Forge: event.Forge, Name: event.Repository}
		if known[of] == nil {
			known[of] = map[string]store.WebhookEvent{}
		}
		if event.Event != "" {
			known[of][event.Event] = event
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.known = known
	return nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earlier(a, b time.Time) time.Time {
	if b.IsZero() || a.Before(b) {
		return a
	}
	return b
}
