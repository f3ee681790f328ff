package wire_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toryo-dev/toryo/internal/wire"
)

// Agents of other versions, and such as others write, read these keys.
const (
	commentThere = `{"position":4,"id":"17","kind":"item","author":"ann","access":"write","body":"Use tabs.",
		"created_at":"2031-05-06T12:00:00Z","updated_at":"2031-05-06T12:30:00Z"}`
	commentRefused = `{"position":5,"id":"18","kind":"review","author":"mallory","access":"read","body":"","about":"main.go:12",
		"change":"new","refused":"no_write_access","created_at":"2031-05-06T12:00:00Z","updated_at":"2031-05-06T12:00:00Z"}`
	commentEdited = `{"position":6,"id":"19","kind":"summary","author":"bob","access":"admin","body":"No.","about":"request_changes",
		"before":"Yes.","change":"edited","created_at":"2031-05-06T12:00:00Z","updated_at":"2031-05-06T13:00:00Z"}`
	commentInThread = `{"id":"20","kind":"review","author":"bob","body":"Why?","created_at":"2031-05-06T12:00:00Z","updated_at":"2031-05-06T12:00:00Z"}`
)

func TestCommentsKeepTheirKeys(t *testing.T) {
	t.Parallel()
	t.Run("signals", func(t *testing.T) {
		t.Parallel()
		passes[wire.Signals](t, `{"comments":[`+commentThere+`,`+commentRefused+`,`+commentEdited+`]}`)
	})
	t.Run("assignment", func(t *testing.T) {
		t.Parallel()
		passes[wire.Assignment](t, `{"task_id":"t","generation":2,"task_type":"development","required_role":"BACKENDCODER","forge":"gitea",
			"repository":"o/n","kind":"pull","number":7,"url":"u","title":"T","body":"B","author":"ann","author_access":"write","labels":["a"],
			"comments":[`+commentThere+`,`+commentRefused+`],"prompt":"p","branch":"b","base":"main","clone_url":"c",
			"lease":{"token":"s","expires_at":"2031-05-06T12:00:00Z","renew_every_ms":1000},
			"pull_request":{"number":7,"url":"u","title":"T","body":"B","author":"ann","head":"h","head_ref":"r","base":"main","commit":"c",
				"threads":[{"id":"1","path":"main.go","line":12,"comments":[`+commentInThread+`]}],"summaries":[`+commentEdited+`]}}`)
	})
}

// passes checks that a text in JSON is the same after it was read and written.
func passes[T any](t *testing.T, text string) {
	t.Helper()
	var value T
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&value); err != nil {
		t.Fatal(err)
	}
	written, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(plain(t, []byte(text)), plain(t, written)); diff != "" {
		t.Errorf("read and written again (-want +got):\n%s", diff)
	}
}

func plain(t *testing.T, text []byte) (value any) {
	t.Helper()
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatal(err)
	}
	return value
}
