package server

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/server/limit"
	"github.com/toryo-dev/toryo/internal/task"
)

// bodyDeadlineIsOurs keeps the library that reads requests from setting a deadline
// of its own, which it would not take back.
const bodyDeadlineIsOurs = -1

// meet begins a request of someone who is not known yet. It gives the body a
// deadline, and refuses the request when the client has too many like it. The caller
// calls leave when the request is over.
func (s *Server) meet(w http.ResponseWriter, r *http.Request) (met *http.Request, leave func(), err error) {
	client, leave := access.Network(r.RemoteAddr), func() {}
	if !askedBefore(r) {
		if !s.strangers.Take(client, 1) {
			return r, leave, task.Errorf(task.TooMany, "there are too many requests at once").WithHint("wait a second")
		}
		leave = sync.OnceFunc(func() { s.strangers.Release(client, 1) })
	}
	proved := new(atomic.Bool)
	request := r.Context()
	r = r.WithContext(access.WithProved(request, func() {
		proved.Store(true)
		limit.Known(request)
		leave()
	}))
	limit.SetDeadline(w, r, s.bodyTimeout, proved)
	return r, leave, nil
}

// Requests of those who are not known yet that are answered at once, with some 40 kB
// each: a connection can have many.
const (
	maxMet       = 256 // of one client
	maxMetByMany = 4096
)

// What may be held of bodies whose sender is not known yet: all of them together,
// and those of one client. One webhook of the largest size fits.
const (
	maxHeldAll    = 4 * maxHeldClient
	maxHeldClient = maxWebhook + 1<<20
	pieceSize     = 64 << 10
)

// heldBody is one body that is being read.
type heldBody struct {
	in     *limit.InFlight
	client string
	copies int // how many times its size it takes
	size   int
}

func (h *heldBody) close() {
	h.in.Release(h.client, h.size)
	h.size = 0
}

// read reads a body to its end, in pieces: one buffer that grows would for a while
// take three times as much.
func (h *heldBody) read(from io.Reader) (pieces [][]byte, err error) {
	for {
		if !h.in.Take(h.client, pieceSize*h.copies) {
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
