package notify

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
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
	// keptUnlisted is for how long a failure that is not listed may wait still. It is longer than
	// failures are listed.
	keptUnlisted = 8 * 24 * time.Hour
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
	// Needs lists what waits for people. Whole is false if failures may be missing.
	Needs func(ctx context.Context) (needs []task.Need, whole bool, err error)
	Store store.Notifications
	Send  func(ctx context.Context, to Target, message format.Message) error
	Pages Pages
	Quiet quiet.Hours
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
	needs, whole, err := d.Needs(ctx)
	if err != nil {
		return err
	}
	failed := make([]error, len(d.Targets)+1)
	var telling sync.WaitGroup
	for i, to := range d.Targets {
		telling.Go(func() { failed[i] = d.tell(ctx, to, needs, whole) })
	}
	telling.Wait()
	failed[len(d.Targets)] = d.forget(ctx, now)
	if err := errors.Join(failed...); err != nil {
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
func (d *Deliverer) tell(ctx context.Context, to Target, needs []task.Need, whole bool) error {
	known, err := d.Store.ListNotifications(ctx, to.Name)
	if err != nil {
		return err
	}
	now := d.Now()
	wants := wanted(to, needs)
	change := changed(known, wants, whole, now)
	if len(change.New)+len(change.Over)+len(change.Back)+len(change.Again) > 0 {
		if err := d.Store.NoteNotifications(ctx, to.Name, change); err != nil {
			return err
		}
	}
	keys := due(known, change, wants)
	if len(keys) == 0 || d.Quiet.In(now) {
		return nil
	}
	keys, err = d.Store.TakeNotifications(ctx, to.Name, keys[:min(len(keys), mostAtOnce)], now, now.Add(heldFor))
	if err != nil || len(keys) == 0 {
		return err
	}
	return d.send(ctx, to, needs, keys)
}

// due are the keys, in order, of which a target is told now: what waits, was not told or has to be
// told again, and has lasted long enough. It is nothing while one of them is being sent or has to wait: the others
// wait with it.
func due(known []store.Notification, change store.NotificationChange, wants map[string]task.Need) []string {
	keys := slices.DeleteFunc(slices.Clone(change.New), func(key string) bool { return settles(wants[key]) })
	for _, one := range known {
		need, waits := wants[one.Key]
		if !waits || !one.SentAt.IsZero() && !again(one, change.At) {
			continue
		}
		if one.DueAt.After(change.At) {
			return nil
		}
		since := one.NotedAt
		if !one.OverAt.IsZero() {
			since = change.At // it is back
		}
		if settles(need) && change.At.Before(since.Add(settling)) {
			continue
		}
		keys = append(keys, one.Key)
	}
	slices.Sort(keys)
	return keys
}

// settles says whether a need may be over by itself soon.
func settles(need task.Need) bool {
	return need.Kind == task.NeedAgent || need.Kind == task.NeedTasks || need.Kind == task.NeedServer
}

// again says whether a target has to be told again of something that waits: it came back after
// the target was told, and that is long ago.
func again(one store.Notification, now time.Time) bool {
	back := !one.OverAt.IsZero() || one.NotedAt.After(one.SentAt)
	return !one.SentAt.IsZero() && back && !now.Before(one.SentAt.Add(keptOver))
}

// over says whether something that is not listed waits no longer. Failures may wait still if not
// all of them are listed, but not those that are too old to be listed.
func over(one store.Notification, whole bool, now time.Time) bool {
	return whole || !strings.HasPrefix(one.Key, failurePrefix) || now.Sub(one.NotedAt) > keptUnlisted
}

// changed compares what is remembered with what is.
func changed(known []store.Notification, wants map[string]task.Need, whole bool, now time.Time) store.NotificationChange {
	change := store.NotificationChange{At: now}
	fresh := maps.Clone(wants)
	for _, one := range known {
		_, waits := wants[one.Key]
		delete(fresh, one.Key)
		switch {
		case !waits && one.OverAt.IsZero() && over(one, whole, now):
			change.Over = append(change.Over, one.Key)
		case waits && !one.OverAt.IsZero():
			change.Back = append(change.Back, one.Key)
		}
		if waits && again(one, now) {
			change.Again = append(change.Again, one.Key)
		}
	}
	change.New = slices.Sorted(maps.Keys(fresh))
	return change
}

// failurePrefix begins the keys of failures.
const failurePrefix = string(task.NeedFailure) + "/"

// send sends what was taken and records what became of it, also while this server stops: a
// message that is on its way is waited for, or nobody would know whether it has arrived.
func (d *Deliverer) send(ctx context.Context, to Target, needs []task.Need, keys []string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), heldFor/2)
	defer cancel()
	known, err := d.Store.ListNotifications(ctx, to.Name)
	if err != nil {
		return err
	}
	known = slices.DeleteFunc(known, func(one store.Notification) bool {
		_, taken := slices.BinarySearch(keys, one.Key)
		return !taken
	})
	attempt := 1
	for _, one := range known {
		attempt = max(attempt, one.Attempts)
	}
	end := store.NotificationEnd{}
	sent := d.sendOrShorten(ctx, to, inOrder(needs, keys), known)
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

// sendOrShorten sends a message. If the service refuses what it says, it is sent without the texts
// of others: one of them would else keep people from being told of anything else.
func (d *Deliverer) sendOrShorten(ctx context.Context, to Target, needs []task.Need, known []store.Notification) error {
	message := d.Pages.Message(to.Language, d.Now(), needs)
	message.ID = messageID(known)
	sent := d.Send(ctx, to, message)
	if refused, is := errors.AsType[refusal](sent); !is || !refused.text {
		return sent
	}
	d.Log.WarnContext(ctx, "a notification was refused; sending it without titles and details", "webhook", to.Name, "error", sent)
	short := d.Pages.WithoutTexts(to.Language, d.Now(), needs)
	short.ID = message.ID + "_short"
	return d.Send(ctx, to, short)
}

// messageID is the same for each attempt to tell a target of the same needs, so that receivers
// that have taken a message without our hearing of it know it again.
func messageID(known []store.Notification) string {
	sum := sha256.New()
	for _, one := range known {
		_, _ = fmt.Fprintf(sum, "%q %q %d\n", one.Target, one.Key, one.NotedAt.UnixMicro()) // a sum does not fail
	}
	return "msg_" + hex.EncodeToString(sum.Sum(nil)[:16])
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
