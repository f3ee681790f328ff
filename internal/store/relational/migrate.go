package relational

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"

	"github.com/toryo-dev/toryo/internal/lazyregexp"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

//go:embed migrations/*.sql
var migrations embed.FS

// versionTable records which migrations were run.
const versionTable = "toryo_schema"

// SchemaVersion returns the version of the schema that the database has, 0 for an
// empty one. It changes nothing.
func SchemaVersion(ctx context.Context, db *sql.DB, dialect Dialect) (int64, error) {
	q := session{run: db, dialect: &dialect, counts: new(counts)}
	tables, _, err := first(ctx, q, scanNumber, dialect.CountTables, versionTable)
	if err != nil || tables == 0 {
		return 0, err
	}
	version, _, err := first(ctx, q, scanNumber, `SELECT COALESCE(MAX(version_id), 0) FROM `+versionTable)
	return version, err
}

// CheckVersion reports whether a schema version is that of this program, and
// refuses one that is newer.
func CheckVersion(version int64) (current bool, err error) {
	known, err := LatestVersion()
	if err != nil {
		return false, err
	}
	if version > known {
		return false, task.Errorf(task.DatabaseNewer, "the database has schema version %d, and this program knows versions up to %d", version, known).
			WithHint("run a toryo at least as new as the one that last used the database, or restore a backup from before")
	}
	return version == known, nil
}

// Inspect says what a database holds, and refuses one of a newer program. It
// changes nothing. The query returns the name and version of the engine.
func Inspect(ctx context.Context, db *sql.DB, dialect Dialect, engine string) (found store.Inspection, err error) {
	if found.Newest, err = LatestVersion(); err != nil {
		return found, err
	}
	if err := db.QueryRowContext(ctx, engine).Scan(&found.Engine); err != nil {
		return found, err
	}
	if found.Schema, err = SchemaVersion(ctx, db, dialect); err != nil {
		return found, err
	}
	_, err = CheckVersion(found.Schema)
	return found, err
}

// LatestVersion is the version of the schema that this program brings.
func LatestVersion() (int64, error) {
	files, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return 0, err
	}
	last := int64(0)
	for _, file := range files {
		version, err := goose.NumericComponent(file)
		if err != nil {
			return 0, fmt.Errorf("migration %s: %w", file, err)
		}
		last = max(last, version)
	}
	return last, nil
}

// madeTable is how migrations give tables their names.
var madeTable = lazyregexp.New(`(?i)\b(?:CREATE TABLE|RENAME TO)\s+(\w+)`)

// ownTables are the names that tables of ours have, or had. Others may have tables in the same schema.
func ownTables() (map[string]bool, error) {
	files, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	own := map[string]bool{versionTable: true}
	for _, file := range files {
		text, err := migrations.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for _, found := range madeTable.FindAllSubmatch(text, -1) {
			own[string(found[1])] = true
		}
	}
	return own, nil
}

// Migrate brings the database to the schema of this program. The caller keeps
// other processes from doing so at the same time. A database that another
// process has brought there, or beyond, in the meantime is left alone.
func Migrate(ctx context.Context, db *sql.DB, dialect Dialect) error {
	version, err := SchemaVersion(ctx, db, dialect)
	if err != nil {
		return err
	}
	if current, err := CheckVersion(version); current || err != nil {
		return err
	}
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	provider, err := goose.NewProvider(dialect.Migrations, db, files,
		goose.WithTableName(versionTable), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return err
	}
	_, err = provider.Up(ctx)
	return err
}
