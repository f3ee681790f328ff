package forge

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

// MaxResponse is how many bytes a response of a forge has at most. A comment with a
// body of 10 MB is well within it.
const MaxResponse = 64 << 20

// longestWait is the longest that we let a forge ask us to wait: no forge has
// windows longer than an hour, and a wrong clock must not stop us for days.
const longestWait = time.Hour

// Call is a request to a forge; [Call.Failure] makes the error of one that failed.
type Call struct {
	What string // for people: "comment on github:owner/name#12"
	Now  time.Time
}

// Failure makes the error of a failed call from the forge's answer, which may be
// nil, and the error of the client library: the one table from HTTP to the codes
// of this port. It keeps no more of the answer than its status and headers.
func (c Call) Failure(answer *http.Response, err error) error {
	if err == nil {
		err = errors.New("the forge's answer was not what was asked for")
	}
	err = shorten(withoutCredentials(err))
	if answer == nil {
		code := task.Unavailable
		if isTooLarge(err) {
			code = task.TooLarge
		}
		return &Error{Err: task.Wrap(code, err, "cannot "+c.What)}
	}
	code := codeOf(answer)
	if isTooLarge(err) {
		code = task.TooLarge
	}
	failure := &Error{Err: task.Wrap(code, err, "cannot "+c.What), Status: answer.StatusCode}
	if code == task.Unavailable && answer.StatusCode >= 300 {
		failure.RetryAfter = c.wait(answer.Header)
	}
	return failure
}

// codeOf gives the code of an answer with which a call failed.
func codeOf(answer *http.Response) task.Code {
	switch status := answer.StatusCode; {
	case status < 300: // it said yes, but the rest was cut off or is not what it should be
		return task.Unavailable
	case limited(answer):
		return task.Unavailable
	default:
		return codeOfStatus(status)
	}
}

func codeOfStatus(status int) task.Code {
	switch status {
	case http.StatusUnauthorized:
		return task.Unauthorized
	case http.StatusForbidden:
		return task.Forbidden
	case http.StatusNotFound, http.StatusGone, http.StatusUnavailableForLegalReasons:
		return task.NotFound
	case http.StatusConflict, http.StatusLocked, http.StatusMethodNotAllowed,
		http.StatusNotAcceptable, http.StatusPreconditionFailed:
		return task.Conflict
	case http.StatusRequestEntityTooLarge, http.StatusRequestURITooLong:
		return task.TooLarge
	case http.StatusNotImplemented:
		return task.Unsupported
	case http.StatusRequestTimeout:
		return task.Unavailable
	}
	switch {
	case status >= 500:
		return task.Unavailable
	case status >= 400:
		return task.Invalid
	default: // a redirection that was not followed: it is somewhere else
		return task.NotFound
	}
}

// limited reports whether the forge refused because of too many requests. GitHub
// says so with 403 and headers, everyone else with 429.
func limited(answer *http.Response) bool {
	if answer.StatusCode == http.StatusTooManyRequests {
		return true
	}
	return answer.StatusCode == http.StatusForbidden &&
		(answer.Header.Get("Retry-After") != "" || answer.Header.Get("X-Ratelimit-Remaining") == "0")
}

// wait returns how long the forge asks us to wait: Retry-After in seconds or as a
// date, or the moment at which the quota is filled again.
func (c Call) wait(header http.Header) time.Duration {
	now := c.Now
	if now.IsZero() {
		now = time.Now()
	}
	if after := header.Get("Retry-After"); after != "" {
		if seconds, err := strconv.ParseInt(after, 10, 64); err == nil {
			return clampWait(time.Duration(min(seconds, int64(longestWait/time.Second))) * time.Second)
		}
		if date, err := http.ParseTime(after); err == nil {
			return clampWait(date.Sub(now))
		}
	}
	for _, name := range []string{"X-Ratelimit-Reset", "Ratelimit-Reset"} {
		if at, err := strconv.ParseInt(header.Get(name), 10, 64); err == nil {
			return clampWait(time.Unix(at, 0).Sub(now))
		}
	}
	return 0
}

func clampWait(wait time.Duration) time.Duration { return max(0, min(wait, longestWait)) }

// withoutCredentials takes out of a URL in an error what could be a credential.
func withoutCredentials(err error) error {
	request, ok := errors.AsType[*url.Error](err)
	if !ok {
		return err
	}
	address, parseErr := url.Parse(request.URL)
	if parseErr != nil {
		return request.Err
	}
	address.User, address.RawQuery = nil, ""
	return &url.Error{Op: request.Op, URL: address.String(), Err: request.Err}
}

// maxReason is how much of a client library's error is kept: it may hold the
// whole answer.
const maxReason = 500

// shortenedError is an error whose text is cut and cleaned, or lacks secrets.
type shortenedError struct {
	text string
	err  error
}

func (e *shortenedError) Error() string { return e.text }

func (e *shortenedError) Unwrap() error { return e.err }

func shorten(err error) error {
	return &shortenedError{textfmt.Shorten(textfmt.OneLine(Clean(textfmt.Clip(err.Error(), 4*maxReason))), maxReason), err}
}

// tooLargeError says that an answer passed its limit.
type tooLargeError struct{ limit int64 }

func (e *tooLargeError) Error() string {
	return fmt.Sprintf("the answer is larger than %d MB", e.limit>>20)
}

func isTooLarge(err error) bool {
	_, is := errors.AsType[*tooLargeError](err)
	return is
}

// LimitResponses returns a transport that fails when a response is larger than the
// limit, instead of reading until memory is full.
func LimitResponses(next http.RoundTripper, limit int64) http.RoundTripper {
	return limiting{next, limit}
}

type limiting struct {
	next  http.RoundTripper
	limit int64
}

func (l limiting) RoundTrip(request *http.Request) (*http.Response, error) {
	answer, err := l.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	if answer.ContentLength > l.limit {
		_ = answer.Body.Close()
		return nil, &tooLargeError{l.limit}
	}
	answer.Body = &limitedBody{answer.Body, l.limit, l.limit}
	return answer, nil
}

type limitedBody struct {
	io.ReadCloser
	left, limit int64
}

func (b *limitedBody) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, &tooLargeError{b.limit}
	}
	// One byte more than is allowed tells an answer that just fits from one
	// that does not.
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.ReadCloser.Read(p)
	b.left -= int64(n)
	if b.left < 0 {
		return n, &tooLargeError{b.limit}
	}
	return n, err
}

// noRedirects is the redirection policy of a forge's client: none is followed. A forge
// redirects when an item or repository was moved, which is NotFound; and a
// credential goes to its forge only.
func noRedirects(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// HTTPClient returns the client that an adapter uses by default: with a limit on
// answers, a time limit on each request, and no redirections followed. next
// is what comes below, such as a cache; nil means the network.
func HTTPClient(next http.RoundTripper) *http.Client {
	if next == nil {
		next = http.DefaultTransport
	}
	return &http.Client{
		Transport:     LimitResponses(next, MaxResponse),
		CheckRedirect: noRedirects,
		Timeout:       2 * time.Minute,
	}
}
