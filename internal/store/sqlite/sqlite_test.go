package sqlite

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/store/storetest"
	"github.com/toryo-dev/toryo/internal/testkit"
)

func TestStore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) func() store.Store {
		t.Helper()
		path := testkit.SQLite(t, Open)
		return func() store.Store {
			s, err := Open(t.Context(), path)
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
	})
}

func TestMain(m *testing.M) { os.Exit(storetest.Main(m, Open)) }

func TestHandOut(t *testing.T) {
	t.Parallel()
	storetest.HandOut{
		Address: filepath.Join(t.TempDir(), "toryo.db"), Open: Open,
		Tasks: 500, Workers: 4, Kills: 3, Batch: 5,
	}.Prove(t)
}

func BenchmarkClaim(b *testing.B) {
	s, err := Open(b.Context(), filepath.Join(b.TempDir(), "toryo.db"))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	storetest.BenchmarkClaim(b, s, 4)
}

func TestStatistics(t *testing.T) {
	t.Parallel()
	t.Run("days", func(t *testing.T) {
		t.Parallel()
		path := testkit.SQLite(t, Open)
		storetest.StatisticsDays(t, func() store.Store { return opened(t, path) }, func(statements string) { raw(t, path, statements) }, "../relational/migrations")
	})
	t.Run("older", func(t *testing.T) {
		t.Parallel()
		path := testkit.SQLite(t, Open)
		storetest.StatisticsOfOlder(t, func() store.Store { return opened(t, path) }, func(statements string) { raw(t, path, statements) }, "../relational/migrations")
	})
}

func BenchmarkStatistics(b *testing.B) {
	path := newPath(b)
	s := opened(b, path)
	defer closed(b, s)
	storetest.BenchmarkStatistics(b, s, func(statements string) { raw(b, path, statements) }, "../relational/migrations")
}
