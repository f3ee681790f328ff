package relational

import (
	"context"
	"database/sql"
	"errors"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/toryo-dev/toryo/internal/lifecycle"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// Store is the persistence port on a database.
type Store struct {
	dialect *Dialect
	writes  *sql.DB
	reads   *sql.DB
	notices notices
	counts  counts
	moves   *together[wantedMove, task.Task]
	helds   *together[store.Held, struct{}]
	noted   version                // with which it was opened
	others  lifecycle.Group        // looks for what other processes write; see followOthers
	process atomic.Pointer[string] // that holds what is taken through this store; nil if it has no name
}

var _ store.Store = (*Store)(nil)

// New makes a store on a database that has been migrated. Writes and reads go
// through the given pools, which may be the same. The store owns them.
func New(dialect Dialect, writes, reads *sql.DB) *Store {
	return &Store{
		dialect: &dialect, writes: writes, reads: reads, notices: notices{self: newID()},
		moves: newTogether[wantedMove, task.Task](func(w wantedMove) string { return string(w.task) }),
		helds: newTogether[store.Held, struct{}](func(h store.Held) string { return string(h.Task) }),
	}
}

// Ping reports whether the database answers.
func (s *Store) Ping(ctx context.Context) error {
	return s.read(ctx, func(q session) error {
		_, err := list(ctx, q, scanNumber, `SELECT 1`)
		return err
	})
}

// counts is what the database was asked for.
type counts struct{ statements, rows, commits atomic.Int64 }

// Counts implements store.Store.
func (s *Store) Counts() store.Counts {
	return store.Counts{Statements: s.counts.statements.Load(), Rows: s.counts.rows.Load(), Commits: s.counts.commits.Load()}
}

// writeTest is the name of the row that TestWrite writes, among those of elections.
const writeTest = "test whether it can be written"

// TestWrite writes a row that nobody reads. It has another value each time: SQLite writes nothing
// when a row stays as it was.
func (s *Store) TestWrite(ctx context.Context) error {
	return s.write(ctx, func(q session) error {
		_, err := q.exec(ctx, `INSERT INTO offices (name, holder, held_until) VALUES (?, '', `+q.dialect.Now+`)
			ON CONFLICT (name) DO UPDATE SET held_until = offices.held_until + 1`, writeTest)
		return err
	})
}

// Close ends all connections.
func (s *Store) Close() error {
	s.others.Stop()
	if s.reads == s.writes {
		return s.writes.Close()
	}
	return errors.Join(s.reads.Close(), s.writes.Close())
}

// newID makes an id. It fails only if the system has no random numbers, and then
// nothing that Toryo does is safe.
func newID() string { return uuid.Must(uuid.NewV7()).String() }

// now is the moment that is stored with what happens now.
func now() time.Time { return moment(time.Now()) }

// moment is a time as it comes back from the database.
func moment(t time.Time) time.Time { return time.UnixMicro(t.UnixMicro()).UTC() }

// made is the moment at which a thing was made: as given, or now.
func made(given time.Time) time.Time {
	if given.IsZero() {
		return now()
	}
	return moment(given)
}

// later is a moment that is certainly after the one before, and otherwise as given.
func later(given, before time.Time) time.Time {
	if given.After(before) {
		return given
	}
	return before.Add(time.Microsecond)
}
