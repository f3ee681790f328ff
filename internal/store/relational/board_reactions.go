package relational

import (
	"context"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// SetBoardReaction implements store.BoardReactions.
func (s *Store) SetBoardReaction(ctx context.Context, r store.BoardReaction, on bool) error {
	if err := requireName("login", r.Login); err != nil {
		return err
	}
	if err := requireName("reaction", r.Reaction); err != nil {
		return err
	}
	return s.write(ctx, func(q session) error {
		x, err := boardItem(ctx, q, r.Repository, r.Number, q.dialect.LockRows)
		if err != nil {
			return err
		}
		if err := requireBoardComment(ctx, q, r.Repository, r.Number, r.Comment); err != nil {
			return err
		}
		changed, err := setReaction(ctx, q, r, on)
		if err != nil || changed == 0 {
			return err
		}
		return touchBoardItem(ctx, q, &x, now())
	})
}

func setReaction(ctx context.Context, q session, r store.BoardReaction, on bool) (int64, error) {
	folded := assigneeMark.fold(r.Login)
	if on {
		return q.exec(ctx, `INSERT INTO board_reactions (id, repository, number, comment, folded, login, reaction)
			VALUES (`+listOf(7)+`) ON CONFLICT DO NOTHING`, newID(), r.Repository, r.Number, r.Comment, folded, r.Login, r.Reaction)
	}
	return q.exec(ctx, `DELETE FROM board_reactions
		WHERE repository = ? AND number = ? AND comment = ? AND folded = ? AND reaction = ?`,
		r.Repository, r.Number, r.Comment, folded, r.Reaction)
}

// requireBoardComment refuses a comment that is not on the item; "" is the item
// itself.
func requireBoardComment(ctx context.Context, q session, repository string, number int64, id string) error {
	if id == "" {
		return nil
	}
	c, err := boardComment(ctx, q, id)
	if err == nil && (c.Repository != repository || c.Number != number) {
		err = task.Errorf(task.NotFound, "there is no comment %q on item %d in repository %q", id, number, repository)
	}
	return err
}

// BoardReactions implements store.BoardReactions.
func (s *Store) BoardReactions(ctx context.Context, repository string, number int64, comment string) (reactions []store.BoardReaction, err error) {
	err = s.snapshot(ctx, func(q session) error {
		if err := requireBoardItem(ctx, q, repository, number); err != nil {
			return err
		}
		if err := requireBoardComment(ctx, q, repository, number, comment); err != nil {
			return err
		}
		reactions, err = list(ctx, q, func(r row) (x store.BoardReaction, err error) {
			err = r.Scan(&x.Repository, &x.Number, &x.Comment, &x.Login, &x.Reaction)
			return x, err
		}, `SELECT repository, number, comment, login, reaction FROM board_reactions
			WHERE repository = ? AND number = ? AND comment = ? ORDER BY id`, repository, number, comment)
		return err
	})
	return orNothing(reactions, err)
}
