package forge

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestLogEnd(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		log  string
		most int
		want string
	}{
		"whole":           {"one\ntwo\n", 100, "one\ntwo\n"},
		"empty":           {"", 100, ""},
		"nothing wanted":  {"one\n", 0, ""},
		"whole lines":     {"first line\nsecond line\n", 15, "second line\n"},
		"one long line":   {"0123456789", 4, "6789"},
		"exactly":         {"12\n34\n", 6, "12\n34\n"},
		"colors":          {"\x1b[31mred\x1b[0m \x1b]0;title\x07text\n", 100, "red text\n"},
		"written over":    {"10 %\r20 %\r\ndone\r\n", 100, "10 %\n20 %\ndone\n"},
		"GitHub's times":  {"\uFEFF2030-01-02T03:04:05.1234567Z one\n2030-01-02T03:04:05.1234567Z \x1b[1mtwo\n", 100, "one\ntwo\n"},
		"GitLab's times":  {"2030-01-02T03:04:05.123456Z 00O one\n2030-01-02T03:04:05.123456Z 01E+two\n", 100, "one\ntwo\n"},
		"half a rune":     {"ééé", 3, "é"},
		"not UTF-8":       {"a\xffb\n", 100, "a\uFFFDb\n"},
		"it grows":        {strings.Repeat("\xff", 10), 4, "\uFFFD"},
		"times cost none": {strings.Repeat("2030-01-02T03:04:05Z 123456789012345678901234567890\n", 50), 64, strings.Repeat("123456789012345678901234567890\n", 2)},
	} {
		for way, reader := range map[string]io.Reader{
			"at once": strings.NewReader(test.log), "byte by byte": iotest.OneByteReader(strings.NewReader(test.log)),
		} {
			end := NewLogEnd(test.most)
			if _, err := io.Copy(end, reader); err != nil || end.String() != test.want {
				t.Errorf("%s, %s: %q, %v, want %q", name, way, end, err, test.want)
			}
		}
	}
}

// However long a log is, little of it is held.
func TestLogEndHoldsLittle(t *testing.T) {
	t.Parallel()
	end := NewLogEnd(500)
	for i := range 10_000 {
		if _, err := fmt.Fprintf(end, "line %d\n", i); err != nil {
			t.Fatal(err)
		}
	}
	if len(end.kept) > 2000 || cap(end.kept) > 4000 || !strings.HasSuffix(string(end.kept), "line 9998\nline 9999\n") || !end.cut {
		t.Errorf("%d bytes are held in %d, cut: %v", len(end.kept), cap(end.kept), end.cut)
	}
}

func TestNewestChecks(t *testing.T) {
	t.Parallel()
	at := time.Unix(100, 0)
	got := NewestChecks([]Check{
		{Name: "b", State: StatusSuccess, At: at}, {Name: "b", State: StatusFailure, At: at.Add(-time.Second)},
		{Name: "a", State: StatusSuccess, At: at}, {Name: "a", State: StatusFailure, At: at},
		{Name: "c", State: StatusFailure, At: at}, {Name: "c", State: StatusPending},
	})
	want := []Check{{Name: "a", State: StatusFailure, At: at}, {Name: "b", State: StatusSuccess, At: at}, {Name: "c", State: StatusPending}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	var many []Check
	for i := range 2 * MaxChecks {
		many = append(many, Check{Name: fmt.Sprintf("%04d", i), State: StatusSuccess})
	}
	many[2*MaxChecks-1].State = StatusFailure
	got = NewestChecks(many)
	if len(got) != MaxChecks || got[MaxChecks-1].State != StatusFailure {
		t.Errorf("%d checks, the last is %+v", len(got), got[len(got)-1])
	}
}
