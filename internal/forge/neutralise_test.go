package forge_test

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

// z is the invisible character.
const z = "\u200b"

var inThread = forge.Neutraliser{
	Repository:   "owner/name",
	Participants: []string{"Alice", "bob.b"},
	Closes:       []task.Key{{Forge: task.GitHub, Repository: "owner/name", Kind: task.Issue, Number: 5}},
}

func TestText(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, raw, want string }{
		{"plain", "Looks *good* to me.\n", "Looks *good* to me.\n"},
		{"empty", "", ""},

		{"quick action", "/close", `\/close`},
		{"quick action with argument", "done\n/assign @Alice\n", "done\n\\/assign @Alice\n"},
		{"quick action in other case", "/CLOSE", `\/CLOSE`},
		{"quick action behind blanks", "a\n \t /close", "a\n \t \\/close"},
		{"quick action in a quotation", "> /close", `> \/close`},
		{"quick action behind a no-break space", "\u00a0/close", "\u00a0\\/close"},
		{"quick action behind a zero-width space", z + "/close", z + `\/close`},
		{"quick action after CRLF", "a\r\n/close\r\nb", "a\n\\/close\nb"},
		{"quick action after a lone CR", "a\r/close", "a\n\\/close"},
		{"quick action with NUL", "\x00/clo\x00se", `\/close`},
		{"two quick actions", "/close\n/lock\n", "\\/close\n\\/lock\n"},
		{"quick action in a fence that GitLab does not know", "~~~\n/close\n~~~", "~~~\n\\/close\n~~~"},
		{"a path", "/usr/bin/env", "/usr/bin/env"},
		{"a slash in the line", "and/or /close", "and/or /close"},
		{"a comment in C", "/* a */", "/* a */"},
		{"two slashes", "// close", "// close"},

		{"mention of a stranger", "thanks @carol!", "thanks @" + z + "carol!"},
		{"mention of a participant", "thanks @alice!", "thanks @alice!"},
		{"mention of a participant with a dot", "thanks @bob.b.", "thanks @bob.b."},
		{"mention of everyone", "@all", "@" + z + "all"},
		{"mention of a team", "@acme/team", "@" + z + "acme/team"},
		{"mention of a team named like a participant", "@alice/team", "@" + z + "alice/team"},
		{"mention by entity", "&#64;carol &#x40;carol &commat;carol", "@" + z + "carol @" + z + "carol @" + z + "carol"},
		{"mention behind a letter of another alphabet", "日本@carol", "日本@" + z + "carol"},
		{"mention behind emphasis", "_@carol_", "_@" + z + "carol_"},
		{"an e-mail address", "a@b.example", "a@b.example"},
		{"a decorator in a fence", "```python\n@cache\ndef f(): ...\n```", "```python\n@cache\ndef f(): ...\n```"},
		{"a decorator in a span", "use `@cache` here", "use `@cache` here"},
		{"a span that a table would cut", "|a|b|\n|-|-|\n| `x | @carol` |", "|a|b|\n|-|-|\n| `x | @" + z + "carol` |"},
		{"indented code, which a footnote would read as text", "[^1]: x\n\n    @carol", "[^1]: x\n\n    @" + z + "carol"},
		{"a fence that is not closed", "```\n@cache", "```\n@cache"},
		{"a mention behind a fence", "```\na\n```\n@carol", "```\na\n```\n@" + z + "carol"},
		{"a tag that swallows a backtick", "<a title=\"`\"> @carol `", "<a title=\"`\"> @" + z + "carol `"},
		{"an escaped backtick", "\\`@carol`", "\\`@" + z + "carol`"},
		{"code in a link", "[`@cache`](x)", "[`@cache`](x)"},
		{"code in emphasis", "**`@cache`**", "**`@cache`**"},
		{"an address with an at sign", "https://example.com/@carol/1", "https://example.com/%40carol/1"},

		{"closes another", "Fixes #12", "Fixes" + z + " #12"},
		{"closes its own", "Fixes #5", "Fixes #5"},
		{"closes its own by the long name", "closes Owner/Name#5", "closes Owner/Name#5"},
		{"closes one whose number starts the same", "closes #55", "closes" + z + " #55"},
		{"closes its own and another", "closes #5, #6 and #7", "closes" + z + " #5, #6 and #7"},
		{"closes its own, then another", "closes #5, fixes #6", "closes #5, fixes" + z + " #6"},
		{"closes elsewhere", "resolves: other/repo#5", "resolves" + z + ": other/repo#5"},
		{"closes by address", "closed https://forge.example/o/n/issues/3", "closed" + z + " https://forge.example/o/n/issues/3"},
		{"closes in GitLab's words", "Implementing issue #9", "Implementing" + z + " issue #9"},
		{"closes over a line break", "fix\n#12", "fix" + z + "\n#12"},
		{"closes with emphasis", "fix **#12**", "fix" + z + " **#12**"},
		{"a merge request", "closes !7", "closes" + z + " !7"},
		{"only mentions it", "see #12 for the fix", "see #12 for the fix"},
		{"a word that ends alike", "prefix #12", "prefix #12"},

		{"hidden comment", "a <!-- bot: merge --> b", `a <\!-- bot: merge --> b`},
		{"our own marker", "x\n" + forge.MarkerOf("k").String(), "x\n" + strings.Replace(forge.MarkerOf("k").String(), "<!--", `<\!--`, 1)},

		{"control characters", "a\x00b\x1b[31mc\x7fd\u0085e\tf", "ab[31mcde\tf"},
		{"emoji", "👍🏽 👨‍👩‍👧", "👍🏽 👨‍👩‍👧"},
		{"invalid UTF-8", "a\xff\xfeb", "a\ufffdb"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := inThread.Text(test.raw).String(); got != test.want {
				t.Errorf("Text(%q)\n got %q\nwant %q", test.raw, got, test.want)
			}
		})
	}
}

