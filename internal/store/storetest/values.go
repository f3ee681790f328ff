package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

var valueChecks = []check{
	{"text comes back exactly", exactText},
	{"text that cannot be kept is refused", refusedText},
	{"JSON comes back byte for byte", exactJSON},
	{"times are kept to the microsecond, in UTC", exactTimes},
	{"a context that has ended ends the call", endedContext},
	{"the database answers", ping},
}

func long(n int) string { return strings.Repeat("x", n) }

func exactText(t *testing.T, s store.Store) {
	for _, text := range []string{
		"", " ", "\n", "a\r\nb\rc\n", "棟梁 é e\u0301", "\U0001F6E0\uFE0F \U0001F468\u200D\U0001F469\u200D\U0001F467", "\u202Eright to left",
		"\uFEFFmark", "\x01\x1b[31m\x7f", "'; DROP TABLE tasks; --", "? $1 :name @x %s", `\u0000 \x00 \`, strings.Repeat("10 MB é\n", 1<<20),
	} {
		stored := got[store.Question](t)(s.AddQuestion(t.Context(), store.Question{Text: text}))
		if read := got[store.Question](t)(s.Question(t.Context(), stored.ID)); read.Text != text || stored.Text != text {
			t.Fatalf("%.40q came back as %.40q", text, read.Text)
		}
	}
}

func refusedText(t *testing.T, s store.Store) {
	for _, text := range []string{"\x00", "a\x00b", "\xff", "a\xc3", "\xed\xa0\x80"} {
		_, err := s.AddQuestion(t.Context(), store.Question{Text: text})
		wantCode(t, err, task.Invalid)
		_, err = s.Question(t.Context(), text)
		wantCode(t, err, task.Invalid)
	}
	equal(t, len(got[[]store.Question](t)(s.ListQuestions(t.Context(), store.QuestionFilter{}))), 0)
}

func exactJSON(t *testing.T, s store.Store) {
	x := running(t, s)
	for i, text := range []string{
		`null`, `"a\u0000b"`, `{ "b" : 1, "a":2,"a": 3 }`, `1e400`, `12345678901234567890.10`, "[\r\n\t]", `"\ud800"`, `"棟梁"`,
		`"` + long(10<<20) + `"`,
	} {
		e := eventOf(x, task.FromAgent, int64(i+1))
		e.Data = json.RawMessage(text)
		equal(t, got[int](t)(s.Append(t.Context(), []task.Event{e})), 1)
		read := got[[]task.Event](t)(s.EventsAfter(t.Context(), x.ID, int64(i+2), 1))
		if string(read[0].Data) != text {
			t.Fatalf("%.40q came back as %.40q", text, read[0].Data)
		}
	}
}

func exactTimes(t *testing.T, s store.Store) {
	tokyo := time.FixedZone("JST", 9*3600)
	for _, at := range []time.Time{
		time.Date(2026, 2, 3, 4, 5, 6, 789012345, tokyo),
		time.Date(1969, 12, 31, 23, 59, 59, 999999000, time.UTC),
		time.Date(9999, 12, 31, 23, 59, 59, 999999000, time.UTC),
		time.Date(1, 1, 1, 0, 0, 0, 1000, time.UTC),
		time.Unix(0, 0),
		time.Now(),
	} {
		want := time.UnixMicro(at.UnixMicro()).UTC()
		stored := got[store.Question](t)(s.AddQuestion(t.Context(), store.Question{CreatedAt: at}))
		equal(t, stored.CreatedAt, want)
		equal(t, got[store.Question](t)(s.Question(t.Context(), stored.ID)).CreatedAt, want)
	}
	equal(t, assigned(t, s).ReadyAt, time.Time{})
}

func endedContext(t *testing.T, s store.Store) {
	x := assigned(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, call := range map[string]func() error{
		"read":     func() error { _, err := s.Task(ctx, x.ID); return err },
		"snapshot": func() error { _, err := s.ListBoardItems(ctx, store.BoardFilter{}); return err },
		"write":    func() error { _, err := s.Move(ctx, store.Change{Task: x.ID, Trigger: task.Withdrawn}); return err },
		"ping":     func() error { return s.Ping(ctx) },
	} {
		if err := call(); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: error is %v, want that of the context", name, err)
		}
	}
	expired, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	if _, err := s.Claim(expired, []store.Claim{claimOf(x)}, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error is %v, want that of the context", err)
	}

	// A context that ends in the middle: nothing has happened, and the store goes on.
	halfway, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := s.Move(halfway, store.Change{Task: x.ID, Trigger: task.Withdrawn, Effects: func(_, after task.Task) []store.Action {
		cancel()
		return []store.Action{actionOf(after, "label")}
	}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v, want that of the context", err)
	}
	equal(t, got[task.Task](t)(s.Task(t.Context(), x.ID)), x)
	equal(t, moved(t, s, x, task.Withdrawn).State, task.Stopped)
}

func ping(t *testing.T, s store.Store) {
	must(t, s.Ping(t.Context()))
}
