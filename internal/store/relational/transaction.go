package relational

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/toryo-dev/toryo/internal/task"
)

// tries bounds how often a transaction is tried that only chance made fail.
const tries = 6

// again asks for the transaction to be rolled back and tried once more: another
// one was quicker, and what it did will be found the next time.
type again struct{ cause error }

func (e *again) Error() string { return e.cause.Error() }
func (e *again) Unwrap() error { return e.cause }

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
		return false, do(session{s.reads, s.dialect})
	})
}

func (s *Store) transaction(ctx context.Context, db *sql.DB, options sql.TxOptions, do func(session) error) (begun bool, err error) {
	tx, err := db.BeginTx(ctx, &options)
	if err != nil {
		return false, err
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	if err := do(session{tx, s.dialect}); err != nil {
		return true, err
	}
	return true, tx.Commit()
}

// try repeats what only chance made fail, a bounded number of times. What was
// begun is repeated only if the engine says that it rolled everything back: a
// connection that is lost during a commit leaves open whether it happened.
func (s *Store) try(ctx context.Context, attempt func() (begun bool, err error)) error {
	for n := 1; ; n++ {
		begun, err := attempt()
		if err == nil {
			return nil
		}
		if n == tries || ctx.Err() != nil || !s.repeatable(err, begun) || !pause(ctx, n) {
			return s.explain(ctx, err)
		}
	}
}

func (s *Store) repeatable(err error, begun bool) bool {
	var wish *again
	if errors.As(err, &wish) {
		return true
	}
	switch s.dialect.Classify(err) {
	case Passing:
		return true
	case Lost:
		return !begun
	default:
		return false
	}
}

// pause waits a little, longer each time and never the same for two callers that
// met, and reports whether the context is still alive.
func pause(ctx context.Context, n int) bool {
	timer := time.NewTimer(rand.N(time.Millisecond << n))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// explain gives an error its code. Errors that have one stay as they are.
func (s *Store) explain(ctx context.Context, err error) error {
	var coded *task.Error
	var illegal *task.IllegalMoveError
	if errors.As(err, &coded) || errors.As(err, &illegal) {
		return err
	}
	if ended := ctx.Err(); ended != nil {
		return task.Wrap(task.Interrupted, ended, "the call to the database was broken off")
	}
	if known := s.dialect.Explain(err); known != nil {
		return known
	}
	switch s.dialect.Classify(err) {
	case Passing:
		return task.Wrap(task.DatabaseDown, err, "the database is too busy").
			WithMend("try again; if it stays so, see what else uses the database")
	case Duplicate:
		return task.Wrap(task.Conflict, err, "it is there already")
	default:
		return task.Wrap(task.Internal, err, "the database failed")
	}
}
