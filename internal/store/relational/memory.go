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
// asked for. With erase no copy stays in the engine's log afterwards, unless somebody is reading it.
func (s *Store) writeNotes(ctx context.Context, erase bool, do func(session) error) error {
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
		return do(q)
	})
	if err == nil && erase && s.dialect.EmptyLog != "" {
		// What it cannot remove now goes with the log's next emptying; the change itself is done.
		_, _ = s.writes.ExecContext(ctx, s.dialect.EmptyLog)
	}
	return err
}

// Learn implements store.Memory.
func (s *Store) Learn(ctx context.Context, lesson store.Lesson) error {
	if err := lesson.Pull.Validate(); err != nil {
		return err
	}
	return s.writeNotes(ctx, true, func(q session) error {
		if err := forgetGone(ctx, q, lesson); err != nil {
			return err
		}
		for _, one := range lesson.Learned {
			if err := learn(ctx, q, lesson.Pull, one); err != nil {
				return err
			}
		}
		if err := makeRoom(ctx, q, lesson.Pull.Repo(), lesson.Most); err != nil {
			return err
		}
		return unwatch(ctx, q, lesson.Pull)
	})
}

// learn keeps what one comment asks for. The hash of a new one is inserted first, so that of two servers
// the second waits for the first and finds it known.
func learn(ctx context.Context, q session, pull task.Key, one store.Learned) error {
	if err := requireName("source of a note", one.Source); err != nil {
		return err
	}
	isNew, err := q.exec(ctx, `INSERT INTO memory_sources (source, note, forge, repository, pull) VALUES (?, '', ?, ?, ?) ON CONFLICT (source) DO NOTHING`,
		one.Source, pull.Forge, pull.Repository, pull.Number)
	if err != nil {
		return err
	}
	if isNew == 0 {
		return learnAgain(ctx, q, one)
	}
	return attach(ctx, q, one)
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
	if into.AskedAt.Before(one.Note.AskedAt) {
		into.AskedAt = one.Note.AskedAt
	}
	_, err = q.exec(ctx, `UPDATE memory_notes SET asked_at = ?, ending = ? WHERE id = ?`, into.AskedAt.UnixMicro(), better(into, one.Note.Ending), into.ID)
	if err != nil {
		return err
	}
	return countAsked(ctx, q, into.ID)
}

// better is the better ending of a note and of a comment that asks for the same. What a person wrote by
// hand has none.
func better(note store.Note, ending store.NoteEnding) store.NoteEnding {
	if note.Ending != "" && slices.Index(store.NoteEndings, ending) < slices.Index(store.NoteEndings, note.Ending) {
		return ending
	}
	return note.Ending
}

// countAsked counts on how many pull requests a note was asked for; that a person wrote it counts as one.
func countAsked(ctx context.Context, q session, note string) error {
	_, err := q.exec(ctx, `UPDATE memory_notes SET asked = (CASE WHEN url = '' THEN 1 ELSE 0 END) +
		(SELECT COUNT(DISTINCT pull) FROM memory_sources WHERE note = memory_notes.id) WHERE id = ?`, note)
	return err
}

// learnAgain follows a comment that is known: its note says what it says now. If others have asked for
// the same, and it asks for something else now, it leaves the note.
func learnAgain(ctx context.Context, q session, one store.Learned) error {
	type known struct {
		id, source string
		sources    int64
	}
	note, found, err := first(ctx, q, func(r row) (n known, err error) {
		err = r.Scan(&n.id, &n.source, &n.sources)
		return n, err
	}, `SELECT id, source, (SELECT COUNT(*) FROM memory_sources WHERE note = memory_notes.id) FROM memory_notes
		WHERE id = (SELECT note FROM memory_sources WHERE source = ?) AND edited_by = '' AND url <> ''`, one.Source)
	if err != nil || !found {
		return err
	}
	n := one.Note
	switch own := note.source == one.Source || note.source == ""; {
	case note.sources == 1:
		_, err = q.exec(ctx, `UPDATE memory_notes SET body = ?, path = ?, author = ?, source = ?, ending = ? WHERE id = ?`, n.Text, n.Path, n.Author, one.Source, n.Ending, note.id)
	case one.Into != note.id:
		if _, err := q.exec(ctx, `UPDATE memory_notes SET source = '' WHERE id = ? AND source = ?`, note.id, one.Source); err != nil {
			return err
		}
		if err := attach(ctx, q, one); err != nil {
			return err
		}
		err = countAsked(ctx, q, note.id)
	case own:
		_, err = q.exec(ctx, `UPDATE memory_notes SET body = ?, path = ?, author = ?, source = ? WHERE id = ?`, n.Text, n.Path, n.Author, one.Source, note.id)
	}
	return err
}

const noteColumns = `id, forge, repository, body, path, ending, author, url, pull, asked, asked_at, created_at, edited_by, edited_at, used_at`

