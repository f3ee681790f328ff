package program

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/board"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
)

// rowsRead is how many rows a server has read from its database, as it says itself.
func (p process) rowsRead(t testing.TB) float64 {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.url+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := new(http.Client).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	rows, found := testkit.ParseMetrics(t, string(text))["toryo_database_rows_total"]
	if !found {
		t.Fatalf("the metrics do not say how many rows were read:\n%s", text)
	}
	return rows
}

// awaitQuiet waits for a time, longer than between two looks of everything that looks
// every few seconds, in which a server reads fewer rows than there are tasks.
func (p process) awaitQuiet(t testing.TB, tasks float64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	again := time.NewTicker(8 * time.Second)
	defer again.Stop()
	for before := p.rowsRead(t); ; {
		select {
		case <-again.C:
		case <-ctx.Done():
			t.Fatalf("with %v tasks that only wait, the server reads on and on", tasks)
		}
		after := p.rowsRead(t)
		if after-before < tasks {
			return
		}
		before = after
	}
}

// awaitTasks waits until so many tasks are queued.
func awaitTasks(t testing.TB, in store.Store, want int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		queued, err := in.ListTasks(t.Context(), store.TaskFilter{States: []task.State{task.Queued}})
		if err != nil {
			t.Fatal(err)
		}
		if len(queued) == want {
			return
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			t.Fatalf("%d tasks are queued, want %d", len(queued), want)
		}
	}
}

// A server with tasks that nobody takes does not read them again and again. What another
// process does on the board it sees all the same.
func TestTasksThatWaitAreNotReadAgain(t *testing.T) {
	t.Parallel()
	const issues = 200
	p := newPlace(t, "sqlite")
	giveIssue(t, p)
	p.output(t, "board", "user", "add", "alice", "--access", "write")
	database, _ := p.database(t)
	opened, err := board.Open(board.Options{Store: database, Folder: filepath.Join(p.data, "board"), Bot: "toryo"})
	if err != nil {
		t.Fatal(err)
	}
	for n := range issues - 1 {
		if _, err := opened.As("alice").CreateIssue(t.Context(), "team/app", forge.NewIssue{Title: fmt.Sprint("Oil gate ", n), Assignees: []string{"toryo"}}); err != nil {
			t.Fatal(err)
		}
	}
	up := p.start(t, "up")
	awaitTasks(t, database, issues)
	up.awaitQuiet(t, issues)
	p.output(t, "board", "issue", "create", "--repo", "team/app", "--title", "Paint it", "--assign", "toryo", "--as", "alice")
	awaitTasks(t, database, issues+1)
	p.output(t, "board", "issue", "close", "team/app#1", "--as", "alice")
	awaitTasks(t, database, issues)
	up.awaitQuiet(t, issues)
	up.stop(t)
}
