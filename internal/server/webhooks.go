package server

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/items"
	"github.com/toryo-dev/toryo/internal/server/limit"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
	"github.com/toryo-dev/toryo/internal/wire"
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
// if it were new and has no effect either. One to another path is answered 404, with
// the right path in it.
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

	expected map[task.Forge]*expectation // see Expect
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
		mux.HandleFunc("POST "+webhookPath(name), func(to http.ResponseWriter, r *http.Request) { w.receive(to, r, name) })
	}
	mux.HandleFunc(webhookFolder, w.refuse)
	mux.HandleFunc(strings.TrimSuffix(webhookFolder, "/"), w.refuse)
}

// webhookFolder is where the paths of webhooks are.
const webhookFolder = "/webhooks/"

func webhookPath(of task.Forge) string { return webhookFolder + string(of) }

// receive answers one webhook. Who sends it is not known before the signature is checked: of
// one that is not signed it says no more than that.
func (w *Webhooks) receive(to http.ResponseWriter, r *http.Request, of task.Forge) {
	delivery, digest, err := w.read(to, r, of)
	if err == nil {
		err = w.take(r.Context(), of, delivery, digest)
	}
	status := http.StatusNoContent
	if err != nil {
		status = task.CodeOf(err).Info().Status
	}
	w.note(r.Context(), of, delivery, status, err)
	if err == nil {
		to.WriteHeader(status)
		return
	}
	answer := wire.ProblemOf(err)
	if status == http.StatusUnauthorized {
		answer = wire.ProblemOf(task.Errorf(task.Unauthorized, "the webhook is not signed with the secret of this server").
			WithHint("set the same secret in the webhook on the forge and in %s.webhook_secret or %s.webhook_secret_file here", of, of))
	}
	w.answer(to, r, answer)
}

// answer writes a problem for whoever looks at the deliveries on the forge.
func (w *Webhooks) answer(to http.ResponseWriter, r *http.Request, p wire.Problem) {
	to.Header().Set("Content-Type", wire.ProblemType)
	to.WriteHeader(p.Status)
	if err := (&problem{p}).write(to); err != nil {
		w.Log.DebugContext(r.Context(), "client disconnected", "error", err)
	}
}

// longestPath is how many characters are kept of a path or an event that anybody may have sent.
const longestPath = 200

// refuse answers what was sent to a path at which no webhook is taken, and names the right ones.
func (w *Webhooks) refuse(to http.ResponseWriter, r *http.Request) {
	sender, path := senderOf(r.Header), textfmt.Shorten(forge.Clean(r.URL.Path), longestPath)
	meant := task.Forge(strings.TrimPrefix(r.URL.Path, webhookFolder))
	if r.Method == http.MethodPost && w.expecting(meant) != nil {
		w.receive(to, r, meant)
		return
	}
	if _, taken := w.Forges[meant]; taken { // by another method than POST
		to.Header().Set("Allow", http.MethodPost)
		w.answer(to, r, wire.Problem{
			Title: http.StatusText(http.StatusMethodNotAllowed), Status: http.StatusMethodNotAllowed, Code: string(task.Invalid),
			Detail: "webhooks are delivered to " + path + " with POST", Hint: "enter this address in the webhook on the forge",
		})
		return
	}
	if !slices.Contains(hookedForges, meant) {
		meant = sender
	}
	err := task.Errorf(task.NotFound, "no webhooks are taken at %s", path)
	_, taken := w.Forges[meant]
	switch {
	case taken:
		err = err.WithHint("the path for webhooks of %s is %s", meant, webhookPath(meant))
	case meant != "":
		err = err.WithHint("this server takes none of %s: set %s.webhook_secret or %s.webhook_secret_file and start it again; the path is %s then",
			meant, meant, meant, webhookPath(meant))
	default:
		err = err.WithHint("%s", w.rightPaths())
	}
	if sender != "" {
		w.note(r.Context(), sender, forge.Delivery{Event: textfmt.Shorten(forge.Clean(r.Header.Get(eventHeader[sender])), longestPath)}, http.StatusNotFound, err)
	}
	w.answer(to, r, wire.ProblemOf(err))
}

// rightPaths names the paths at which webhooks are taken.
func (w *Webhooks) rightPaths() string {
	var paths []string
	for _, name := range hookedForges {
		if _, taken := w.Forges[name]; taken {
			paths = append(paths, webhookPath(name))
		}
	}
	if len(paths) == 0 {
		return "this server takes no webhooks: set webhook_secret or webhook_secret_file of the forge and start it again"
	}
	return "webhooks are taken at " + strings.Join(paths, ", ")
}

// hookedForges are the forges that send webhooks. Gitea also sends the header of GitHub, and so
// comes before it.
var hookedForges = []task.Forge{task.Gitea, task.GitLab, task.GitHub}

// eventHeader is the header by which a forge names the event of a delivery.
var eventHeader = map[task.Forge]string{task.GitHub: "X-GitHub-Event", task.GitLab: "X-Gitlab-Event", task.Gitea: "X-Gitea-Event"}

// senderOf is the forge that a request seems to be a delivery of, or "".
func senderOf(header http.Header) task.Forge {
	for _, name := range hookedForges {
		if header.Get(eventHeader[name]) != "" {
			return name
		}
	}
	return ""
}

// read takes in a webhook. Nothing of its body is read that cannot be signed, and
// what is held before the signature is checked is bounded, over all requests. Digest
// tells the body from others.
func (w *Webhooks) read(to http.ResponseWriter, r *http.Request, of task.Forge) (delivery forge.Delivery, digest string, err error) {
	hook := w.hookOf(of)
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
	own := task.SameBot(delivery.Actor, w.Forges[delivery.Forge].Self)
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
