package journal_test

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toryo-dev/toryo/internal/journal"
	"github.com/toryo-dev/toryo/internal/journal/journaltest"
	"github.com/toryo-dev/toryo/internal/task"
)

// What the phases write is read, field by field.
func TestRead(t *testing.T) {
	t.Parallel()
	byKind := map[task.EventKind]journal.Entry{} // the first of each kind
	for _, event := range journaltest.Readable() {
		entry := journal.Read(event)
		if entry.Unreadable != nil {
			t.Errorf("entry %d: %v", entry.Position, entry.Unreadable)
		}
		if entry.Position != event.Position || entry.Generation != 1 || entry.Kind != event.Kind || !entry.At.Equal(event.At) {
			t.Errorf("entry %d says of itself what its data say: %+v", event.Position, entry)
		}
		if _, seen := byKind[event.Kind]; !seen {
			byKind[event.Kind] = entry
		}
	}
	for kind, want := range map[task.EventKind]string{
		task.StateChanged: `{"trigger":"claim","from":"queued","to":"running","reason":"claimed"}`,
		task.PhaseChanged: `{"phase":"planning","status":"active"}`,
		task.ToolCalled:   `{"phase":"execution","conversation":"execution","step":1,"call":{"id":"c1","name":"shell","arguments":"{\"command\":\"go test ./...\"}"}}`,
		task.ModelUsed:    `{"step":3,"usage":{"model":"small","scripted":true,"usage":{"input":900,"output":80},"cost":1500}}`,
		task.Planned: `{"plan":{"revision":2,"goal_understanding":{"goal":"A gate that does not squeak"},"action_plan":{"actions":[
			{"id":"a1","what":"Oil the hinges","done":true},{"id":"a2","what":"Test <the> gate"}]}}}`,
		task.Prepared: `{"setup":{"handover":{"environment_ready":true,"environment_name":"go","setup_status":"success"},"receipt":{
			"environment":"go","sandbox":"bubblewrap","image":"golang:1.26","setup_commands":["go mod download"],
			"verification":[{"command":"go version","passed":true},{"command":"make"}],"baseline":{"command":"go test ./...","failing":["TestGate"]}}}}`,
		task.Saved: `{"step":1,"commit":"0123abcd"}`,
		task.SignalTaken: `{"step":1,"signal":{"signal":"comments","comments":[
			{"id":"1","author":"alice","change":"new"},{"id":"2","author":"mallory","change":"edited","refused":"no_write_access"}]}}`,
		task.Summed:    `{"text":"What a later run is **told**."}`,
		task.NoteTaken: `{"text":"Something for people.","status":"warning"}`,
	} {
		got, err := json.Marshal(byKind[kind])
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(set(t, []byte(want)), set(t, got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", kind, diff)
		}
	}
}

// set is JSON without the fields that are empty.
func set(t *testing.T, text []byte) any {
	t.Helper()
	var whole any
	if err := json.Unmarshal(text, &whole); err != nil {
		t.Fatal(err)
	}
	return withoutEmpty(whole)
}

func withoutEmpty(value any) any {
	switch value := value.(type) {
	case map[string]any:
		maps.DeleteFunc(value, func(_ string, field any) bool {
			switch field := withoutEmpty(field).(type) {
			case map[string]any:
				return len(field) == 0
			case []any:
				return len(field) == 0
			default:
				return field == nil || field == "" || field == 0.0 || field == false
			}
		})
	case []any:
		for i := range value {
			value[i] = withoutEmpty(value[i])
		}
	}
	return value
}

// Whatever is in a journal, what can be read is read, and the rest is said to be
// unreadable.
func TestOddEntries(t *testing.T) {
	t.Parallel()
	events := journaltest.Unreadable()
	for _, data := range []string{`{`, `{"text":"cut`, "\x00", `{"text":"a"}{"text":"b"}`, strings.Repeat("[", 100_000)} {
		events = append(events, task.Event{Kind: task.NoteTaken, Data: json.RawMessage(data)})
	}
	for _, event := range events {
		entry := journal.Read(event)
		if entry.Unreadable == nil {
			t.Errorf("%s %.40q is read as %+v", event.Kind, event.Data, entry)
		}
		if entry.Kind != event.Kind || entry.Position != event.Position {
			t.Errorf("%s %.40q is read as entry %d of kind %s", event.Kind, event.Data, entry.Position, entry.Kind)
		}
	}
	entry := journal.Read(task.Event{Kind: task.NoteTaken, Data: json.RawMessage(`{"step":"one","text":"Something for people.","added_later":true}`)})
	if entry.Text != "Something for people." || entry.Step != 0 {
		t.Errorf("what can be read of an entry is not: %+v", entry)
	}
}

func TestSteps(t *testing.T) {
	t.Parallel()
	shown := map[int64]bool{}
	for i, step := range journal.Steps(journaltest.Readable()) {
		if !step.Entries[0].Begins() {
			t.Errorf("step %d begins with an entry that begins none: %+v", i, step.Entries[0])
		}
		for j, entry := range step.Entries {
			if j > 0 && entry.Begins() {
				t.Errorf("step %d goes on with an entry that begins another: %+v", i, entry)
			}
			shown[entry.Position] = true
		}
	}
	var left []string
	for _, event := range journaltest.Readable() {
		if entry := journal.Read(event); !shown[entry.Position] {
			left = append(left, string(entry.Kind)+" "+string(event.Data))
		}
	}
	want := []string{
		`message {"phase":"execution","conversation":"execution","message":{"kind":"message","message":{"role":"user","parts":[{"result":{"call_id":"c2","name":"edit","text":"done"}}]}}}`,
		`tool {"phase":"execution","step":1,"conversation":"execution","call":{"id":"c1","name":"shell","arguments":"{\"command\":\"go test ./...\"}"}}`,
		`message {}`,
		`message {"message":{"kind":"message"}}`,
	}
	if diff := cmp.Diff(want, left); diff != "" {
		t.Errorf("what is left out (-want +got):\n%s", diff)
	}
	rest := journal.Steps([]task.Event{{Kind: task.NoteTaken, Data: json.RawMessage(`{"text":"the rest of a step"}`)}})
	if len(rest) != 1 || rest[0].Entries[0].Begins() {
		t.Errorf("the rest of a step is not shown: %+v", rest)
	}
}

// Lines that are only for the model are no part of what a tool gave.
func TestOutput(t *testing.T) {
	t.Parallel()
	got := journal.Result{Text: "<untrusted source=\"tool\">\nok <untrusted>\n</untrusted>\n"}.Output()
	if got != "ok <untrusted>\n" {
		t.Errorf("%q", got)
	}
}
