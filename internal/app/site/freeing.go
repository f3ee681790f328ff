package site

import (
	"context"
	"log/slog"
	"time"

	"github.com/toryo-dev/toryo/internal/app/processes"
	"github.com/toryo-dev/toryo/internal/outbox"
	"github.com/toryo-dev/toryo/internal/store"
)

// freeing frees what processes with this data directory held that have ended, so that
// nobody waits for them.
type freeing struct {
	process *processes.Process
	store   store.Processes
	now     func() time.Time
	sender  *outbox.Sender // is told of writes that are to be looked at; may be nil
	log     *slog.Logger
}

// free does so, and reports whether a conversation was among it.
func (f freeing) free(ctx context.Context) (turns bool, err error) {
	ended, err := f.process.Ended(ctx, f.log)
	if err != nil || len(ended) == 0 {
		return false, err
	}
	settled := f.now().Add(outbox.Settling)
	answers, writes, err := f.store.FreeHeld(ctx, ended, settled)
	if err != nil {
		return false, err
	}
	if answers > 0 || writes > 0 {
		f.log.InfoContext(ctx, "released what processes held that have ended", "answers", answers, "writes", writes)
	}
	if f.sender != nil {
		f.sender.WakeAt(settled)
	}
	return answers > 0, f.process.Forget(ended)
}
