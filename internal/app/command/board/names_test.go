package board

import (
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/forge"
	forgeboard "github.com/toryo-dev/toryo/internal/forge/board"
)

func TestNamesForImports(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		"https://example.com/team/app.git":         "team/app",
		"https://example.com/team/app/":            "team/app",
		"https://alice:pw@example.com/group/t/app": "t/app",
		"git@example.com:team/app.git":             "team/app",
		"ssh://git@example.com:22/team/app":        "team/app",
		"file:///home/alice/app/.git":              "alice/app",
		"https://example.com/app":                  "",
		"https://example.com/":                     "",
		"https://example.com/a b/c d":              "",
	} {
		got, err := nameFor(new(forgeboard.Board), source, false)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%s is named %q, %v, want %q", source, got, err, want)
		}
	}
}

func TestLineRemarks(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]forge.LineRemark{
		"gate.go:12=Why?":        {Anchor: forge.Anchor{Path: "gate.go", Side: forge.NewSide, Line: 12}, Body: "Why?"},
		"a/b=c.go:3:old=x=1:2=y": {Anchor: forge.Anchor{Path: "a/b=c.go", Side: forge.OldSide, Line: 3}, Body: "x=1:2=y"},
		"x:1=two\nlines":         {Anchor: forge.Anchor{Path: "x", Side: forge.NewSide, Line: 1}, Body: "two\nlines"},
	} {
		if got, err := parseLine(text); err != nil || got != want {
			t.Errorf("%q is %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "gate.go", "gate.go:12", ":1=x", "gate.go:0x1=x", "gate.go:" + strings.Repeat("9", 30) + "=x"} {
		if got, err := parseLine(text); err == nil {
			t.Errorf("%q is %+v", text, got)
		}
	}
}
