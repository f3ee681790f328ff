package transport

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/toryo-dev/toryo/internal/textfmt"
)

// State is how the forge treats us at present.
type State struct {
	// Remaining is how many requests the forge allows until Reset; -1 if it does not say.
	Remaining int
	Reset     time.Time
	// PausedUntil is until when nothing is asked, because the forge wants that; zero if it
	// does not.
	PausedUntil time.Time
	// Failure is the last request that was not answered or was refused, and FailedAt when
	// that was. It is empty if there was none.
	Failure  string
	FailedAt time.Time
}

// State says how the forge treats us.
func (t *Transport) State() State {
	now := t.options.Clock.Now()
	state := t.gate.state(now)
	t.failure.mu.Lock()
	defer t.failure.mu.Unlock()
	state.Failure, state.FailedAt = t.failure.text, t.failure.at
	return state
}

// state is what is known of the forge's limits. A quota whose time is over says nothing.
func (g *gate) state(now time.Time) State {
	g.mu.Lock()
	defer g.mu.Unlock()
	state := State{Remaining: -1}
	if g.closed.After(now) {
		state.PausedUntil = g.closed
	}
	if left, known := g.quotas["core"]; known && left.reset.After(now) {
		state.Remaining, state.Reset = left.remaining, left.reset
	}
	return state
}

// failure is the last request that came to nothing.
type failure struct {
	mu   sync.Mutex
	text string
	at   time.Time
}

// longestFailure is how much is kept of what went wrong.
const longestFailure = 300

// noteFailure keeps what went wrong with a request. Of its address only the path is kept, and
// nothing of a request that was given up by whoever made it.
func (t *Transport) noteFailure(request *http.Request, why string) {
	if request.Context().Err() != nil {
		return
	}
	text := textfmt.Shorten(textfmt.OneLine(fmt.Sprintf("%s %s: %s", request.Method, request.URL.Path, why)), longestFailure)
	t.failure.mu.Lock()
	defer t.failure.mu.Unlock()
	t.failure.text, t.failure.at = text, t.options.Clock.Now()
}

// refused reports whether an answer is one that people should know of. That something is not
// there, or is there already, is part of the work.
func refused(answer *http.Response) bool {
	switch answer.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests:
		return true
	}
	return answer.StatusCode >= http.StatusInternalServerError
}