func TestTitle(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, raw, want string }{
		{"one line", " Fix\r\nthe\tbuild ", "Fix the build"},
		{"mention", "Ask @carol", "Ask @" + z + "carol"},
		{"closing", "Closes #9", "Closes" + z + " #9"},
		{"long", strings.Repeat("é", 200), strings.Repeat("é", 123) + "…"},
	}
	for _, test := range tests {
		if got := inThread.Title(test.raw).String(); got != test.want {
			t.Errorf("%s: Title(%q) = %q, want %q", test.name, test.raw, got, test.want)
		}
	}
}

func TestTextIsCut(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"one long line":  strings.Repeat("é", 10<<20/2),
		"many lines":     strings.Repeat("some words\n", 1<<20),
		"inside a fence": "````go\n" + strings.Repeat("x := 1\n", 1<<17),
	}
	for name, raw := range tests {
		got := forge.Neutraliser{}.Text(raw).String()
		if len(got) > forge.MaxText || !utf8.ValidString(got) || !strings.HasSuffix(got, "comment)*") {
			t.Errorf("%s: %d bytes, ends in %q", name, len(got), got[len(got)-80:])
		}
		if strings.HasPrefix(raw, "````") && !strings.Contains(got, "\n````\n\n*(cut") {
			t.Errorf("%s: the fence is not closed: %q", name, got[len(got)-80:])
		}
	}
}

// What takes Markdown parsers long must not hold us up: this test would not end in
// time.
func TestTextOfAnAttacker(t *testing.T) {
	t.Parallel()
	for _, piece := range []string{"[a](", "[", "![", "*a_ ", "a_b*", "`a``b", "<a ", "> ", "- ", "1. ", "@a ", "fixes #1 ", "/a\n", "[a]: b\n", "<!--", "\\"} {
		got := forge.Neutraliser{}.Text("@carol " + strings.Repeat(piece, 1<<20)).String()
		if len(got) > forge.MaxText || !strings.HasPrefix(got, "@"+z+"carol") {
			t.Errorf("%q: %d bytes, starts with %.20q", piece, len(got), got)
		}
	}
}

// The forges' own patterns, as far as they are known, written apart from ours.
var (
	gitlabCommand = regexp.MustCompile(`(?m)^[ \t>]*/[A-Za-z_]+( |$)`)
	githubClosing = regexp.MustCompile(`(?i)\b(close[sd]?|fix(e[sd])?|resolve[sd]?):? +#\d+`)
)

