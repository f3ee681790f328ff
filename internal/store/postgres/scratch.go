package postgres

import (
	"context"
	"crypto/rand"
	"net/url"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/toryo-dev/toryo/internal/task"
)

// Scratch makes an empty database on the server that the URL leads to, for
// throw-away data, and returns its URL and how to drop it.
func Scratch(ctx context.Context, server string) (database string, drop func(context.Context) error, err error) {
	address, err := url.Parse(server)
	if err != nil || !strings.HasPrefix(address.Scheme, "postgres") {
		return "", nil, task.Errorf(task.Usage, "the value is not a URL of PostgreSQL").WithMend("write it like postgres://user:password@host:5432/postgres")
	}
	name := "toryo_scratch_" + strings.ToLower(rand.Text())
	administer := func(ctx context.Context, statement string) error {
		connection, err := pgx.Connect(ctx, server)
		if err != nil {
			return task.Wrap(task.DatabaseDown, err, "the database server cannot be reached")
		}
		defer func() { _ = connection.Close(ctx) }()
		if _, err := connection.Exec(ctx, statement); err != nil {
			return task.Wrap(task.DatabaseDown, err, "the database server does not let us make and drop databases")
		}
		return nil
	}
	if err := administer(ctx, "CREATE DATABASE "+name); err != nil {
		return "", nil, err
	}
	address.Path = "/" + name
	return address.String(), func(ctx context.Context) error {
		return administer(ctx, "DROP DATABASE "+name+" WITH (FORCE)")
	}, nil
}
