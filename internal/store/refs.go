package store

import (
	"context"

	"github.com/toryo-dev/toryo/internal/task"
)

// KeptRefs is what a task has in git at one moment, and what of it is new.
type KeptRefs struct {
	Task       task.ID
	Generation int64
	Position   int64             // given by the store, and greater than those before
	Head       string            // the ref that HEAD stands for; empty for none
	Base       string            // a commit that the forge has; empty for none
	Refs       map[string]string // the commit of each ref
	// Pack has the objects that neither the base nor the refs kept before lead to.
	Pack []byte
}

// Refs keeps what tasks have in git, so that a server that was not there when it
// was pushed can have it.
type Refs interface {
	// KeepRefs keeps the refs of a task after those of the given position, 0 if
	// there are none, and returns their own. It fails with Conflict if others were
	// kept in between, with StaleGeneration if the task is in another generation,
	// and with TooLarge if all that is kept of the task were more than
	// [MostKept].
	KeepRefs(ctx context.Context, refs KeptRefs, after int64) (position int64, err error)
	// NewestRefs returns what was kept last, without its pack, or NotFound.
	NewestRefs(ctx context.Context, id task.ID) (KeptRefs, error)
	// RefsSince returns what was kept of a task after the position.
	RefsSince(ctx context.Context, id task.ID, position int64) ([]KeptRefs, error)
}

// MostKept is how many bytes of packs are kept of one task at most.
const MostKept = 512 << 20
