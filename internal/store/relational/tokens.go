package relational

import (
	"context"
	"time"
	"unicode/utf8"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

const tokenColumns = `id, name, person, role, hash, created_at, revoked_at`

func scanToken(r row) (t store.Token, err error) {
	err = r.Scan(&t.ID, &t.Name, &t.Person, &t.Role, &t.Hash, micros{&t.CreatedAt}, micros{&t.RevokedAt})
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
		_, err := q.exec(ctx, `INSERT INTO tokens (`+tokenColumns+`) VALUES (`+listOf(7)+`)`,
			t.ID, t.Name, t.Person, t.Role, t.Hash, t.CreatedAt.UnixMicro(), t.RevokedAt.UnixMicro())
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
		token, found, err := first(ctx, q, scanToken, `SELECT `+tokenColumns+` FROM tokens WHERE id = ?`, id)
		if err == nil && !found {
			err = task.Errorf(task.NotFound, "there is no token %q", id)
		}
		if err != nil {
			return err
		}
		if _, err = q.exec(ctx, `UPDATE tokens SET revoked_at = ? WHERE id = ? AND revoked_at = ?`, made(at).UnixMicro(), id, never); err != nil {
			return err
		}
		if token.Role != agentRole || token.Name == "" {
			return nil
		}
		return endLeases(ctx, q, token.Name)
	})
}

// endLeases makes the leases of the agents with a name run out, so that nobody can
// renew or use them. An agent is known by the name of its token, or by that and one
// of its own. Whoever ends leases that have run out puts the tasks back.
func endLeases(ctx context.Context, q session, name string) error {
	own := name + "/"
	_, err := q.exec(ctx, `UPDATE tasks SET lease_expires = 0, lease_token = 'revoked'
		WHERE state = 'running' AND (lease_agent = ? OR SUBSTR(lease_agent, 1, CAST(? AS INTEGER)) = ?)`,
		name, utf8.RuneCountInString(own), own)
	return err
}
