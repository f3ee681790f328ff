package server

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/items"
	"github.com/toryo-dev/toryo/internal/server/limit"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// maxWebhook is the most that is read of a webhook. GitHub, which sends the
// largest, stops at 25 MB.
const maxWebhook = 25 << 20

// Webhook is one forge's side of the intake.
type Webhook struct {
	Signed forge.WebhookSigned
	Parse  forge.WebhookParser
	Secret string
	Self   string // the login that we write as; empty if it is not known yet
}

// Webhooks takes in webhooks: POST /webhooks/github, /webhooks/gitlab and
// /webhooks/gitea. A delivery that is not signed with the forge's secret is
// answered 401 and has no effect; one that was dealt with before is answered as
// if it were new and has no effect either.
type Webhooks struct {
	Forges  map[task.Forge]Webhook
	Seen    store.Deliveries
	Changes *items.Feed
	// Count is given every delivery that was dealt with, once; nil means nobody. It does
	// not wait.
	Count func(delivery forge.Delivery, at time.Time)
	Log   *slog.Logger
	Now   func() time.Time

	bodies  *limit.InFlight // of those whose signature was not checked yet
	mu      sync.Mutex
	refused map[task.Forge]time.Time // when one that was refused was last noted
}

// keepReceived is how many of the last webhooks of each forge are kept.
const keepReceived = 20

// refusedEvery is how often a webhook that was refused is noted and logged: anyone
// can send those, and neither the database nor the log is for everyone to fill. The
// metrics count all.
const refusedEvery = time.Second

// note keeps what people want to know when nothing seems to happen. Of an error it
// keeps what was written for people.
func (w *Webhooks) note(ctx context.Context, of task.Forge, delivery forge.Delivery, status int, err error) {
	received := store.Received{Forge: of, At: w.Now(), Event: delivery.Event, Repository: delivery.Repository, Status: status}
	if coded, found := task.AsError(err); found {
		received.Problem = coded.Message
	} else if err != nil {
		received.Problem = task.CodeOf(err).Info().Meaning
	}
	if received.Problem != "" {
		if !w.mayNote(of, received.At) {
			return
		}
		w.Log.WarnContext(ctx, "webhook delivery rejected", "forge", of, "event", delivery.Event, "status", status, "error", err)
	}
	if err := w.Seen.AddReceived(context.WithoutCancel(ctx), received, keepReceived); err != nil {
		w.Log.WarnContext(ctx, "failed to record a webhook delivery", "forge", of, "error", err)
	}
}

// mayNote reports whether it is time to note one that was refused.
func (w *Webhooks) mayNote(of task.Forge, now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now.Before(w.refused[of].Add(refusedEvery)) {
		return false
	}
	if w.refused == nil {
		w.refused = make(map[task.Forge]time.Time)
	}
	w.refused[of] = now
	return true
}

// Register adds the paths to the mux.
func (w *Webhooks) Register(mux *http.ServeMux) {
	w.bodies = &limit.InFlight{PerClient: maxHeldClient, Most: maxHeldAll}
	for name := range w.Forges {
		mux.HandleFunc("POST /webhooks/"+string(name), func(to http.ResponseWriter, r *http.Request) { w.receive(to, r, name) })
	}
}

// receive answers one webhook. It says no more than the status: who sends it is
// not known before the signature is checked.
func (w *Webhooks) receive(to http.ResponseWriter, r *http.Request, of task.Forge) {
	delivery, digest, err := w.read(to, r, of)
	if err == nil {
		err = w.handle(r.Context(), delivery, digest)
	}
	status := http.StatusNoContent
	if err != nil {
		status = task.CodeOf(err).Info().Status
	}
	w.note(r.Context(), of, delivery, status, err)
	to.WriteHeader(status)
}

// read takes in a webhook. Nothing of its body is read that cannot be signed, and
// what is held before the signature is checked is bounded, over all requests. Digest
// tells the body from others.
func (w *Webhooks) read(to http.ResponseWriter, r *http.Request, of task.Forge) (delivery forge.Delivery, digest string, err error) {
	hook := w.Forges[of]
	if hook.Secret == "" {
		return forge.Delivery{}, "", task.Errorf(task.Unauthorized, "no secret is set for webhooks of %s", of)
	}
	if err := hook.Signed(hook.Secret, r.Header); err != nil {
		return forge.Delivery{}, "", err
	}
	held := heldBody{in: w.bodies, client: access.Network(r.RemoteAddr), copies: 1}
	defer held.close()
	if forge.IsForm(r.Header) {
		held.copies = formCopies
	}
	body, err := held.read(http.MaxBytesReader(to, r.Body, maxWebhook))
	if err != nil {
		return forge.Delivery{}, "", err
	}
	if delivery, err = hook.Parse(hook.Secret, r.Header, body...); err != nil {
		return forge.Delivery{}, "", err
	}
	sum := sha256.New()
	for _, piece := range body {
		sum.Write(piece)
	}
	return delivery, "sha256:" + hex.EncodeToString(sum.Sum(nil)), nil
}

// formCopies is how many times its size a form takes until its signature is
// checked: the signature may be of what is in it.
const formCopies = 4

// handle does what a delivery asks for, once. It is recorded when it is done, not
// before: better twice than never. One without an id is never taken for a replay, since
// it may tell of something that happened twice, but is counted once.
func (w *Webhooks) handle(ctx context.Context, delivery forge.Delivery, digest string) error {
	at := w.Now() // before anyone reads what it tells of
	if delivery.ID != "" {
		seen, err := w.Seen.DeliverySeen(ctx, delivery.Forge, delivery.ID)
		if err != nil {
			return err
		}
		if seen {
			w.Log.InfoContext(ctx, "duplicate webhook delivery ignored", "forge", delivery.Forge, "event", delivery.Event)
			return nil
		}
	}
	w.publish(delivery)
	dealt := store.Delivery{
		Forge: delivery.Forge, ID: cmp.Or(delivery.ID, digest), At: at, Subject: deliverySubject(delivery), Event: delivery.Enabled,
	}
	first, err := w.Seen.RecordDelivery(ctx, dealt)
	if first && w.Count != nil {
		w.Count(delivery, at)
	}
	return err
}

// deliverySubject is what a delivery is about: an item, a whole repository, or nothing.
func deliverySubject(delivery forge.Delivery) string {
	if len(delivery.Items) > 0 {
		return delivery.Items[0].String()
	}
	anyItem := task.Key{Forge: delivery.Forge, Repository: delivery.Repository, Kind: task.Issue, Number: 1}
	if delivery.Kind == forge.RepositoryChanged && anyItem.Validate() == nil {
		return anyItem.Repo().String()
	}
	return ""
}

// publish tells of what the delivery is about. Our own edits of comments are not
// worth reading again: they are the progress that we have just written.
func (w *Webhooks) publish(delivery forge.Delivery) {
	own := task.SameLogin(delivery.Actor, w.Forges[delivery.Forge].Self)
	if delivery.Kind == forge.NothingChanged || delivery.CommentEdited && own {
		return
	}
	change := items.Change{
		Repository: task.Repository{Forge: delivery.Forge, Name: delivery.Repository}, Items: delivery.Items,
		All: delivery.Kind == forge.RepositoryChanged, Pushed: delivery.Kind == forge.Pushed,
	}
	if delivery.Kind == forge.ChecksChanged {
		change.Checked = delivery.Commit
	}
	w.Changes.Publish(change)
}
