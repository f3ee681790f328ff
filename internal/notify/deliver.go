package notify

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/toryo-dev/toryo/internal/notify/format"
	"github.com/toryo-dev/toryo/internal/notify/quiet"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

const (
	// heldFor is for how long a message is the one's who sends it. It is longer than sending
	// takes.
	heldFor = 6 * patience
	// shortestPause and longestPause are the pauses before a message is sent again.
	shortestPause = 30 * time.Second
	longestPause  = time.Hour
	// keptOver is how long it is remembered that a target was told of what is over: what comes
	// and goes is told of once in that time.
	keptOver = time.Hour
	// lookAnyway is how often what waits for people is listed although nothing has happened:
	// that an agent is silent, for example, is no event.
	lookAnyway = 30 * time.Second
	// settling is how long trouble has to last before it is told of: agents are silent, for
	// example, until they have found a server that was started again.
	settling = time.Minute
	// mostAtOnce is how many needs one message is about. Others are in the next.
	mostAtOnce = 500
)

// Options is what a deliverer needs. Needs, Store, Send, Now and Log have to be set.
type Options struct {
	Targets []Target
	Needs   func(ctx context.Context) ([]task.Need, error)
	Store   store.Notifications
	Send    func(ctx context.Context, to Target, message format.Message) error
	Pages   Pages
	Quiet   quiet.Hours
	// Happened changes with everything that happens to tasks; nil means that nobody knows.
	Happened func() int64
	Now      func() time.Time
	Log      *slog.Logger
}

// Deliverer tells each target of each need once.
type Deliverer struct {
	Options

	seen   int64
	listed time.Time
	forgot time.Time
}

// NewDeliverer makes one.
func NewDeliverer(options Options) *Deliverer { return &Deliverer{Options: options} }

// Deliver looks at what waits for people and tells the targets what they do not know. It is
// called again and again, by one goroutine at a time.
func (d *Deliverer) Deliver(ctx context.Context) error {
	now := d.Now()
	if d.Happened != nil {
		seen := d.Happened()
		if seen == d.seen && !d.listed.IsZero() && now.Sub(d.listed) < lookAnyway {
			return nil
		}
		d.seen = seen
	}
	needs, err := d.Needs(ctx)
	if err != nil {
		return err
	}
	failed := make([]error, len(d.Targets))
	var telling sync.WaitGroup
	for i, to := range d.Targets {
		telling.Go(func() { failed[i] = d.tell(ctx, to, needs) })
	}
	telling.Wait()
	if err := errors.Join(append(failed, d.forget(ctx, now))...); err != nil {
		return err
	}
	d.listed = now
	return nil
}

// forget removes what need not be remembered any more.
func (d *Deliverer) forget(ctx context.Context, now time.Time) error {
	if now.Sub(d.forgot) < keptOver/4 {
		return nil
	}
	names := make([]string, 0, len(d.Targets))
	for _, to := range d.Targets {
		names = append(names, to.Name)
	}
	if err := d.Store.ForgetNotifications(ctx, now.Add(-keptOver), names); err != nil {
		return err
	}
	d.forgot = now
	return nil
}

// tell brings one target up to date.
func (d *Deliverer) tell(ctx context.Context, to Target, needs []task.Need) error {
	known, err := d.Store.ListNotifications(ctx, to.Name)
	if err != nil {
		return err
	}
	now := d.Now()
	wants := wanted(to, needs)
	change := changed(known, wants, now)
	if len(change.New)+len(change.Over)+len(change.Back) > 0 {
		if err := d.Store.NoteNotifications(ctx, to.Name, change); err != nil {
			return err
		}
	}
	keys := slices.DeleteFunc(slices.Clone(change.New), func(key string) bool { return settles(wants[key]) })
	for _, one := range known {
		need, waits := wants[one.Key]
		if !waits || !one.SentAt.IsZero() || one.Attempts == 0 && settles(need) && now.Before(one.DueAt.Add(settling)) {
			continue
		}
		if one.DueAt.After(now) {
			return nil // it is being sent, or has to wait, and the others with it
		}
		keys = append(keys, one.Key)
	}
	if len(keys) == 0 || d.Quiet.In(now) {
		return nil
	}
	slices.Sort(keys)
	keys, err = d.Store.TakeNotifications(ctx, to.Name, keys[:min(len(keys), mostAtOnce)], now, now.Add(heldFor))
	if err != nil || len(keys) == 0 {
		return err
	}
	return d.send(ctx, to, needs, keys, attemptsOf(known, keys))
}

