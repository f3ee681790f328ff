package app

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/store/sqlite"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// Statistics are printed for people, as JSON and as CSV, from the database of this machine.
func TestStats(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	s, err := sqlite.Open(t.Context(), filepath.Join(data, site.DatabaseFile))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	for i, trigger := range []task.Trigger{task.Finished, task.GaveUp} {
		made, _, err := s.Assign(t.Context(), store.NewTask{
			Key: task.Key{Forge: task.Board, Repository: "team/app", Kind: task.Issue, Number: int64(i + 1)}, Type: task.Development, Reason: task.ReasonAssigned,
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Claim(t.Context(), []store.Claim{{Task: made.ID, Generation: made.Generation, Agent: "mill", TokenHash: []byte{1}, ExpiresAt: time.Now().Add(time.Hour)}}, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Move(t.Context(), store.Change{Task: made.ID, Trigger: trigger, Reason: task.ReasonCompleted}); err != nil {
			t.Fatal(err)
		}
	}
	toryo := func(args ...string) (code int, said string) {
		var stdout, stderr bytes.Buffer
		p := site.Program{Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr, Now: time.Now}
		code = run(t.Context(), p, append([]string{"stats", "--data", data}, args...))
		return code, stdout.String() + stderr.String()
	}
	if code, said := toryo(); code != 0 || !strings.Contains(said, "2: 1 done, 1 failed") || !strings.Contains(said, "50% (1 of 2 issues)") {
		t.Errorf("exit %d: %s", code, said)
	}
	if code, said := toryo("--repository", "board:team/other"); code != 0 || !strings.Contains(said, "0: 0 done") {
		t.Errorf("exit %d: %s", code, said)
	}
	code, said := toryo("--json", "--days", "7")
	var found wire.Statistics
	if err := json.Unmarshal([]byte(said), &found); code != 0 || err != nil || found.Total.Runs.Done != 1 || len(found.Days) != 7 {
		t.Errorf("exit %d, %v: %s", code, err, said)
	}
	if code, said := toryo("--csv", "runs", "--days", "7"); code != 0 || !strings.HasPrefix(said, "day,done,failed,stopped,paused,returned\n") || strings.Count(said, "\n") != 8 {
		t.Errorf("exit %d: %s", code, said)
	}
	if code, said := toryo("--repository", strings.Repeat("x", 3000)); code != 2 || !strings.Contains(said, "name of the repository has 3000 bytes") {
		t.Errorf("exit %d: %s", code, said)
	}
	for _, args := range [][]string{{"--days", "8"}, {"--csv", "nothing"}, {"--csv", "runs", "--json"}} {
		if code, said := toryo(args...); code == 0 {
			t.Errorf("%v: exit %d: %s", args, code, said)
		}
	}
}
