package journal_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

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
		task.ModelUsed:    `{"step":3,"usage":{"model":"small","scripted":true,"usage":{"input":900,"cached":10,"output":80},"cost":1500}}`,
		task.Planned: `{"plan":{"revision":2,"goal_understanding":{"goal":"A gate that does not squeak"},"action_plan":{"actions":[
			{"id":"a1","what":"Oil the hinges","done":true},{"id":"a2","what":"Test <the> gate"}]}}}`,
		task.Prepared: `{"setup":{"handover":{"environment_ready":true,"environment_name":"go","setup_status":"success"},"receipt":{
			"environment":"go","sandbox":"bubblewrap","image":"golang:1.26","setup_commands":["go mod download"],
			"verification":[{"command":"go version","passed":true},{"command":"make"}],"baseline":{"command":"go test ./...","failing":["TestGate"]}}}}`,
		task.Saved: `{"step":1,"commit":"0123abcd"}`,
		task.SignalTaken: `{"step":1,"signal":{"signal":"comments","position":2,"comments":[
			{"id":"1","author":"alice","change":"new"},{"id":"2","author":"mallory","change":"edited","refused":"no_write_access"}]}}`,
		task.Summed:    `{"text":"What a later run is **told**."}`,
		task.NoteTaken: `{"text":"Something for people.","name":"told","status":"warning"}`,
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

// What is left out is what has an entry of its own, or nothing in it.
func TestShown(t *testing.T) {
	t.Parallel()
	shown := map[int64]bool{}
	for _, entry := range journal.Shown(journaltest.Readable(), nil, 0) {
		shown[entry.Position] = true
	}
	var left []string
	for _, event := range journaltest.Readable() {
		if entry := journal.Read(event); !shown[entry.Position] {
			left = append(left, string(entry.Kind)+" "+string(event.Data))
		}
	}
	want := []string{
		`message {"phase":"execution","conversation":"execution","message":{"kind":"message","message":{"role":"user","parts":[{"result":{"call_id":"c2","name":"edit","text":"done"}}]}}}`,
		`message {"phase":"execution","conversation":"execution","message":{"kind":"message","message":{"role":"assistant","parts":[{"call":{"id":"c2","name":"edit","arguments":"{}"}},{"call":{"id":"c3","name":"read","arguments":"{}"}}]}}}`,
		`message {"phase":"execution","conversation":"execution","message":{"kind":"message","message":{"role":"assistant","parts":null}}}`,
		`tool {"phase":"execution","step":1,"conversation":"execution","call":{"id":"c1","name":"shell","arguments":"{\"command\":\"go test ./...\"}"}}`,
		`message {}`,
		`message {"message":{"kind":"message"}}`,
		`message {"message":{"kind":"message","message":{"role":"assistant","parts":null}}}`,
	}
	if diff := cmp.Diff(want, left, cmpopts.SortSlices(strings.Compare)); diff != "" {
		t.Errorf("what is left out (-want +got):\n%s", diff)
	}
}

