package limit

import (
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// How long the body of a request may take to arrive. It is a limit for the whole
// body, so that one byte now and then does not extend it. Those who have shown a
// token may send much, as a push does, and get time for as much as has come.
const (
	// StrangersBody is for those who are not known yet.
	StrangersBody = 10 * time.Second // GitHub and GitLab give up a webhook after as long
	knownBody     = time.Minute
	slowest       = 16 << 10 // bytes in a second
)

// SetDeadline gives the body of the request a deadline: strangers is how long it may take
// while the sender has not proved who it is.
func SetDeadline(w http.ResponseWriter, r *http.Request, strangers time.Duration, proved *atomic.Bool) {
	if r.Body == nil || r.Body == http.NoBody {
		return
	}
	body := &timedBody{ReadCloser: r.Body, control: http.NewResponseController(w), strangers: strangers, proved: proved}
	// What nobody reads of a body is read by net/http when the request is over.
	body.extend()
	r.Body = body
}

type timedBody struct {
	io.ReadCloser
	control   *http.ResponseController
	spent     time.Duration // waiting for the sender; what we take for ourselves does not count
	strangers time.Duration
	proved    *atomic.Bool
	count     int64
}

func (b *timedBody) extend() {
	limit := b.strangers
	if b.proved.Load() {
		limit = knownBody + time.Duration(b.count/slowest)*time.Second
	}
	_ = b.control.SetReadDeadline(time.Now().Add(limit - b.spent)) // where there is no connection, as in some tests, nobody can hold it up
}

// Read implements io.Reader. At the end of the body it takes the deadline away:
// net/http reads on, to see whether the caller is still there.
func (b *timedBody) Read(p []byte) (int, error) {
	b.extend()
	begun := time.Now()
	n, err := b.ReadCloser.Read(p)
	b.spent += time.Since(begun)
	b.count += int64(n)
	if errors.Is(err, io.EOF) {
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}
