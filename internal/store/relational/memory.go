package relational

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// WatchPull implements store.Memory.
func (s *Store) WatchPull(ctx context.Context, pull task.Key) error {
	if err := pull.Validate(); err != nil {
		return err
	}
	return s.write(ctx, func(q session) error {
		_, err := q.exec(ctx, `INSERT INTO memory_pulls (forge, repository, number) VALUES (?, ?, ?) ON CONFLICT (forge, repository, number) DO NOTHING`,
			pull.Forge, pull.Repository, pull.Number)
		return err
	})
}

// WatchedPulls implements store.Memory.
func (s *Store) WatchedPulls(ctx context.Context, in task.Repository) ([]task.Key, error) {
	return all(ctx, s, func(r row) (task.Key, error) {
		key := task.Key{Forge: in.Forge, Repository: in.Name, Kind: task.Pull}
		err := r.Scan(&key.Number)
		return key, err
	}, `SELECT number FROM memory_pulls WHERE forge = ? AND repository = ? ORDER BY number`, in.Forge, in.Name)
}

// ForgetWatched implements store.Memory.
func (s *Store) ForgetWatched(ctx context.Context, of task.Forge, except []string) error {
	return s.write(ctx, func(q session) error {
		watched, err := list(ctx, q, func(r row) (in task.Repository, err error) {
			err = r.Scan(&in.Forge, &in.Name)
			return in, err
		}, `SELECT DISTINCT forge, repository FROM memory_pulls`)
		if err != nil {
			return err
		}
		for _, in := range watched {
			if of != "" && in.Forge != of || slices.Contains(except, in.Name) {
				continue
			}
			if _, err := q.exec(ctx, `DELETE FROM memory_pulls WHERE forge = ? AND repository = ?`, in.Forge, in.Name); err != nil {
				return err
			}
		}
		return nil
	})
}

// UnwatchPull implements store.Memory.
func (s *Store) UnwatchPull(ctx context.Context, pull task.Key) error {
	return s.write(ctx, func(q session) error { return unwatch(ctx, q, pull) })
}

func unwatch(ctx context.Context, q session, pull task.Key) error {
	_, err := q.exec(ctx, `DELETE FROM memory_pulls WHERE forge = ? AND repository = ? AND number = ?`, pull.Forge, pull.Repository, pull.Number)
	return err
}

// writeNotes runs do in a transaction in which what is deleted is overwritten, where that has to be
// asked for. If do says that a text was removed, no copy stays in the engine's log afterwards, unless
// somebody is reading it.
func (s *Store) writeNotes(ctx context.Context, do func(session) (erased bool, err error)) error {
	var erased bool
	err := s.write(ctx, func(q session) (err error) {
		if q.dialect.Overwrite != "" {
			if _, err := q.exec(ctx, q.dialect.Overwrite); err != nil {
				return err
			}
			defer func() {
				_, failed := q.exec(context.WithoutCancel(ctx), q.dialect.OverwriteNot)
				err = errors.Join(err, failed)
			}()
		}
		erased, err = do(q)
		return err
	})
	if err == nil && erased && s.dialect.EmptyLog != nil {
		// What it cannot remove now goes with the log's next emptying; the change itself is done.
		_ = s.dialect.EmptyLog(ctx, s.writes)
	}
	return err
}

// Learn implements store.Memory.
func (s *Store) Learn(ctx context.Context, lesson store.Lesson) error {
	if err := lesson.Pull.Validate(); err != nil {
		return err
	}
	return s.writeNotes(ctx, func(q session) (bool, error) {
		l := learning{session: q}
		if err := l.forgetGone(ctx, lesson); err != nil {
			return false, err
		}
		for _, one := range lesson.Learned {
			if err := l.learn(ctx, lesson.Pull, one); err != nil {
				return false, err
			}
		}
		if err := makeRoom(ctx, q, lesson.Pull.Repo(), lesson.Most); err != nil {
			return false, err
		}
		if err := unwatch(ctx, q, lesson.Pull); err != nil {
			return false, err
		}
		return l.erased, l.watchOthers(ctx)
	})
}

// learning is the transaction of a lesson.
type learning struct {
	session
	erased bool     // a text was removed or changed
	left   []string // notes that were left by the comment whose words they have
}

// watchOthers watches the pull requests of notes that still have the words of a comment that has left
// them. Another comment asks for the same: when its pull request is read, the note gets its words.
func (l *learning) watchOthers(ctx context.Context) error {
	for _, note := range l.left {
		if _, err := l.exec(ctx, `INSERT INTO memory_pulls (forge, repository, number)
			SELECT DISTINCT memory_sources.forge, memory_sources.repository, memory_sources.pull FROM memory_sources JOIN memory_notes ON memory_notes.id = memory_sources.note
			WHERE memory_notes.id = ? AND memory_notes.source = '' ON CONFLICT (forge, repository, number) DO NOTHING`, note); err != nil {
			return err
		}
	}
	return nil
}

