package testkit

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// postgresURL names a PostgreSQL server on which databases may be made and
// dropped, for example postgres://postgres@127.0.0.1:5555/postgres. make test
// starts one.
const postgresURL = "TORYO_TEST_POSTGRES"

var databases atomic.Int64

// Postgres makes an empty database on a real PostgreSQL server and returns its
// URL. The database goes when the test ends.
func Postgres(t testing.TB) string {
	t.Helper()
	server := os.Getenv(postgresURL)
	if server == "" {
		LeaveOut(t, "a PostgreSQL server ("+postgresURL+")")
	}
	name := fmt.Sprintf("toryo_test_%d_%d_%d", os.Getpid(), time.Now().UnixNano(), databases.Add(1))
	administer(t, server, "CREATE DATABASE "+name)
	t.Cleanup(func() { administer(t, server, "DROP DATABASE "+name+" WITH (FORCE)") })

	address, err := url.Parse(server)
	if err != nil {
		t.Fatalf("%s is not a URL: %v", postgresURL, err)
	}
	address.Path = "/" + name
	return address.String()
}

func administer(t testing.TB, server, statement string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	connection, err := pgx.Connect(ctx, server)
	if err != nil {
		t.Fatalf("connect to the PostgreSQL server for tests: %v", err)
	}
	defer func() { _ = connection.Close(ctx) }()
	if _, err := connection.Exec(ctx, statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}
