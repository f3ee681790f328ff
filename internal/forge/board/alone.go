package board

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/toryo-dev/toryo/internal/task"
)

// alone does something that nobody else may do at the same time, in this process
// or in another that has the same folder. It is for what is soon done.
func (b *Board) alone(ctx context.Context, do func() error) (err error) {
	b.turn.Lock()
	defer b.turn.Unlock()
	unlock, err := lockFile(ctx, filepath.Join(b.folder, ".lock"))
	if err != nil {
		return task.Wrap(task.DataDir, err, "the board's folder cannot be locked")
	}
	defer func() { err = errors.Join(err, unlock()) }()
	return do()
}
