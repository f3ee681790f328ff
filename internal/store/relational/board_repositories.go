package relational

import (
	"context"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

func scanBoardRepository(r row) (x store.BoardRepository, err error) {
	err = r.Scan(&x.Name, &x.DefaultBranch, micros{&x.CreatedAt})
	return x, err
}

// AddBoardRepository implements store.BoardRepositories.
func (s *Store) AddBoardRepository(ctx context.Context, x store.BoardRepository) (store.BoardRepository, error) {
	if err := (task.Key{Forge: task.Board, Repository: x.Name, Kind: task.Issue, Number: 1}).Validate(); err != nil {
		return store.BoardRepository{}, err
	}
	if err := checkName("name of a repository", x.Name); err != nil {
		return store.BoardRepository{}, err
	}
	x.CreatedAt = made(x.CreatedAt)
	err := s.write(ctx, func(q session) error {
		_, err := q.exec(ctx, `INSERT INTO board_repositories (id, name, default_branch, created_at) VALUES (?, ?, ?, ?)`,
			newID(), x.Name, x.DefaultBranch, x.CreatedAt.UnixMicro())
		if q.dialect.Classify(err) == Duplicate {
			return task.Errorf(task.Conflict, "there is a repository %s already", x.Name)
		}
		return err
	})
	return orNothing(x, err)
}

// BoardRepository implements store.BoardRepositories.
func (s *Store) BoardRepository(ctx context.Context, name string) (store.BoardRepository, error) {
	return find(ctx, s, noBoardRepository(name), scanBoardRepository,
		`SELECT name, default_branch, created_at FROM board_repositories WHERE name = ?`, name)
}

func noBoardRepository(name string) error {
	return task.Errorf(task.NotFound, "there is no repository %q", name)
}

// ListBoardRepositories implements store.BoardRepositories.
func (s *Store) ListBoardRepositories(ctx context.Context) ([]store.BoardRepository, error) {
	return all(ctx, s, scanBoardRepository, `SELECT name, default_branch, created_at FROM board_repositories ORDER BY id`)
}
