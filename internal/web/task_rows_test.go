package web

import "testing"

// The end of a long output does not begin inside the sequence of a colour.
func TestEndOfOutput(t *testing.T) {
	t.Parallel()
	for output, want := range map[string]string{
		"one\ntwo":                     "one\ntwo",
		"the first line\nthe second":   "the second",
		"the first line\nand 2\n3":     "and 2\n3",
		"\x1b[1;32mgreen 123\x1b[0mok": " 123\x1b[0mok",
		"a\x1b[38;5;208m45678901":      "45678901",
		"a\x1b[1m2345m789":             "2345m789",
		"\x1b[12;34;56;7m12345":        "12345",
		"without 12m45678":             "t 12m45678",
	} {
		if got := ending(output, 10); got != want {
			t.Errorf("the end of %q is %q, want %q", output, got, want)
		}
	}
}
