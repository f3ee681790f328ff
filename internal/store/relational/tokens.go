package relational

import (
	"context"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

const tokenColumns = `id, name, role, hash, created_at, revoked_at`

func scanToken(r row) (t store.Token, err error) {
	err = r.Scan(&t.ID, &t.Name, &t.Role, &t.Hash, micros{&t.CreatedAt}, micros{&t.RevokedAt})
	return t, err
}

// AddToken implements store.Tokens.
func (s *Store) AddToken(ctx context.Context, t store.Token) (store.Token, error) {
	if len(t.Hash) == 0 {
		return store.Token{}, task.Errorf(task.Invalid, "the hash of a token is empty")
	}
	if err := checkName("hash of a token", string(t.Hash)); err != nil {
		return store.Token{}, err
	}
	t.ID, t.CreatedAt, t.RevokedAt = newID(), made(t.CreatedAt), moment(t.RevokedAt)
	err := s.write(ctx, func(q session) error {
		_, err := q.exec(ctx, `INSERT INTO tokens (`+tokenColumns+`) VALUES (`+listOf(6)+`)`,
			t.ID, t.Name, t.Role, t.Hash, t.CreatedAt.UnixMicro(), t.RevokedAt.UnixMicro())
		if q.dialect.Classify(err) == Duplicate {
			return task.Errorf(task.Conflict, "the token is there already")
		}
		return err
	})
	return orNothing(t, err)
}

// TokenByHash implements store.Tokens.
func (s *Store) TokenByHash(ctx context.Context, hash []byte) (store.Token, error) {
	return find(ctx, s, task.Errorf(task.NotFound, "there is no such token"), scanToken, `SELECT `+tokenColumns+` FROM tokens WHERE hash = ?`, blob(hash))
}

// ListTokens implements store.Tokens.
func (s *Store) ListTokens(ctx context.Context) ([]store.Token, error) {
	return all(ctx, s, scanToken, `SELECT `+tokenColumns+` FROM tokens ORDER BY id`)
}

// RevokeToken implements store.Tokens.
func (s *Store) RevokeToken(ctx context.Context, id string, at time.Time) error {
	return s.write(ctx, func(q session) error {
		found, err := q.exec(ctx, `UPDATE tokens SET revoked_at = CASE WHEN revoked_at = ? THEN ? ELSE revoked_at END
			WHERE id = ?`, never, made(at).UnixMicro(), id)
		if err == nil && found == 0 {
			err = task.Errorf(task.NotFound, "there is no token %q", id)
		}
		return err
	})
}
