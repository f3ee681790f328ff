package relational

import (
	"context"
	"database/sql"
	"strconv"
	"strings"

	"github.com/pressly/goose/v3"

	"github.com/toryo-dev/toryo/internal/task"
)

// Dialect is what an adapter says about its engine.
type Dialect struct {
	// Migrations is the engine's name for the tool that runs the migrations.
	Migrations goose.Dialect
	// NumberedPlaceholders means $1, $2 in place of ?.
	NumberedPlaceholders bool
	// Lists means that an argument may be a list, which unnest makes rows of.
	Lists bool
	// Lateral means that a query in FROM may name what stands before it.
	Lateral bool
	// LockRows ends a SELECT that locks the rows it finds against other writers;
	// SkipLocked does the same and leaves out rows that are locked already. Both
	// are empty where a transaction that writes is alone anyway.
	LockRows, SkipLocked string
	// LockAll makes the transaction wait for the end of every other one that has
	// said the same; empty where a transaction that writes is alone anyway.
	LockAll string
	// CountTables counts the tables of the name that is its one argument.
	CountTables string
	// TableBytes lists all tables with the bytes that they and their indexes take.
	TableBytes string
	// Now is the expression for the time in microseconds on the database's machine.
	Now string
	// Notify is the expression that sends the column text of a query to every other process
	// that listens; empty where there is no way to.
	Notify string
	// Version is a query whose number is another one, on the same connection, after a
	// process or a connection other than that one has written; empty where Notify
	// tells of that.
	Version string
	// Overwrite makes the connection overwrite what it deletes from now on, and OverwriteNot ends that;
	// EmptyLog removes the copies that are in the log, without waiting for anybody. All are empty where
	// there is no way to.
	Overwrite, OverwriteNot string
	EmptyLog                func(ctx context.Context, writes *sql.DB) error
	// Classify says what an error of the engine means for the statement.
	Classify func(error) Fault
	// Explain turns an error that is about the database as a whole (it cannot be
	// reached, its disk is full) into one for people, and returns nil for others.
	Explain func(error) *task.Error
}

// Fault is what an engine's error means for the statement that met it.
type Fault int

// The faults.
const (
	Ordinary         Fault = iota
	Duplicate              // a unique constraint was violated
	MissingReference       // a foreign key was violated
	Passing                // the transaction was rolled back and may well succeed when repeated
	Lost                   // the connection broke; what was not sent may be repeated
)

// rebind writes the placeholders of a query as the engine wants them. Queries
// contain question marks as placeholders only.
func (d *Dialect) rebind(query string) string {
	if !d.NumberedPlaceholders {
		return query
	}
	var b strings.Builder
	b.Grow(len(query) + len(query)/8)
	n := 0
	for {
		before, after, found := strings.Cut(query, "?")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		n++
		b.WriteByte('$')
		b.WriteString(strconv.Itoa(n))
		query = after
	}
}
