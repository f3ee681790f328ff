package contexts

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/task"
)

// Journal is the journal of one run. It implements [phase.Journal]. Exactly one
// of Pause, End and Leave ends it.
type Journal struct {
	contexts *Contexts
	id       string
	dir      string
	next     phase.Journal
	ended    <-chan struct{} // closed when the run has ended

	mu   sync.Mutex
	meta Metadata
	file *os.File
	size int64 // of what is whole in the file
	// unsynced says that what was written last may not be durable: an entry follows it, or the
	// journal is broken.
	unsynced bool
	last     int64 // sequence
	past     []task.Event
	views    *views
	waiting  []waiting // entries that next has not taken yet
	broken   error     // why nothing can be written any more
	lacked   bool      // an entry had to wait for room
	closed   bool
}

// waiting is an entry that has yet to be passed on.
type waiting struct {
	kind  task.EventKind
	entry phase.Entry
}

var _ phase.Journal = (*Journal)(nil)

var errClosed = task.Errorf(task.Internal, "the journal of the run is closed")

// ID is the uuid of the run.
func (j *Journal) ID() string { return j.id }

// Past is every entry that was there when the journal was opened: those of the
// server, and those that it has yet to get. It is what the run goes on from.
func (j *Journal) Past() []task.Event { return j.past }

// recover makes the files say what the run's past is. With exactly, entries that only this machine
// has are dropped.
func (j *Journal) recover(past []task.Event, exactly bool) error {
	name := filepath.Join(j.dir, journalFile)
	lines, torn, err := readLines(name)
	if err != nil {
		return task.Wrap(task.DataDir, err, "cannot read the journal of the run")
	}
	log := j.contexts.options.Log.With("run", j.id)
	if torn > 0 {
		log.Warn("the end of the journal was torn by a crash and is dropped", "bytes", torn, "entries", len(lines))
	}
	common := 0
	for common < min(len(lines), len(past)) && same(lines[common], past[common]) {
		common++
	}
	if exactly || common < len(past) {
		if common < len(lines) {
			log.Warn("the run went on elsewhere, or the server was restored; entries that only this machine had are dropped", "entries", len(lines)-common)
		}
		lines = lines[:common]
	}
	good := int64(0)
	if len(lines) > 0 {
		good = lines[len(lines)-1].end
	}
	if err := j.openFile(name, good); err != nil {
		return err
	}
	if lines, err = j.catchUp(lines, past[common:]); err != nil {
		return err
	}
	return j.goOn(lines, len(past))
}

// catchUp writes what the server has and we do not, all at once.
func (j *Journal) catchUp(lines []Line, missing []task.Event) ([]Line, error) {
	var text []byte
	for _, event := range missing {
		line := Line{Sequence: int64(len(lines)) + 1, Generation: event.Generation, Kind: event.Kind, At: event.At.UTC(), Data: event.Data}
		text = append(text, line.encode()...)
		lines = append(lines, line)
	}
	if len(text) == 0 {
		return lines, nil
	}
	return lines, j.write(text, false)
}

// openFile opens the file, without what is behind the good part of it.
func (j *Journal) openFile(name string, good int64) error {
	var err error
	if j.file, err = os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return task.Wrap(task.DataDir, err, "cannot open the journal of the run")
	}
	if err := errors.Join(j.file.Truncate(good), j.file.Sync(), syncFolder(j.dir)); err != nil {
		return task.Wrap(task.DataDir, err, "cannot open the journal of the run")
	}
	j.size = good
	return nil
}

// goOn takes the lines in, and lets those wait that the server does not have.
func (j *Journal) goOn(lines []Line, known int) error {
	j.last = int64(len(lines))
	j.views = newViews(j.dir, j.id)
	if len(lines) > 0 {
		j.meta.BeganAt = lines[0].At
	}
	for i, line := range lines {
		j.past = append(j.past, line.event(j.meta.Task))
		var entry phase.Entry
		if err := json.Unmarshal(line.Data, &entry); err != nil {
			return task.Wrap(task.Invalid, err, "an entry of the journal cannot be read").WithHint("see line %d of %s", i+1, j.file.Name())
		}
		j.views.fold(line, entry)
		if i >= known && j.next != nil {
			j.waiting = append(j.waiting, waiting{line.Kind, entry})
		}
	}
	if err := j.views.rebuild(); err != nil {
		return task.Wrap(task.DataDir, err, "cannot write the files of the run")
	}
	return j.writeMetadata()
}

// shown is the metadata as it may be written down.
func (j *Journal) shown() Metadata {
	meta := j.meta
	if redactor := j.contexts.options.Redactor; redactor != nil {
		meta.Title = redactor.String(meta.Title)
	}
	return meta
}

