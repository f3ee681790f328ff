package phase_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toryo-dev/toryo/internal/phase"
)

// TestCommentsInJournalsKeepTheirKeys reads what earlier versions have written: a run goes on
// from the journal that another version of the program has written, and pages show it.
//
// It is written again with the same keys but for empty values, which every version reads
// like missing ones. Earlier versions left out an empty body, and wrote a position and a
// change in any case. Now it is as in the protocol between server and agents: the body is
// always there, and an empty position or change is not.
func TestCommentsInJournalsKeepTheirKeys(t *testing.T) {
	t.Parallel()
	for name, comment := range map[string]struct{ earlier, now string }{
		"taken up": {
			`{"position":2,"id":"17","author":"bob","kind":"review","about":"add.sh:2","access":"write","before":"Add.","body":"Subtract.","change":"edited"}`,
			`{"position":2,"id":"17","author":"bob","kind":"review","about":"add.sh:2","access":"write","before":"Add.","body":"Subtract.","change":"edited"}`,
		},
		"refused": {
			`{"position":3,"id":"18","author":"mallory","change":"new","refused":"no_write_access"}`,
			`{"position":3,"id":"18","author":"mallory","change":"new","refused":"no_write_access","body":""}`,
		},
		"refused before the run began": {
			`{"position":0,"id":"19","author":"mallory","change":"","refused":"no_write_access"}`,
			`{"id":"19","author":"mallory","refused":"no_write_access","body":""}`,
		},
	} {
		var entry phase.SignalEntry
		if err := json.Unmarshal([]byte(`{"signal":"comments","position":3,"comments":[`+comment.earlier+`]}`), &entry); err != nil {
			t.Fatal(err)
		}
		written, err := json.Marshal(entry)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(object(t, []byte(`{"signal":"comments","position":3,"comments":[`+comment.now+`]}`)), object(t, written)); diff != "" {
			t.Errorf("%s, read and written again (-want +got):\n%s", name, diff)
		}
	}
}

// object is an object in JSON.
func object(t *testing.T, text []byte) (values map[string]any) {
	t.Helper()
	if err := json.Unmarshal(text, &values); err != nil {
		t.Fatal(err)
	}
	return values
}
