package relational

import (
	"context"
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

// giveReviews makes a person the owner of what a name without an account owns.
func giveReviews(ctx context.Context, q session, name, login string) (int64, error) {
	owned, err := exists(ctx, q, `SELECT 1 FROM users WHERE folded = ?`, assigneeMark.fold(name))
	if err != nil || owned {
		return 0, err
	}
	if _, err := q.exec(ctx, `UPDATE threads SET owner = ? WHERE owner = ?`, login, name); err != nil {
		return 0, err
	}
	return q.exec(ctx, `UPDATE reviews SET owner = ? WHERE owner = ?`, login, name)
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
	return s.write(ctx, func(q session) error {
		_, err := q.exec(ctx, `INSERT INTO review_shares (review, folded, name, created_at) VALUES (`+listOf(4)+`) ON CONFLICT DO NOTHING`,
			id, assigneeMark.fold(login), login, made(at).UnixMicro())
		if q.dialect.Classify(err) == MissingReference {
			return noReview(id)
		}
		return err
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
	return all(ctx, s, func(r row) (name string, err error) { return name, r.Scan(&name) },
		`SELECT name FROM review_shares WHERE review = ? ORDER BY folded`, id)
}

// MayRead implements store.Shares.
func (s *Store) MayRead(ctx context.Context, id, login string) (bool, error) {
	found, err := all(ctx, s, scanNumber, `SELECT 1 FROM review_shares WHERE review = ? AND folded IN ('', ?)`, id, assigneeMark.fold(login))
	return len(found) > 0, err
}
