package phase

import (
	"strings"
	"testing"
)

// What a model wrote is shown as code, and what is left out is said.
func TestNothingOfAPlanIsHidden(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"fix <!-- it":            "`fix <!-- it`",
		"a ` b @ann":             "``` a ` b @ann ```",
		"one\ntwo\u202e\u200b":   "`one two`",
		strings.Repeat("x", 301): "`" + strings.Repeat("x", 298) + "…` (cut)",
	} {
		if got := codeRow(text); got != want {
			t.Errorf("%q is shown as %q", text, got)
		}
	}
	shown, more := shownCommands([]string{"make\ntrue \u202e", strings.Repeat("x", 3000), "last"})
	if want := "make\ntrue <U+202E>\n" + strings.Repeat("x", 2000) + "… (cut)\nlast"; shown != want || more != 0 {
		t.Errorf("%d are left out of %q", more, shown)
	}
	if shown, more = shownCommands(make([]string, 100)); more != 40 || len(shown) != 59 {
		t.Errorf("%d are left out of %q", more, shown)
	}
}
