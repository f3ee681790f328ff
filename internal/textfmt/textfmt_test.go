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
		"upper case":          {textfmt.UpperFirst("all agents are busy"), "All agents are busy"},
		"upper case, é":       {textfmt.UpperFirst("é"), "É"},
		"no upper case":       {textfmt.UpperFirst("待っています"), "待っています"},
		"nothing":             {textfmt.UpperFirst(""), ""},
		"not UTF-8":           {textfmt.UpperFirst("\xff"), "\xff"},
	} {
		if test.got != test.want {
			t.Errorf("%s: %q, want %q", name, test.got, test.want)
		}
	}
}

func TestNumbers(t *testing.T) {
	t.Parallel()
	for number, want := range map[int64]string{
		0: "0", 9_999: "9999", 10_000: "10k", 12_345: "12.3k", 999_949: "999.9k", 999_950: "1M", 1_000_000: "1M",
		1_460_000: "1.46M", 1_500_000: "1.5M", 12_345_678: "12.35M", 120_000_000: "120M",
	} {
		if got := textfmt.Count(number); got != want {
			t.Errorf("%d is counted as %s, want %s", number, got, want)
		}
	}
	for number, want := range map[int]string{0: "0", 999: "999", 1_000: "1,000", 12_345: "12,345", 1_234_567: "1,234,567", -123: "-123", -1_234: "-1,234"} {
		if got := textfmt.Grouped(number); got != want {
			t.Errorf("%d is written as %s, want %s", number, got, want)
		}
	}
}
