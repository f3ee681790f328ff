package relational

import (
	"context"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

const commentColumns = `position, change, kind, comment, author, body, access, refused, created_at, updated_at, at, about, previous`

func scanComment(r row) (e task.CommentEntry, err error) {
	err = r.Scan(&e.Position, &e.Change, &e.Kind, &e.ID, &e.Author, &e.Body,
		&e.Access, &e.Refused, micros{&e.CreatedAt}, micros{&e.UpdatedAt}, micros{&e.At}, &e.About, &e.Before)
	return e, err
}

// KnownComments implements store.CommentLog.
func (s *Store) KnownComments(ctx context.Context, id task.ID) (known []task.CommentEntry, last int64, err error) {
	known, err = all(ctx, s, scanComment, `SELECT `+commentColumns+` FROM comment_log
		WHERE task = ? AND position IN (SELECT MAX(position) FROM comment_log WHERE task = ? GROUP BY kind, comment)
		ORDER BY position`, id, id)
	if len(known) > 0 {
		last = known[len(known)-1].Position
	}
	return known, last, err
}

// AppendComments implements store.CommentLog.
func (s *Store) AppendComments(ctx context.Context, id task.ID, generation, after int64, entries []task.CommentEntry) error {
	if len(entries) == 0 {
		return nil
	}
	return s.write(ctx, func(q session) error {
		found, err := lockTask(ctx, q, id) // the log is this transaction's alone now
		if err != nil {
			return err
		}
		if generation != 0 && found.Generation != generation {
			return staleError(id, generation, found.Generation)
		}
		last, err := lastComment(ctx, q, id)
		if err != nil {
			return err
		}
		if last != after {
			return task.Errorf(task.Conflict, "the comment log of task %s has grown to %d", id, last)
		}
		q.notify(store.BellRung, string(id))
		return insertComments(ctx, q, id, after, entries)
	})
}

func insertComments(ctx context.Context, q session, id task.ID, last int64, entries []task.CommentEntry) error {
	for _, some := range chunks(entries) {
		args := make([]any, 0, 14*len(some))
		for _, e := range some {
			last++
			args = append(args, id, last, e.Change, e.Kind, e.ID, e.Author, cleanText(e.Body),
				e.Access, e.Refused, e.CreatedAt.UnixMicro(), e.UpdatedAt.UnixMicro(), made(e.At).UnixMicro(),
				cleanText(e.About), cleanText(e.Before))
		}
		_, err := q.exec(ctx, `INSERT INTO comment_log (task, `+commentColumns+`) VALUES `+rowsOf(len(some), `(`+listOf(14)+`)`), args...)
		if err != nil {
			return err
		}
	}
	return nil
}

// CommentsAfter implements store.CommentLog.
func (s *Store) CommentsAfter(ctx context.Context, id task.ID, position int64, limit int) ([]task.CommentEntry, error) {
	if err := checkLimit(limit); err != nil {
		return nil, err
	}
	query, args := limited(`SELECT `+commentColumns+` FROM comment_log WHERE task = ? AND position > ? ORDER BY position`, []any{id, position}, limit)
	return all(ctx, s, scanComment, query, args...)
}

// LastComment implements store.CommentLog.
func (s *Store) LastComment(ctx context.Context, id task.ID) (last int64, err error) {
	err = s.read(ctx, func(q session) error {
		last, err = lastComment(ctx, q, id)
		return err
	})
	return last, err
}

func lastComment(ctx context.Context, q session, id task.ID) (int64, error) {
	last, _, err := first(ctx, q, scanNumber, `SELECT COALESCE(MAX(position), 0) FROM comment_log WHERE task = ?`, id)
	return last, err
}

// CommentsStart implements store.CommentLog.
func (s *Store) CommentsStart(ctx context.Context, id task.ID) (int64, error) {
	starts, err := all(ctx, s, scanNumber, `SELECT start FROM comment_starts WHERE task = ?`, id)
	if err != nil || len(starts) == 0 {
		return 0, err
	}
	return starts[0], nil
}

// StartComments implements store.CommentLog.
func (s *Store) StartComments(ctx context.Context, id task.ID, generation, start int64) error {
	return s.write(ctx, func(q session) error {
		found, err := lockTask(ctx, q, id)
		if err != nil {
			return err
		}
		if found.Generation != generation {
			return staleError(id, generation, found.Generation)
		}
		_, err = q.exec(ctx, `INSERT INTO comment_starts (task, start) VALUES (?, ?)
			ON CONFLICT (task) DO UPDATE SET start = excluded.start`, id, start)
		return err
	})
}
