package relational

import (
	"fmt"
	"io/fs"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

func TestRebind(t *testing.T) {
	t.Parallel()
	numbered, plain := Dialect{NumberedPlaceholders: true}, Dialect{}
	for query, want := range map[string]string{
		``:                      ``,
		`SELECT 1`:              `SELECT 1`,
		`?`:                     `$1`,
		`a = ? AND b IN (?, ?)`: `a = $1 AND b IN ($2, $3)`,
		`(` + listOf(11) + `)`:  `($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
	} {
		if is := numbered.rebind(query); is != want {
			t.Errorf("%q becomes %q, want %q", query, is, want)
		}
		if is := plain.rebind(query); is != query {
			t.Errorf("%q becomes %q, want it unchanged", query, is)
		}
	}
}

// TestOrderOfTheIndex: the first tasks of a repository are found by an index that has their order.
func TestOrderOfTheIndex(t *testing.T) {
	t.Parallel()
	files, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	var newest string
	for _, name := range files {
		text, err := migrations.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, index, found := strings.Cut(string(text), "CREATE INDEX tasks_queued ON tasks "); found {
			newest, _, _ = strings.Cut(index, ";")
		}
	}
	is := strings.NewReplacer("(CASE", "CASE", "END)", "END").Replace(strings.Join(strings.Fields(newest), " "))
	want := "(forge, repository, " + strings.Join(strings.Fields(queueOrder), " ") + ", ready_at) WHERE state = 'queued'"
	if is != want {
		t.Errorf("the index tasks_queued is\n%s\nwant\n%s", is, want)
	}
}

// TestFold: the database knows logins as one exactly when everyone else does.
func TestFold(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		letters := rapid.StringOfN(rapid.SampledFrom([]rune("aAbBkK\u212Asſ\u1E9EéÉσςΣ-1")), 1, 4, -1)
		a, b := letters.Draw(r, "a"), letters.Draw(r, "b")
		if (assigneeMark.fold(a) == assigneeMark.fold(b)) != task.SameLogin(a, b) {
			r.Fatalf("%q folds to %q and %q to %q", a, assigneeMark.fold(a), b, assigneeMark.fold(b))
		}
		if labelMark.fold(a) != a {
			r.Fatalf("the label %q folds to %q", a, labelMark.fold(a))
		}
	})
}

func TestZeroTime(t *testing.T) {
	t.Parallel()
	if back := moment(time.Time{}); !back.IsZero() {
		t.Errorf("the zero time comes back as %v", back)
	}
	var scanned time.Time
	if err := (micros{&scanned}).Scan(never); err != nil || !scanned.IsZero() {
		t.Errorf("the zero time is read as %v: %v", scanned, err)
	}
	if err := (micros{&scanned}).Scan("yesterday"); task.CodeOf(err) != task.Internal {
		t.Errorf("a text is read as a time: %v", err)
	}
}

// Times that are counted together differ by no more than a twentieth, and the one that stands for them by
// no more than a fortieth.
func TestBuckets(t *testing.T) {
	t.Parallel()
	if bucketOf(-time.Second) != 0 || bucketTime(bucketOf(3*time.Second)) != 3*time.Second {
		t.Errorf("buckets are %d and %v", bucketOf(-time.Second), bucketTime(bucketOf(3*time.Second)))
	}
	rapid.Check(t, func(r *rapid.T) {
		taken := time.Duration(rapid.Int64Range(int64(10*time.Second), int64(1000*time.Hour)).Draw(r, "taken"))
		if off := (bucketTime(bucketOf(taken)) - taken).Abs(); off > taken/40+100*time.Millisecond {
			r.Fatalf("%v is told as %v", taken, bucketTime(bucketOf(taken)))
		}
	})
}

func TestBusyDays(t *testing.T) {
	t.Parallel()
	first := time.Date(2031, 5, 6, 0, 0, 0, 0, time.UTC)
	is := busyDays(first.Add(23*time.Hour), first.Add(49*time.Hour))
	hour := time.Hour.Microseconds()
	if day := dayOf(first); len(is) != 3 || is[day] != hour || is[day+1] != 24*hour || is[day+2] != hour {
		t.Errorf("busy on %v", is)
	}
	if is := busyDays(first, first); len(is) != 0 {
		t.Errorf("busy on %v", is)
	}
}

// TestPackedNotices: another process hears each of many notices, in order, from texts that the database can carry.
func TestPackedNotices(t *testing.T) {
	t.Parallel()
	sender, receiver := notices{self: "sender"}, &Store{notices: notices{self: "receiver"}, dialect: &Dialect{}}
	var heard []store.Notice
	stop := receiver.Listen(func(n store.Notice) { heard = append(heard, n) })
	defer stop()
	heard = nil // that anything may have happened
	var sent []store.Notice
	for i := range 300 {
		sent = append(sent, store.Notice{Topic: store.TasksChanged, Subject: fmt.Sprintf("task [%d], \"x\"", i)})
	}
	for _, size := range []int{maxSubject, maxSubject, maxSubject, 1} {
		sent = append(sent, store.Notice{Topic: store.BellRung, Subject: strings.Repeat("x", size)})
	}
	for _, some := range [][]store.Notice{nil, sent[:1], sent} {
		heard = nil
		texts, err := sender.packed(some)
		if err != nil {
			t.Fatal(err)
		}
		if len(texts) > 10 {
			t.Errorf("%d notices are %d texts", len(some), len(texts))
		}
		for _, text := range texts {
			if len(text) >= 8000 {
				t.Errorf("a text has %d bytes", len(text))
			}
			receiver.Received(text)
		}
		if !slices.Equal(heard, some) {
			t.Errorf("heard %d notices of %d", len(heard), len(some))
		}
	}
	own, err := receiver.notices.packed(sent[:2])
	if err != nil {
		t.Fatal(err)
	}
	heard = nil
	receiver.Received(own[0])
	if len(heard) > 0 {
		t.Errorf("a process hears what it has sent: %v", heard)
	}
}

// TestTables: what stands for rows has each value in its column, once for all of them where the engine
// takes lists. A text that no database keeps, or a value of another type, is refused.
func TestTables(t *testing.T) {
	t.Parallel()
	numbers := newTable(`numbers`, `name TEXT, value BIGINT`)
	rows := [][]any{{"a", 1}, {"b", int64(2)}, {task.ID("c"), 3}}
	lists, err := numbers.sources(&Dialect{Lists: true}, rows)
	if err != nil || len(lists) != 1 {
		t.Fatalf("%v, %v", lists, err)
	}
	if want := `numbers (name, value) AS (SELECT * FROM unnest(CAST(? AS TEXT[]), CAST(? AS BIGINT[])))`; lists[0].query != want {
		t.Errorf("query %s", lists[0].query)
	}
	if want := []any{[]string{"a", "b", "c"}, []int64{1, 2, 3}}; !reflect.DeepEqual(lists[0].args, want) {
		t.Errorf("arguments %v", lists[0].args)
	}
	single, err := numbers.sources(&Dialect{}, rows)
	if err != nil || len(single) != 2 || len(single[0].args) != 4 || len(single[1].args) != 2 {
		t.Errorf("%v, %v", single, err)
	}
	for _, wrong := range []any{"\x00", "\xff", 1} {
		if _, err := numbers.sources(&Dialect{Lists: true}, [][]any{{wrong, 1}}); err == nil {
			t.Errorf("%q is a text", wrong)
		}
	}
	if none, err := numbers.sources(&Dialect{Lists: true}, nil); len(none) != 0 || err != nil {
		t.Errorf("no rows: %v, %v", none, err)
	}
}
