package postgres

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/toryo-dev/toryo/internal/task"
)

// Scratch makes an empty database on the server that the URL leads to, for
// throw-away data, and returns its URL and how to drop it.
func Scratch(ctx context.Context, server string) (database string, drop func(context.Context) error, err error) {
	address, err := url.Parse(server)
	if err != nil || !strings.HasPrefix(address.Scheme, "postgres") {
		return "", nil, task.Errorf(task.Usage, "the value is not a URL of PostgreSQL").WithHint("write it like postgres://user:password@host:5432/postgres")
	}
	name := "toryo_scratch_" + strings.ToLower(rand.Text())
	if err := administer(ctx, server, "CREATE DATABASE "+name); err != nil {
		return "", nil, err
	}
	address.Path = "/" + name
	return address.String(), func(ctx context.Context) error {
		return administer(ctx, server, "DROP DATABASE "+name+" WITH (FORCE)")
	}, nil
}

func administer(ctx context.Context, server, statement string) error {
	connection, err := pgx.Connect(ctx, server)
	if err != nil {
		return task.Wrap(task.DatabaseDown, err, "the database server cannot be reached")
	}
	defer func() { _ = connection.Close(context.WithoutCancel(ctx)) }()
	if _, err := connection.Exec(ctx, statement); err != nil {
		return task.Wrap(task.DatabaseDown, err, "the database server does not let us do this")
	}
	return nil
}

// SetClock makes the clock of a scratch database differ from that of its machine,
// for all connections that are made afterwards: a function of its own is found
// before the one of the engine. Set again, it changes for all of them at once.
func SetClock(ctx context.Context, database string, ahead time.Duration) error {
	return administer(ctx, database, fmt.Sprintf(`
		CREATE OR REPLACE FUNCTION public.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE
			AS 'SELECT pg_catalog.clock_timestamp() + make_interval(secs => %f)';
		DO $$ BEGIN EXECUTE format('ALTER DATABASE %%I SET search_path = public, pg_catalog', current_database()); END $$`, ahead.Seconds()))
}

// Size is how many bytes a database takes.
func Size(ctx context.Context, database string) (size int64, err error) {
	connection, err := pgx.Connect(ctx, database)
	if err != nil {
		return 0, task.Wrap(task.DatabaseDown, err, "the database server cannot be reached")
	}
	defer func() { _ = connection.Close(context.WithoutCancel(ctx)) }()
	err = connection.QueryRow(ctx, `SELECT pg_database_size(current_database())`).Scan(&size)
	return size, err
}

// CutConnections ends every connection to a scratch database, as a restart of the
// server does.
func CutConnections(ctx context.Context, database string) error {
	return administer(ctx, database, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE datname = current_database() AND pid <> pg_backend_pid()`)
}
