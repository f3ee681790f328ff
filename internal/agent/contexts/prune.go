package contexts

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/toryo-dev/toryo/internal/task"
)

// removing begins the names of the folders of runs that are being removed.
const removing = ".removing-"

// Prune removes the files of the runs that ended before the given moment, and returns how many runs these
// were. One that cannot be removed is passed over. What an earlier call had begun to remove
// goes too.
func (c *Contexts) Prune(ctx context.Context, before time.Time) (int, error) {
	old, failed := c.Old(before)
	count := 0
	for _, id := range old {
		if ctx.Err() != nil {
			return count, ctx.Err()
		}
		gone, err := c.remove(id)
		if failed = errors.Join(failed, err); gone {
			count++
		}
	}
	folder := filepath.Join(c.dir, Completed)
	entries, err := os.ReadDir(folder)
	if err != nil {
		return count, errors.Join(failed, task.Wrap(task.DataDir, err, "cannot list the runs"))
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), removing) && ctx.Err() == nil {
			failed = errors.Join(failed, os.RemoveAll(filepath.Join(folder, entry.Name())))
		}
	}
	return count, failed
}

// remove takes a run out of the folder by one rename, so that half of one is never found
// there. A task that begins again may have taken it back meanwhile.
func (c *Contexts) remove(id string) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open[id] {
		return false, nil
	}
	folder := filepath.Join(c.dir, Completed)
	err := os.Rename(filepath.Join(folder, id), filepath.Join(folder, removing+id))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, task.Wrap(task.DataDir, err, "cannot remove the run "+id)
	}
	return true, nil
}

// Old lists the runs that ended before the given moment.
func (c *Contexts) Old(before time.Time) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(c.dir, Completed))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, task.Wrap(task.DataDir, err, "cannot list the runs")
	}
	var old []string
	for _, entry := range entries {
		if !entry.IsDir() || uuid.Validate(entry.Name()) != nil {
			continue
		}
		if at := c.endedAt(entry.Name()); !at.IsZero() && at.Before(before) {
			old = append(old, entry.Name())
		}
	}
	return old, nil
}

// endedAt is when a run ended, or else when its folder was last changed.
func (c *Contexts) endedAt(id string) time.Time {
	dir := filepath.Join(c.dir, Completed, id)
	var meta Metadata
	if err := readJSON(filepath.Join(dir, metadataFile), &meta); err == nil && !meta.EndedAt.IsZero() {
		return meta.EndedAt
	}
	info, err := os.Stat(dir)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}
