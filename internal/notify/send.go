package notify

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/notify/format"
	"github.com/toryo-dev/toryo/internal/redact"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

// Target is a webhook of a service that people read.
type Target struct {
	Name     string
	URL      redact.Secret // who knows it can write there
	Format   format.Name
	Template string        // replaces that of the format; empty means that it does not
	Secret   redact.Secret // messages are signed with it; empty means that they are not
	Kinds    []task.NeedKind
	Language task.Language
}

// FaultName names, among the faults of a server, that people cannot be told of what waits for them.
const FaultName = "notifications"

// Wants reports whether the target is told of a need. That nobody can be told is on the pages
// only.
func (t Target) Wants(need task.Need) bool {
	if need.Kind == task.NeedServer && need.Subject == FaultName {
		return false
	}
	return slices.Contains(t.Kinds, need.Kind)
}

const (
	// patience is how long a message may take, the answer included.
	patience = 10 * time.Second
	// maxAnswer is how many bytes of an answer are read: it says at most what is wrong.
	maxAnswer = 1 << 10
	// maxRetryAfter is the longest time for which a service can put us off.
	maxRetryAfter = time.Hour
)

// Sender sends messages. What it sends to is the address of others: it waits for so long and
// no longer, reads so much and no more, and goes nowhere else than to that address.
type Sender struct {
	client *http.Client
	now    func() time.Time
}

// NewSender makes a sender. The time is for signatures.
func NewSender(now func() time.Time) *Sender {
	return &Sender{now: now, client: &http.Client{
		Timeout: patience,
		// A redirect could lead to what only this machine can reach.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: patience / 2}).DialContext,
			TLSHandshakeTimeout: patience / 2, DisableKeepAlives: true, MaxResponseHeaderBytes: 64 << 10,
		},
	}}
}

// refusal is that a target has not taken a message, with how long it wants to be left alone,
// and whether another text may be taken.
type refusal struct {
	error
	wait time.Duration
	text bool
}

// Unwrap implements the interface of package errors.
func (r refusal) Unwrap() error { return r.error }

// Send sends a message and returns when the target has taken it. Errors do not name the
// address, which is a secret.
func (s *Sender) Send(ctx context.Context, to Target, message format.Message) error {
	body, err := format.Body(to.Format, to.Template, message)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, to.URL.Reveal(), bytes.NewReader(body))
	if err != nil {
		return task.Errorf(task.Invalid, "the address of the webhook %s is none", to.Name)
	}
	request.Header.Set("Content-Type", "application/json; charset=utf-8")
	request.Header.Set("User-Agent", "toryo")
	if to.Secret != "" {
		if err := sign(request.Header, to.Secret, message.ID, s.now(), body); err != nil {
			return err
		}
	}
	answer, err := s.client.Do(request)
	if err != nil {
		return unreachable(to, err)
	}
	defer func() { _ = answer.Body.Close() }()
	said, _ := io.ReadAll(io.LimitReader(answer.Body, maxAnswer)) // what it says counts only when it refuses
	return judge(to, answer, said)
}

// Reach reports whether something answers at the address of a target, without sending a
// message, and the status with which it does.
func (s *Sender) Reach(ctx context.Context, to Target) (status int, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodHead, to.URL.Reveal(), nil)
	if err != nil {
		return 0, task.Errorf(task.Invalid, "the address of the webhook %s is none", to.Name)
	}
	answer, err := s.client.Do(request)
	if err != nil {
		return 0, unreachable(to, err)
	}
	return answer.StatusCode, answer.Body.Close()
}

// unreachable is an error of the client without the address: it stands before the reason, and may
// stand in it, because the reason may repeat what the other end has said.
func unreachable(to Target, err error) error {
	if at, is := errors.AsType[*url.Error](err); is {
		err = at.Err
	}
	return task.Wrap(task.Unavailable, maskedError{err, readable(err.Error(), to)}, fmt.Sprintf("the webhook %s cannot be reached", to.Name))
}

// maskedError is an error with another text.
type maskedError struct {
	error
	text string
}

func (m maskedError) Error() string { return m.text }

// Unwrap implements the interface of package errors.
func (m maskedError) Unwrap() error { return m.error }

// judge says whether a target has taken a message.
func judge(to Target, answer *http.Response, said []byte) error {
	switch {
	case answer.StatusCode >= 200 && answer.StatusCode < 300:
		return nil
	case answer.StatusCode >= 300 && answer.StatusCode < 400:
		return task.Errorf(task.Unavailable, "the webhook %s answers with a redirect (HTTP %d), which is not followed", to.Name, answer.StatusCode).
			WithHint("set its url to the address that answers itself")
	}
	err := task.Errorf(task.Unavailable, "the webhook %s answers HTTP %d: %s", to.Name, answer.StatusCode, readable(string(said), to)).
		WithHint("look at its url, its format, and whether it still exists there")
	return refusal{err, retryAfter(answer), refusesText(answer.StatusCode)}
}

// refusesText says whether a status may be about what the message says, and not about its address,
// the sender or the moment.
func refusesText(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusProxyAuthRequired,
		http.StatusRequestTimeout, http.StatusGone, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	default:
		return status >= 400 && status < 500
	}
}

// mostSaid is how many characters are shown of what a target says.
const mostSaid = 200

// readable is what a target says, on one line, short, and without its address.
func readable(text string, to Target) string {
	text = textfmt.OneLine(textfmt.Plain(strings.ToValidUTF8(text, "")))
	return textfmt.Shorten(masked(text, to.URL.Reveal()), mostSaid)
}

// shortestSecret is how long a part of an address is that may be a secret.
const shortestSecret = 6

// masked is what a service says without the parts of its address: many say it again.
func masked(text, address string) string {
	text = strings.ReplaceAll(text, address, "…")
	parsed, err := url.Parse(address)
	if err != nil {
		return text
	}
	parts := slices.Concat(strings.Split(parsed.Path, "/"), strings.Split(parsed.EscapedPath(), "/"))
	for _, values := range parsed.Query() {
		parts = append(parts, values...)
	}
	// The longest first: a part may begin another.
	slices.SortFunc(parts, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	for _, part := range parts {
		if len(part) >= shortestSecret {
			text = strings.ReplaceAll(text, part, "…")
			text = strings.ReplaceAll(text, url.QueryEscape(part), "…")
		}
	}
	return text
}

// retryAfter is how long the service asks us to wait; 0 if it does not.
func retryAfter(answer *http.Response) time.Duration {
	seconds, err := strconv.ParseUint(answer.Header.Get("Retry-After"), 10, 32)
	if err != nil {
		return 0
	}
	return min(time.Duration(seconds)*time.Second, maxRetryAfter)
}

// sign signs a message as Standard Webhooks (standardwebhooks.com) says: receivers have
// libraries that check it.
func sign(header http.Header, secret redact.Secret, id string, at time.Time, body []byte) error {
	key, err := format.SigningKey(secret.Reveal())
	if err != nil {
		return err
	}
	stamp := strconv.FormatInt(at.Unix(), 10)
	sum := hmac.New(sha256.New, key)
	sum.Write([]byte(id + "." + stamp + "."))
	sum.Write(body)
	header.Set("Webhook-Id", id)
	header.Set("Webhook-Timestamp", stamp)
	header.Set("Webhook-Signature", "v1,"+base64.StdEncoding.EncodeToString(sum.Sum(nil)))
	return nil
}