func (j *Journal) writeMetadata() error {
	if err := replaceJSON(filepath.Join(j.dir, metadataFile), j.shown()); err != nil {
		return task.Wrap(task.DataDir, err, "cannot write the metadata of the run")
	}
	return nil
}

// encode writes the line as it is in the file.
func (l Line) encode() []byte {
	text, err := json.Marshal(l)
	if err != nil { // its data is JSON that we have made or read
		text = nil
	}
	return append(text, '\n')
}

// Append writes the entry to the file, syncs it, and passes it on. When it returns
// no error the entry is durable here, though the server may not have it yet. One that is
// followed is synced and passed on with the next that is not.
func (j *Journal) Append(ctx context.Context, kind task.EventKind, entry phase.Entry) error {
	followed := entry.Followed
	data, entry, err := j.encode(entry)
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return errClosed
	}
	line := Line{Sequence: j.last + 1, Generation: j.meta.Generation, Kind: kind, At: j.contexts.options.Now().UTC(), Data: data}
	if err := j.writeWithRoom(ctx, line.encode(), followed); err != nil {
		return err
	}
	j.last++
	if err := j.views.add(line, entry); err != nil {
		j.contexts.options.Log.ErrorContext(ctx, "failed to write a view of the journal; it is written again later", "run", j.id, "error", err)
	}
	if j.next != nil {
		j.waiting = append(j.waiting, waiting{kind, entry})
	}
	if !followed {
		j.pass(ctx)
	}
	return nil
}

// maxEntry is the largest entry that the server takes. What it does not take must
// not be here either: the two are compared.
const maxEntry = 4 << 20

// encode writes an entry down, without secrets. Of one that is too large the part
// that is only for looking things up is left out.
func (j *Journal) encode(entry phase.Entry) (json.RawMessage, phase.Entry, error) {
	data, err := json.Marshal(entry)
	if err != nil {
		return nil, phase.Entry{}, task.Wrap(task.Invalid, err, "the journal entry cannot be written down")
	}
	if data, entry, err = j.redacted(data, entry); err != nil || len(data) <= maxEntry {
		return data, entry, err
	}
	if entry.Result != nil && entry.Result.Whole != "" {
		short := *entry.Result
		short.Whole = ""
		entry.Result = &short
		return j.encode(entry)
	}
	return nil, phase.Entry{}, task.Errorf(task.TooLarge, "the journal entry has %d bytes; %d are allowed", len(data), maxEntry)
}

// LackedRoom reports whether the disk was full, or could only be read, when an entry was written.
func (j *Journal) LackedRoom() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.lacked
}

// writeWithRoom writes, and waits where the disk is full or can only be read: a run goes on
// when it can be written again. The wait is bounded: it may be the workspace of this run that has
// filled the disk, which goes with the run. The end of the run ends the wait, also for entries
// that are to be kept after it.
func (j *Journal) writeWithRoom(ctx context.Context, text []byte, followed bool) error {
	err := j.write(text, followed)
	if !passing(err) || j.broken != nil {
		return err
	}
	j.lacked = true
	log := j.contexts.options.Log
	log.ErrorContext(ctx, "the disk is full or can only be read; the run waits", "run", j.id, "folder", j.dir, "error", err)
	ticker := time.NewTicker(roomEvery)
	defer ticker.Stop()
	longest := time.NewTimer(cmp.Or(j.contexts.options.RoomWithin, roomWithin))
	defer longest.Stop()
	for passing(err) && j.broken == nil {
		select {
		case <-ticker.C:
			err = j.write(text, followed)
		case <-ctx.Done():
			return err
		case <-j.ended:
			return err
		case <-longest.C:
			return err
		}
	}
	if err == nil {
		log.InfoContext(ctx, "the disk can be written again; the run goes on", "run", j.id)
	}
	return err
}

const (
	// roomEvery is how often a disk that cannot be written is tried again, and roomWithin for how
	// long.
	roomEvery  = time.Second
	roomWithin = 10 * time.Minute
)

// passing says whether a disk can be written again once somebody has made room or has seen
// to it.
func passing(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EROFS)
}

// write appends to the file and syncs, unless more follows. What fails leaves the file as it
// was, or nothing is written any more.
func (j *Journal) write(text []byte, followed bool) error {
	if j.broken != nil {
		return j.broken
	}
	written, err := j.file.WriteAt(text, j.size)
	if err != nil {
		err = task.Wrap(task.DataDir, err, "cannot write to the journal of the run")
		if written > 0 && j.file.Truncate(j.size) != nil {
			j.broken = err
		}
		return err
	}
	j.unsynced = true
	if !followed {
		if err := j.sync(); err != nil {
			return err
		}
	}
	j.size += int64(len(text))
	return nil
}

