package server

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/task"
)

// How long the body of a request may take to arrive. It is a limit for the whole
// body, so that one byte now and then does not extend it. Those who have shown a
// token may send much, as a push does, and get time for as much as has come.
const (
	strangersBody = 10 * time.Second // GitHub and GitLab give up a webhook after as long
	knownBody     = time.Minute
	slowest       = 16 << 10 // bytes in a second
)

// bodyDeadlineIsOurs keeps the library that reads requests from setting a deadline
// of its own, which it would not take back.
const bodyDeadlineIsOurs = -1

// meet begins a request of someone who is not known yet. It gives the body a
// deadline, and refuses the request when the client has too many like it. The caller
// calls leave when the request is over.
func (s *Server) meet(w http.ResponseWriter, r *http.Request) (met *http.Request, leave func(), err error) {
	client := access.Network(r.RemoteAddr)
	if !s.strangers.take(client, 1) {
		return r, func() {}, task.Errorf(task.TooMany, "there are too many requests at once").WithHint("wait a second")
	}
	leave = sync.OnceFunc(func() { s.strangers.release(client, 1) })
	proved := new(atomic.Bool)
	connection := connectionOf(r.Context())
	r = r.WithContext(access.WithProved(r.Context(), func() {
		proved.Store(true)
		connection.prove()
		leave()
	}))
	s.setDeadline(w, r, proved)
	return r, leave, nil
}

// Requests of those who are not known yet that are answered at once, with some 40 kB
// each: a connection can have many.
const (
	maxMet       = 256 // of one client
	maxMetByMany = 4096
)

// setDeadline gives the body of the request a deadline.
func (s *Server) setDeadline(w http.ResponseWriter, r *http.Request, proved *atomic.Bool) {
	if r.Body == nil || r.Body == http.NoBody {
		return
	}
	body := &timedBody{ReadCloser: r.Body, control: http.NewResponseController(w), strangers: s.bodyTimeout, proved: proved}
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

// What may be held of bodies whose sender is not known yet: all of them together,
// and those of one client. One webhook of the largest size fits.
const (
	maxHeldAll    = 4 * maxHeldClient
	maxHeldClient = maxWebhook + 1<<20
	pieceSize     = 64 << 10
)

// inFlight counts what is held for clients, up to a limit for one and for all.
type inFlight struct {
	perClient, most int

	mutex   sync.Mutex
	all     int
	clients map[string]int
}

func (f *inFlight) take(client string, size int) bool {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.all+size > f.most || f.clients[client]+size > f.perClient {
		return false
	}
	if f.clients == nil {
		f.clients = make(map[string]int)
	}
	f.all += size
	f.clients[client] += size
	return true
}

func (f *inFlight) release(client string, size int) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.all -= size
	if f.clients[client] -= size; f.clients[client] <= 0 {
		delete(f.clients, client)
	}
}

// heldBody is one body that is being read.
type heldBody struct {
	in     *inFlight
	client string
	copies int // how many times its size it takes
	size   int
}

func (f *inFlight) open(client string) *heldBody { return &heldBody{in: f, client: client} }

func (h *heldBody) close() {
	h.in.release(h.client, h.size)
	h.size = 0
}

// read reads a body to its end, in pieces: one buffer that grows would for a while
// take three times as much.
func (h *heldBody) read(from io.Reader) (pieces [][]byte, err error) {
	for {
		if !h.in.take(h.client, pieceSize*h.copies) {
			return nil, task.Errorf(task.Unavailable, "too much is being sent at once").WithHint("send it again later")
		}
		h.size += pieceSize * h.copies
		piece := make([]byte, pieceSize)
		n := 0
		for n < len(piece) && err == nil {
			var more int
			more, err = from.Read(piece[n:])
			n += more
		}
		pieces = append(pieces, piece[:n])
		var tooLarge *http.MaxBytesError
		switch {
		case errors.Is(err, io.EOF):
			return pieces, nil
		case errors.As(err, &tooLarge):
			return nil, task.Wrap(task.TooLarge, err, "the webhook is too large")
		case err != nil:
			return nil, task.Wrap(task.Invalid, err, "the webhook breaks off")
		}
	}
}
