package phase_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/task"
)

// notes is a journal that keeps the texts of its notes.
type notes struct {
	mu    sync.Mutex
	texts []string
	err   error
}

// all is what was written so far.
func (n *notes) all() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.texts)
}

func (n *notes) Append(_ context.Context, kind task.EventKind, entry phase.Entry) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if kind != task.NoteTaken || entry.Status != phase.NoteOutput || entry.Phase != task.EnvironmentSetup {
		return errors.New("this is no output")
	}
	n.texts = append(n.texts, entry.Text)
	return n.err
}

// Output reaches the journal in whole lines, when a second has passed or there is much of it, and the
// rest at the end.
func TestLiveOutput(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		kept := &notes{}
		live := &phase.LiveOutput{Journal: kept, Phase: task.EnvironmentSetup}
		write := func(text string) { live.Write(t.Context(), []byte(text)) }
		write("$ npm ci\n")
		write("added")
		if got := kept.all(); len(got) > 0 {
			t.Errorf("at once there is %q", got)
		}
		<-time.After(2 * time.Second)
		write(" 300 pack")
		write("ages\nbad \xff")
		<-time.After(2 * time.Second)
		if err := live.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"$ npm ci\n", "added 300 packages\n", "bad \uFFFD"}, kept.all()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// The output of a call reaches the journal when the call has run for a while.
func TestLiveOutputOfACall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		kept := &notes{}
		live := &phase.LiveOutput{Journal: kept, Phase: task.EnvironmentSetup, Delay: 2 * time.Second, Most: 100}
		live.Write(t.Context(), []byte(strings.Repeat("x", 50)+"\n"))
		<-time.After(1500 * time.Millisecond)
		live.Write(t.Context(), []byte("soon\n"))
		if got := kept.all(); len(got) > 0 {
			t.Errorf("too early there is %q", got)
		}
		<-time.After(time.Second)
		live.Write(t.Context(), []byte(strings.Repeat("y", 500)))
		if err := live.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if text := strings.Join(kept.all(), ""); len(text) != 100 || !strings.Contains(text, "soon") {
			t.Errorf("%d bytes are kept: %q", len(text), text)
		}
	})
}

// What a program has written is seen also while it writes nothing more, and nothing is written when
// the one who watches has gone.
func TestQuietProgram(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		kept := &notes{}
		live := &phase.LiveOutput{Journal: kept, Phase: task.EnvironmentSetup, Delay: 2 * time.Second}
		live.Write(t.Context(), []byte("compiling\nhalf a line"))
		<-time.After(2500 * time.Millisecond)
		if diff := cmp.Diff([]string{"compiling\n"}, kept.all()); diff != "" {
			t.Errorf("after a while (-want +got):\n%s", diff)
		}
		live.Write(t.Context(), []byte(" and the rest\n"))
		live.Stop()
		<-time.After(time.Minute)
		live.Write(t.Context(), []byte("late\n"))
		if got := kept.all(); len(got) != 1 {
			t.Errorf("after the end there is %q", got)
		}
	})
}

// A program that writes a line each second for half an hour does not fill the journal with entries.
func TestLongProgram(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		kept := &notes{}
		live := &phase.LiveOutput{Journal: kept, Phase: task.EnvironmentSetup}
		defer live.Stop()
		for range 1800 {
			live.Write(t.Context(), []byte("a line\n"))
			<-time.After(time.Second)
		}
		if err := live.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := kept.all(); len(got) > 400 || strings.Count(strings.Join(got, ""), "\n") != 1800 {
			t.Errorf("there are %d entries with %d lines", len(got), strings.Count(strings.Join(got, ""), "\n"))
		}
	})
}

// A program that writes without end does not fill the journal, and an error of the journal is told.
func TestLiveOutputIsBounded(t *testing.T) {
	t.Parallel()
	kept := &notes{}
	live := &phase.LiveOutput{Journal: kept, Phase: task.EnvironmentSetup}
	for range 2000 {
		live.Write(t.Context(), []byte(strings.Repeat("x", 9999)+"\n"))
	}
	if size := len(strings.Join(kept.all(), "")); size < 1<<20 || size > 3<<20 {
		t.Errorf("%d bytes are kept", size)
	}
	broken := &phase.LiveOutput{Journal: &notes{err: errors.New("full")}, Phase: task.EnvironmentSetup}
	broken.Write(t.Context(), []byte("x"))
	if err := broken.Flush(t.Context()); err == nil {
		t.Error("an error of the journal is not told")
	}
}
