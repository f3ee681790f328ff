package site

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/board"
	"github.com/toryo-dev/toryo/internal/items"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/store/sqlite"
	"github.com/toryo-dev/toryo/internal/task"
)

// listed is a database that counts how often items of the board are listed, and can fail to.
type listed struct {
	store.Store
	times int
	err   error
}

func (l *listed) ListBoardItems(ctx context.Context, filter store.BoardFilter) ([]store.BoardItem, error) {
	if l.times++; l.err != nil {
		return nil, l.err
	}
	return l.Store.ListBoardItems(ctx, filter)
}

// A repository that cannot be read is logged once, and neither keeps the others from being looked at nor has
// all pull requests listed again. They are listed again after that has failed.
func TestBoardWatchWithAnUnreadableRepository(t *testing.T) {
	t.Parallel()
	opened, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), DatabaseFile))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = opened.Close() })
	database := &listed{Store: opened}
	on, err := board.Open(board.Options{Store: database, Folder: t.TempDir(), Bot: "toryo"})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"team/good", "team/bad"} {
		if _, err := opened.AddBoardRepository(t.Context(), store.BoardRepository{Name: name, DefaultBranch: "main"}); err != nil {
			t.Fatal(err)
		}
		if _, err := opened.AddBoardItem(t.Context(), store.BoardItem{Repository: name, Kind: task.Pull, Title: "One", Author: "alice", Head: "work", Base: "main"}); err != nil {
			t.Fatal(err)
		}
		if said, err := exec.CommandContext(t.Context(), "git", "init", "--quiet", "--bare", on.Path(name)).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, said)
		}
	}
	bad := on.Path("team/bad")
	away := filepath.Join(t.TempDir(), "bad.git")
	if err := errors.Join(os.Rename(bad, away), os.WriteFile(bad, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	feed := items.NewFeed(items.NewSnapshots(map[task.Forge]forge.Reader{}, items.DefaultAges, nil))
	pushed := map[string]int{}
	t.Cleanup(feed.Subscribe(func(change items.Change) { pushed[change.Repository.Name]++ }))
	watch := &boardWatch{watch: on.Watch(), changes: feed, log: slog.New(slog.NewTextHandler(&log, nil))}
	watch.pulls.Store(true)
	look := func() {
		t.Helper()
		if err := watch.look(t.Context()); err != nil {
			t.Error(err)
		}
	}
	complaints := func() int { return strings.Count(log.String(), "repository=team/bad") }

	database.err = errors.New("the database is down")
	if err := watch.look(t.Context()); !errors.Is(err, database.err) {
		t.Errorf("the database is down: %v", err)
	}
	database.err, database.times = nil, 0
	for range 3 {
		look()
	}
	if database.times != 1 || complaints() != 1 || pushed["team/good"] == 0 || pushed["team/bad"] > 0 {
		t.Errorf("listed %d times, pushed %v, and the log has %s", database.times, pushed, &log)
	}
	// It can be read, and then it cannot again.
	if err := errors.Join(os.Remove(bad), os.Rename(away, bad)); err != nil {
		t.Fatal(err)
	}
	look()
	if pushed["team/bad"] == 0 {
		t.Errorf("pushed %v", pushed)
	}
	if err := errors.Join(os.Rename(bad, away), os.WriteFile(bad, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	look()
	if complaints() != 2 {
		t.Errorf("the log has %s", &log)
	}
}
