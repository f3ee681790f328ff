package contexts_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/toryo-dev/toryo/internal/agent/contexts"
	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/phase/conversation"
	"github.com/toryo-dev/toryo/internal/redact"
	"github.com/toryo-dev/toryo/internal/task"
)

// server takes entries as the server would, and can refuse them.
type server struct {
	mu      sync.Mutex
	events  []task.Event
	refuses bool
}

func (s *server) as(generation int64) phase.Journal { return &lease{s, generation} }

type lease struct {
	server     *server
	generation int64
}

func (l *lease) Append(_ context.Context, kind task.EventKind, entry phase.Entry) error {
	l.server.mu.Lock()
	defer l.server.mu.Unlock()
	if l.server.refuses {
		return errors.New("the server is away")
	}
	data, err := json.Marshal(entry)
	if err != nil {
		return err
	}
	l.server.events = append(l.server.events, task.Event{
		Task: "task1", Generation: l.generation, Source: task.FromAgent, Position: int64(len(l.server.events)) + 1,
		Kind: kind, At: time.Unix(1_800_000_000, 0).UTC(), Data: data,
	})
	return nil
}

func work(generation int64, past []task.Event) phase.Work {
	return phase.Work{
		Task: "task1", Generation: generation, Type: task.Development, Title: "Fix it",
		Item: task.Key{Forge: task.Board, Repository: "o/n", Kind: task.Issue, Number: 3}, Past: past,
	}
}

