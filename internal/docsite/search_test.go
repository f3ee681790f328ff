package docsite

import (
	"slices"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/task"
)

// small is a documentation of two pages.
func small(t *testing.T, language task.Language) *Library {
	t.Helper()
	return read(t, language, map[string]string{
		"README.md":  "# Docs\n\n## All\n\n- [a](gate.md)\n- [b](barn.md)\n",
		"gate.md":    "# The gate\n\nIt opens.\n\n## Oil for hinges\n\nEvery week. `oil_every: 7d` says so.\n\n## Paint\n\nThe hinges stay dry.\n",
		"barn.md":    "# The barn\n\nA gate leads to it.\n\n## Roof\n\nIt has hinges, too.\n",
		"ja/gate.md": "# 門\n\n開きます。\n\n## 蝶番の油\n\n毎週です。環境を準備して、\n油を差します。`oil_every: 7d` で決めます。\n\n## 塗装\n\nサーバーとは関係ありません。\n",
	})
}

func paths(results []Result) []string {
	var found []string
	for _, one := range results {
		found = append(found, one.Path())
	}
	return found
}

// Titles come before headings, headings before texts; every word has to be there; words are
// found by their beginnings, in any case and width.
func TestSearch(t *testing.T) {
	t.Parallel()
	for query, want := range map[string][]string{
		"gate":           {"/docs/gate", "/docs/barn"},
		"GATE":           {"/docs/gate", "/docs/barn"},
		"ｇａｔｅ":           {"/docs/gate", "/docs/barn"},
		"hinges":         {"/docs/gate#oil-for-hinges", "/docs/gate#paint", "/docs/barn#roof"},
		"hing":           {"/docs/gate#oil-for-hinges", "/docs/gate#paint", "/docs/barn#roof"},
		"hinges roof":    {"/docs/barn#roof"},
		"gate paint":     {"/docs/gate#paint"},
		"oil_every":      {"/docs/gate#oil-for-hinges"},
		"hinges nothing": nil,
		"inges":          nil,
		"":               nil,
		" ?! ":           nil,
		"門":              nil,
	} {
		if got := paths(small(t, task.English).Search(query)); !slices.Equal(got, want) {
			t.Errorf("%q finds %q, want %q", query, got, want)
		}
	}
}

// Japanese has no spaces: words are found within sentences, over the ends of lines, and
// particles need not be the same.
func TestSearchInJapanese(t *testing.T) {
	t.Parallel()
	for query, want := range map[string][]string{
		"門":       {"/docs/gate"},
		"蝶番":      {"/docs/gate#oil-for-hinges"},
		"蝶番の油":    {"/docs/gate#oil-for-hinges"},
		"環境の準備":   {"/docs/gate#oil-for-hinges"},
		"油 毎週":    {"/docs/gate#oil-for-hinges"},
		"油　毎週":    {"/docs/gate#oil-for-hinges"},
		"サーバー":    {"/docs/gate#paint"},
		"サーバ":     {"/docs/gate#paint"},
		"環境 roof": nil,
		"barn":    {"/docs/barn"},
		"境準":      nil,
	} {
		if got := paths(small(t, task.Japanese).Search(query)); !slices.Equal(got, want) {
			t.Errorf("%q finds %q, want %q", query, got, want)
		}
	}
}

// What was looked for is marked, in the title and in the part of the text that is shown.
func TestMarks(t *testing.T) {
	t.Parallel()
	show := func(pieces []Piece) string {
		var out strings.Builder
		for _, one := range pieces {
			if one.Marked {
				out.WriteString("[" + one.Text + "]")
			} else {
				out.WriteString(one.Text)
			}
		}
		return out.String()
	}
	first := small(t, task.English).Search("oil hinges")[0]
	if got := show(first.Title) + " | " + show(first.Snippet); got != "[Oil] for [hinges] | Every week. [oil]_every: 7d says so." {
		t.Errorf("shown is %s", got)
	}
	first = small(t, task.Japanese).Search("環境の準備")[0]
	if got := show(first.Snippet); got != "毎週です。[環境]を[準備]して、油を差します。oil_every: 7d で決めます。" {
		t.Errorf("shown is %s", got)
	}
	long := read(t, task.English, map[string]string{"README.md": "# Docs\n\n## All\n\n- [a](a.md)\n", "a.md": "# A\n\n" + strings.Repeat("many other words ", 40) + "and a needle " + strings.Repeat("日本語", 200)})
	if got := show(long.Search("needle")[0].Snippet); !strings.HasPrefix(got, "…") || !strings.HasSuffix(got, "…") || !strings.Contains(got, "and a [needle] 日本語") || len([]rune(got)) > snippetLength+10 {
		t.Errorf("shown is %s", got)
	}
}

// A query can be anything, and as long as anything.
func TestHostileQueries(t *testing.T) {
	t.Parallel()
	l := library(t, task.Japanese)
	for _, query := range []string{
		"\xff\xfe", "a\x00b", strings.Repeat("a ", 1<<20), strings.Repeat("環境", 1<<18), strings.Repeat("\u0301", 1000), "\u202eevil", "<script>alert(1)</script>", "e",
	} {
		if found := l.Search(query); len(found) > maxResults {
			t.Errorf("%.20q finds %d", query, len(found))
		}
	}
}

// What people look for is found first.
func TestSearchInTheDocumentation(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		language task.Language
		query    string
		want     string
	}{
		{task.English, "webhook", "/docs/forges#webhooks"},
		{task.English, "pause everything", "/docs/signals#pausing-everything"},
		{task.English, "first day", "/docs/first-day"},
		{task.English, "sandbox network", "/docs/environments#network"},
		{task.Japanese, "すべての一時停止", "/docs/signals#pausing-everything"},
		{task.Japanese, "最初の日", "/docs/first-day"},
		{task.Japanese, "ネットワーク", "/docs/environments#network"},
		{task.Japanese, "backup", "/docs/operations#backup-and-restore"},
	} {
		found := paths(library(t, test.language).Search(test.query))
		if at := slices.Index(found, test.want); at < 0 || at > 2 {
			t.Errorf("%q finds %q", test.query, found)
		}
	}
}

// What a search makes depends on what it shows, and not on how much text has the words: everybody
// may search. The words of these pages are about 80,000.
func TestSearchMakesLittle(t *testing.T) { //nolint:paralleltest // what others make would be counted
	for _, language := range both {
		l := library(t, language)
		for _, query := range []string{"e", "toryo", "a b c d e f g", "の"} {
			if made := testing.AllocsPerRun(3, func() { l.Search(query) }); made > 5000 {
				t.Errorf("%s: to search for %q makes %.0f things", language, query, made)
			}
		}
	}
}
