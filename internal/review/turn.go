package review

import (
	"context"
	"sync"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/store"
)

// Turn is a message that is being answered. Any number of goroutines may follow it,
// and none has to.
type Turn struct {
	// Asked is the message, as it was stored, and Thread the one that it is in.
	Asked  store.Message
	Thread store.Thread

	mu      sync.Mutex
	pieces  []Piece
	changed chan struct{} // closed when there is more
	done    bool
	answer  store.Message
	err     error
}

// Piece is a piece of an answer that comes in. Restart says that the pieces so far
// are void, because the model begins again.
type Piece struct {
	Text    string
	Restart bool
}

func newTurn(begun store.Begun) *Turn {
	return &Turn{Asked: begun.Message, Thread: begun.Thread, changed: make(chan struct{})}
}

// take is the sink that the model's answer goes into. It never waits.
func (t *Turn) take(delta llm.Delta) {
	if delta.Text == "" && !delta.Restart {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pieces = append(t.pieces, Piece{Text: delta.Text, Restart: delta.Restart})
	t.wake()
}

func (t *Turn) finish(answer store.Message, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.answer, t.err, t.done = answer, err, true
	t.wake()
}

// wake lets everyone look who follows. The mutex is held.
func (t *Turn) wake() {
	close(t.changed)
	t.changed = make(chan struct{})
}

// Follow gives the pieces of the answer to each, from the first on, and returns
// the answer when it is stored, or why there is none. It ends with its context;
// the answer goes on then. each may be nil.
func (t *Turn) Follow(ctx context.Context, each func(Piece)) (store.Message, error) {
	seen := 0
	for {
		t.mu.Lock()
		pieces, done, changed := t.pieces[seen:], t.done, t.changed
		answer, err := t.answer, t.err
		t.mu.Unlock()
		if each != nil {
			for _, piece := range pieces {
				each(piece)
			}
		}
		seen += len(pieces)
		if done {
			return answer, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return store.Message{}, ctx.Err()
		}
	}
}
