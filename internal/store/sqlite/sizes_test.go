package sqlite

import (
	"database/sql"
	"path/filepath"
	"slices"
	"testing"

	"github.com/toryo-dev/toryo/internal/store"
)

// All tables of ours are listed, and no table that somebody else has made.
func TestSizesOfOurTables(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "toryo.db")
	s, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	var want int
	if err := db.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'`).Scan(&want); err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), `CREATE TABLE theirs (id INTEGER)`); err != nil {
		t.Fatal(err)
	}
	sizes, err := s.TableSizes(t.Context())
	if err != nil || len(sizes) != want || slices.ContainsFunc(sizes, func(one store.TableSize) bool { return one.Name == "theirs" }) {
		t.Errorf("of %d tables these are listed: %+v, %v", want, sizes, err)
	}
}
