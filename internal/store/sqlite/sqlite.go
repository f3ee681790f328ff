package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"
	_ "modernc.org/sqlite" // the driver

	"github.com/toryo-dev/toryo/internal/owner"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/store/relational"
	"github.com/toryo-dev/toryo/internal/task"
)

const (
	// busyTimeout is how long a statement waits for another process.
	busyTimeout = 5 * time.Second
	// lockTimeout is how long opening waits for another process that is making
	// the same database.
	lockTimeout = time.Minute
	// lockPoll is how often it is tried again.
	lockPoll = 10 * time.Millisecond
	readers  = 4
)

// Open opens the database in the file and makes or migrates it if need be. The
// directory of the file must exist. It fails with DataDir if the file or its
// directory cannot be used and with DatabaseNewer if a newer program made it;
// then nothing has been changed.
func Open(ctx context.Context, path string) (store.Store, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, unusable(path, err)
	}
	if err := probe(ctx, path); err != nil {
		return nil, err
	}
	dialect := dialect(path)
	writes, err := writer(path)
	if err != nil {
		return nil, unusable(path, err)
	}
	reads, err := connect(path, readers, "deferred", "query_only(1)")
	if err != nil {
		return nil, errors.Join(unusable(path, err), writes.Close())
	}
	opened := relational.New(dialect, writes, reads)
	if err := errors.Join(opened.Ping(ctx), checkWritable(ctx, path, writes), opened.NoteVersion(ctx)); err != nil {
		return nil, errors.Join(err, opened.Close())
	}
	return opened, nil
}

// checkWritable finds out now, not at the first write, whether the file can be
// written.
func checkWritable(ctx context.Context, path string, writes *sql.DB) error {
	tx, err := writes.BeginTx(ctx, nil)
	if err != nil {
		return explained(ctx, path, err)
	}
	return tx.Rollback()
}

// probe makes sure that the file holds a database of this program's schema. It
// looks before it writes anything.
func probe(ctx context.Context, path string) error {
	empty, err := isEmpty(path)
	if err != nil {
		return unusable(path, err)
	}
	if !empty {
		found, err := Look(ctx, path)
		if err != nil || found.Schema == found.Newest {
			return err
		}
	}
	return migrate(ctx, path)
}

func isEmpty(path string) (bool, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return true, nil
	case err != nil:
		return false, err
	case !info.Mode().IsRegular():
		return false, fmt.Errorf("%s is not a file", path)
	default:
		return info.Size() == 0, nil
	}
}

// Look says what is in the file without changing it. It fails as Open does.
func Look(ctx context.Context, path string) (found store.Inspection, err error) {
	path, err = filepath.Abs(path)
	if err != nil {
		return found, unusable(path, err)
	}
	// A connection that may only read would leave files of its own behind.
	db, err := open(path, 1, url.Values{"mode": {"rw"}, "_pragma": {busyPragma(), "query_only(1)"}})
	if err != nil {
		return found, unusable(path, err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	found, err = relational.Inspect(ctx, db, dialect(path), `SELECT 'SQLite ' || sqlite_version()`)
	if err != nil {
		return found, explained(ctx, path, err)
	}
	if found.Schema == 0 {
		return found, checkNotForeign(ctx, path, db)
	}
	return found, nil
}

// Copy writes a copy of the database in the file, as of one moment, to a file that is not there.
// Others may read and write the database meanwhile.
func Copy(ctx context.Context, path, to string) (err error) {
	path, err = filepath.Abs(path)
	if err != nil {
		return unusable(path, err)
	}
	if err := create(to); err != nil {
		return unusable(to, err)
	}
	db, err := open(path, 1, url.Values{"mode": {"rw"}, "_pragma": {busyPragma()}})
	if err != nil {
		return unusable(path, err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if _, err := db.ExecContext(ctx, `VACUUM INTO ?`, to); err != nil {
		return explained(ctx, path, err)
	}
	return syncFile(to)
}

// syncFile makes the file durable. Windows wants it to be open to write for that.
func syncFile(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return unusable(path, err)
	}
	if err := errors.Join(file.Sync(), file.Close()); err != nil {
		return unusable(path, err)
	}
	return nil
}

// checkNotForeign refuses a database that another program made.
func checkNotForeign(ctx context.Context, path string, db *sql.DB) error {
	var tables int
	if err := db.QueryRowContext(ctx, `SELECT COUNT(*) FROM sqlite_master WHERE name NOT LIKE 'toryo\_%' ESCAPE '\' AND name NOT LIKE 'sqlite\_%' ESCAPE '\'`).Scan(&tables); err != nil {
		return explained(ctx, path, err)
	}
	if tables > 0 {
		return task.Errorf(task.DataDir, "%s is the database of another program", path).
			WithHint("name another data directory")
	}
	return nil
}

// migrate makes the database or brings it to this program's schema, one process
// at a time.
func migrate(ctx context.Context, path string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, lockTimeout)
	defer cancel()
	if err := create(path + ".lock"); err != nil {
		return unusable(path, err)
	}
	lock := flock.New(path+".lock", flock.SetPermissions(0o600))
	defer func() { err = errors.Join(err, lock.Close()) }()
	if _, err := lock.TryLockContext(ctx, lockPoll); err != nil {
		return unusable(path, fmt.Errorf("lock it: %w", err))
	}
	if err := create(path); err != nil {
		return unusable(path, err)
	}
	db, err := writer(path)
	if err != nil {
		return unusable(path, err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := relational.Migrate(ctx, db, dialect(path)); err != nil {
		return explained(ctx, path, err)
	}
	return nil
}

// create makes a file readable for its owner only: the database holds hashes of tokens. What
// root makes for a server that runs as another user is that user's; SQLite gives the files that
// it makes beside the database to the same owner.
func create(path string) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	folder, err := os.Stat(filepath.Dir(path))
	if err == nil {
		owner.Give(file, folder)
	}
	return errors.Join(err, file.Close())
}

// writer makes the one connection that writes. It waits for its turn when it
// begins, and a commit has been synced when it returns. A log that has grown
// large is cut back to 64 MB.
func writer(path string) (*sql.DB, error) {
	return connect(path, 1, "immediate", "journal_mode(WAL)", "synchronous(FULL)", "journal_size_limit(67108864)")
}

// connect makes a pool of connections, each with the given settings.
func connect(path string, connections int, begin string, pragmas ...string) (*sql.DB, error) {
	settings := url.Values{"mode": {"rw"}, "_txlock": {begin}, "_pragma": {busyPragma(), "foreign_keys(1)"}}
	for _, pragma := range pragmas {
		settings.Add("_pragma", pragma)
	}
	return open(path, connections, settings)
}

func busyPragma() string { return fmt.Sprintf("busy_timeout(%d)", busyTimeout.Milliseconds()) }

// address is that of a file for SQLite. A path with a drive, such as C:/data, would be taken for
// the name of a host without a slash before it.
func address(path string, settings url.Values) string {
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	return (&url.URL{Scheme: "file", Path: path, RawQuery: settings.Encode()}).String()
}

func open(path string, connections int, settings url.Values) (*sql.DB, error) {
	settings.Set("_error_rc", "1") // messages that are about this error, not an earlier one
	db, err := sql.Open("sqlite", address(filepath.ToSlash(path), settings))
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	return db, nil
}
