package site

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/store/sqlite"
	"github.com/toryo-dev/toryo/internal/task"
)

// oldRun is a run of which the files were kept for long enough.
const oldRun = "0f0e5d4e-9d3c-4a1c-92a2-f1d76f1b3a52"

// oldData is a data directory with a database, a mirror in which an earlier process has left something, and
// the files of an old run.
func oldData(t *testing.T) (config.Config, store.Store) {
	t.Helper()
	c := config.Config{DataDir: t.TempDir(), ContextsDir: "contexts"}
	c.Retention.Contexts, c.Retention.Git, c.Retention.Audit, c.Retention.Mirrors = 30, 30, 30, 30
	database, err := sqlite.Open(t.Context(), filepath.Join(c.DataDir, DatabaseFile))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = database.Close() })
	mirror := filepath.Join(c.DataDir, mirrorFolder, "gitea", "team%2Fapp.git")
	run := filepath.Join(c.ContextsPath(), "completed", oldRun)
	for _, dir := range []string{mirror, run, filepath.Join(c.DataDir, mirrorFolder, "gitea", "removing-1")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if output, err := exec.CommandContext(t.Context(), "git", "init", "--quiet", "--bare", mirror).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v", output, err)
	}
	for name, text := range map[string]string{filepath.Join(mirror, "packed-refs.lock"): "", filepath.Join(run, "metadata.json"): `{"ended_at": "2020-01-02T03:04:05Z"}`} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	used, long := filepath.Join(mirror, "toryo-used"), time.Now().AddDate(0, 0, -100)
	if err := errors.Join(os.WriteFile(used, nil, 0o600), os.Chtimes(used, long, long)); err != nil {
		t.Fatal(err)
	}
	return c, database
}

// below lists all that is below a folder, but for the files of the database.
func below(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(name string, _ fs.DirEntry, err error) error {
		if !strings.HasPrefix(filepath.Base(name), DatabaseFile) {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// A dry run says what would go, and makes and removes nothing.
func TestDryRunChangesNothing(t *testing.T) {
	t.Parallel()
	c, database := oldData(t)
	before := below(t, c.DataDir)
	all, err := Pruning{Config: c, Store: database, DryRun: true, Log: slog.New(slog.DiscardHandler)}.Run(t.Context())
	if err != nil || !slices.Contains(all, Removal{What: "context files of ended runs", Count: 1}) || !slices.Contains(all, Removal{What: "mirrors that nobody uses", Count: 1}) {
		t.Errorf("it says %+v, %v", all, err)
	}
	if after := below(t, c.DataDir); !slices.Equal(after, before) {
		t.Errorf("there was\n%s\nand now there is\n%s", strings.Join(before, "\n"), strings.Join(after, "\n"))
	}
}

// Folders that another process uses are left to it. A lock that cannot be had for another reason is an error.
func TestPruningAndLocks(t *testing.T) {
	t.Parallel()
	c, database := oldData(t)
	prune := func() (string, error) {
		all, err := Pruning{Config: c, Store: database, Log: slog.New(slog.DiscardHandler)}.Run(t.Context())
		return fmt.Sprint(all), err
	}
	_, unlock, err := lockDataDir(c.DataDir)
	if err != nil {
		t.Fatal(err)
	}
	if said, err := prune(); err != nil || !strings.Contains(said, "left to the server that uses them") {
		t.Errorf("while a server runs it says %s, %v", said, err)
	}
	lock := filepath.Join(c.DataDir, serverLock)
	if err := errors.Join(unlock(), os.RemoveAll(lock), os.Mkdir(lock, 0o700)); err != nil {
		t.Fatal(err)
	}
	if said, err := prune(); task.CodeOf(err) != task.DataDir || strings.Contains(said, "left to the server") {
		t.Errorf("with a lock that is none it says %s, %v", said, err)
	}
}

// noPruning is a database from which nothing can be removed.
type noPruning struct{ store.Store }

var errNoPruning = errors.New("the table is locked")

func (noPruning) Prune(context.Context, store.Kept, time.Time, int) (int, bool, error) {
	return 0, false, errNoPruning
}

// What cannot be removed from the database does not keep the rest, and what went is said.
func TestPruningGoesOnAfterAFailure(t *testing.T) {
	t.Parallel()
	c, database := oldData(t)
	all, err := Pruning{Config: c, Store: noPruning{database}, Log: slog.New(slog.DiscardHandler)}.Run(t.Context())
	if !errors.Is(err, errNoPruning) || !slices.Contains(all, Removal{What: "context files of ended runs", Count: 1}) {
		t.Errorf("it says %+v, %v", all, err)
	}
	if _, err := os.Stat(filepath.Join(c.ContextsPath(), "completed", oldRun)); err == nil {
		t.Error("the files of an old run are still there")
	}
}
