package contexts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/task"
)

// The folders of runs.
const (
	Running   = "running"
	Paused    = "paused"
	Completed = "completed"
)

var folders = []string{Running, Paused, Completed}

// Options say how journals are kept. All have defaults.
type Options struct {
	// Redactor masks secrets in all that is written and passed on.
	Redactor llm.Redactor
	// ReadOnly says that the runs are only looked at: no folder is made.
	ReadOnly bool
	Log      *slog.Logger
	// RoomWithin is how long an entry waits for room on a full disk; 0 means ten minutes.
	RoomWithin time.Duration
	// Now is the clock.
	Now func() time.Time
}

// Contexts is the folder of all runs. One process at a time uses it. Its methods
// may be called by several goroutines.
type Contexts struct {
	dir     string
	options Options

	mu      sync.Mutex
	open    map[string]bool     // runs whose journal is open here
	unmoved map[string]Metadata // runs that could not be moved, as they stand
	unread  map[string]bool     // runs whose metadata cannot be read, which was logged
}

// Open makes the folders. It fails with DataDir if they cannot be used.
func Open(dir string, options Options) (*Contexts, error) {
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	for _, folder := range folders {
		if options.ReadOnly {
			break
		}
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o700); err != nil {
			return nil, task.Wrap(task.DataDir, err, "the folder for contexts cannot be used")
		}
	}
	return &Contexts{dir: dir, options: options, open: map[string]bool{}, unmoved: map[string]Metadata{}, unread: map[string]bool{}}, nil
}

// runSpace is the name space of the uuids of runs.
var runSpace = uuid.MustParse("6f1b3a52-0f0e-5d4e-9d3c-7a1c52a2f1d7")

// runID is the uuid of the run of a task that began in the generation.
func runID(id task.ID, generation int64) string {
	return uuid.NewSHA1(runSpace, fmt.Appendf(nil, "%s/%d", id, generation)).String()
}

// find returns the folder that the run is in, "" if it is not here.
func (c *Contexts) find(id string) (string, error) {
	if uuid.Validate(id) != nil {
		return "", task.Errorf(task.Invalid, "%q is no uuid of a run", id)
	}
	for _, folder := range folders {
		_, err := os.Stat(filepath.Join(c.dir, folder, id))
		if err == nil {
			return folder, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", task.Wrap(task.DataDir, err, "cannot look for the run")
		}
	}
	return "", nil
}

// move moves a run from folder to folder.
func (c *Contexts) move(id, from, to string) error {
	if from == to {
		return nil
	}
	if err := moveFolder(filepath.Join(c.dir, from, id), filepath.Join(c.dir, to, id)); err != nil {
		return task.Wrap(task.DataDir, err, fmt.Sprintf("cannot move the run %s from %s to %s", id, from, to))
	}
	return nil
}

// Begin opens the journal of a run. One that goes on, resumes being the generation
// that it was in before, or 0, has the work's past, and the entries that are here
// and the server never got. Those are passed on to next, before anything else is. After
// the server was restored from a backup they are dropped instead.
// Next may be nil. It fails with Conflict if the journal is open. When the context has
// ended, entries no longer wait for room on the disk.
func (c *Contexts) Begin(ctx context.Context, work phase.Work, resumes int64, next phase.Journal) (*Journal, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	past := ofRun(work.Past)
	first := work.Generation
	if len(past) > 0 {
		first = past[0].Generation
	}
	id, err := c.settle(work.Task, first, resumes)
	if err != nil {
		return nil, err
	}
	j := &Journal{contexts: c, id: id, dir: filepath.Join(c.dir, Running, id), next: next, ended: ctx.Done(), meta: metadataOf(id, first, work)}
	j.meta.BeganAt = c.options.Now().UTC()
	if err := j.recover(past, restored(work.Past)); err != nil {
		return nil, errors.Join(err, j.closeFiles())
	}
	c.open[id] = true
	delete(c.unmoved, id)
	j.pass(ctx)
	return j, nil
}

// settle finds or makes the folder of the run, among those that are running.
func (c *Contexts) settle(of task.ID, first, resumes int64) (id string, err error) {
	id = runID(of, first)
	if resumes != 0 {
		// The server may not have got the first entry, by which it would know in
		// which generation the run began.
		left, err := c.left()
		if err != nil {
			return "", err
		}
		for _, run := range left {
			if run.Task == of && run.Generation == resumes {
				id = run.UUID
			}
		}
	}
	if c.open[id] {
		return "", task.Errorf(task.Conflict, "the journal of the run %s is open", id)
	}
	folder, err := c.find(id)
	if err != nil {
		return "", err
	}
	if folder != "" {
		return id, c.move(id, folder, Running)
	}
	if err := makeFolder(filepath.Join(c.dir, Running, id)); err != nil {
		return "", task.Wrap(task.DataDir, err, "cannot make the folder of the run")
	}
	return id, nil
}

