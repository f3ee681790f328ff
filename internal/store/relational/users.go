package relational

import (
	"context"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

const userColumns = `users.login, users.role, users.password, users.identity, users.created_at`

func scanUser(r row) (u store.User, err error) {
	err = r.Scan(&u.Login, &u.Role, &u.Password, &u.Identity, micros{&u.CreatedAt})
	return u, err
}

func noUser(login string) error { return task.Errorf(task.NotFound, "there is no user %q", login) }

// AddUser implements store.Users.
func (s *Store) AddUser(ctx context.Context, u store.User) (store.User, error) {
	if err := requireName("login", u.Login); err != nil {
		return store.User{}, err
	}
	if err := checkName("identity", u.Identity); err != nil {
		return store.User{}, err
	}
	u.CreatedAt = made(u.CreatedAt)
	folded := assigneeMark.fold(u.Login)
	err := s.write(ctx, func(q session) error {
		added, err := q.exec(ctx, `INSERT INTO users (id, folded, login, role, password, identity, created_at) VALUES (`+listOf(7)+`) ON CONFLICT DO NOTHING`,
			newID(), folded, u.Login, u.Role, u.Password, u.Identity, u.CreatedAt.UnixMicro())
		if err == nil && added == 0 {
			err = task.Errorf(task.Conflict, "there is a user %q already", u.Login)
		}
		if err != nil {
			return err
		}
		if _, err := q.exec(ctx, `DELETE FROM expected_users WHERE folded = ?`, folded); err != nil {
			return err
		}
		_, err = giveReviews(ctx, q, u.Login, u.Login)
		return err
	})
	return orNothing(u, err)
}

// User implements store.Users.
func (s *Store) User(ctx context.Context, login string) (store.User, error) {
	return find(ctx, s, noUser(login), scanUser, `SELECT `+userColumns+` FROM users WHERE folded = ?`, assigneeMark.fold(login))
}

// UserOf implements store.Users.
func (s *Store) UserOf(ctx context.Context, identity string) (store.User, error) {
	nobody := task.Errorf(task.NotFound, "there is no user with this identity")
	if identity == "" {
		return store.User{}, nobody
	}
	return find(ctx, s, nobody, scanUser, `SELECT `+userColumns+` FROM users WHERE identity = ?`, identity)
}

// ListUsers implements store.Users.
func (s *Store) ListUsers(ctx context.Context) ([]store.User, error) {
	return all(ctx, s, scanUser, `SELECT `+userColumns+` FROM users ORDER BY id`)
}

// SetUserPassword implements store.Users.
func (s *Store) SetUserPassword(ctx context.Context, login, password string) error {
	return s.changeUser(ctx, login, func(q session, folded string) (int64, error) {
		if _, err := q.exec(ctx, `DELETE FROM sessions WHERE folded = ?`, folded); err != nil {
			return 0, err
		}
		return q.exec(ctx, `UPDATE users SET password = ? WHERE folded = ?`, password, folded)
	})
}

// SetUserRole implements store.Users.
func (s *Store) SetUserRole(ctx context.Context, login, role string) error {
	return s.changeUser(ctx, login, func(q session, folded string) (int64, error) {
		return q.exec(ctx, `UPDATE users SET role = ? WHERE folded = ?`, role, folded)
	})
}

// RemoveUser implements store.Users.
func (s *Store) RemoveUser(ctx context.Context, login string) error {
	return s.changeUser(ctx, login, func(q session, folded string) (int64, error) {
		user, found, err := first(ctx, q, scanUser, `SELECT `+userColumns+` FROM users WHERE folded = ?`, folded)
		if err != nil || !found {
			return 0, err
		}
		if err := revokeTokensOf(ctx, q, user.Login); err != nil {
			return 0, err
		}
		if _, err := q.exec(ctx, `DELETE FROM review_shares WHERE folded = ?`, folded); err != nil {
			return 0, err
		}
		if user.Identity != "" {
			if err := expect(ctx, q, folded, user.Identity); err != nil {
				return 0, err
			}
		}
		return q.exec(ctx, `DELETE FROM users WHERE folded = ?`, folded)
	})
}

// revokeTokensOf revokes the tokens that act for a person: those that were made for the person,
// and those that were made for nobody and have the login for their name.
func revokeTokensOf(ctx context.Context, q session, login string) error {
	if _, err := q.exec(ctx, `UPDATE tokens SET revoked_at = ? WHERE revoked_at = ? AND person = ?`, now().UnixMicro(), never, login); err != nil {
		return err
	}
	others, err := namesakes(ctx, q, assigneeMark.fold(login))
	for _, token := range others {
		if _, err := q.exec(ctx, `UPDATE tokens SET revoked_at = ? WHERE id = ?`, now().UnixMicro(), token.ID); err != nil {
			return err
		}
	}
	return err
}

func (s *Store) changeUser(ctx context.Context, login string, change func(q session, folded string) (int64, error)) error {
	return s.write(ctx, func(q session) error {
		changed, err := change(q, assigneeMark.fold(login))
		if err == nil && changed == 0 {
			err = noUser(login)
		}
		return err
	})
}
