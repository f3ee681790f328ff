package relational

import (
	"context"
	"time"

	"github.com/toryo-dev/toryo/internal/lifecycle"
	"github.com/toryo-dev/toryo/internal/store"
)

// othersEvery is how often it is looked whether another process has written.
const othersEvery = time.Second

// version is the state of the database as the connection that writes sees it. Its number
// does not count what that connection wrote itself, and is the connection's own.
type version struct {
	connection any
	number     int64
}

// NoteVersion makes the listeners hear of what other processes write from now on. An adapter
// whose engine does not tell of it calls it once, before anything else.
func (s *Store) NoteVersion(ctx context.Context) (err error) {
	if s.noted, err = s.version(ctx); err != nil {
		return s.explain(ctx, err)
	}
	return nil
}

// followOthers tells the listeners that anything may have happened whenever another
// process has written. All writes of this process go through one connection, so that its
// version changes with those of others alone.
func (s *Store) followOthers(ctx context.Context) {
	last := s.noted
	lifecycle.Every(ctx, othersEvery, func(ctx context.Context) {
		is, err := s.version(ctx)
		if err != nil || is == last {
			return // a database that is down is looked at again
		}
		last = is
		s.notices.publish(store.Notice{})
	})
}

// version asks the connection that writes.
func (s *Store) version(ctx context.Context) (is version, err error) {
	connection, err := s.writes.Conn(ctx)
	if err != nil {
		return is, err
	}
	defer func() { _ = connection.Close() }() // it goes back to the pool
	if err := connection.Raw(func(driver any) error {
		is.connection = driver
		return nil
	}); err != nil {
		return is, err
	}
	is.number, _, err = first(ctx, session{run: connection, dialect: s.dialect, counts: &s.counts}, scanNumber, s.dialect.Version)
	return is, err
}