func open(t interface{ Fatal(...any) }, dir string, options contexts.Options) *contexts.Contexts {
	c, err := contexts.Open(dir, options)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// entries makes random entries of every kind.
func entries(t *rapid.T) []entry {
	text := rapid.String()
	talk := rapid.SampledFrom([]string{"planning", "execution"})
	one := rapid.Custom(func(t *rapid.T) entry {
		e := phase.Entry{Step: rapid.Int64Range(0, 50).Draw(t, "step")}
		kind := rapid.SampledFrom([]task.EventKind{
			task.PhaseChanged, task.MessageSent, task.ToolCalled, task.ModelUsed, task.Planned, task.Saved, task.SignalTaken, task.Summed, task.NoteTaken,
		}).Draw(t, "kind")
		switch kind {
		case task.PhaseChanged:
			e.Phase = rapid.SampledFrom(task.Phases).Draw(t, "phase")
			e.Status = rapid.SampledFrom([]string{phase.PhaseActive, phase.PhaseCompleted, phase.PhaseFailed}).Draw(t, "status")
		case task.MessageSent:
			e.Conversation, e.Message = talk.Draw(t, "talk"), message(t)
		case task.ToolCalled:
			e.Call = &llm.Call{ID: "c", Name: "run", Arguments: text.Draw(t, "arguments")}
			if rapid.Bool().Draw(t, "ended") {
				e.Result = &phase.CallResult{Text: text.Draw(t, "result")}
			}
		case task.ModelUsed:
			e.Usage = &phase.Usage{Model: "m", Usage: llm.Usage{Input: 3, Output: 4}, Cost: 7}
		case task.Planned:
			e.Plan = &phase.Plan{Revision: 1, GoalUnderstanding: phase.Goal{Goal: text.Draw(t, "goal")}}
		case task.Saved:
			e.Commit = "abc"
		case task.SignalTaken:
			e.Signal = &phase.SignalEntry{Signal: task.SignalComments, Position: rapid.Int64Range(1, 9).Draw(t, "position"), Comments: []task.CommentEntry{{Comment: task.Comment{ID: text.Draw(t, "id")}}}}
			if rapid.Bool().Draw(t, "told") {
				e.Conversation, e.Message = talk.Draw(t, "talk"), message(t)
			}
		default:
			e.Text = text.Draw(t, "text")
		}
		return entry{kind, e}
	})
	return rapid.SliceOfN(one, 0, 25).Draw(t, "entries")
}

type entry struct {
	kind  task.EventKind
	entry phase.Entry
}

func message(t *rapid.T) *conversation.Entry {
	said := llm.UserText(rapid.String().Draw(t, "said"))
	switch rapid.SampledFrom([]conversation.EntryKind{conversation.BeginEntry, conversation.MessageEntry, conversation.PinEntry, conversation.CompactionEntry}).Draw(t, "what") {
	case conversation.BeginEntry:
		return &conversation.Entry{Kind: conversation.BeginEntry, Begin: []conversation.Block{{Name: "task", Text: "t"}}}
	case conversation.PinEntry:
		return &conversation.Entry{Kind: conversation.PinEntry, Block: &conversation.Block{Name: "n", Text: "t"}}
	case conversation.CompactionEntry:
		return &conversation.Entry{Kind: conversation.CompactionEntry, Compaction: &conversation.Compaction{Method: conversation.Masked, State: conversation.State{Summary: "s", Turns: []llm.Message{said}}}}
	default:
		return &conversation.Entry{Kind: conversation.MessageEntry, Message: &said}
	}
}

// files reads all files of a run but those that differ by machine.
func files(t interface{ Fatal(...any) }, dir string) map[string]string {
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || entry.Name() == "metadata.json" {
			return err
		}
		text, err := os.ReadFile(name)
		short, _ := filepath.Rel(dir, name)
		all[short] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// whole is what the files of a run are that was given the entries at once.
func whole(t *rapid.T, past []task.Event) map[string]string {
	dir := tempDir(t)
	j, err := open(t, dir, contexts.Options{}).Begin(context.Background(), work(1, past), 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Leave(); err != nil {
		t.Fatal(err)
	}
	return files(t, filepath.Join(dir, contexts.Running, j.ID()))
}

func tempDir(t *rapid.T) string {
	dir, err := os.MkdirTemp("", "contexts-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// What one machine has written entry by entry is what another makes of the
// server's entries. After a crash at any byte the files are those of the entries
// that were whole, and the server gets each of those once.
func TestFilesFollowFromTheEntries(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		dir := tempDir(t)
		s := &server{}
		clock := func() time.Time { return time.Unix(1_800_000_000, 0) }
		all := entries(t)
		acked := rapid.IntRange(0, len(all)).Draw(t, "acked")
		j, err := open(t, dir, contexts.Options{Now: clock}).Begin(context.Background(), work(1, nil), 0, s.as(1))
		if err != nil {
			t.Fatal(err)
		}
		for i, e := range all {
			s.refuses = i >= acked
			if err := j.Append(context.Background(), e.kind, e.entry); err != nil {
				t.Fatal(err)
			}
		}
		s.refuses = false
		run := filepath.Join(dir, contexts.Running, j.ID())
		live := files(t, run)
		if j.Pass(context.Background()) != 0 || len(s.events) != len(all) {
			t.Fatal("the server did not get all entries")
		}
		if diff := cmp.Diff(whole(t, s.events), live); diff != "" {
			t.Fatal("another machine makes other files of the same entries:\n" + diff)
		}
		_ = j.Leave()

		// The crash: the journal ends anywhere, the other files are anything. Only
		// what was acknowledged is sure to be on the server.
		full := live["journal.jsonl"]
		at := rapid.IntRange(0, len(full)).Draw(t, "torn at")
		survived := strings.Count(full[:at], "\n")
		known := min(acked, survived)
		expected := s.events[:survived]
		if err := os.WriteFile(filepath.Join(run, "journal.jsonl"), []byte(full[:at]), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"messages.jsonl", "current.jsonl", "task_state.json", "tools.jsonl"} {
			cut := rapid.IntRange(0, len(live[name])).Draw(t, name)
			if err := os.WriteFile(filepath.Join(run, name), []byte(live[name][:cut]), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(run, ".making-1"), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		after := &server{events: append([]task.Event(nil), s.events[:known]...)}
		again, err := open(t, dir, contexts.Options{Now: clock}).Begin(context.Background(), work(2, after.events), 1, after.as(2))
		if err != nil {
			t.Fatal(err)
		}
		if again.ID() != j.ID() {
			t.Fatal("the run that goes on is another one")
		}
		if diff := cmp.Diff(whole(t, expected), files(t, run)); diff != "" {
			t.Fatal("after the crash:\n" + diff)
		}
		if len(after.events) != survived || len(again.Past()) != survived {
			t.Fatalf("the server has %d entries and the run %d, want %d", len(after.events), len(again.Past()), survived)
		}
		for i, event := range after.events {
			if event.Kind != expected[i].Kind || string(event.Data) != string(expected[i].Data) {
				t.Fatalf("entry %d is another one", i)
			}
		}
		if err := again.Append(context.Background(), task.NoteTaken, phase.Entry{Text: "on"}); err != nil {
			t.Fatal(err)
		}
		if err := again.End(task.Stopped, task.ReasonUnassigned); err != nil {
			t.Fatal(err)
		}
	})
}

func TestARunMovesFromFolderToFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := open(t, dir, contexts.Options{})
	s := &server{}
	j, err := c.Begin(t.Context(), work(1, nil), 0, s.as(1))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Begin(t.Context(), work(1, nil), 0, nil); task.CodeOf(err) != task.Conflict {
		t.Errorf("a journal was opened twice: %v", err)
	}
	note(t, j, "one")
	if err := j.Pause(task.ReasonPauseRequested); err != nil {
		t.Fatal(err)
	}
	if meta := metadata(t, dir, contexts.Paused, j.ID()); meta.State != "paused" || meta.Reason != task.ReasonPauseRequested {
		t.Errorf("the metadata says %+v", meta)
	}
	if err := j.Append(t.Context(), task.NoteTaken, phase.Entry{Text: "late"}); err == nil {
		t.Error("an entry was written after the end")
	}
	again, err := c.Begin(t.Context(), work(2, s.events), 1, s.as(2))
	if err != nil {
		t.Fatal(err)
	}
	note(t, again, "two")
	if err := again.End(task.Failed, task.ReasonRunFailed); err != nil {
		t.Fatal(err)
	}
	meta := metadata(t, dir, contexts.Completed, j.ID())
	if meta.State != "failed" || meta.First != 1 || meta.Generation != 2 || meta.EndedAt.IsZero() || meta.Item != "board:o/n#3" {
		t.Errorf("the metadata says %+v", meta)
	}
	for _, folder := range []string{contexts.Running, contexts.Paused} {
		if left, _ := os.ReadDir(filepath.Join(dir, folder)); len(left) != 0 {
			t.Errorf("%s has still %v", folder, left)
		}
	}
	if len(s.events) != 2 {
		t.Errorf("the server has %d entries", len(s.events))
	}
}

func TestAMoveThatFailsIsAnError(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j, err := open(t, dir, contexts.Options{}).Begin(t.Context(), work(1, nil), 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, contexts.Completed, j.ID()), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := j.End(task.Done, task.ReasonCompleted); task.CodeOf(err) != task.DataDir || !strings.Contains(err.Error(), "cannot move the run") {
		t.Errorf("the move ended with %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, contexts.Running, j.ID(), "journal.jsonl")); err != nil {
		t.Errorf("the run is not where it was: %v", err)
	}
}

// A run that another machine went on with is what the server says it is.
func TestTheServerIsRight(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := open(t, dir, contexts.Options{})
	s := &server{}
	j, err := c.Begin(t.Context(), work(1, nil), 0, s.as(1))
	if err != nil {
		t.Fatal(err)
	}
	note(t, j, "both know")
	s.refuses = true
	note(t, j, "only here")
	s.refuses = false
	if err := j.Leave(); err != nil {
		t.Fatal(err)
	}
	other := open(t, t.TempDir(), contexts.Options{})
	elsewhere, err := other.Begin(t.Context(), work(2, s.events), 1, s.as(2))
	if err != nil {
		t.Fatal(err)
	}
	if elsewhere.ID() != j.ID() {
		t.Error("the run has another uuid on another machine")
	}
	note(t, elsewhere, "elsewhere")
	again, err := c.Begin(t.Context(), work(3, s.events), 2, s.as(3))
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, event := range again.Past() {
		var e phase.Entry
		if err := json.Unmarshal(event.Data, &e); err != nil {
			t.Fatal(err)
		}
		texts = append(texts, e.Text)
	}
	if want := []string{"both know", "elsewhere"}; !cmp.Equal(texts, want) || len(s.events) != 2 {
		t.Errorf("the run goes on from %q, want %q", texts, want)
	}
}

// After a server was restored from a backup, a run goes on from what the server has: what was
// written here since the backup is dropped, also of a run that has ended since. Without a restore
// the same entries are passed on.
func TestTheServerWasRestored(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		reason task.Reason
		want   []string
	}{
		"restored":  {task.ReasonRestored, []string{"before"}},
		"restarted": {task.ReasonAgentRestarted, []string{"before", "since", "at the end"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			c := open(t, dir, contexts.Options{})
			j, err := c.Begin(t.Context(), work(1, nil), 0, nil)
			if err != nil {
				t.Fatal(err)
			}
			note(t, j, "before")
			backup := &server{}
			if err := backup.as(1).Append(t.Context(), task.NoteTaken, phase.Entry{Text: "before"}); err != nil {
				t.Fatal(err)
			}
			note(t, j, "since")
			note(t, j, "at the end")
			if err := j.End(task.Done, task.ReasonCompleted); err != nil {
				t.Fatal(err)
			}
			data, err := json.Marshal(task.StateChange{Trigger: task.Returned, From: task.Running, To: task.Queued, Reason: test.reason})
			if err != nil {
				t.Fatal(err)
			}
			moved := task.Event{Task: "task1", Generation: 1_000_002, Source: task.FromServer, Position: 2, Kind: task.StateChanged, Data: data}
			claimed := moved
			claimed.Position, claimed.Data = 3, json.RawMessage(`{"trigger":"claimed","from":"queued","to":"running","reason":"claimed"}`)
			again, err := c.Begin(t.Context(), work(1_000_002, append(backup.events, moved, claimed)), 1, backup.as(1_000_002))
			if err != nil {
				t.Fatal(err)
			}
			if again.ID() != j.ID() || !cmp.Equal(textsOf(t, again.Past()), test.want) {
				t.Errorf("the run goes on from %q, want %q", textsOf(t, again.Past()), test.want)
			}
			note(t, again, "after")
			if err := again.Leave(); err != nil {
				t.Fatal(err)
			}
			if want := append(slices.Clone(test.want), "after"); !cmp.Equal(textsOf(t, backup.events), want) {
				t.Errorf("the server has %q, want %q", textsOf(t, backup.events), want)
			}
			lines, err := os.ReadFile(filepath.Join(dir, contexts.Running, j.ID(), "journal.jsonl"))
			if err != nil || strings.Count(string(lines), "\n") != len(test.want)+1 {
				t.Errorf("the file has %s, %v", lines, err)
			}
		})
	}
}

func textsOf(t *testing.T, events []task.Event) (texts []string) {
	t.Helper()
	for _, event := range events {
		var e phase.Entry
		if err := json.Unmarshal(event.Data, &e); err != nil {
			t.Fatal(err)
		}
		texts = append(texts, e.Text)
	}
	return texts
}

// Nothing that the server got under a later generation is taken for something
// else, nor passed on twice.
func TestEntriesPassedOnLate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := &server{}
	for generation := int64(1); generation <= 4; generation++ {
		j, err := open(t, dir, contexts.Options{}).Begin(t.Context(), work(generation, s.events), generation-1, s.as(generation))
		if err != nil {
			t.Fatal(err)
		}
		s.refuses = true // the crash comes before the server has any of it
		note(t, j, "a")
		note(t, j, "b")
		s.refuses = false
		if err := j.Leave(); err != nil {
			t.Fatal(err)
		}
	}
	if len(s.events) != 6 {
		t.Errorf("the server has %d entries, want the 6 of the first three runs", len(s.events))
	}
	left, err := open(t, dir, contexts.Options{}).Left()
	if err != nil || len(left) != 1 || left[0].Generation != 4 {
		t.Errorf("left: %+v, %v", left, err)
	}
}

// An entry that is too large is kept without what is only for looking things up,
// here as on the server, and is refused if that is not enough.
func TestEntriesHaveALimit(t *testing.T) {
	t.Parallel()
	s := &server{}
	j, err := open(t, t.TempDir(), contexts.Options{}).Begin(t.Context(), work(1, nil), 0, s.as(1))
	if err != nil {
		t.Fatal(err)
	}
	huge := strings.Repeat("x", 5<<20)
	call := phase.Entry{Call: &llm.Call{ID: "1", Name: "run"}, Result: &phase.CallResult{Text: "short", Whole: huge}}
	if err := j.Append(t.Context(), task.ToolCalled, call); err != nil {
		t.Fatal(err)
	}
	if call.Result.Whole != huge {
		t.Error("the caller's entry was changed")
	}
	if err := j.Append(t.Context(), task.NoteTaken, phase.Entry{Text: huge}); task.CodeOf(err) != task.TooLarge {
		t.Errorf("a huge entry: %v", err)
	}
	note(t, j, "on")
	if len(s.events) != 2 || len(s.events[0].Data) > 1000 {
		t.Errorf("the server has %d entries", len(s.events))
	}
}

func TestRunsThatWereLeft(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := open(t, dir, contexts.Options{})
	j, err := c.Begin(t.Context(), work(1, nil), 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	if left, err := c.Left(); err != nil || len(left) != 0 {
		t.Errorf("a run that goes on was left: %v, %v", left, err)
	}
	note(t, j, "one")
	if err := j.Leave(); err != nil {
		t.Fatal(err)
	}
	if swept, err := c.Sweep(time.Now().Add(-time.Hour)); err != nil || swept != 0 {
		t.Error(swept, err)
	}
	if swept, err := c.Sweep(time.Now().Add(time.Hour)); err != nil || swept != 1 {
		t.Error(swept, err)
	}
	if meta := metadata(t, dir, contexts.Completed, j.ID()); meta.State != contexts.StateLeft || meta.Title != "Fix it" {
		t.Errorf("the metadata says %+v", meta)
	}
}

// A run that was left before its metadata was written, or whose metadata is damaged, does not
// stay among those that run. It can go on.
func TestRunsWithoutMetadata(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(name string) error{
		"missing": os.Remove,
		"damaged": func(name string) error { return os.WriteFile(name, []byte("{"), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			c := open(t, dir, contexts.Options{})
			s := &server{}
			j, err := c.Begin(t.Context(), work(1, nil), 0, s.as(1))
			if err != nil {
				t.Fatal(err)
			}
			note(t, j, "one")
			if err := errors.Join(j.Leave(), damage(filepath.Join(dir, contexts.Running, j.ID(), "metadata.json"))); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if left, err := c.Left(); err != nil || len(left) != 0 {
					t.Errorf("there is %+v, %v", left, err)
				}
			}
			if meta := metadata(t, dir, contexts.Completed, j.ID()); meta.State != contexts.StateLeft {
				t.Errorf("the metadata says %+v", meta)
			}
			again, err := c.Begin(t.Context(), work(2, s.events), 1, s.as(2))
			if err != nil || again.ID() != j.ID() {
				t.Fatalf("it does not go on: %v", err)
			}
			if meta := metadata(t, dir, contexts.Running, j.ID()); meta.Title != "Fix it" {
				t.Errorf("then the metadata says %+v", meta)
			}
		})
	}
}

func TestNoSecretIsWrittenOrPassedOn(t *testing.T) {
	t.Parallel()
	const secret, digits = "s3cret-\"quoted\"-token", "8391027465"
	dir := t.TempDir()
	s := &server{}
	c := open(t, dir, contexts.Options{Redactor: redact.New(secret, digits)})
	w := work(1, nil)
	w.Title = "my token is " + secret
	j, err := c.Begin(t.Context(), w, 0, s.as(1))
	if err != nil {
		t.Fatal(err)
	}
	said := llm.UserText("it is " + secret)
	for _, e := range []entry{
		{task.NoteTaken, phase.Entry{Text: secret}},
		{task.MessageSent, phase.Entry{Conversation: "c", Message: &conversation.Entry{Kind: conversation.MessageEntry, Message: &said}}},
		{task.ToolCalled, phase.Entry{Call: &llm.Call{ID: "1", Name: "run", Arguments: `{"line":"echo ` + secret + `"}`}, Result: &phase.CallResult{Text: secret, Whole: secret}}},
		// A secret of digits that is a number here too must not spoil the entry.
		{task.NoteTaken, phase.Entry{Step: 8391027465, Text: digits}},
	} {
		if err := j.Append(t.Context(), e.kind, e.entry); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.End(task.Done, task.ReasonCompleted); err != nil {
		t.Fatal(err)
	}
	if len(s.events) != 4 {
		t.Fatalf("the server has %d entries", len(s.events))
	}
	var all strings.Builder
	for _, event := range s.events {
		all.Write(event.Data)
	}
	for _, text := range files(t, filepath.Join(dir, contexts.Completed, j.ID())) {
		all.WriteString(text)
	}
	meta := metadata(t, dir, contexts.Completed, j.ID())
	for _, form := range []string{"s3cret", `"` + digits + `"`} {
		if strings.Contains(all.String()+meta.Title, form) {
			t.Errorf("the secret %s is somewhere", form)
		}
	}
}

func note(t *testing.T, j *contexts.Journal, text string) {
	t.Helper()
	if err := j.Append(t.Context(), task.NoteTaken, phase.Entry{Text: text}); err != nil {
		t.Fatal(err)
	}
}

func metadata(t *testing.T, dir, folder, id string) contexts.Metadata {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, folder, id, "metadata.json"))
	if err != nil {
		t.Fatal(err)
	}
	var meta contexts.Metadata
	if err := json.Unmarshal(text, &meta); err != nil {
		t.Fatal(err)
	}
	return meta
}

// What became of the task without the run is what its files say; a run that goes on
// is left alone.
func TestRunsThatEndedElsewhere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := open(t, dir, contexts.Options{})
	j, err := c.Begin(t.Context(), work(1, nil), 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	note(t, j, "one")
	if err := c.Close(j.ID(), task.Stopped, task.ReasonUnassigned); err != nil {
		t.Fatal(err)
	}
	metadata(t, dir, contexts.Running, j.ID())
	if err := j.Pause(task.ReasonPauseRequested); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(j.ID(), task.Stopped, task.ReasonUnassigned); err != nil {
		t.Fatal(err)
	}
	if meta := metadata(t, dir, contexts.Completed, j.ID()); meta.State != "stopped" || meta.Reason != task.ReasonUnassigned || meta.EndedAt.IsZero() {
		t.Errorf("the metadata says %+v", meta)
	}
}
