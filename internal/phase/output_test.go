package phase_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/task"
)

// notes is a journal that keeps the texts of its notes.
type notes struct {
	texts []string
	err   error
}

func (n *notes) Append(_ context.Context, kind task.EventKind, entry phase.Entry) error {
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
		if len(kept.texts) > 0 {
			t.Errorf("at once there is %q", kept.texts)
		}
		<-time.After(2 * time.Second)
		write(" 300 pack")
		write("ages\nbad \xff")
		if err := live.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"$ npm ci\n", "added 300 packages\nbad \uFFFD"}, kept.texts); diff != "" {
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
		if len(kept.texts) > 0 {
			t.Errorf("too early there is %q", kept.texts)
		}
		<-time.After(time.Second)
		live.Write(t.Context(), []byte(strings.Repeat("y", 500)))
		if err := live.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if text := strings.Join(kept.texts, ""); len(text) != 100 || !strings.Contains(text, "soon") {
			t.Errorf("%d bytes are kept: %q", len(text), text)
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
	if size := len(strings.Join(kept.texts, "")); size < 1<<20 || size > 3<<20 {
		t.Errorf("%d bytes are kept", size)
	}
	broken := &phase.LiveOutput{Journal: &notes{err: errors.New("full")}, Phase: task.EnvironmentSetup}
	broken.Write(t.Context(), []byte("x"))
	if err := broken.Flush(t.Context()); err == nil {
		t.Error("an error of the journal is not told")
	}
}