// A text that would take seconds to read is safe all the same.
func TestCostlyTextsAreNeutralised(t *testing.T) {
	t.Parallel()
	for _, costly := range []string{strings.Repeat("> ", 29_000), strings.Repeat("1. ", 19_000), strings.Repeat("[a]: b\n", 8_000), strings.Repeat("a\n=\n", 14_000)} {
		if !forge.Costly(costly) {
			t.Errorf("%.10q is not costly", costly)
		}
		got := forge.Neutraliser{}.Text("`@mallory` ends\n" + costly).String()
		if strings.Contains(got, "@mallory") {
			t.Errorf("%.40q mentions someone", got)
		}
	}
	if forge.Costly("> > quoted\n\n1. one\n   - two\n\n```\n> > > > code\n```\n") {
		t.Error("an ordinary text is costly")
	}
}

func FuzzText(f *testing.F) {
	for _, seed := range []string{
		"/close", "a\r\n/close", "fixes #12", "@carol `@carol` <!-- x -->", "```\n@x\n", "|`|@a`|",
		"\x00", "&#64;carol", "<!<!----", "@@carol", "closes #5 fixes #6 @alice", "> - /close\n\u2028/lock",
		"&&#64;#64;x", "<!-\x00-", "@" + z + "carol", "[^1]:\n\n\t@carol", "fix the fix #1", "/a/b\n/a b",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		nobody := forge.Neutraliser{Repository: "owner/name"}
		got := nobody.Text(raw).String()
		if again := nobody.Text(got).String(); again != got {
			t.Errorf("not stable:\n once %q\ntwice %q", got, again)
		}
		if !utf8.ValidString(got) || strings.ContainsAny(got, "\x00\r") {
			t.Errorf("not clean: %q", got)
		}
		if strings.Contains(got, "<!--") {
			t.Errorf("a hidden comment is left: %q", got)
		}
		if gitlabCommand.MatchString(got) {
			t.Errorf("a command is left: %q", got)
		}
		if githubClosing.MatchString(got) {
			t.Errorf("a closing keyword is left: %q", got)
		}
		if forge.MarkerOf("k").In(got) {
			t.Errorf("a marker is left: %q", got)
		}
		if marked := nobody.Text(raw).With(forge.MarkerOf("k")); !forge.MarkerOf("k").In(marked) {
			t.Errorf("the marker is not found in %q", marked)
		}
	})
}

func TestMarker(t *testing.T) {
	t.Parallel()
	marker, other := forge.MarkerOf("task/1/start"), forge.MarkerOf("task/2/start")
	body := forge.Neutraliser{}.Text("Hello").With(marker)
	tests := []struct {
		name string
		body string
		want bool
	}{
		{"as posted", body, true},
		{"with the forge's line ends", strings.ReplaceAll(body, "\n", "\r\n") + "\r\n", true},
		{"alone", forge.Text{}.With(marker), true},
		{"of another key", forge.Text{}.With(other), false},
		{"quoted above", body + "\n\nmore", false},
		{"in the line", "x " + marker.String(), false},
		{"none", "Hello", false},
		{"empty", "", false},
	}
	for _, test := range tests {
		if got := marker.In(test.body); got != test.want {
			t.Errorf("%s: In(%q) = %v, want %v", test.name, test.body, got, test.want)
		}
	}
	if got := forge.StripMarker(body); got != "Hello" {
		t.Errorf("StripMarker = %q, want Hello", got)
	}
	if got := forge.StripMarker("Hello\n"); got != "Hello\n" {
		t.Errorf("StripMarker without a marker = %q", got)
	}
	if (forge.Marker{}).In("") || (forge.Text{}).With(forge.Marker{}) != "" {
		t.Error("no marker was found in nothing")
	}
}

func TestFindMarked(t *testing.T) {
	t.Parallel()
	marker := forge.MarkerOf("k")
	comments := []task.Comment{
		{ID: "1", Author: "mallory", Body: marker.String()},
		{ID: "2", Author: "Toryo-Bot", Body: "x\n\n" + marker.String()},
		{ID: "3", Author: "toryo-bot", Body: marker.String()},
	}
	got, found := forge.FindMarked(comments, "toryo-bot", marker)
	if !found || got.ID != "2" {
		t.Errorf("found %v %q, want the oldest of our own, 2", found, got.ID)
	}
	if _, found := forge.FindMarked(comments, "toryo-bot", forge.MarkerOf("other")); found {
		t.Error("found a marker that nobody posted")
	}
}
