package relational

import (
	"context"
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
func (s *Store) ForgetWatched(ctx context.Context) error {
	return s.write(ctx, func(q session) error {
		_, err := q.exec(ctx, `DELETE FROM memory_pulls`)
		return err
	})
}

// Learn implements store.Memory.
func (s *Store) Learn(ctx context.Context, lesson store.Lesson) error {
	if err := lesson.Pull.Validate(); err != nil {
		return err
	}
	return s.write(ctx, func(q session) error {
		for _, one := range lesson.Learned {
			if err := learn(ctx, q, one); err != nil {
				return err
			}
		}
		if err := forgetGone(ctx, q, lesson); err != nil {
			return err
		}
		if err := makeRoom(ctx, q, lesson.Pull.Repo(), lesson.Most); err != nil {
			return err
		}
		_, err := q.exec(ctx, `DELETE FROM memory_pulls WHERE forge = ? AND repository = ? AND number = ?`, lesson.Pull.Forge, lesson.Pull.Repository, lesson.Pull.Number)
		return err
	})
}

// learn keeps what one comment asks for: in the note that says the same, or in a new one. Of a source
// that is known it changes the note.
func learn(ctx context.Context, q session, one store.Learned) error {
	if err := requireName("source of a note", one.Source); err != nil {
		return err
	}
	note := one.Note
	isNew, err := q.exec(ctx, `INSERT INTO memory_sources (source) VALUES (?) ON CONFLICT (source) DO NOTHING`, one.Source)
	switch {
	case err != nil:
		return err
	case isNew == 0:
		_, err = q.exec(ctx, `UPDATE memory_notes SET body = ?, path = ?, ending = ? WHERE source = ? AND asked = 1 AND edited_by = ''`,
			note.Text, note.Path, note.Ending, one.Source)
	case one.Into != "":
		_, err = q.exec(ctx, `UPDATE memory_notes SET asked = asked + 1, asked_at = ? WHERE id = ? OR source = ?`, note.AskedAt.UnixMicro(), one.Into, one.Into)
	default:
		note.ID, note.Asked = newID(), 1
		err = insertNote(ctx, q, note, one.Source)
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

// forgetGone removes the notes of a pull request whose comments are not there any more.
func forgetGone(ctx context.Context, q session, lesson store.Lesson) error {
	type kept struct{ id, source string }
	known, err := list(ctx, q, func(r row) (one kept, err error) {
		err = r.Scan(&one.id, &one.source)
		return one, err
	}, `SELECT id, source FROM memory_notes WHERE forge = ? AND repository = ? AND pull = ? AND source <> '' AND edited_by = ''`,
		lesson.Pull.Forge, lesson.Pull.Repository, lesson.Pull.Number)
	if err != nil {
		return err
	}
	for _, one := range known {
		if slices.Contains(lesson.Present, one.source) {
			continue
		}
		if _, err := q.exec(ctx, `DELETE FROM memory_notes WHERE id = ?`, one.id); err != nil {
			return err
		}
	}
	return nil
}

// makeRoom removes the notes that a repository has too many of: those that nobody wrote or edited by
// hand, and that were not given to a task for the longest time.
func makeRoom(ctx context.Context, q session, in task.Repository, most int) error {
	count, _, err := first(ctx, q, scanNumber, `SELECT COUNT(*) FROM memory_notes WHERE forge = ? AND repository = ?`, in.Forge, in.Name)
	if err != nil || count <= int64(most) {
		return err
	}
	_, err = q.exec(ctx, `DELETE FROM memory_notes WHERE id IN (SELECT id FROM memory_notes WHERE forge = ? AND repository = ? AND edited_by = ''
		ORDER BY used_at, asked_at, id LIMIT ?)`, in.Forge, in.Name, count-int64(most))
	return err
}

// AddNote implements store.Memory.
func (s *Store) AddNote(ctx context.Context, note store.Note, most int) (store.Note, error) {
	if err := requireName("name of the repository", note.Repository.Name); err != nil {
		return store.Note{}, err
	}
	err := s.write(ctx, func(q session) error {
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
	query, args := limited(`SELECT `+noteColumns+` FROM memory_notes`+where.text()+` ORDER BY id DESC`, where.args, filter.Limit)
	return all(ctx, s, scanNote, query, args...)
}

// EditNote implements store.Memory.
func (s *Store) EditNote(ctx context.Context, id, text, by string, at time.Time) (note store.Note, err error) {
	err = s.write(ctx, func(q session) error {
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
	return s.write(ctx, func(q session) error {
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
	return s.write(ctx, func(q session) error {
		_, err := q.exec(ctx, `UPDATE memory_notes SET used_at = ? WHERE id IN (`+listOf(len(ids))+`)`, append([]any{at.UnixMicro()}, arguments(ids)...)...)
		return err
	})
}