// Output that comes in pieces is shown as one text.
func TestOutputInPieces(t *testing.T) {
	t.Parallel()
	note := func(data string) task.Event {
		return task.Event{Kind: task.NoteTaken, Generation: 1, Data: json.RawMessage(data)}
	}
	var got []string
	for _, entry := range journal.Shown([]task.Event{
		note(`{"status":"output","text":"$ make\n"}`), note(`{"status":"output","text":"ok\n"}`), note(`{"text":"A note."}`), note(`{"status":"output","text":"more"}`),
	}, nil, 0) {
		got = append(got, entry.Text)
	}
	if diff := cmp.Diff([]string{"$ make\nok\n", "A note.", "more"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// writer numbers events of a journal.
type writer []task.Event

func (w *writer) add(generation int64, kind task.EventKind, data string) {
	*w = append(*w, task.Event{Position: int64(len(*w) + 1), Generation: generation, Kind: kind, Data: json.RawMessage(data)})
}

const (
	begins = `{"call":{"id":"c","name":"run"}}`
	writes = `{"status":"output","call":{"id":"c","name":"run"},"text":"x"}`
	ends   = `{"call":{"id":"c","name":"run"},"result":{"text":"ok"}}`
)

// describe is what is shown of a journal: positions, with ! behind calls that were interrupted.
func describe(entries []journal.Entry) string {
	var all []string
	for _, entry := range entries {
		text := fmt.Sprint(entry.Position)
		if entry.Interrupted {
			text += "!"
		}
		all = append(all, text)
	}
	return strings.Join(all, " ")
}

// A call is closed by its own end: names of calls come again, in the same run and in the next.
func TestCallsOfTheSameName(t *testing.T) {
	t.Parallel()
	var all writer
	all.add(1, task.ToolCalled, begins) // 1
	all.add(1, task.NoteTaken, writes)
	all.add(1, task.ToolCalled, ends)   // 3
	all.add(1, task.NoteTaken, writes)  // it came late
	all.add(1, task.ToolCalled, begins) // 5: the agent is lost
	all.add(2, task.ToolCalled, begins) // 6
	all.add(2, task.ToolCalled, ends)   // 7
	all.add(2, task.ToolCalled, begins) // 8: and this one breaks off too
	all.add(2, task.ToolCalled, begins) // 9: runs
	all.add(2, task.NoteTaken, writes)  // 10
	if got := describe(journal.Shown(all, nil, 0)); got != "3 5 7 8! 9 10" {
		t.Errorf("shown are %s", got)
	}
	// What is shown of the earlier part takes into account what comes after it.
	if got := describe(journal.Shown(all[:2], all[2:], 0)); got != "" {
		t.Errorf("of a call that ends later %s is shown", got)
	}
	if got := describe(journal.Shown(all[4:6], all[6:], 0)); got != "5" {
		t.Errorf("of two calls of which one ends later %s is shown", got)
	}
}

// Output can be linked to although it is a piece of more, and be had whole.
func TestPieceOfOutput(t *testing.T) {
	t.Parallel()
	var all writer
	for range 4 {
		all.add(1, task.NoteTaken, `{"status":"output","text":"x"}`)
	}
	all.add(1, task.NoteTaken, `{"text":"A note."}`)
	if got := describe(journal.Shown(all, nil, 3)); got != "1 3 5" {
		t.Errorf("shown are %s", got)
	}
	if whole := journal.WholeOutput(all[1:]); whole.Position != 2 || whole.Text != "xxx" {
		t.Errorf("the whole output is %q at %d", whole.Text, whole.Position)
	}
	if whole := journal.WholeOutput(all[4:]); whole.Position != 0 {
		t.Errorf("a note is output: %+v", whole)
	}
}

// Whoever watches a run is told what it does, by the last entry that says so.
func TestActivity(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]journal.Activity{
		`state {"to":"running"}`:                                                                 journal.Preparing,
		`state {"to":"paused"}`:                                                                  journal.Halted,
		`phase {"phase":"environment_setup","status":"active"}`:                                  journal.SettingUp,
		`phase {"phase":"environment_setup","status":"completed"}`:                               "",
		`phase {"phase":"verification","status":"active"}`:                                       journal.Verifying,
		`phase {"phase":"reflection","status":"completed"}`:                                      journal.Thinking,
		`message {"message":{"kind":"begin"}}`:                                                   journal.Thinking,
		`message {"message":{"message":{"role":"user","parts":[]}}}`:                             journal.Thinking,
		`message {"message":{"message":{"role":"assistant","parts":[{"call":{"name":"run"}}]}}}`: journal.Calling,
		`tool {"call":{"id":"c","name":"run"}}`:                                                  journal.Calling,
		`tool {"call":{"id":"c","name":"run"},"result":{"text":"ok"}}`:                           journal.Thinking,
		`signal {"signal":{"signal":"stop"}}`:                                                    journal.Halted,
		`signal {"signal":{"signal":"comments"}}`:                                                "",
		`saved {"commit":"1"}`:                                                                   "",
		`usage {}`:                                                                               "",
		`note {"text":"x"}`:                                                                      "",
		`note {"status":"output","phase":"environment_setup","text":"x"}`:                        journal.SettingUp,
		`note {"status":"output","phase":"execution","text":"x"}`:                                journal.Calling,
		`note {"status":"output","phase":"verification","call":{"id":"c"},"text":"x"}`:           journal.Calling,
	} {
		kind, text, _ := strings.Cut(data, " ")
		got, says := journal.Read(task.Event{Kind: task.EventKind(kind), Data: json.RawMessage(text)}).Activity()
		if says != (want != "") || says && got != want {
			t.Errorf("%s: %q, %v, want %q", data, got, says, want)
		}
	}
}

// How a program ended is known from the result, and from what the model was told in older journals.
func TestExitCode(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"text":"ok","exit":{"code":0}}`: "0 true ok",
		`{"text":"<untrusted source=\"x\">\nbad\n</untrusted>\n[exit code 2]","failed":true}`: "2 true bad",
		`{"text":"slow","exit":{"code":-1,"timed_out":true}}`:                                 "-1 false slow",
		`{"text":"no program"}`: "0 false no program",
		`{"text":"cut","whole":"\u001b[32mall\u001b[0m","exit":{"code":0}}`: "0 true \x1b[32mall\x1b[0m",
	} {
		var result journal.Result
		if err := json.Unmarshal([]byte(text), &result); err != nil {
			t.Fatal(err)
		}
		code, known := result.ExitCode()
		if got := fmt.Sprint(code, known, " ", result.Printed()); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
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
