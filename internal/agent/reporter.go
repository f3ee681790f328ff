package agent

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/toryo-dev/toryo/internal/lifecycle"
	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

const (
	// batchBytes and batchEntries bound what is sent at once.
	batchBytes   = 1 << 20
	batchEntries = 500
	// entryBytes is the largest entry that is sent.
	entryBytes = 4 << 20
	// waitingBytes and waitingEntries bound what waits for the server. Past them
	// the run waits too.
	waitingBytes   = 16 << 20
	waitingEntries = 20_000
)

// reporter brings a run's journal to the server: in order, in batches, each entry
// again and again until the server has it. Append may be called by several
// goroutines.
type reporter struct {
	held *wire.RunClient

	mutex   sync.Mutex
	waiting []wire.Entry // that the server has not acknowledged
	bytes   int
	last    int64         // sequence given last
	refused error         // why the server will not take what waits, or nil
	changed chan struct{} // closed, and made anew, when something here changes
}

func newReporter(held *wire.RunClient) *reporter {
	return &reporter{held: held, changed: make(chan struct{})}
}

// Append implements phase.Journal, as far as the server is concerned.
func (r *reporter) Append(ctx context.Context, kind task.EventKind, entry phase.Entry) error {
	data, err := encodeEntry(entry)
	if err != nil {
		return err
	}
	return r.add(ctx, wire.Entry{Kind: string(kind), At: time.Now().UTC(), Data: data})
}

// add numbers the entry and lets it wait for the server. It waits for room.
func (r *reporter) add(ctx context.Context, entry wire.Entry) error {
	for {
		r.mutex.Lock()
		if r.bytes < waitingBytes && len(r.waiting) < waitingEntries {
			r.last++
			entry.Sequence = r.last
			r.waiting = append(r.waiting, entry)
			r.bytes += len(entry.Data)
			r.change()
			r.mutex.Unlock()
			return nil
		}
		changed := r.changed
		r.mutex.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// encodeEntry writes an entry down. Of one that is too large the part that is
// only for looking things up is left out.
func encodeEntry(entry phase.Entry) (json.RawMessage, error) {
	data, err := json.Marshal(entry)
	if err == nil && len(data) > entryBytes && entry.Result != nil {
		short := *entry.Result
		short.Whole = ""
		entry.Result = &short
		data, err = json.Marshal(entry)
	}
	if err != nil {
		return nil, task.Wrap(task.Invalid, err, "the journal entry cannot be written down")
	}
	if len(data) > entryBytes {
		return nil, task.Errorf(task.TooLarge, "the journal entry has %d bytes; %d are allowed", len(data), entryBytes)
	}
	return data, nil
}

// change wakes those who wait for a change. The mutex is held.
func (r *reporter) change() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// run sends what waits until the context ends. It returns an error only when the
// server will not take an entry.
func (r *reporter) run(ctx context.Context) error {
	for {
		batch, changed := r.batch()
		if len(batch) == 0 {
			select {
			case <-changed:
				continue
			case <-ctx.Done():
				return nil
			}
		}
		reported, err := persist(ctx, callTimeout, func(ctx context.Context) (wire.Reported, error) {
			return r.held.Report(ctx, batch)
		})
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the hold is over, and says why itself
		}
		if err != nil {
			return r.refuse(err)
		}
		if r.acknowledge(reported.Acknowledged) == 0 && lifecycle.Sleep(ctx, firstPause) != nil {
			return nil //nolint:nilerr // the hold is over, and says why itself
		}
	}
}

func (r *reporter) batch() ([]wire.Entry, <-chan struct{}) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	bytes, count := 0, 0
	for _, entry := range r.waiting {
		bytes += len(entry.Data)
		if count == batchEntries || count > 0 && bytes > batchBytes {
			break
		}
		count++
	}
	return append([]wire.Entry(nil), r.waiting[:count]...), r.changed
}

// acknowledge forgets what the server has, and returns how many entries that are.
func (r *reporter) acknowledge(sequence int64) int {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	count := 0
	for _, entry := range r.waiting {
		if entry.Sequence > sequence {
			break
		}
		r.bytes -= len(entry.Data)
		count++
	}
	if count > 0 {
		r.waiting = append([]wire.Entry(nil), r.waiting[count:]...)
		r.change()
	}
	return count
}

// refuse notes that nothing more can be sent.
func (r *reporter) refuse(err error) error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.refused = err
	r.change()
	return err
}

// flush waits until the server has everything.
func (r *reporter) flush(ctx context.Context) error {
	for {
		r.mutex.Lock()
		left, refused, changed := len(r.waiting), r.refused, r.changed
		r.mutex.Unlock()
		if left == 0 || refused != nil {
			return refused
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
