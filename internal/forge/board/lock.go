package board

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"github.com/toryo-dev/toryo/internal/task"
)

// lockPoll is how often a lock that another process has is tried again.
const lockPoll = 10 * time.Millisecond

// withLock does something that nobody else may do at the same time, in this process
// or in another that has the same folder. It is for what takes little time.
func (b *Board) withLock(ctx context.Context, do func() error) (err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	lock := flock.New(filepath.Join(b.folder, ".lock"), flock.SetPermissions(0o600))
	defer func() { err = errors.Join(err, lock.Close()) }()
	if _, err := lock.TryLockContext(ctx, lockPoll); err != nil {
		return task.Wrap(task.DataDir, err, "the board's folder cannot be locked")
	}
	return do()
}
