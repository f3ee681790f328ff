package site

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/processes"
	"github.com/toryo-dev/toryo/internal/metrics"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/store/postgres"
	"github.com/toryo-dev/toryo/internal/store/sqlite"
	"github.com/toryo-dev/toryo/internal/task"
)

// DatabaseFile is the name of the SQLite database in the data directory.
const DatabaseFile = "toryo.db"

// OpenStore opens the database that the configuration names, and brings its
// schema up to date.
func OpenStore(ctx context.Context, c config.Config) (store.Store, error) {
	if err := requireRestored(c.DataDir); err != nil {
		return nil, err
	}
	return openStore(ctx, c)
}

func openStore(ctx context.Context, c config.Config) (store.Store, error) {
	if c.Database.Driver == "postgres" {
		return postgres.Open(ctx, c.Database.URL.Reveal())
	}
	if err := MakeDataDir(c.DataDir); err != nil {
		return nil, err
	}
	return sqlite.Open(ctx, filepath.Join(c.DataDir, DatabaseFile))
}

// countStatements shows in the metrics what the database is asked for.
func countStatements(registry *metrics.Registry, database store.Store) {
	registry.Counter("toryo_database_statements_total", "Statements that the server sent to the database.",
		func() float64 { return float64(database.Counts().Statements) })
	registry.Counter("toryo_database_rows_total", "Rows that the server read from the database.",
		func() float64 { return float64(database.Counts().Rows) })
}

// MakeDataDir makes the data directory. What is in it is nobody else's business.
func MakeDataDir(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return task.Wrap(task.DataDir, err, "the data directory cannot be made").
			WithHint("choose another with --data or data_dir")
	}
	return nil
}

// LookAtDatabase says what is there without changing anything.
func LookAtDatabase(c config.Config) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		found, there, err := inspectDatabase(ctx, c)
		if err == nil && !there {
			return filepath.Join(c.DataDir, DatabaseFile) + " (will be made)", nil
		}
		return described(found, err)
	}
}

// inspectDatabase looks at the database, if it is there.
func inspectDatabase(ctx context.Context, c config.Config) (found store.Inspection, there bool, err error) {
	if c.Database.Driver == "postgres" {
		found, err = postgres.Look(ctx, c.Database.URL.Reveal())
		return found, true, err
	}
	file := filepath.Join(c.DataDir, DatabaseFile)
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		return store.Inspection{}, false, nil
	}
	found, err = sqlite.Look(ctx, file)
	return found, true, err
}

func described(found store.Inspection, err error) (string, error) {
	if err != nil {
		return "", err
	}
	text := fmt.Sprintf("%s, schema %d", found.Engine, found.Schema)
	if found.Schema < found.Newest {
		text += fmt.Sprintf(" (will be brought to %d)", found.Newest)
	}
	return text, nil
}

// lockDataDir keeps a second server from using the same data directory, and registers
// this process there.
func lockDataDir(path string) (process *processes.Process, unlock func() error, err error) {
	return lockFor(path, serverLock, "another server")
}
