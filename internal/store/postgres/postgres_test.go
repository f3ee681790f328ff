package postgres

import (
	"fmt"
	"net/url"
	"os"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/store/storetest"
	"github.com/toryo-dev/toryo/internal/testkit"
)

func TestStore(t *testing.T) {
	t.Parallel()
	database := testkit.Postgres(t)
	storetest.Run(t, func(t *testing.T) func() store.Store {
		t.Helper()
		address := newSchema(t, database)
		return func() store.Store { return opened(t, address) }
	})
}

func TestNoticesReachOtherProcesses(t *testing.T) {
	t.Parallel()
	storetest.Elsewhere(t, func(t *testing.T) func() store.Store {
		t.Helper()
		address := testkit.Postgres(t)
		return func() store.Store { return opened(t, address) }
	})
}

var schemas atomic.Int64

// newSchema makes an empty schema, which is much quicker than a database, and
// returns the URL that leads into it.
func newSchema(t testing.TB, database string) string {
	t.Helper()
	name := fmt.Sprint("s", schemas.Add(1))
	execute(t, database, "CREATE SCHEMA "+name)
	return with(t, database, "search_path", name)
}

// with adds a setting to a database URL.
func with(t testing.TB, address, key, value string) string {
	t.Helper()
	parsed, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	settings := parsed.Query()
	settings.Set(key, value)
	parsed.RawQuery = settings.Encode()
	return parsed.String()
}

// execute runs a statement on a connection of its own.
func execute(t testing.TB, address, statement string) {
	t.Helper()
	connection, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close(t.Context()) }()
	if _, err := connection.Exec(t.Context(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func opened(t testing.TB, address string) store.Store {
	t.Helper()
	s, err := Open(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestMain(m *testing.M) { os.Exit(storetest.Main(m, Open)) }

func TestHandOut(t *testing.T) {
	t.Parallel()
	storetest.HandOut{
		Address: testkit.Postgres(t), Open: Open,
		Tasks: 3_000, Workers: 8, Kills: 6, Batch: 20,
	}.Prove(t)
}

func BenchmarkClaim(b *testing.B) {
	s := opened(b, testkit.Postgres(b))
	defer func() { _ = s.Close() }()
	storetest.BenchmarkClaim(b, s, 16)
}

func TestStatistics(t *testing.T) {
	t.Parallel()
	database := testkit.Postgres(t)
	t.Run("days", func(t *testing.T) {
		t.Parallel()
		address := newSchema(t, database)
		storetest.StatisticsDays(t, func() store.Store { return opened(t, address) }, func(statements string) { execute(t, address, statements) }, "../relational/migrations")
	})
	t.Run("older", func(t *testing.T) {
		t.Parallel()
		address := newSchema(t, database)
		storetest.StatisticsOfOlder(t, func() store.Store { return opened(t, address) }, func(statements string) { execute(t, address, statements) }, "../relational/migrations")
	})
}

func BenchmarkStatistics(b *testing.B) {
	address := newSchema(b, testkit.Postgres(b))
	s := opened(b, address)
	defer func() { _ = s.Close() }()
	execute(b, address, `ALTER TABLE runs DROP CONSTRAINT runs_task_fkey; ALTER TABLE opened_pulls DROP CONSTRAINT opened_pulls_task_fkey`)
	storetest.BenchmarkStatistics(b, s, func(statements string) { execute(b, address, statements) }, "../relational/migrations")
}
