package relational

import (
	"context"
	"slices"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// LinkMachineUser implements store.People.
func (s *Store) LinkMachineUser(ctx context.Context, name, login string) (moved int64, err error) {
	if err := requireName("name of a machine's user", name); err != nil {
		return 0, err
	}
	err = s.write(ctx, func(q session) error {
		user, found, err := first(ctx, q, scanUser, `SELECT `+userColumns+` FROM users WHERE folded = ?`, assigneeMark.fold(login))
		if err == nil && !found {
			err = noUser(login)
		}
		if err != nil {
			return err
		}
		_, err = q.exec(ctx, `INSERT INTO machine_users (name, folded, created_at) VALUES (`+listOf(3)+`)
			ON CONFLICT (name) DO UPDATE SET folded = EXCLUDED.folded`, name, assigneeMark.fold(login), now().UnixMicro())
		if err != nil {
			return err
		}
		moved, err = giveReviews(ctx, q, name, user.Login)
		return err
	})
	return orNothing(moved, err)
}

// giveReviews makes a person the owner of what a name owns, unless that name is somebody
// else's. It returns how many reviews that are.
func giveReviews(ctx context.Context, q session, name, login string) (int64, error) {
	folded := assigneeMark.fold(name)
	if folded != assigneeMark.fold(login) {
		taken, err := exists(ctx, q, `SELECT 1 FROM users WHERE folded = ?`, folded)
		if err != nil || taken {
			return 0, err
		}
	}
	names, err := ownersLike(ctx, q, folded)
	if err != nil {
		return 0, err
	}
	var moved int64
	for _, owner := range names {
		if owner == login {
			continue
		}
		for _, table := range []string{"threads", "questions", "reviews"} {
			n, err := q.exec(ctx, `UPDATE `+table+` SET owner = ? WHERE owner = ?`, login, owner)
			if err != nil {
				return 0, err
			}
			if table == "reviews" {
				moved += n
			}
		}
	}
	return moved, nil
}

// ownersLike returns the names, as they are written, that own something and fold to the given
// one. There are about as many owners as there are people.
func ownersLike(ctx context.Context, q session, folded string) ([]string, error) {
	owners, err := list(ctx, q, scanText, `SELECT owner FROM reviews UNION SELECT owner FROM threads UNION SELECT owner FROM questions`)
	return slices.DeleteFunc(owners, func(owner string) bool { return owner == "" || assigneeMark.fold(owner) != folded }), err
}

// namesakes returns the tokens that act for a name alone and are not revoked.
func namesakes(ctx context.Context, q session, folded string) ([]store.Token, error) {
	tokens, err := list(ctx, q, scanToken, `SELECT `+tokenColumns+` FROM tokens WHERE person = '' AND revoked_at = ? AND role <> ?`, never, agentRole)
	return slices.DeleteFunc(tokens, func(t store.Token) bool { return t.Name == "" || assigneeMark.fold(t.Name) != folded }), err
}

// takenOnBoard reports whether somebody else has the login on the board that a name becomes there, or gets it
// with the first look at the board.
func takenOnBoard(ctx context.Context, q session, name string) (bool, error) {
	login := assigneeMark.fold(task.BoardLogin(name))
	if login == "" {
		return false, nil
	}
	if taken, err := exists(ctx, q, `SELECT 1 FROM board_users WHERE folded = ?`, login); err != nil || taken {
		return taken, err
	}
	names, err := list(ctx, q, scanText, `SELECT login FROM users WHERE folded <> ?`, assigneeMark.fold(name))
	return slices.ContainsFunc(names, func(other string) bool { return assigneeMark.fold(task.BoardLogin(other)) == login }), err
}

// BelongingsOf implements store.People.
func (s *Store) BelongingsOf(ctx context.Context, name string) (had store.Belongings, err error) {
	folded := assigneeMark.fold(name)
	err = s.snapshot(ctx, func(q session) error {
		had = store.Belongings{}
		owners, err := ownersLike(ctx, q, folded)
		if err != nil {
			return err
		}
		for _, owner := range owners {
			for table, count := range map[string]*int64{"reviews": &had.Reviews, "threads": &had.Threads, "questions": &had.Questions} {
				n, _, err := first(ctx, q, scanNumber, `SELECT COUNT(*) FROM `+table+` WHERE owner = ?`, owner)
				if err != nil {
					return err
				}
				*count += n
			}
		}
		tokens, err := namesakes(ctx, q, folded)
		if err != nil {
			return err
		}
		had.Tokens = int64(len(tokens))
		if had.Board, err = takenOnBoard(ctx, q, name); err != nil {
			return err
		}
		had.Expected, _, err = first(ctx, q, scanText, `SELECT identity FROM expected_users WHERE folded = ?`, folded)
		return err
	})
	return orNothing(had, err)
}

// ExpectUser implements store.People.
func (s *Store) ExpectUser(ctx context.Context, login string) error {
	if err := requireName("login", login); err != nil {
		return err
	}
	folded := assigneeMark.fold(login)
	return s.write(ctx, func(q session) error {
		taken, err := exists(ctx, q, `SELECT 1 FROM users WHERE folded = ?`, folded)
		if err == nil && taken {
			err = task.Errorf(task.Conflict, "there is a user %q already", login)
		}
		if err != nil {
			return err
		}
		return expect(ctx, q, folded, store.AnyIdentity)
	})
}

// expect notes who may have a login.
func expect(ctx context.Context, q session, folded, identity string) error {
	_, err := q.exec(ctx, `INSERT INTO expected_users (folded, identity) VALUES (?, ?) ON CONFLICT (folded) DO UPDATE SET identity = EXCLUDED.identity`, folded, identity)
	return err
}

// exists reports whether a query finds anything.
func exists(ctx context.Context, q session, query string, args ...any) (bool, error) {
	_, found, err := first(ctx, q, scanNumber, query, args...)
	return found, err
}

// UnlinkMachineUser implements store.People.
func (s *Store) UnlinkMachineUser(ctx context.Context, name string) error {
	return s.write(ctx, func(q session) error {
		removed, err := q.exec(ctx, `DELETE FROM machine_users WHERE name = ?`, name)
		if err == nil && removed == 0 {
			err = noMachineUser(name)
		}
		return err
	})
}

func noMachineUser(name string) error {
	return task.Errorf(task.NotFound, "it is not known which person %q is", name)
}

// PersonHere implements store.People.
func (s *Store) PersonHere(ctx context.Context, name string) (store.User, error) {
	return find(ctx, s, noMachineUser(name), scanUser,
		`SELECT `+userColumns+` FROM users JOIN machine_users ON machine_users.folded = users.folded WHERE machine_users.name = ?`, name)
}

// ListMachineUsers implements store.People.
func (s *Store) ListMachineUsers(ctx context.Context) ([]store.MachineUser, error) {
	return all(ctx, s, func(r row) (one store.MachineUser, err error) {
		return one, r.Scan(&one.Name, &one.Login)
	}, `SELECT machine_users.name, users.login FROM machine_users JOIN users ON users.folded = machine_users.folded ORDER BY machine_users.name`)
}

// ShareReview implements store.Shares.
func (s *Store) ShareReview(ctx context.Context, id, login string, at time.Time) error {
	if err := checkName("person with whom a review is shared", login); err != nil {
		return err
	}
	return s.write(ctx, func(q session) error { return shareWith(ctx, q, id, login, at) })
}

func shareWith(ctx context.Context, q session, id, login string, at time.Time) error {
	_, err := q.exec(ctx, `INSERT INTO review_shares (review, folded, name, created_at) VALUES (`+listOf(4)+`) ON CONFLICT DO NOTHING`,
		id, assigneeMark.fold(login), login, made(at).UnixMicro())
	if q.dialect.Classify(err) == MissingReference {
		return noReview(id)
	}
	return err
}

// SetShares implements store.Shares. The review is locked, so that two who do this at once
// do not mix.
func (s *Store) SetShares(ctx context.Context, id string, logins []string, at time.Time) error {
	for _, login := range logins {
		if err := checkName("person with whom a review is shared", login); err != nil {
			return err
		}
	}
	return s.write(ctx, func(q session) error {
		found, err := exists(ctx, q, `SELECT 1 FROM reviews WHERE id = ? `+q.dialect.LockRows, id)
		if err == nil && !found {
			err = noReview(id)
		}
		if err != nil {
			return err
		}
		if _, err := q.exec(ctx, `DELETE FROM review_shares WHERE review = ?`, id); err != nil {
			return err
		}
		for _, login := range logins {
			if err := shareWith(ctx, q, id, login, at); err != nil {
				return err
			}
		}
		return nil
	})
}

// UnshareReview implements store.Shares.
func (s *Store) UnshareReview(ctx context.Context, id, login string) error {
	return s.write(ctx, func(q session) error {
		_, err := q.exec(ctx, `DELETE FROM review_shares WHERE review = ? AND folded = ?`, id, assigneeMark.fold(login))
		return err
	})
}

// SharesOf implements store.Shares.
func (s *Store) SharesOf(ctx context.Context, id string) ([]string, error) {
	return all(ctx, s, scanText, `SELECT name FROM review_shares WHERE review = ? ORDER BY folded`, id)
}

// MayRead implements store.Shares.
func (s *Store) MayRead(ctx context.Context, id, login string) (bool, error) {
	found, err := all(ctx, s, scanNumber, `SELECT 1 FROM review_shares WHERE review = ? AND folded IN ('', ?)`, id, assigneeMark.fold(login))
	return len(found) > 0, err
}
