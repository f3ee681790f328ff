package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/store/relational"
	"github.com/toryo-dev/toryo/internal/task"
)

const (
	// connectTimeout is how long one attempt to connect may take, unless the URL
	// says otherwise; reachTimeout bounds finding out whether the database is
	// there at all.
	connectTimeout = 5 * time.Second
	reachTimeout   = 10 * time.Second
	// migrateTimeout bounds the wait for other servers that are migrating, and
	// the migration itself.
	migrateTimeout = 5 * time.Minute

	connections = 16
	idleTime    = 5 * time.Minute
	lifetime    = time.Hour
)

// migrationLock is the advisory lock that a server holds while it migrates.
const migrationLock = 0x746f72796f // "toryo"

// handOutLock is the advisory lock of whoever is handing out tasks.
const handOutLock = "500085979504" // the one above and 1

// Open connects to the database and makes or migrates its tables if need be. It
// fails with BadConfig for a URL that is none, with DatabaseDown if the database
// cannot be reached and with DatabaseNewer if a newer program made the tables;
// then nothing has been changed. No error has the password of the URL in it.
func Open(ctx context.Context, url string) (store.Store, error) {
	db, dialect, err := connect(url)
	if err != nil {
		return nil, err
	}
	if err := prepare(ctx, db, dialect); err != nil {
		return nil, errors.Join(explained(ctx, dialect, err), db.Close())
	}
	return listening(relational.New(dialect, db, db), url), nil
}

// Look says what is in the database without changing it. It fails as Open does.
func Look(ctx context.Context, url string) (found store.Inspection, err error) {
	db, dialect, err := connect(url)
	if err != nil {
		return found, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if found, err = look(ctx, db, dialect); err != nil {
		return found, explained(ctx, dialect, err)
	}
	return found, nil
}

// Arguments are those by which the programs of PostgreSQL find the database of a URL. There is no
// password in them.
func Arguments(url string) ([]string, error) {
	config, err := parse(url)
	if err != nil {
		return nil, err
	}
	return []string{
		"--host=" + config.Host, "--port=" + strconv.Itoa(int(config.Port)), "--username=" + config.User, "--dbname=" + config.Database,
	}, nil
}

// connect makes a pool of connections, none of which is made yet.
func connect(url string) (*sql.DB, relational.Dialect, error) {
	config, err := parse(url)
	if err != nil {
		return nil, relational.Dialect{}, err
	}
	db := stdlib.OpenDB(*config)
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	db.SetConnMaxIdleTime(idleTime)
	db.SetConnMaxLifetime(lifetime)
	return db, dialect(config), nil
}

func parse(url string) (*pgx.ConnConfig, error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		// The parser's own message may quote the password.
		return nil, task.Errorf(task.BadConfig, "the database URL cannot be read").
			WithHint("give it as postgres://user:password@host:5432/name, with special characters in the password escaped as in every URL")
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = connectTimeout
	}
	dialer := &net.Dialer{
		Timeout:         config.ConnectTimeout,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 3},
	}
	config.DialFunc = dialer.DialContext
	// A write is durable when the call returns, whatever the server's default.
	config.RuntimeParams["synchronous_commit"] = "on"
	// What a server that vanished has locked must not stay locked.
	config.RuntimeParams["idle_in_transaction_session_timeout"] = "30s"
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "toryo"
	}
	return config, nil
}

// prepare makes sure that the database can be used and has this program's tables.
func prepare(ctx context.Context, db *sql.DB, dialect relational.Dialect) error {
	found, err := look(ctx, db, dialect)
	if err != nil || found.Schema == found.Newest {
		return err
	}
	return migrate(ctx, db, dialect)
}

func look(ctx context.Context, db *sql.DB, dialect relational.Dialect) (store.Inspection, error) {
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	var encoding string
	if err := db.QueryRowContext(ctx, `SHOW server_encoding`).Scan(&encoding); err != nil {
		return store.Inspection{}, err
	}
	if encoding != "UTF8" {
		return store.Inspection{}, task.Errorf(task.BadConfig, "the database has the encoding %s and cannot keep every text", encoding).
			WithHint("make a database with: CREATE DATABASE toryo ENCODING 'UTF8' TEMPLATE template0")
	}
	return relational.Inspect(ctx, db, dialect, `SELECT 'PostgreSQL ' || current_setting('server_version')`)
}

// migrate brings the tables to this program's schema, one server at a time.
func migrate(ctx context.Context, db *sql.DB, dialect relational.Dialect) (err error) {
	ctx, cancel := context.WithTimeout(ctx, migrateTimeout)
	defer cancel()
	holder, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, holder.Close()) }()
	if _, err := holder.ExecContext(ctx, `SELECT pg_advisory_lock($1)`, int64(migrationLock)); err != nil {
		return fmt.Errorf("wait for other servers that migrate: %w", err)
	}
	defer func() {
		// A context that has ended must not keep the lock.
		_, failed := holder.ExecContext(context.WithoutCancel(ctx), `SELECT pg_advisory_unlock($1)`, int64(migrationLock))
		err = errors.Join(err, failed)
	}()
	return relational.Migrate(ctx, db, dialect)
}
