package app

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/agent/contexts"
	"github.com/toryo-dev/toryo/internal/journal/journaltest"
	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
)

// written makes a run with the journal, which is over, in a data directory.
func written(t *testing.T, data string, events []task.Event) (id string) {
	t.Helper()
	c, err := contexts.Open(filepath.Join(data, "contexts"), contexts.Options{Now: func() time.Time { return journaltest.Began }})
	if err != nil {
		t.Fatal(err)
	}
	j, err := c.Begin(t.Context(), phase.Work{Task: "task1", Generation: 1, Type: task.Development, Title: "Fix it"}, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := j.End(task.Done, ""); err != nil {
		t.Fatal(err)
	}
	rewrite(t, data, j.ID(), events)
	return j.ID()
}

// rewrite puts another journal in the place of that of a run that is over.
func rewrite(t *testing.T, data, id string, events []task.Event) {
	t.Helper()
	var lines bytes.Buffer
	encoder := json.NewEncoder(&lines)
	for _, event := range events {
		line := contexts.Line{Sequence: event.Sequence, Generation: event.Generation, Kind: event.Kind, At: event.At, Data: event.Data}
		if len(event.Data) == 0 {
			line.Data = nil
		}
		if err := encoder.Encode(line); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(data, "contexts", "completed", id, "journal.jsonl"), lines.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

var runOfX = regexp.MustCompile(`x{60,}`)

// The terminal shows every kind of entry as it did before.
func TestReplayOfEveryKind(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	id := written(t, data, journaltest.Readable())
	output, code := replayed(t, "", id, "--data", data)
	if code != 0 {
		t.Fatalf("exit %d: %s", code, output)
	}
	output = runOfX.ReplaceAllString(output, "x..x")
	testkit.Golden(t, "testdata/replay.txt", output)
	if strings.ContainsAny(output, "\x1b\x07\x00\x7f\r") {
		t.Error("what is shown commands the terminal")
	}
}

// An entry that cannot be read is shown as that, and the rest of the journal too: an agent of
// another version may have written it.
func TestReplayOfOddEntries(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	id := written(t, data, nil)
	for _, event := range journaltest.Unreadable() {
		event.Sequence = 1
		rewrite(t, data, id, []task.Event{event, {Sequence: 2, Kind: task.NoteTaken, At: event.At, Data: []byte(`{"text":"It goes on."}`)}})
		output, code := replayed(t, "", id, "--data", data)
		said := "cannot be read: " + string(event.Data)
		if len(event.Data) == 0 { // the file has null in its place
			said = ""
		}
		if code != 0 || !strings.Contains(output, said) || !strings.Contains(output, "It goes on.") {
			t.Errorf("%s %q: exit %d: %s", event.Kind, event.Data, code, output)
		}
	}
}
