package broker

import (
	"context"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// Signals is what a run has to know. Stop and Pause are nil if nobody wants them.
type Signals struct {
	Stop, Pause *store.Halt
	Comments    []task.CommentEntry
}

func (s Signals) any() bool { return s.Stop != nil || s.Pause != nil || len(s.Comments) > 0 }

// maxComments is how many comments are given at once; the next time gives more.
const maxComments = 200

// Signals returns what a run has to know, as soon as there is something, or
// nothing when the wait is over. The database is looked at when the notifier rings,
// not in between. When the wait ends because the lease is over, it fails with
// LeaseLost.
func (r *Runs) Signals(ctx context.Context, held Lease, after int64, wait time.Duration) (Signals, error) {
	rung, stop := r.options.Notifier.Listen(held.ID)
	defer stop()
	end := time.NewTimer(wait)
	defer end.Stop()
	for {
		signals, err := r.pending(ctx, held, after)
		if err != nil || signals.any() || wait <= 0 {
			return signals, err
		}
		select {
		case <-rung:
		case <-end.C:
			wait = 0
		case <-ctx.Done():
			return Signals{}, ctx.Err()
		}
		if err := r.options.Store.Holds(ctx, held.ID, held.Generation, held.TokenHash); err != nil {
			return Signals{}, err
		}
	}
}

// pending reads what a run has to know now.
func (r *Runs) pending(ctx context.Context, held Lease, after int64) (Signals, error) {
	halts, err := r.options.Store.HaltsOf(ctx, held.ID)
	if err != nil {
		return Signals{}, err
	}
	var signals Signals
	signals.Stop, signals.Pause = haltsIn(halts)
	start, err := r.options.Store.CommentsStart(ctx, held.ID)
	if err != nil {
		return Signals{}, err
	}
	signals.Comments, err = r.commentsFor(ctx, held.ID, max(after, start))
	return signals, err
}

// commentsFor returns the entries of the comment log after the position that a run is
// told of: what came after it had begun. Of a comment that is not taken up, it is
// told that and why, for what people see.
func (r *Runs) commentsFor(ctx context.Context, id task.ID, after int64) ([]task.CommentEntry, error) {
	for {
		entries, err := r.options.Store.CommentsAfter(ctx, id, after, maxComments)
		if err != nil || len(entries) == 0 {
			return nil, err
		}
		var found []task.CommentEntry
		for _, entry := range entries {
			if entry.Change != task.CommentPresent {
				found = append(found, entry)
			}
		}
		if len(found) > 0 {
			return found, nil
		}
		after = entries[len(entries)-1].Position
	}
}
