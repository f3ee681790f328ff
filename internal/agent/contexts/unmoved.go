package contexts

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/google/uuid"

	"github.com/toryo-dev/toryo/internal/task"
)

// A run that has ended or is paused may not get to the folder where it belongs: the disk is
// full, or something is in its place. It stays among those that are running then, with what
// became of it in its metadata, and the move is tried again.

// Unmoved is a run whose files could not be moved.
type Unmoved struct {
	Metadata
	Folder string // where it belongs
	Err    error
	// Known says that it is not the first time in this process that the move failed.
	Known bool
}

// folderOf is where a run belongs by the state in its metadata.
func folderOf(state string) string {
	switch state {
	case string(task.Paused):
		return Paused
	case string(task.Done), string(task.Failed), string(task.Stopped), StateLeft:
		return Completed
	default:
		return Running
	}
}

// MoveAgain moves the runs that could not be moved before, in this process or an earlier
// one. It returns those that were moved, and those that still cannot be.
func (c *Contexts) MoveAgain() (moved []Metadata, unmoved []Unmoved, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	entries, err := os.ReadDir(filepath.Join(c.dir, Running))
	if err != nil {
		return nil, nil, task.Wrap(task.DataDir, err, "cannot list the runs")
	}
	for _, entry := range entries {
		id := entry.Name()
		if !entry.IsDir() || uuid.Validate(id) != nil || c.open[id] {
			continue
		}
		meta, known := c.unmoved[id]
		file := filepath.Join(c.dir, Running, id, metadataFile)
		if !known && readJSON(file, &meta) != nil {
			continue // nothing is known of where it belongs; see Left
		}
		folder := folderOf(meta.State)
		if folder == Running {
			continue
		}
		meta.UUID = id
		err := replaceJSON(file, meta)
		if err == nil {
			err = c.move(id, Running, folder)
		}
		if err != nil {
			c.unmoved[id] = meta
			unmoved = append(unmoved, Unmoved{Metadata: meta, Folder: folder, Err: err, Known: known})
			continue
		}
		delete(c.unmoved, id)
		moved = append(moved, meta)
	}
	return moved, slices.Clip(unmoved), nil
}