// sync makes durable what is written and is not durable yet. In a broken journal that is an
// error each time: it can never be known again.
func (j *Journal) sync() error {
	if !j.unsynced {
		return nil
	}
	if j.broken != nil {
		return j.broken
	}
	if err := j.file.Sync(); err != nil {
		// What is on the disk is not known now, and cannot be found out.
		j.broken = task.Wrap(task.DataDir, err, "cannot write to the journal of the run")
		return j.broken
	}
	j.unsynced = false
	return nil
}

// redacted masks secrets in the entry. They are masked in the text of the JSON,
// which is as good and much faster than to look at each value; should that ever
// spoil it, each value is looked at.
func (j *Journal) redacted(data json.RawMessage, entry phase.Entry) (json.RawMessage, phase.Entry, error) {
	redactor := j.contexts.options.Redactor
	if redactor == nil {
		return data, entry, nil
	}
	text := redactor.String(string(data))
	if text == string(data) {
		return data, entry, nil
	}
	masked := json.RawMessage(text)
	var clean phase.Entry
	if json.Unmarshal(masked, &clean) == nil {
		return masked, clean, nil
	}
	var value any
	if err := decode(data, &value); err != nil {
		return nil, phase.Entry{}, task.Wrap(task.Internal, err, "the journal entry cannot be redacted")
	}
	masked, err := json.Marshal(mask(value, redactor.String))
	clean = phase.Entry{}
	if err == nil {
		err = json.NewDecoder(bytes.NewReader(masked)).Decode(&clean)
	}
	if err != nil {
		return nil, phase.Entry{}, task.Wrap(task.Internal, err, "the journal entry cannot be redacted")
	}
	return masked, clean, nil
}

// mask masks the texts in a JSON value.
func mask(value any, text func(string) string) any {
	switch value := value.(type) {
	case string:
		return text(value)
	case []any:
		for i := range value {
			value[i] = mask(value[i], text)
		}
	case map[string]any:
		for key := range value {
			value[key] = mask(value[key], text)
		}
	}
	return value
}

// pass passes on what waits, in order. What is not taken waits on: it is safe here
// and the next one to come here, or the next run, passes it on.
func (j *Journal) pass(ctx context.Context) {
	for len(j.waiting) > 0 {
		first := j.waiting[0]
		if err := j.next.Append(ctx, first.kind, first.entry); err != nil {
			j.contexts.options.Log.WarnContext(ctx, "a journal entry is waiting to be sent", "run", j.id, "entries", len(j.waiting), "error", err)
			return
		}
		j.waiting = j.waiting[1:]
	}
}

// Pass passes on what waits: what the server never got of an earlier run, and
// what could not be passed on when it was written. It returns how many entries
// wait still. Nothing is passed on that cannot be made durable here.
func (j *Journal) Pass(ctx context.Context) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.sync(); err != nil {
		j.contexts.options.Log.ErrorContext(ctx, "failed to sync the journal", "run", j.id, "error", err)
		return len(j.waiting)
	}
	j.pass(ctx)
	return len(j.waiting)
}

// Pause moves the run to those that wait.
func (j *Journal) Pause(reason task.Reason) error {
	return j.end(string(task.Paused), reason, Paused)
}

// End moves the run to those that are over, as done, failed or stopped.
func (j *Journal) End(state task.State, reason task.Reason) error {
	return j.end(string(state), reason, Completed)
}

// Leave closes the journal and leaves the run where it is, for whoever goes on
// with it.
func (j *Journal) Leave() error { return j.end("", "", Running) }

// end closes the journal and moves the run. When that fails the run stays running, with
// all of its files, and is moved by [Contexts.MoveAgain].
func (j *Journal) end(state string, reason task.Reason, folder string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return errClosed
	}
	j.closed = true
	c := j.contexts
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, j.id)
	err := errors.Join(j.sync(), j.views.finish())
	if err != nil {
		err = task.Wrap(task.DataDir, err, "cannot write the files of the run")
	}
	if state != "" {
		j.meta.State, j.meta.Reason = state, reason
		if folder == Completed {
			j.meta.EndedAt = c.options.Now().UTC()
		}
		err = errors.Join(err, j.writeMetadata())
	}
	if closeErr := j.closeFiles(); closeErr != nil {
		err = errors.Join(err, task.Wrap(task.DataDir, closeErr, "cannot close the journal of the run"))
	}
	moved := c.move(j.id, Running, folder)
	if moved != nil {
		c.unmoved[j.id] = j.shown()
	}
	return errors.Join(err, moved)
}

func (j *Journal) closeFiles() error {
	var err error
	if j.views != nil {
		err = j.views.close()
	}
	if j.file != nil {
		err = errors.Join(err, j.file.Close())
	}
	return err
}
