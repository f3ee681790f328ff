package relational

import (
	"testing"
	"time"

	"pgregory.net/rapid"

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
