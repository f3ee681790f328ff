package contexts_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toryo-dev/toryo/internal/agent/contexts"
	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/task"
)

// The process that is killed is this test program, told so by the environment.
const (
	victimDir        = "TORYO_TEST_VICTIM_DIR"
	victimGeneration = "TORYO_TEST_VICTIM_GENERATION"
	victimPast       = "TORYO_TEST_VICTIM_PAST"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(victimDir); dir != "" {
		if err := beVictim(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// told is what the victim says: an entry that it passes on, as an agent does to
// the server, or the generation that it is in.
type told struct {
	Generation int64
	Event      *task.Event
	Done       int // entries whose Append has returned
}

// victim writes numbered entries, pauses and goes on, until it is killed.
type victim struct {
	contexts   *contexts.Contexts
	out        *json.Encoder
	generation int64
	events     []task.Event
}

// Append passes an entry on.
func (v *victim) Append(_ context.Context, kind task.EventKind, entry phase.Entry) error {
	data, err := json.Marshal(entry)
	if err != nil {
		return err
	}
	event := task.Event{Task: "task1", Generation: v.generation, Source: task.FromAgent, Kind: kind, Data: data}
	v.events = append(v.events, event)
	return v.out.Encode(told{Event: &event})
}

func (v *victim) begin() (*contexts.Journal, error) {
	j, err := v.contexts.Begin(context.Background(), work(v.generation, v.events), v.generation-1, v)
	if err != nil {
		return nil, err
	}
	return j, v.out.Encode(told{Generation: v.generation})
}

func beVictim(dir string) error {
	v := &victim{out: json.NewEncoder(os.Stdout)}
	var err error
	if v.generation, err = strconv.ParseInt(os.Getenv(victimGeneration), 10, 64); err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(os.Getenv(victimPast)), &v.events); err != nil {
		return err
	}
	if v.contexts, err = contexts.Open(dir, contexts.Options{}); err != nil {
		return err
	}
	j, err := v.begin()
	if err != nil {
		return err
	}
	for n := len(j.Past()) + 1; ; n++ {
		kind, entry := task.NoteTaken, phase.Entry{Step: int64(n), Text: "note"}
		if n%3 == 0 {
			kind, entry = task.PhaseChanged, phase.Entry{Step: int64(n), Phase: task.Execution, Status: phase.PhaseActive}
		}
		if err := j.Append(context.Background(), kind, entry); err != nil {
			return err
		}
		if err := v.out.Encode(told{Done: n}); err != nil {
			return err
		}
		if n%4 != 0 {
			continue
		}
		if err := j.Pause(task.ReasonPauseRequested); err != nil {
			return err
		}
		v.generation++
		if j, err = v.begin(); err != nil {
			return err
		}
	}
}

// A process is killed again and again while it writes and moves. Each time what
// it had done is there, once and in order, in one place, and the server gets what
// it had not heard of.
func TestKilledAtAnyMoment(t *testing.T) {
	t.Parallel()
	const kills = 25
	dir := t.TempDir()
	var events []task.Event
	generation, done := int64(1), 0
	for range kills {
		events, generation, done = killOne(t, dir, events, generation, done)
		check(t, dir, events, done)
		generation++
	}
	// The last one hands over what the server has not heard of.
	s := &server{events: events}
	j, err := open(t, dir, contexts.Options{}).Begin(t.Context(), work(generation, events), generation-1, s.as(generation))
	if err != nil {
		t.Fatal(err)
	}
	for i, event := range s.events {
		var entry phase.Entry
		if err := json.Unmarshal(event.Data, &entry); err != nil || entry.Step != int64(i)+1 {
			t.Fatalf("entry %d of the server is number %d (%v)", i+1, entry.Step, err)
		}
	}
	if len(s.events) != len(j.Past()) || len(s.events) < done {
		t.Errorf("the server has %d entries, the run %d; %d were written", len(s.events), len(j.Past()), done)
	}
	if err := j.End(task.Stopped, task.ReasonUnassigned); err != nil {
		t.Fatal(err)
	}
	t.Logf("killed %d times; %d entries, %d generations, none lost, none twice", kills, len(s.events), generation)
}

// killOne lets a process work for a while and kills it. It returns what the server
// has heard, the last generation and the last entry that was written for sure.
func killOne(t *testing.T, dir string, events []task.Event, generation int64, done int) ([]task.Event, int64, int) {
	t.Helper()
	past, err := json.Marshal(events)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), victimDir+"="+dir, victimGeneration+"="+strconv.FormatInt(generation, 10), victimPast+"="+string(past))
	cmd.Stderr = os.Stderr
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// It always gets as far as one entry; after that it is a matter of chance.
	heard, after := 0, 3+rand.IntN(25)
	decoder := json.NewDecoder(bufio.NewReader(output))
	for {
		var said told
		if err := decoder.Decode(&said); err != nil {
			break
		}
		heard++
		switch {
		case said.Event != nil:
			events = append(events, *said.Event)
		case said.Generation != 0:
			generation = said.Generation
		default:
			done = said.Done
		}
		if heard == after {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := cmd.Wait(); err == nil || heard < after {
		t.Fatalf("the process ended by itself after %d lines: %v", heard, err)
	}
	return events, generation, done
}

// check looks at the files as they were left.
func check(t *testing.T, dir string, events []task.Event, done int) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "*", "*", "journal.jsonl"))
	if err != nil || len(found) != 1 {
		t.Fatalf("the run is in %q (%v)", found, err)
	}
	id := filepath.Base(filepath.Dir(found[0]))
	recording, err := contexts.Read(dir, id)
	if err != nil {
		t.Fatal(err)
	}
	if len(recording.Lines) < done || len(recording.Lines) < len(events) {
		t.Fatalf("%d entries are left; %d were written and %d passed on", len(recording.Lines), done, len(events))
	}
	// A copy is opened, so that the process to come finds what was left.
	copied := t.TempDir()
	if err := os.CopyFS(filepath.Join(copied, contexts.Running, id), os.DirFS(filepath.Dir(found[0]))); err != nil {
		t.Fatal(err)
	}
	j, err := open(t, copied, contexts.Options{}).Begin(t.Context(), work(99, events), recording.Generation, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Leave(); err != nil {
		t.Fatal(err)
	}
	elsewhere := t.TempDir()
	fresh, err := open(t, elsewhere, contexts.Options{}).Begin(t.Context(), work(99, j.Past()), recording.Generation, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := fresh.Leave(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(files(t, filepath.Join(elsewhere, contexts.Running, fresh.ID())), files(t, filepath.Join(copied, contexts.Running, id))); diff != "" {
		t.Error("what was left is not what its entries make:\n" + diff)
	}
}
