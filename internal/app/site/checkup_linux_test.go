package site

import (
	"errors"
	"log/slog"
	"testing"

	"github.com/toryo-dev/toryo/internal/agent"
	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
)

var errDoubt = errors.New("it did not work")

// An agent can do no task while one of its folders cannot be written, whatever is in doubt.
func TestDiskThatCannotBeWrittenTakesTheAgentOut(t *testing.T) {
	t.Parallel()
	disk := testkit.NewDisk(t, 1<<20, 100)
	if disk == nil {
		return
	}
	check := newCheckup(config.Config{}, new(imagesOnly), "owner", []string{t.TempDir(), disk.Dir}, slog.New(slog.DiscardHandler))
	check.models = nil
	doubts := []*agent.UnableError{nil, {Reason: task.ReasonDiskNotWritable, Err: errDoubt}, {Reason: task.ReasonNoSandbox, Err: errDoubt}}
	disk.Fill(t)
	for _, doubt := range doubts {
		if unable := agent.UnableOf(check.check(t.Context(), doubt)); unable == nil || unable.Partial || unable.Reason != task.ReasonDiskNotWritable {
			t.Errorf("with %+v in doubt, a full disk gives %+v", doubt, unable)
		}
	}
	disk.Free(t)
	for _, doubt := range doubts {
		if err := check.check(t.Context(), doubt); err != nil {
			t.Errorf("with %+v in doubt, a disk with room gives %v", doubt, err)
		}
	}
}
