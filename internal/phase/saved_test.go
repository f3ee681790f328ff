package phase_test

import (
	"encoding/json"
	"testing"

	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/task"
)

// Whether a run goes on with saved work is what its last save says: one without a commit means that
// there is none.
func TestHasSaved(t *testing.T) {
	t.Parallel()
	saved := func(source task.EventSource, commit string) task.Event {
		data, err := json.Marshal(phase.Entry{Commit: commit})
		if err != nil {
			t.Fatal(err)
		}
		return task.Event{Kind: task.Saved, Source: source, Data: data}
	}
	with, without := saved(task.FromAgent, "0123abcd"), saved(task.FromAgent, "")
	other := task.Event{Kind: task.Planned, Source: task.FromAgent, Data: with.Data}
	for what, test := range map[string]struct {
		past []task.Event
		want bool
	}{
		"nothing":                 {nil, false},
		"no save":                 {[]task.Event{other}, false},
		"a commit":                {[]task.Event{with, other}, true},
		"no commit":               {[]task.Event{without}, false},
		"a commit, then none":     {[]task.Event{with, without}, false},
		"none, then a commit":     {[]task.Event{without, with}, true},
		"of somebody else":        {[]task.Event{saved(task.FromServer, "0123abcd")}, false},
		"one that cannot be read": {[]task.Event{with, {Kind: task.Saved, Source: task.FromAgent, Data: []byte("{")}}, false},
	} {
		if got := phase.HasSaved(test.past); got != test.want {
			t.Errorf("%s: %t", what, got)
		}
	}
}
