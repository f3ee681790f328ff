package relational

import (
	"context"

	"github.com/toryo-dev/toryo/internal/store"
)

const boardStatusColumns = `repository, commit_id, context, state, description, url, updated_at`

// SetBoardStatus implements store.BoardStatuses.
func (s *Store) SetBoardStatus(ctx context.Context, x store.BoardStatus) error {
	for what, name := range map[string]string{"commit": x.Commit, "context of a status": x.Context} {
		if err := requireName(what, name); err != nil {
			return err
		}
	}
	return s.write(ctx, func(q session) error {
		_, exists, err := first(ctx, q, scanNumber, `SELECT 1 FROM board_repositories WHERE name = ?`, x.Repository)
		if err != nil {
			return err
		}
		if !exists {
			return noBoardRepository(x.Repository)
		}
		_, err = q.exec(ctx, `INSERT INTO board_statuses (`+boardStatusColumns+`) VALUES (`+listOf(7)+`)
			ON CONFLICT (repository, commit_id, context) DO UPDATE SET
				state = excluded.state, description = excluded.description, url = excluded.url, updated_at = excluded.updated_at`,
			x.Repository, x.Commit, x.Context, x.State, x.Description, x.URL, made(x.UpdatedAt).UnixMicro())
		q.notify(store.BoardChecked, x.Repository+" "+x.Commit)
		return err
	})
}

// BoardStatuses implements store.BoardStatuses.
func (s *Store) BoardStatuses(ctx context.Context, repository, commit string) ([]store.BoardStatus, error) {
	return all(ctx, s, func(r row) (x store.BoardStatus, err error) {
		err = r.Scan(&x.Repository, &x.Commit, &x.Context, &x.State, &x.Description, &x.URL, micros{&x.UpdatedAt})
		return x, err
	}, `SELECT `+boardStatusColumns+` FROM board_statuses WHERE repository = ? AND commit_id = ? ORDER BY context`, repository, commit)
}
