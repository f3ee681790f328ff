package relational

import (
	"context"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// AddSession implements store.Sessions.
func (s *Store) AddSession(ctx context.Context, x store.Session) error {
	if len(x.Hash) == 0 {
		return task.Errorf(task.Invalid, "the hash of a session is empty")
	}
	if err := checkName("hash of a session", string(x.Hash)); err != nil {
		return err
	}
	return s.write(ctx, func(q session) error {
		_, err := q.exec(ctx, `INSERT INTO sessions (hash, folded, created_at, expires_at) VALUES (`+listOf(4)+`)`,
			x.Hash, assigneeMark.fold(x.Login), made(x.CreatedAt).UnixMicro(), x.ExpiresAt.UnixMicro())
		switch q.dialect.Classify(err) {
		case Duplicate:
			return task.Errorf(task.Conflict, "the session is there already")
		case MissingReference:
			return noUser(x.Login)
		default:
			return err
		}
	})
}

// SessionUser implements store.Sessions.
func (s *Store) SessionUser(ctx context.Context, hash []byte, now time.Time) (store.User, error) {
	return find(ctx, s, task.Errorf(task.NotFound, "there is no such session"), scanUser, `SELECT `+userColumns+` FROM sessions
		JOIN users ON users.folded = sessions.folded WHERE sessions.hash = ? AND sessions.expires_at > ?`, blob(hash), now.UnixMicro())
}

// EndSession implements store.Sessions.
func (s *Store) EndSession(ctx context.Context, hash []byte) error {
	return s.write(ctx, func(q session) error {
		_, err := q.exec(ctx, `DELETE FROM sessions WHERE hash = ?`, blob(hash))
		return err
	})
}