// settles says whether a need may be over by itself soon.
func settles(need task.Need) bool {
	return need.Kind == task.NeedAgent || need.Kind == task.NeedTasks || need.Kind == task.NeedServer
}

// changed compares what is remembered with what is.
func changed(known []store.Notification, wants map[string]task.Need, now time.Time) store.NotificationChange {
	change := store.NotificationChange{At: now}
	fresh := maps.Clone(wants)
	for _, one := range known {
		_, waits := wants[one.Key]
		delete(fresh, one.Key)
		switch {
		case !waits && one.OverAt.IsZero():
			change.Over = append(change.Over, one.Key)
		case waits && !one.OverAt.IsZero():
			change.Back = append(change.Back, one.Key)
		}
	}
	change.New = slices.Sorted(maps.Keys(fresh))
	return change
}

func attemptsOf(known []store.Notification, keys []string) (most int) {
	for _, one := range known {
		if slices.Contains(keys, one.Key) {
			most = max(most, one.Attempts)
		}
	}
	return most + 1
}

// send sends what was taken and records what became of it, also while this server stops: a
// message that is on its way is waited for, or nobody would know whether it has arrived.
func (d *Deliverer) send(ctx context.Context, to Target, needs []task.Need, keys []string, attempt int) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), heldFor/2)
	defer cancel()
	end := store.NotificationEnd{}
	sent := d.Send(ctx, to, d.Pages.Message(to.Language, d.Now(), inOrder(needs, keys)))
	if sent == nil {
		end.SentAt = d.Now()
		end.DueAt = end.SentAt
		d.Log.InfoContext(ctx, "told people what waits for them", "webhook", to.Name, "needs", len(keys))
	} else {
		wait := pauseAfter(attempt, sent)
		end.DueAt, end.Problem = d.Now().Add(wait), problemOf(sent)
		d.Log.WarnContext(ctx, "failed to send a notification; retrying", "webhook", to.Name, "error", sent, "again", wait)
	}
	return d.Store.EndNotifications(ctx, to.Name, keys, end)
}

// worrying is after how many attempts people are told, on the pages, that a target fails.
const worrying = 3

// Problem is why a target does not take what it has to be told; empty if it does, or was not
// tried often yet.
func Problem(ctx context.Context, in store.Notifications, target string) (string, error) {
	known, err := in.ListNotifications(ctx, target)
	for _, one := range known {
		if one.SentAt.IsZero() && one.OverAt.IsZero() && one.Attempts >= worrying && one.Problem != "" {
			return one.Problem, nil
		}
	}
	return "", err
}

// problemOf is what an error says, without what can be done.
func problemOf(err error) string {
	coded, is := task.AsError(err)
	switch {
	case !is:
		return err.Error()
	case coded.Err != nil:
		return coded.Message + ": " + coded.Err.Error()
	default:
		return coded.Message
	}
}

// pauseAfter is how long to wait after so many attempts: longer each time, and as long as the
// service asks for.
func pauseAfter(attempts int, failed error) time.Duration {
	pause := shortestPause
	for range min(attempts-1, 10) {
		pause *= 2
	}
	if refused, is := errors.AsType[refusal](failed); is {
		pause = max(pause, refused.wait)
	}
	return min(pause, longestPause)
}

// mostKey is how long the key of a need may be to be remembered as it is.
const mostKey = 200

// keyOf is the key under which a need is remembered.
func keyOf(need task.Need) string {
	if len(need.Key) <= mostKey {
		return need.Key
	}
	sum := sha256.Sum256([]byte(need.Key))
	return hex.EncodeToString(sum[:])
}