// leave notes that a comment is not one of a note's any more. If the note has its words, others give it
// theirs.
func (l *learning) leave(ctx context.Context, note, source string) error {
	changed, err := l.exec(ctx, `UPDATE memory_notes SET source = '' WHERE id = ? AND source = ?`, note, source)
	if err == nil && changed > 0 {
		l.left = append(l.left, note)
	}
	return err
}

// learn keeps what one comment asks for. The hash of a new one is inserted first, so that of two servers
// the second waits for the first and finds it known.
func (l *learning) learn(ctx context.Context, pull task.Key, one store.Learned) error {
	if err := requireName("source of a note", one.Source); err != nil {
		return err
	}
	isNew, err := l.exec(ctx, `INSERT INTO memory_sources (source, note, forge, repository, pull) VALUES (?, '', ?, ?, ?) ON CONFLICT (source) DO NOTHING`,
		one.Source, pull.Forge, pull.Repository, pull.Number)
	if err != nil {
		return err
	}
	if isNew == 0 {
		return l.learnAgain(ctx, one)
	}
	return attach(ctx, l.session, one)
}

// attach adds a comment to the note that says the same, or makes a note of it.
func attach(ctx context.Context, q session, one store.Learned) error {
	into, found, err := first(ctx, q, scanNote, `SELECT `+noteColumns+` FROM memory_notes WHERE id = ? OR id = (SELECT note FROM memory_sources WHERE source = ?)`, one.Into, one.Into)
	if err != nil {
		return err
	}
	if !found {
		into = one.Note
		into.ID, into.Asked = newID(), 1
		if err := insertNote(ctx, q, into, one.Source); err != nil {
			return err
		}
	}
	if _, err := q.exec(ctx, `UPDATE memory_sources SET note = ? WHERE source = ?`, into.ID, one.Source); err != nil {
		return err
	}
	if !found {
		return nil
	}
	addAsked(&into, one.Note)
	_, err = q.exec(ctx, `UPDATE memory_notes SET asked_at = ?, ending = ? WHERE id = ?`, into.AskedAt.UnixMicro(), into.Ending, into.ID)
	if err != nil {
		return err
	}
	return countAsked(ctx, q, into.ID)
}

// addAsked gives a note what a comment that asks for the same adds to it: the later date and the better
// ending. What a person wrote by hand has no ending.
func addAsked(note *store.Note, asked store.Note) {
	if note.AskedAt.Before(asked.AskedAt) {
		note.AskedAt = asked.AskedAt
	}
	if note.Ending != "" && slices.Index(store.NoteEndings, asked.Ending) < slices.Index(store.NoteEndings, note.Ending) {
		note.Ending = asked.Ending
	}
}

// countAsked counts on how many pull requests a note was asked for; that a person wrote it counts as one.
func countAsked(ctx context.Context, q session, note string) error {
	_, err := q.exec(ctx, `UPDATE memory_notes SET asked = (CASE WHEN url = '' THEN 1 ELSE 0 END) +
		(SELECT COUNT(DISTINCT pull) FROM memory_sources WHERE note = memory_notes.id) WHERE id = ?`, note)
	return err
}

// learnAgain follows a comment that is known. If others have asked for the same, and it asks for
// something else now, it leaves the note. Otherwise the note says what it says now, if the note has its
// words or those of none that is there.
func (l *learning) learnAgain(ctx context.Context, one store.Learned) error {
	type known struct {
		store.Note
		source string
		others bool
	}
	note, found, err := first(ctx, l.session, func(r row) (n known, err error) {
		var sources int64
		n.Note, err = scanNoteAnd(r, &n.source, &sources)
		n.others = sources > 1
		return n, err
	}, `SELECT `+noteColumns+`, source, (SELECT COUNT(*) FROM memory_sources WHERE note = memory_notes.id) FROM memory_notes
		WHERE id = (SELECT note FROM memory_sources WHERE source = ?) AND edited_by = '' AND url <> ''`, one.Source)
	if err != nil || !found {
		return err
	}
	if note.others && one.Into != note.ID {
		if err := l.leave(ctx, note.ID, one.Source); err != nil {
			return err
		}
		if err := attach(ctx, l.session, one); err != nil {
			return err
		}
		return countAsked(ctx, l.session, note.ID)
	}
	if !note.others || note.source == "" { // nothing of it is another's, or is known to be
		note.source, note.URL, note.Pull, note.AskedAt, note.Ending = one.Source, one.Note.URL, one.Note.Pull, one.Note.AskedAt, one.Note.Ending
	}
	if note.source == one.Source {
		l.erased = l.erased || note.Text != one.Note.Text || note.Path != one.Note.Path
		note.Text, note.Path, note.Author = one.Note.Text, one.Note.Path, one.Note.Author
	}
	addAsked(&note.Note, one.Note)
	_, err = l.exec(ctx, `UPDATE memory_notes SET body = ?, path = ?, author = ?, url = ?, pull = ?, asked_at = ?, ending = ?, source = ? WHERE id = ?`,
		note.Text, note.Path, note.Author, note.URL, note.Pull, note.AskedAt.UnixMicro(), note.Ending, note.source, note.ID)
	return err
}

