package contexts

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/task"
)

// counter counts the entries that are passed on.
type counter int

func (c *counter) Append(context.Context, task.EventKind, phase.Entry) error {
	*c++
	return nil
}

// TestABrokenJournalPassesNothingOn: entries that cannot be synced never reach the server, and
// the end of the journal says so.
func TestABrokenJournalPassesNothingOn(t *testing.T) {
	t.Parallel()
	c, err := Open(t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	passed := counter(0)
	j, err := c.Begin(t.Context(), phase.Work{Task: "task1", Generation: 1}, 0, &passed)
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Append(t.Context(), task.ModelUsed, phase.Entry{Text: "first", Followed: true}); err != nil {
		t.Fatal(err)
	}
	if err := j.file.Close(); err != nil {
		t.Fatal(err)
	}
	reader, pipe, err := os.Pipe() // which cannot be synced
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reader.Close() }()
	j.file = pipe
	for range 3 {
		if left := j.Pass(t.Context()); left != 1 || passed != 0 {
			t.Errorf("%d entries wait and the server has %d", left, passed)
		}
	}
	if err := j.Append(t.Context(), task.NoteTaken, phase.Entry{Text: "second"}); err == nil {
		t.Error("an entry was written to a broken journal")
	}
	if err := j.Leave(); err == nil || !strings.Contains(err.Error(), "cannot write to the journal") {
		t.Errorf("the journal was left with %v", err)
	}
	if passed != 0 {
		t.Errorf("the server has %d entries", passed)
	}
}
