package web

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/url"
	"strings"
	"testing"
)

func rendered(ctx context.Context, t testing.TB, source string) string {
	t.Helper()
	var page strings.Builder
	must(t, markdown(source).Render(ctx, &page))
	return page.String()
}

// Texts that the reader of Markdown would take seconds for, or make much more of
// than they are, are shown as they are.
func TestCostlyMarkdownIsShownAsItIs(t *testing.T) {
	t.Parallel()
	const size = maxMarkdown - 100
	fill := func(s string) string { return strings.Repeat(s, size/len(s)) }
	var lists strings.Builder
	for i := 0; lists.Len() < size; i++ {
		lists.WriteString(strings.Repeat(" ", 2*i) + "- a\n")
	}
	for name, text := range map[string]string{
		"250 KB of quotes":       strings.Repeat("> ", 125<<10),
		"quotes":                 fill("> "),
		"quotes without a space": fill(">"),
		"quotes on many lines":   fill(strings.Repeat("> ", 100) + "a\n"),
		"lists on one line":      fill("- "),
		"numbered lists":         fill("1. "),
		"quotes and lists":       fill("> - "),
		"lists by indentation":   lists.String(),
		"links without an end":   fill("[]("),
		"links in pointed ones":  fill("[a](<"),
		"links by name":          fill("[a]["),
		"definitions":            fill("[a]: b\n"),
		"one long definition":    "[a]: http://x/" + strings.Repeat("y", size/2) + "\n\n" + strings.Repeat("[a] ", size/10),
		"emphasis":               fill("*_"),
		"emphasis around words":  fill("*a **a "),
		"struck out":             fill("~~a~"),
		"a wide table":           "|" + strings.Repeat("a|", 4000) + "\n|" + strings.Repeat("-|", 4000) + "\n" + strings.Repeat("|\n", 4000),
		"headings":               fill("a\n=\n"),
	} {
		page := rendered(t.Context(), t, text)
		if !strings.HasPrefix(page, "<pre>") || strings.Contains(page, "<blockquote>") || len(page) > 6*len(text) {
			t.Errorf("%s: %d bytes become %d, %.40q", name, len(text), len(page), page)
		}
	}
	// What is not costly is read, whatever it is: a page of it is not much larger.
	for name, text := range map[string]string{
		"brackets": fill("["), "images": fill("!["), "elements": fill("<div>"), "comments": fill("<!--"), "addresses": fill("http://a "), "code": fill("`a"),
	} {
		if page := rendered(t.Context(), t, text); len(page) > 2*maxMarkup {
			t.Errorf("%s: %d bytes become %d", name, len(text), len(page))
		}
	}
}

// What people write is read.
func TestOrdinaryMarkdownIsRead(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	text.WriteString("> > > deep\n\n- a\n  - b\n    - c\n\n| a | b |\n| - | - |\n")
	for i := range 150 {
		fmt.Fprintf(&text, "| [item %d](https://example.org/%d) | **yes** and *no* |\n", i, i)
	}
	page := rendered(t.Context(), t, text.String())
	for _, want := range []string{"<blockquote>", "<li>", "<td>", `href="https://example.org/149"`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %s", want)
		}
	}
}

// A text is read once, however often it is looked at, and one page reads so much
// and no more.
func TestMarkdownIsReadOnce(t *testing.T) {
	t.Parallel()
	source := "**read once**, as " + t.Name()
	rendered(t.Context(), t, source)
	if text, found := pages.get(sha256.Sum256([]byte(source))); !found || !strings.Contains(string(text.html), "<strong>") {
		t.Error("the page of a text is not kept")
	}
	page := withPageSource(t.Context())
	read := 0
	for i := range 20 {
		text := fmt.Sprintf("**%d %s**\n\n%s", i, t.Name(), strings.Repeat("word ", 10_000))
		if strings.Contains(rendered(page, t, text), "<strong>") {
			read++
		}
	}
	if read != maxPageSource/50_000 {
		t.Errorf("%d of 20 texts of 50 KB are read for one page", read)
	}
	var k known
	for i := range 100 {
		k.put(&knownText{key: sha256.Sum256(fmt.Append(nil, i)), html: make([]byte, 1<<20), fine: true})
	}
	if k.size > maxKnown || len(k.texts) > 16 || k.order.Len() != len(k.texts) {
		t.Errorf("%d bytes of %d texts are kept", k.size, len(k.texts))
	}
	if _, found := k.get(sha256.Sum256([]byte("99"))); !found {
		t.Error("the last one is forgotten")
	}
}

// Comments on the board that cost much are shown to every reader as they are.
func TestCostlyCommentOnAPage(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.repository(t)
	alice := h.visitor(t, "alice")
	quotes := strings.Repeat("> ", 125<<10)
	if status, page := alice.post("/board/team/app/issues", url.Values{"title": {"x"}, "body": {quotes}}); status != 200 || !strings.Contains(page, "<pre>&gt; &gt; ") {
		t.Errorf("answered %d without the text as it is", status)
	}
}

// A diff with a line of 10 MB becomes a page of a size that a browser can show.
func TestDiffWithALongLine(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.repository(t)
	h.pushAll(t, "long", map[string]string{"long.txt": strings.Repeat("x", 10<<20) + "\n", "short.txt": "here it is\n"})
	alice := h.visitor(t, "alice")
	status, _ := alice.post("/board/team/app/pulls", url.Values{"title": {"x"}, "head": {"long"}, "base": {"main"}})
	if status != 200 {
		t.Fatalf("answered %d", status)
	}
	_, page := alice.get("/board/team/app/pulls/1?tab=changes")
	if len(page) > 1<<20 || !strings.Contains(page, "long.txt") || !strings.Contains(page, "here it is") {
		t.Errorf("the page has %d bytes", len(page))
	}
	view := newDiff("diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -0,0 +1 @@\n+"+strings.Repeat("x", 10<<20)+"\n", nil, nil)
	if len(view.files) != 1 || view.files[0].cost(0, len(view.files[0].rows)) > 3*maxDiffLine {
		t.Errorf("the diff has %d files", len(view.files))
	}
	if raw := newDiff("@@ nonsense "+strings.Repeat("x", 10<<20), nil, nil); len(raw.raw) > 2*maxRawDiff {
		t.Errorf("what cannot be read is shown with %d bytes", len(raw.raw))
	}
}

// JSON that is nested deep is not laid out: each level would indent all below it.
func TestDeepJSONIsNotLaidOut(t *testing.T) {
	t.Parallel()
	deep := `{"a":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + "}"
	if laidOut, is := asJSON(deep); is {
		t.Errorf("%d bytes become %d", len(deep), len(laidOut))
	}
	if _, is := asJSON(`{"a":[1]}`); !is {
		t.Error("ordinary JSON is not laid out")
	}
}
