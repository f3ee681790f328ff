package environment

import (
	"fmt"
	"strings"
	"testing"
)

// An excerpt has the line that tells the cause, and the end, and is not too long.
func TestExcerpt(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	for line := range 2000 {
		fmt.Fprintf(&log, "compiled part %05d\n", line)
		if line == 1900 {
			log.WriteString("gate.go:7: error: undefined: hinge\n")
		}
	}
	log.WriteString("\x1b[31mFAIL\x1b[0m\n\n")
	const most = 1000
	got := Excerpt([]byte(log.String()), most)
	for _, part := range []string{"compiled part 01900\ngate.go:7: error: undefined: hinge\ncompiled part 01901", "compiled part 01999\nFAIL", leftOut} {
		if !strings.Contains(got, part) {
			t.Errorf("there is no %q in\n%s", part, got)
		}
	}
	if len(got) > most+3*len(leftOut+"\n") {
		t.Errorf("it has %d bytes", len(got))
	}
	if got := Excerpt([]byte("short\n"), most); got != "short" {
		t.Errorf("of a short log it is %q", got)
	}
	if got := Excerpt(nil, most); got != "" {
		t.Errorf("of nothing it is %q", got)
	}
}
