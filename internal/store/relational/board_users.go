package relational

import (
	"context"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

const boardUserColumns = `login, access, created_at, removed_at`

func scanBoardUser(r row) (u store.BoardUser, err error) {
	err = r.Scan(&u.Login, &u.Access, micros{&u.CreatedAt}, micros{&u.RemovedAt})
	return u, err
}

func checkBoardAccess(access store.BoardAccess) error {
	switch access {
	case store.BoardNone, store.BoardRead, store.BoardWrite, store.BoardAdmin:
		return nil
	default:
		return task.Errorf(task.Invalid, "unknown access %q; it is none, read, write or admin", string(access))
	}
}

// AddBoardUser implements store.BoardUsers.
func (s *Store) AddBoardUser(ctx context.Context, u store.BoardUser) (store.BoardUser, error) {
	if err := requireName("login", u.Login); err != nil {
		return store.BoardUser{}, err
	}
	if err := checkBoardAccess(u.Access); err != nil {
		return store.BoardUser{}, err
	}
	u.CreatedAt, u.RemovedAt = made(u.CreatedAt), time.Time{}
	err := s.write(ctx, func(q session) error {
		added, err := q.exec(ctx, `INSERT INTO board_users (id, folded, `+boardUserColumns+`) VALUES (`+listOf(6)+`) ON CONFLICT DO NOTHING`,
			newID(), assigneeMark.fold(u.Login), u.Login, u.Access, u.CreatedAt.UnixMicro(), never)
		if err == nil && added == 0 {
			err = task.Errorf(task.Conflict, "there is or was a user %q on the board", u.Login)
		}
		return err
	})
	return orNothing(u, err)
}

func noBoardUser(login string) error {
	return task.Errorf(task.NotFound, "there is no user %q on the board", login)
}

// BoardUser implements store.BoardUsers.
func (s *Store) BoardUser(ctx context.Context, login string) (store.BoardUser, error) {
	return find(ctx, s, noBoardUser(login), scanBoardUser,
		`SELECT `+boardUserColumns+` FROM board_users WHERE folded = ?`, assigneeMark.fold(login))
}

// ListBoardUsers implements store.BoardUsers.
func (s *Store) ListBoardUsers(ctx context.Context) ([]store.BoardUser, error) {
	return all(ctx, s, scanBoardUser, `SELECT `+boardUserColumns+` FROM board_users ORDER BY id`)
}

// SetBoardAccess implements store.BoardUsers.
func (s *Store) SetBoardAccess(ctx context.Context, login string, access store.BoardAccess) error {
	if err := checkBoardAccess(access); err != nil {
		return err
	}
	return s.changeBoardUser(ctx, login, `UPDATE board_users SET access = ? WHERE folded = ?`, access, assigneeMark.fold(login))
}

// RemoveBoardUser implements store.BoardUsers.
func (s *Store) RemoveBoardUser(ctx context.Context, login string, at time.Time) error {
	return s.changeBoardUser(ctx, login, `UPDATE board_users SET removed_at = CASE WHEN removed_at = ? THEN ? ELSE removed_at END WHERE folded = ?`,
		never, made(at).UnixMicro(), assigneeMark.fold(login))
}

func (s *Store) changeBoardUser(ctx context.Context, login, statement string, args ...any) error {
	return s.write(ctx, func(q session) error {
		changed, err := q.exec(ctx, statement, args...)
		if err == nil && changed == 0 {
			err = noBoardUser(login)
		}
		return err
	})
}