const noteColumns = `id, forge, repository, body, path, ending, author, url, pull, asked, asked_at, created_at, edited_by, edited_at, used_at`

func insertNote(ctx context.Context, q session, n store.Note, source string) error {
	_, err := q.exec(ctx, `INSERT INTO memory_notes (`+noteColumns+`, source) VALUES (`+listOf(16)+`)`,
		n.ID, n.Repository.Forge, n.Repository.Name, n.Text, n.Path, n.Ending, n.Author, n.URL, n.Pull, n.Asked, n.AskedAt.UnixMicro(),
		made(n.CreatedAt).UnixMicro(), n.EditedBy, n.EditedAt.UnixMicro(), n.UsedAt.UnixMicro(), source)
	return err
}

func scanNote(r row) (store.Note, error) { return scanNoteAnd(r) }

// scanNoteAnd scans a note and the columns after it.
func scanNoteAnd(r row, more ...any) (n store.Note, err error) {
	err = r.Scan(append([]any{&n.ID, &n.Repository.Forge, &n.Repository.Name, &n.Text, &n.Path, &n.Ending, &n.Author, &n.URL, &n.Pull, &n.Asked, micros{&n.AskedAt},
		micros{&n.CreatedAt}, &n.EditedBy, micros{&n.EditedAt}, micros{&n.UsedAt}}, more...)...)
	return n, err
}

// forgetGone takes the comments of a pull request that are not there any more from their notes, and
// removes the notes that have none left. So does a comment that is there and gives no words, because its
// author may not write any more, to a note whose words have lost theirs: else these would stay. Hashes of
// notes that a person has forgotten or edited stay.
func (l *learning) forgetGone(ctx context.Context, lesson store.Lesson) error {
	for range 2 { // what goes may have given its words to a note that others of the pull request keep
		if err := l.forgetThose(ctx, lesson); err != nil {
			return err
		}
	}
	return nil
}

func (l *learning) forgetThose(ctx context.Context, lesson store.Lesson) error {
	type kept struct {
		source, note string
		orphaned     bool // the comment whose words the note has is gone
	}
	known, err := list(ctx, l.session, func(r row) (one kept, err error) {
		err = r.Scan(&one.source, &one.note, &one.orphaned)
		return one, err
	}, `SELECT memory_sources.source, memory_notes.id, memory_notes.source = '' AND memory_notes.url <> '' FROM memory_sources JOIN memory_notes ON memory_notes.id = memory_sources.note
		WHERE memory_sources.forge = ? AND memory_sources.repository = ? AND memory_sources.pull = ? AND memory_notes.edited_by = ''`,
		lesson.Pull.Forge, lesson.Pull.Repository, lesson.Pull.Number)
	if err != nil {
		return err
	}
	for _, one := range known {
		givesWords := slices.ContainsFunc(lesson.Learned, func(learned store.Learned) bool { return learned.Source == one.source })
		if slices.Contains(lesson.Present, one.source) && (givesWords || !one.orphaned) {
			continue
		}
		if _, err := l.exec(ctx, `DELETE FROM memory_sources WHERE source = ?`, one.source); err != nil {
			return err
		}
		if err := l.leave(ctx, one.note, one.source); err != nil {
			return err
		}
		removed, err := l.exec(ctx, `DELETE FROM memory_notes WHERE id = ? AND NOT EXISTS (SELECT 1 FROM memory_sources WHERE note = memory_notes.id)`, one.note)
		if err != nil {
			return err
		}
		l.erased = l.erased || removed > 0
		if err := countAsked(ctx, l.session, one.note); err != nil {
			return err
		}
	}
	return nil
}

