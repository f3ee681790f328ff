package relational

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/toryo-dev/toryo/internal/lifecycle"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// tries bounds how often a transaction is tried that only chance made fail, and
// deadConnections how many connections are given up that broke while they lay in
// the pool. Each is given up once, so that there are at most as many as the pool
// holds.
const (
	tries           = 6
	deadConnections = 100
)

// againError asks for the transaction to be rolled back and tried once more: another
// one was quicker, and what it did will be found the next time.
type againError struct{ cause error }

func (e *againError) Error() string { return e.cause.Error() }
func (e *againError) Unwrap() error { return e.cause }

// commitError is of a commit. The transaction may have been done all the same, unless the engine says that
// it was rolled back.
type commitError struct{ cause error }

func (e *commitError) Error() string { return e.cause.Error() }
func (e *commitError) Unwrap() error { return e.cause }

// write runs do in a transaction and commits it. Do may be called several times,
// so it must do nothing but speak to the database and set what it returns.
func (s *Store) write(ctx context.Context, do func(session) error) error {
	return s.try(ctx, func() (begun bool, err error) {
		return s.transaction(ctx, s.writes, sql.TxOptions{Isolation: sql.LevelReadCommitted}, do)
	})
}

// snapshot runs several queries that see one state of the database.
func (s *Store) snapshot(ctx context.Context, do func(session) error) error {
	return s.try(ctx, func() (begun bool, err error) {
		_, err = s.transaction(ctx, s.reads, sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true}, do)
		return false, err
	})
}

// read runs one query.
func (s *Store) read(ctx context.Context, do func(session) error) error {
	return s.try(ctx, func() (begun bool, err error) {
		return false, do(session{run: s.reads, dialect: s.dialect, counts: &s.counts})
	})
}

func (s *Store) transaction(ctx context.Context, db *sql.DB, options sql.TxOptions, do func(session) error) (begun bool, err error) {
	tx, err := db.BeginTx(ctx, &options)
	if err != nil {
		return false, err
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	var notices []store.Notice
	q := session{tx, s.dialect, &notices, &s.counts}
	if err := do(q); err != nil {
		return true, err
	}
	if err := s.notices.send(ctx, q, notices); err != nil {
		return true, err
	}
	if err := tx.Commit(); err != nil {
		return true, &commitError{err}
	}
	if !options.ReadOnly {
		s.counts.commits.Add(1)
	}
	s.notices.publish(notices...)
	return true, nil
}

// try repeats what only chance made fail, a bounded number of times. What was
// begun is repeated only if the engine says that it rolled everything back: a
// connection that is lost during a commit leaves open whether it happened.
func (s *Store) try(ctx context.Context, attempt func() (begun bool, err error)) error {
	failed, dead := 0, 0
	for {
		begun, err := attempt()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return s.explain(ctx, err)
		}
		if !begun && dead < deadConnections && s.dialect.Classify(err) == Lost {
			dead++
			continue
		}
		failed++
		if failed == tries || !s.chance(err) || !pause(ctx, failed) {
			return s.explain(ctx, err)
		}
	}
}

// chance reports whether the same transaction may well succeed next time.
func (s *Store) chance(err error) bool {
	_, asked := errors.AsType[*againError](err)
	return asked || s.dialect.Classify(err) == Passing
}

// pause waits a little, longer each time and never the same for two callers that
// met, and reports whether the context is still alive.
func pause(ctx context.Context, n int) bool {
	return lifecycle.Sleep(ctx, rand.N(time.Millisecond<<n)) == nil //nolint:gosec // nobody gains by guessing it
}

// explain gives an error its code. Errors that have one stay as they are.
func (s *Store) explain(ctx context.Context, err error) error {
	if hasCode(err) {
		return err
	}
	if at, atCommit := errors.AsType[*commitError](err); atCommit && ctx.Err() != nil { // whether it was done is open
		return task.Wrap(task.Interrupted, errors.Join(ctx.Err(), at), "the call to the database was broken off")
	}
	if ctx.Err() != nil {
		return brokenOff(ctx)
	}
	if known := s.dialect.Explain(err); known != nil {
		return known
	}
	switch s.dialect.Classify(err) {
	case Passing:
		return task.Wrap(task.DatabaseDown, err, "the database is too busy").
			WithHint("try again; if it stays so, see what else uses the database")
	case Duplicate:
		return task.Wrap(task.Conflict, err, "it is there already")
	default:
		return task.Wrap(task.Internal, err, "the database failed")
	}
}

func brokenOff(ctx context.Context) error {
	return task.Wrap(task.Interrupted, ctx.Err(), "the call to the database was broken off")
}

func hasCode(err error) bool {
	_, coded := task.AsError(err)
	_, illegal := errors.AsType[*task.IllegalMoveError](err)
	return coded || illegal
}