func insertNote(ctx context.Context, q session, n store.Note, source string) error {
	_, err := q.exec(ctx, `INSERT INTO memory_notes (`+noteColumns+`, source) VALUES (`+listOf(16)+`)`,
		n.ID, n.Repository.Forge, n.Repository.Name, n.Text, n.Path, n.Ending, n.Author, n.URL, n.Pull, n.Asked, n.AskedAt.UnixMicro(),
		made(n.CreatedAt).UnixMicro(), n.EditedBy, n.EditedAt.UnixMicro(), n.UsedAt.UnixMicro(), source)
	return err
}

func scanNote(r row) (n store.Note, err error) {
	err = r.Scan(&n.ID, &n.Repository.Forge, &n.Repository.Name, &n.Text, &n.Path, &n.Ending, &n.Author, &n.URL, &n.Pull, &n.Asked, micros{&n.AskedAt},
		micros{&n.CreatedAt}, &n.EditedBy, micros{&n.EditedAt}, micros{&n.UsedAt})
	return n, err
}

// forgetGone takes the comments of a pull request that are not there any more from their notes, and
// removes the notes that have none left. Hashes of notes that a person has forgotten or edited stay.
func forgetGone(ctx context.Context, q session, lesson store.Lesson) error {
	type kept struct{ source, note string }
	known, err := list(ctx, q, func(r row) (one kept, err error) {
		err = r.Scan(&one.source, &one.note)
		return one, err
	}, `SELECT memory_sources.source, memory_notes.id FROM memory_sources JOIN memory_notes ON memory_notes.id = memory_sources.note
		WHERE memory_sources.forge = ? AND memory_sources.repository = ? AND memory_sources.pull = ? AND memory_notes.edited_by = ''`,
		lesson.Pull.Forge, lesson.Pull.Repository, lesson.Pull.Number)
	if err != nil {
		return err
	}
	for _, one := range known {
		if slices.Contains(lesson.Present, one.source) {
			continue
		}
		if _, err := q.exec(ctx, `DELETE FROM memory_sources WHERE source = ?`, one.source); err != nil {
			return err
		}
		if _, err := q.exec(ctx, `UPDATE memory_notes SET source = '' WHERE id = ? AND source = ?`, one.note, one.source); err != nil {
			return err
		}
		if _, err := q.exec(ctx, `DELETE FROM memory_notes WHERE id = ? AND NOT EXISTS (SELECT 1 FROM memory_sources WHERE note = memory_notes.id)`, one.note); err != nil {
			return err
		}
		if err := countAsked(ctx, q, one.note); err != nil {
			return err
		}
	}
	return nil
}

// makeRoom removes the notes that a repository has too many of: those that nobody wrote or edited by
// hand, and that were made or last given to a task the longest time ago. The hashes of their sources
// go with the last note of a pull request: until then its comments are followed, and what was removed
// must not be learned again.
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
	err := s.writeNotes(ctx, false, func(q session) error {
		if err := makeRoom(ctx, q, note.Repository, most-1); err != nil {
			return err
		}
		count, _, err := first(ctx, q, scanNumber, `SELECT COUNT(*) FROM memory_notes WHERE forge = ? AND repository = ?`, note.Repository.Forge, note.Repository.Name)
		if err != nil {
			return err
		}
		if count >= int64(most) {
			return task.Errorf(task.TooLarge, "%s has %d notes; there can be no more", note.Repository.Name, count).WithHint("forget one of them first")
		}
		note.ID, note.Asked = newID(), 1
		note.AskedAt, note.CreatedAt, note.EditedAt = moment(note.AskedAt), made(note.CreatedAt), moment(note.EditedAt)
		return insertNote(ctx, q, note, "")
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
	err = s.writeNotes(ctx, true, func(q session) error {
		if _, err := q.exec(ctx, `UPDATE memory_notes SET body = ?, edited_by = ?, edited_at = ? WHERE id = ?`, text, by, at.UnixMicro(), id); err != nil {
			return err
		}
		var found bool
		note, found, err = first(ctx, q, scanNote, `SELECT `+noteColumns+` FROM memory_notes WHERE id = ?`, id)
		if err == nil && !found {
			err = noNote(id)
		}
		return err
	})
	return orNothing(note, err)
}

func noNote(id string) error { return task.Errorf(task.NotFound, "there is no note %s", id) }

// ForgetNote implements store.Memory. The hashes of its sources stay.
func (s *Store) ForgetNote(ctx context.Context, id string) error {
	return s.writeNotes(ctx, true, func(q session) error {
		removed, err := q.exec(ctx, `DELETE FROM memory_notes WHERE id = ?`, id)
		if err == nil && removed == 0 {
			err = noNote(id)
		}
		return err
	})
}

// UseNotes implements store.Memory.
func (s *Store) UseNotes(ctx context.Context, ids []string, at time.Time) error {
	if len(ids) == 0 {
		return nil
	}
	return s.writeNotes(ctx, false, func(q session) error {
		_, err := q.exec(ctx, `UPDATE memory_notes SET used_at = ? WHERE id IN (`+listOf(len(ids))+`)`, append([]any{at.UnixMicro()}, arguments(ids)...)...)
		return err
	})
}
