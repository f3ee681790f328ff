package relational

import (
	"context"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

const boardCommentColumns = `id, repository, number, author, body, created_at, updated_at`

func scanBoardComment(r row) (c store.BoardComment, err error) {
	err = r.Scan(&c.ID, &c.Repository, &c.Number, &c.Author, &c.Body, micros{&c.CreatedAt}, micros{&c.UpdatedAt})
	return c, err
}

// AddBoardComment implements store.BoardComments.
func (s *Store) AddBoardComment(ctx context.Context, c store.BoardComment) (store.BoardComment, error) {
	err := s.write(ctx, func(q session) error {
		x, err := boardItem(ctx, q, c.Repository, c.Number, q.dialect.LockRows)
		if err != nil {
			return err
		}
		c.ID, c.CreatedAt = newID(), made(c.CreatedAt)
		c.UpdatedAt = c.CreatedAt
		_, err = q.exec(ctx, `INSERT INTO board_comments (`+boardCommentColumns+`) VALUES (`+listOf(7)+`)`,
			c.ID, c.Repository, c.Number, c.Author, c.Body, c.CreatedAt.UnixMicro(), c.UpdatedAt.UnixMicro())
		if err != nil {
			return err
		}
		return touchBoardItem(ctx, q, &x, now())
	})
	return orNothing(c, err)
}

// EditBoardComment implements store.BoardComments.
func (s *Store) EditBoardComment(ctx context.Context, id, body string) (c store.BoardComment, err error) {
	err = s.write(ctx, func(q session) error {
		var x store.BoardItem
		if c, x, err = lockBoardComment(ctx, q, id); err != nil || c.Body == body {
			return err
		}
		at := now()
		if err := touchBoardItem(ctx, q, &x, at); err != nil {
			return err
		}
		c.Body, c.UpdatedAt = body, later(at, c.UpdatedAt)
		_, err := q.exec(ctx, `UPDATE board_comments SET body = ?, updated_at = ? WHERE id = ?`, body, c.UpdatedAt.UnixMicro(), id)
		return err
	})
	return orNothing(c, err)
}

// DeleteBoardComment implements store.BoardComments.
func (s *Store) DeleteBoardComment(ctx context.Context, id string) error {
	return s.write(ctx, func(q session) error {
		_, x, err := lockBoardComment(ctx, q, id)
		if err != nil {
			return err
		}
		if err := touchBoardItem(ctx, q, &x, now()); err != nil {
			return err
		}
		_, err = q.exec(ctx, `DELETE FROM board_comments WHERE id = ?`, id)
		return err
	})
}

// lockBoardComment finds a comment and locks the item that it is on, which is
// what everyone locks who changes anything about the item.
func lockBoardComment(ctx context.Context, q session, id string) (store.BoardComment, store.BoardItem, error) {
	c, err := boardComment(ctx, q, id)
	if err != nil {
		return c, store.BoardItem{}, err
	}
	x, err := boardItem(ctx, q, c.Repository, c.Number, q.dialect.LockRows)
	if err != nil {
		return c, x, err
	}
	c, err = boardComment(ctx, q, id) // as it is now that nobody else can change it
	return c, x, err
}

func boardComment(ctx context.Context, q session, id string) (store.BoardComment, error) {
	c, found, err := first(ctx, q, scanBoardComment, `SELECT `+boardCommentColumns+` FROM board_comments WHERE id = ?`, id)
	if err == nil && !found {
		err = task.Errorf(task.NotFound, "there is no comment %q", id)
	}
	return c, err
}

// BoardComments implements store.BoardComments.
func (s *Store) BoardComments(ctx context.Context, repository string, number int64) (comments []store.BoardComment, err error) {
	err = s.snapshot(ctx, func(q session) error {
		if err := requireBoardItem(ctx, q, repository, number); err != nil {
			return err
		}
		comments, err = list(ctx, q, scanBoardComment, `SELECT `+boardCommentColumns+` FROM board_comments
			WHERE repository = ? AND number = ? ORDER BY id`, repository, number)
		return err
	})
	return orNothing(comments, err)
}