// makeRoom removes the notes that a repository has too many of: those that nobody wrote or edited by
// hand, and that were made or last given to a task the longest time ago. The hashes of their sources
// go if that was the last note of a pull request: while it has one its comments are followed, and what
// was removed must not be learned again.
func makeRoom(ctx context.Context, q session, in task.Repository, most int) error {
	count, _, err := first(ctx, q, scanNumber, `SELECT COUNT(*) FROM memory_notes WHERE forge = ? AND repository = ?`, in.Forge, in.Name)
	if err != nil || count <= int64(most) {
		return err
	}
	removed, err := list(ctx, q, scanText, `SELECT id FROM memory_notes WHERE forge = ? AND repository = ? AND edited_by = ''
		ORDER BY CASE WHEN used_at > created_at THEN used_at ELSE created_at END, id LIMIT ?`, in.Forge, in.Name, count-int64(most))
	if err != nil {
		return err
	}
	for _, id := range removed {
		if _, err := q.exec(ctx, `DELETE FROM memory_notes WHERE id = ?`, id); err != nil {
			return err
		}
	}
	for _, id := range removed {
		if _, err := q.exec(ctx, `DELETE FROM memory_sources WHERE note = ? AND pull NOT IN (SELECT memory_sources.pull FROM memory_sources
			JOIN memory_notes ON memory_notes.id = memory_sources.note WHERE memory_sources.forge = ? AND memory_sources.repository = ?)`, id, in.Forge, in.Name); err != nil {
			return err
		}
	}
	return nil
}

// AddNote implements store.Memory.
func (s *Store) AddNote(ctx context.Context, note store.Note, most int) (store.Note, error) {
	if err := requireName("name of the repository", note.Repository.Name); err != nil {
		return store.Note{}, err
	}
	err := s.writeNotes(ctx, func(q session) (bool, error) {
		if err := makeRoom(ctx, q, note.Repository, most-1); err != nil {
			return false, err
		}
		count, _, err := first(ctx, q, scanNumber, `SELECT COUNT(*) FROM memory_notes WHERE forge = ? AND repository = ?`, note.Repository.Forge, note.Repository.Name)
		if err != nil {
			return false, err
		}
		if count >= int64(most) {
			return false, task.Errorf(task.TooLarge, "%s has %d notes; there can be no more", note.Repository.Name, count).WithHint("forget one of them first")
		}
		note.ID, note.Asked = newID(), 1
		note.AskedAt, note.CreatedAt, note.EditedAt = moment(note.AskedAt), made(note.CreatedAt), moment(note.EditedAt)
		return false, insertNote(ctx, q, note, "")
	})
	return orNothing(note, err)
}

// ListNotes implements store.Memory.
func (s *Store) ListNotes(ctx context.Context, filter store.NoteFilter) ([]store.Note, error) {
	if err := checkLimit(filter.Limit); err != nil {
		return nil, err
	}
	var where conditions
	where.addText(`forge`, string(filter.Forge))
	where.addText(`repository`, filter.Repository)
	if filter.Before != "" {
		where.add(`id < ?`, filter.Before)
	}
	if filter.IDs != nil {
		if len(filter.IDs) == 0 {
			return nil, nil
		}
		where.add(`id IN (`+listOf(len(filter.IDs))+`)`, arguments(filter.IDs)...)
	}
	if filter.Pull != 0 {
		where.add(`id IN (SELECT note FROM memory_sources WHERE forge = ? AND repository = ? AND pull = ?)`, filter.Forge, filter.Repository, filter.Pull)
	}
	query, args := limited(`SELECT `+noteColumns+` FROM memory_notes`+where.text()+` ORDER BY id DESC`, where.args, filter.Limit)
	return all(ctx, s, scanNote, query, args...)
}

// EditNote implements store.Memory.
func (s *Store) EditNote(ctx context.Context, id, text, by string, at time.Time) (note store.Note, err error) {
	err = s.writeNotes(ctx, func(q session) (bool, error) {
		if _, err := q.exec(ctx, `UPDATE memory_notes SET body = ?, edited_by = ?, edited_at = ? WHERE id = ?`, text, by, at.UnixMicro(), id); err != nil {
			return false, err
		}
		var found bool
		note, found, err = first(ctx, q, scanNote, `SELECT `+noteColumns+` FROM memory_notes WHERE id = ?`, id)
		if err == nil && !found {
			err = noNote(id)
		}
		return true, err
	})
	return orNothing(note, err)
}

func noNote(id string) error { return task.Errorf(task.NotFound, "there is no note %s", id) }

// ForgetNote implements store.Memory. The hashes of its sources stay.
func (s *Store) ForgetNote(ctx context.Context, id string) error {
	return s.writeNotes(ctx, func(q session) (bool, error) {
		removed, err := q.exec(ctx, `DELETE FROM memory_notes WHERE id = ?`, id)
		if err == nil && removed == 0 {
			err = noNote(id)
		}
		return true, err
	})
}

// UseNotes implements store.Memory.
func (s *Store) UseNotes(ctx context.Context, ids []string, at time.Time) error {
	if len(ids) == 0 {
		return nil
	}
	return s.writeNotes(ctx, func(q session) (bool, error) {
		_, err := q.exec(ctx, `UPDATE memory_notes SET used_at = ? WHERE id IN (`+listOf(len(ids))+`)`, append([]any{at.UnixMicro()}, arguments(ids)...)...)
		return false, err
	})
}