// ofRun leaves out what the server wrote itself.
func ofRun(past []task.Event) []task.Event {
	return slices.DeleteFunc(slices.Clone(past), func(event task.Event) bool {
		return event.Source == task.FromServer || event.Kind == task.StateChanged
	})
}

// restored reports whether the server was restored from a backup since the last entry that it
// has of the run. What this machine has beyond that is of a time that the server knows nothing
// of: the work that was saved with it is not there.
func restored(past []task.Event) bool {
	for _, event := range slices.Backward(past) {
		var change task.StateChange
		switch {
		case event.Source != task.FromServer:
			return false
		case event.Kind == task.StateChanged && json.Unmarshal(event.Data, &change) == nil && change.Reason == task.ReasonRestored:
			return true
		}
	}
	return false
}

// Left is a run that was left behind: nobody here has its journal open.
type Left struct {
	Metadata
	Folder  string
	Changed time.Time // when it was last written to
}

// Left lists the runs that were left running or paused. A run that goes on is
// found by Begin, with what the server never got.
func (c *Contexts) Left() ([]Left, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.left()
}

func (c *Contexts) left() ([]Left, error) {
	var left []Left
	for _, folder := range []string{Running, Paused} {
		entries, err := os.ReadDir(filepath.Join(c.dir, folder))
		if err != nil {
			return nil, task.Wrap(task.DataDir, err, "cannot list the runs")
		}
		for _, entry := range entries {
			if !entry.IsDir() || uuid.Validate(entry.Name()) != nil || c.open[entry.Name()] {
				continue
			}
			if run, ok := c.readLeft(folder, entry.Name()); ok {
				left = append(left, run)
			}
		}
	}
	return left, nil
}

// readLeft reads a run that was left. One that ran and whose metadata is missing or damaged is moved
// to the completed ones: the agent may have ended between making the folder and writing the
// metadata. Begin finds it there.
func (c *Contexts) readLeft(folder, id string) (run Left, ok bool) {
	dir := filepath.Join(c.dir, folder, id)
	err := readJSON(filepath.Join(dir, metadataFile), &run.Metadata)
	run.UUID, run.Folder = id, folder
	if info, err := os.Stat(filepath.Join(dir, journalFile)); err == nil {
		run.Changed = info.ModTime()
	}
	if err == nil {
		delete(c.unread, id)
		return run, true
	}
	_, unread := errors.AsType[*fs.PathError](err)
	if folder == Running && !c.options.ReadOnly && (!unread || errors.Is(err, fs.ErrNotExist)) {
		run.Metadata = Metadata{UUID: id}
		moved := c.complete(run, StateLeft, "")
		if moved == nil {
			c.options.Log.Warn("a run that was left has no metadata that can be read; it is completed", "run", id, "error", err)
			delete(c.unread, id)
			return Left{}, false
		}
		err = errors.Join(err, moved)
	}
	if !c.unread[id] { // it is looked at every second
		c.options.Log.Warn("the metadata of a run that was left cannot be read; retrying", "run", id, "error", err)
		c.unread[id] = true
	}
	return run, folder == Paused // Sweep moves it when it is old
}

// Sweep moves runs that were left and not written to since the moment to the
// completed ones, marked as left: they went on elsewhere, or not at all. It
// returns how many there were, and goes on when one cannot be moved.
func (c *Contexts) Sweep(before time.Time) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	left, err := c.left()
	if err != nil {
		return 0, err
	}
	count := 0
	var failed error
	for _, run := range left {
		if !run.Changed.Before(before) {
			continue
		}
		if err := c.complete(run, StateLeft, run.Reason); err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		count++
	}
	return count, failed
}

// Close moves a run that was left to the completed ones, as what became of its task
// without it. A run that is not left any more stays as it is.
func (c *Contexts) Close(id string, state task.State, reason task.Reason) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	left, err := c.left()
	if err != nil {
		return err
	}
	for _, run := range left {
		if run.UUID == id {
			return c.complete(run, string(state), reason)
		}
	}
	return nil
}

// complete moves a run that was left to the completed ones.
func (c *Contexts) complete(run Left, state string, reason task.Reason) error {
	run.State, run.Reason, run.EndedAt = state, reason, c.options.Now().UTC()
	if err := replaceJSON(filepath.Join(c.dir, run.Folder, run.UUID, metadataFile), run.Metadata); err != nil {
		return task.Wrap(task.DataDir, err, "cannot write the metadata of the run")
	}
	return c.move(run.UUID, run.Folder, Completed)
}
