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
