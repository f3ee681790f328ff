package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/pressly/goose/v3"

	"github.com/toryo-dev/toryo/internal/store/relational"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

func dialect(config *pgx.ConnConfig) relational.Dialect {
	// Enough for people to find the database by, and without the password.
	place := fmt.Sprintf("%s on %s port %d", config.Database, config.Host, config.Port)
	return relational.Dialect{
		Migrations:           goose.DialectPostgres,
		NumberedPlaceholders: true,
		Lists:                true,
		Lateral:              true,
		// Weaker than FOR UPDATE: rows that merely refer to the locked one may be
		// added meanwhile, and do not make it look taken.
		LockRows:    `FOR NO KEY UPDATE`,
		SkipLocked:  `FOR NO KEY UPDATE SKIP LOCKED`,
		LockAll:     `SELECT 1 FROM (SELECT pg_advisory_xact_lock(` + handOutLock + `)) AS locked`,
		CountTables: `SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = current_schema() AND table_name = ?`,
		TableBytes: `SELECT relname, pg_total_relation_size(oid) FROM pg_class
			WHERE relkind = 'r' AND relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema())`,
		Now:      `CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)`,
		Notify:   `pg_notify('` + channel + `', text)`,
		Classify: classify,
		Explain:  func(err error) *task.Error { return explain(place, err) },
	}
}

// The codes of PostgreSQL that matter here.
const (
	uniqueViolation     = "23505"
	foreignKeyViolation = "23503"
	serializationFailed = "40001"
	deadlockDetected    = "40P01"
	tooManyConnections  = "53300"
	diskFull            = "53100"
	readOnly            = "25006"
	noPrivilege         = "42501"
	noDatabase          = "3D000"
	classAuthorization  = "28"
	classConnection     = "08"
	classShutdown       = "57P" // also: starting up
)

func codeOf(err error) string {
	if known, ok := errors.AsType[*pgconn.PgError](err); ok {
		return known.Code
	}
	return ""
}

func classify(err error) relational.Fault {
	switch codeOf(err) {
	case uniqueViolation:
		return relational.Duplicate
	case foreignKeyViolation:
		return relational.MissingReference
	case serializationFailed, deadlockDetected:
		return relational.Passing
	}
	if _, connecting := errors.AsType[*pgconn.ConnectError](err); !connecting && lost(err) {
		return relational.Lost
	}
	return relational.Ordinary
}

// lost reports whether the error means that there is no connection.
func lost(err error) bool {
	if code := codeOf(err); code != "" {
		return strings.HasPrefix(code, classConnection) || strings.HasPrefix(code, classShutdown)
	}
	_, connecting := errors.AsType[*pgconn.ConnectError](err)
	_, network := errors.AsType[net.Error](err)
	return connecting || network ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, driver.ErrBadConn) || errors.Is(err, pgconn.ErrConnClosed) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, sql.ErrConnDone)
}

// explain says of an error that is about the database what is wrong with it.
func explain(place string, err error) *task.Error {
	wrong := func(code task.Code, what, hint string) *task.Error {
		return task.Wrap(code, oneLineError{err}, "the database "+place+" "+what).WithHint("%s", hint)
	}
	code := codeOf(err)
	switch {
	case strings.HasPrefix(code, classAuthorization):
		return wrong(task.DatabaseDown, "does not let this user in", "correct the user and the password of the database URL, or what the server allows in pg_hba.conf")
	case code == noDatabase:
		return wrong(task.DatabaseDown, "does not exist", "make it with createdb, or correct the database URL")
	case code == tooManyConnections:
		return wrong(task.DatabaseDown, "has no connection left", "raise max_connections of the server, or run fewer programs on it")
	case code == diskFull:
		return wrong(task.DatabaseDown, "cannot grow: its disk is full", "make room on the disk of the database server")
	case code == readOnly:
		return wrong(task.DatabaseDown, "can only be read", "point the database URL at the primary server")
	case code == noPrivilege:
		return wrong(task.BadConfig, "does not let this user do what is needed", "make the user the owner of the database, or grant it CREATE on the schema and everything on the tables")
	case lost(err):
		return wrong(task.DatabaseDown, "cannot be reached", "see that the server runs and that host and port of the database URL are right")
	default:
		return nil
	}
}

// explained gives an error that was met while opening its code.
func explained(ctx context.Context, dialect relational.Dialect, err error) error {
	if _, coded := task.AsError(err); coded {
		return err
	}
	if ended := ctx.Err(); ended != nil {
		return task.Wrap(task.Interrupted, ended, "connecting to the database was broken off")
	}
	if known := dialect.Explain(err); known != nil {
		return known
	}
	return task.Wrap(task.Internal, oneLineError{err}, "the database cannot be used")
}

// oneLineError is an error whose text is kept to one line.
type oneLineError struct{ error }

// Error implements error.
func (e oneLineError) Error() string { return textfmt.OneLine(e.error.Error()) }

// Unwrap returns the error as it was.
func (e oneLineError) Unwrap() error { return e.error }
