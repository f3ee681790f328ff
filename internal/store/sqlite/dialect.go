package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"github.com/pressly/goose/v3"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/toryo-dev/toryo/internal/store/relational"
	"github.com/toryo-dev/toryo/internal/task"
)

func dialect(path string) relational.Dialect {
	return relational.Dialect{
		Migrations:  goose.DialectSQLite3,
		CountTables: `SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name = ?`,
		TableBytes: `SELECT sqlite_master.tbl_name, CAST(SUM(dbstat.pgsize) AS BIGINT) FROM dbstat
			JOIN sqlite_master ON sqlite_master.name = dbstat.name GROUP BY sqlite_master.tbl_name`,
		Now:       `CAST(unixepoch('subsec') * 1000000 AS INTEGER)`,
		Version:   `PRAGMA data_version`,
		Overwrite: `PRAGMA secure_delete = 1`, OverwriteNot: `PRAGMA secure_delete = 0`, EmptyLog: emptyLog,
		Classify: classify,
		Explain:  func(err error) *task.Error { return explain(path, err) },
	}
}

// emptyLog moves what is in the log into the file, and makes the log empty. It does not wait for those
// who are reading it, which may be a whole backup: nothing else can be written meanwhile.
func emptyLog(ctx context.Context, writes *sql.DB) error {
	connection, err := writes.Conn(ctx)
	if err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx) // the last statement has to be run
	for _, statement := range []string{`PRAGMA busy_timeout(0)`, `PRAGMA wal_checkpoint(TRUNCATE)`, `PRAGMA ` + busyPragma()} {
		_, failed := connection.ExecContext(ctx, statement)
		err = errors.Join(err, failed)
	}
	return errors.Join(err, connection.Close())
}

// codeOf returns the engine's code, with and without what makes it more exact.
func codeOf(err error) (exact, primary int) {
	known, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return 0, 0
	}
	return known.Code(), known.Code() & 0xff
}

func classify(err error) relational.Fault {
	exact, primary := codeOf(err)
	switch {
	case exact == sqlite3.SQLITE_CONSTRAINT_UNIQUE, exact == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY:
		return relational.Duplicate
	case exact == sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY:
		return relational.MissingReference
	case primary == sqlite3.SQLITE_BUSY, primary == sqlite3.SQLITE_LOCKED:
		return relational.Passing
	default:
		return relational.Ordinary
	}
}

// explain says of an error that is about the file what is wrong with the file. While the
// program runs, a file that cannot be written is a database that is down: it passes when
// there is room again, and nothing is to be given up for it.
func explain(path string, err error) *task.Error {
	known := explainOpening(path, err)
	switch _, primary := codeOf(err); primary {
	case sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR:
		known.Code = task.DatabaseDown
	}
	return known
}

// explainOpening is explain for a file that is being opened.
func explainOpening(path string, err error) *task.Error {
	_, primary := codeOf(err)
	wrong := func(what, hint string) *task.Error {
		return task.Wrap(task.DataDir, err, path+" "+what).WithHint("%s", hint)
	}
	switch primary {
	case sqlite3.SQLITE_NOTADB:
		return wrong("is not a SQLite database", "name another data directory, or move the file away")
	case sqlite3.SQLITE_CORRUPT:
		return wrong("is damaged", "restore it from a backup")
	case sqlite3.SQLITE_FULL:
		return wrong("cannot grow: the disk is full", "make room on the disk")
	case sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH:
		return wrong("cannot be opened", "make sure that the directory exists and that this user may read and write it and the file")
	case sqlite3.SQLITE_READONLY:
		return wrong("cannot be written", "make sure that this user may write the file and its directory")
	case sqlite3.SQLITE_IOERR:
		return wrong("cannot be read or written", "see whether the disk is in order")
	default:
		return nil
	}
}

// unusable is the error for a file that cannot even be tried.
func unusable(path string, err error) error {
	if _, coded := task.AsError(err); coded {
		return err
	}
	return task.Wrap(task.DataDir, err, "the database file "+path+" cannot be used").
		WithHint("make sure that its directory exists and that this user may read and write it")
}

// explained gives an error that was met while opening its code.
func explained(ctx context.Context, path string, err error) error {
	if _, coded := task.AsError(err); coded {
		return err
	}
	if ended := ctx.Err(); ended != nil {
		return task.Wrap(task.Interrupted, ended, "opening "+path+" was broken off")
	}
	if known := explainOpening(path, err); known != nil {
		return known
	}
	if classify(err) == relational.Passing {
		return task.Wrap(task.DatabaseDown, err, path+" is in use by another process").
			WithHint("try again when that has finished")
	}
	return task.Wrap(task.Internal, err, "the database in "+path+" cannot be opened")
}
