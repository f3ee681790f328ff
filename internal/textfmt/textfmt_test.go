package textfmt_test

import (
	"testing"

	"github.com/toryo-dev/toryo/internal/textfmt"
)

func TestTexts(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ got, want string }{
		"one line":            {textfmt.OneLine(" a\n\tb\r\n c "), "a b c"},
		"first line":          {textfmt.FirstLine("\n  one \ntwo"), "one"},
		"first of one":        {textfmt.FirstLine("one"), "one"},
		"short enough":        {textfmt.Shorten("直す", 2), "直す"},
		"shortened":           {textfmt.Shorten("門を直す", 3), "門を…"},
		"shortened, Latin":    {textfmt.Shorten("abcdef", 3), "ab…"},
		"shortened to one":    {textfmt.Shorten("abcdef", 1), "…"},
		"shortened to none":   {textfmt.Shorten("abcdef", 0), ""},
		"clipped":             {textfmt.Clip("門を直す", 7), "門を"},
		"clipped to nothing":  {textfmt.Clip("門", 2), ""},
		"not clipped":         {textfmt.Clip("abc", 3), "abc"},
		"slug":                {textfmt.Slug("Fix: the Gate, again!", 40), "fix-the-gate-again"},
		"slug ends with word": {textfmt.Slug("fix the gate", 8), "fix-the"},
		"slug of one word":    {textfmt.Slug("gatekeeper", 4), ""},
		"no slug":             {textfmt.Slug("門を直す", 40), ""},
		"fence":               {textfmt.Fence("a"), "```"},
		"longer fence":        {textfmt.Fence("``` x ````"), "`````"},
		"commit":              {textfmt.ShortCommit("0123456789abcdef"), "0123456789"},
		"short commit":        {textfmt.ShortCommit("0123"), "0123"},
	} {
		if test.got != test.want {
			t.Errorf("%s: %q, want %q", name, test.got, test.want)
		}
	}
}
