package phase_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toryo-dev/toryo/internal/phase"
)

// TestCommentsInJournalsKeepTheirKeys reads the entry of an earlier version: a run goes on
// from the journal that another version of the program has written, and pages show it.
func TestCommentsInJournalsKeepTheirKeys(t *testing.T) {
	t.Parallel()
	const taken = `{"position":2,"id":"17","author":"bob","kind":"review","about":"add.sh:2","access":"write","before":"Add.","body":"Subtract.","change":"edited"}`
	const refused = `{"position":3,"id":"18","author":"mallory","change":"new","refused":"no_write_access"}`
	var entry phase.SignalEntry
	if err := json.Unmarshal([]byte(`{"signal":"comments","position":3,"comments":[`+taken+`,`+refused+`]}`), &entry); err != nil {
		t.Fatal(err)
	}
	for i, was := range []string{taken, refused} {
		written, err := json.Marshal(entry.Comments[i])
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(keys(t, []byte(was)), keys(t, written)); diff != "" {
			t.Errorf("read and written again (-want +got):\n%s", diff)
		}
	}
}

// keys are the keys of an object in JSON with their values, without empty ones.
func keys(t *testing.T, object []byte) (values map[string]any) {
	t.Helper()
	if err := json.Unmarshal(object, &values); err != nil {
		t.Fatal(err)
	}
	for key, value := range values {
		if value == "" {
			delete(values, key)
		}
	}
	return values
}
