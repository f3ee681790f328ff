package forge

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"mime"
	"net/http"
	"net/url"

	"github.com/toryo-dev/toryo/internal/lazyregexp"
	"github.com/toryo-dev/toryo/internal/task"
)

// DeliveryKind says what a webhook is about.
type DeliveryKind string

// The kinds of delivery.
const (
	ItemsChanged      DeliveryKind = "items"      // something about the items named
	RepositoryChanged DeliveryKind = "repository" // anything in the repository, such as a label's name
	Pushed            DeliveryKind = "push"       // the branch named has another commit, or is gone
	ChecksChanged     DeliveryKind = "checks"     // what continuous integration says about the commit named
	NothingChanged    DeliveryKind = "nothing"    // a test, or what we have no use for
)

// Delivery is what a webhook is about. It is only a hint that something has changed:
// what there is now is read from the forge.
type Delivery struct {
	// ID is the same when the forge sends the delivery again, so that a replay
	// can be dropped; empty if the forge sent none.
	ID    string
	Forge task.Forge
	Kind  DeliveryKind
	Event string // as the forge calls it, for the log
	// Enabled is the name of the [WebhookEvent] that the webhook is enabled for, as the
	// delivery shows; empty if it shows none.
	Enabled    string
	Repository string // empty if it is about none
	Items      []task.Key
	Branch     string
	Commit     string // of ChecksChanged
	Actor      string // login of who did it; empty if the forge does not say
	// CommentEdited says that all that happened is that the actor changed a
	// comment in the item's conversation.
	CommentEdited bool
}

// A WebhookParser verifies a webhook and says what it is about. The secret is the
// one that the forge was given; without one nothing is accepted. body is whole
// and as it came, in any number of pieces. Errors are Unauthorized, when the forge did not sign it with
// the secret, and Invalid, when it cannot be read; an event that is not known is
// no error.
type WebhookParser func(secret string, header http.Header, body ...[]byte) (Delivery, error)

// A WebhookSigned says, before anything of the body is read, whether a webhook can
// be signed with the secret at all: it has the header of the forge in the form of a
// signature, or the right token where the forge sends that. The error is
// Unauthorized.
type WebhookSigned func(secret string, header http.Header) error

// maxDeliveryID is longer than any id that a forge sends.
const maxDeliveryID = 128

// DeliveryID returns the header that identifies a delivery, if it is usable.
func DeliveryID(header http.Header, name string) string {
	if id := header.Get(name); len(id) <= maxDeliveryID {
		return Clean(id)
	}
	return ""
}

// IsSignature says whether the text has the form of an HMAC-SHA-256 in hexadecimal
// digits. It is Unauthorized if not.
func IsSignature(secret, signature string) error {
	_, err := hex.DecodeString(signature)
	if secret == "" || err != nil || len(signature) != hex.EncodedLen(sha256.Size) {
		return errBadSignature()
	}
	return nil
}

// CheckSignature says whether the signature is the HMAC-SHA-256 of the body, in
// hexadecimal digits. It takes the same time for every wrong one.
func CheckSignature(secret, signature string, body ...[]byte) error {
	got, err := hex.DecodeString(signature)
	mac := hmac.New(sha256.New, []byte(secret))
	for _, piece := range body {
		mac.Write(piece)
	}
	if secret == "" || err != nil || !hmac.Equal(got, mac.Sum(nil)) {
		return errBadSignature()
	}
	return nil
}

// CheckToken says whether the token is the secret. It takes the same time for
// every wrong one.
func CheckToken(secret, token string) error {
	want, got := sha256.Sum256([]byte(secret)), sha256.Sum256([]byte(token))
	if subtle.ConstantTimeCompare(want[:], got[:]) != 1 || secret == "" {
		return errBadSignature()
	}
	return nil
}

func errBadSignature() error {
	return task.Errorf(task.Unauthorized, "the webhook is not signed with our secret").
		WithHint("set the same secret on the forge and here")
}

// IsForm says whether the body of a webhook is a form.
func IsForm(header http.Header) bool {
	media, _, _ := mime.ParseMediaType(header.Get("Content-Type"))
	return media == "application/x-www-form-urlencoded"
}

// WebhookJSON returns the JSON in the body of a webhook, which may be the field
// "payload" of a form.
func WebhookJSON(header http.Header, body ...[]byte) ([]byte, error) {
	whole := bytes.Join(body, nil)
	if !IsForm(header) {
		return whole, nil
	}
	form, err := url.ParseQuery(string(whole))
	if err != nil {
		return nil, task.Wrap(task.Invalid, err, "the form in the webhook cannot be read")
	}
	return []byte(form.Get("payload")), nil
}

// About makes the delivery of items and checks them: what a webhook says is no
// better than its sender. Items that cannot exist make it Invalid.
func (d Delivery) About(items ...task.Key) (Delivery, error) {
	for _, item := range items {
		if err := item.Validate(); err != nil {
			return Delivery{}, task.Wrap(task.Invalid, err, "the webhook names an item that cannot be")
		}
	}
	d.Kind, d.Items = ItemsChanged, items
	return d, nil
}

var commitHash = lazyregexp.New(`^[0-9a-f]{40}([0-9a-f]{24})?$`)

// OfChecks makes the delivery of what continuous integration says about a commit. One that
// cannot be the full hash of a commit makes it Invalid.
func (d Delivery) OfChecks(commit string) (Delivery, error) {
	anyItem := task.Key{Forge: d.Forge, Repository: d.Repository, Kind: task.Issue, Number: 1}
	if err := anyItem.Validate(); err != nil || !commitHash.MatchString(commit) {
		return Delivery{}, task.Wrap(task.Invalid, err, "the webhook names no repository or commit of which it could tell checks")
	}
	d.Kind, d.Commit = ChecksChanged, commit
	return d, nil
}
