package web

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/toryo-dev/toryo/internal/forge"
)

// pullWith opens a pull request with some files, and returns its page.
func (h *house) pullWith(t *testing.T, files map[string]string) string {
	t.Helper()
	h.repository(t)
	h.pushAll(t, "work", files)
	_, err := h.board.EnsureUser(t.Context(), "bob", forge.WriteAccess)
	must(t, err)
	pull, _, err := h.board.As("bob").CreatePull(t.Context(), "team/app", forge.NewPull{Title: "Work", Head: "work"})
	must(t, err)
	return itemURL(pull.Key)
}

// A comment on a line stands in the conversation too, with the line, and can be answered
// there.
func TestLineCommentsInTheConversation(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	path := h.pullWith(t, map[string]string{"gate.go": "package gate\n\nfunc Open() string {\n\treturn \"silence\"\n}\n"})
	alice := h.visitor(t, "alice")
	if status, _ := alice.post(path+"/line", url.Values{"path": {"gate.go"}, "side": {"new"}, "line": {"4"}, "body": {"Is it **really** silent?"}}); status != 200 {
		t.Fatalf("the comment is answered %d", status)
	}
	_, page := alice.get(path)
	for _, want := range []string{"gate.go, line 4", "<strong>really</strong>", "return &#34;silence&#34;", `class="add"`} {
		if !strings.Contains(page, want) {
			t.Errorf("the conversation has no %s", want)
		}
	}
	if reply := regexp.MustCompile(`<details data-key="answer-[^"]+">\s*<summary>`); !reply.MatchString(page) {
		t.Error("the form for a reply has no name of its own")
	}
	if _, changes := alice.get(path + "?tab=changes"); !strings.Contains(changes, `aria-label="Comment on line 4"`) || !strings.Contains(changes, `aria-label="Comment on line 4 before the change"`) {
		t.Error("the numbers of lines do not say what they lead to")
	}
	if strings.Count(page, `class="comment"`) != 2 { // the text of the pull request, and the comment
		t.Errorf("there are %d comments", strings.Count(page, `class="comment"`))
	}
	window := h.window(t, "alice")
	window.Open(path)
	window.Accessible("a conversation with comments on lines")
	window.Click(`.thread details summary`)
	window.Fill(`.thread details textarea`, "I have listened.")
	window.Click(`.thread details button`)
	window.At(path)
	window.Sees("#conversation .thread .comment", "I have listened.")
	window.Shot("conversation-thread")
	window.Click(`.thread p > a.mono`)
	window.Sees(".talk .comment", "I have listened.")
}

// Conversations stand below their lines, those of a side of a file under both of its names, and
// what is said of a line that is gone stands nowhere.
func TestPlacesOfConversations(t *testing.T) {
	t.Parallel()
	thread := func(id, path string, side forge.Side, line int) forge.ReviewThread {
		return forge.ReviewThread{ID: id, Anchor: forge.Anchor{Path: path, Side: side, Line: line}}
	}
	gone := thread("gone", "new.go", forge.NewSide, 2)
	gone.Outdated = true
	threads := []forge.ReviewThread{
		thread("second", "new.go", forge.OldSide, 2), thread("by the old name", "old.go", forge.OldSide, 2), thread("first", "new.go", forge.NewSide, 2),
		gone, thread("elsewhere", "other.go", forge.NewSide, 2), thread("far", "new.go", forge.NewSide, 900),
	}
	view := newDiff("diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-x\n+y\n"+
		"diff --git a/old.go b/new.go\nsimilarity index 50%\nrename from old.go\nrename to new.go\n--- a/old.go\n+++ b/new.go\n@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n", threads, nil)
	var shown []string
	for i, row := range view.files[1].rows {
		for _, one := range row.threads {
			shown = append(shown, fmt.Sprint(i, " ", one.ID))
		}
	}
	if want := "[2 second 2 by the old name 2 first]"; fmt.Sprint(shown) != want {
		t.Errorf("shown are %v, want %s", shown, want)
	}
	if at := view.placeOf("first"); at != (diffPlace{file: 1}) {
		t.Errorf("the page begins at %v", at)
	}
	text := func(id int) (lines []string) {
		for _, line := range view.excerpt(threads[id]) {
			lines = append(lines, line.text)
		}
		return lines
	}
	if old, fresh, none := text(0), text(2), text(4); fmt.Sprint(old, fresh, none) != "[one two] [one TWO] []" {
		t.Errorf("the excerpts are %v, %v and %v", old, fresh, none)
	}
	var left []string
	for _, one := range view.notPlaced(threads) {
		left = append(left, one.ID)
	}
	if fmt.Sprint(left) != "[gone elsewhere far]" {
		t.Errorf("left are %v", left)
	}
}

// Of a diff without an end the first files are read, whole, and it is said that there are more.
func TestEndlessDiff(t *testing.T) {
	t.Parallel()
	file := func(name string, bytes int) string {
		return "diff --git a/" + name + " b/" + name + "\n--- a/" + name + "\n+++ b/" + name + "\n@@ -0,0 +1 @@\n+" + strings.Repeat("x", bytes) + "\n"
	}
	view := newDiff(file("a", 10)+file("b", 10)+file("c", maxDiff), nil, nil)
	if len(view.files) != 2 || !view.cut {
		t.Errorf("%d files are read", len(view.files))
	}
	view = newDiff(file("a", 2*maxDiff), nil, nil)
	if !view.cut || len(view.raw) > 2*maxRawDiff {
		t.Errorf("%d files and %d bytes are shown", len(view.files), len(view.raw))
	}
}

// A conversation on a line behind what is read of a diff is not called outdated.
func TestConversationsBehindALongDiff(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	path := h.pullWith(t, map[string]string{
		"a.txt": "first\n", "b.txt": strings.Repeat(strings.Repeat("x", 1<<20)+"\n", maxDiff>>20+1), "c.txt": "last\n",
	})
	alice := h.visitor(t, "alice")
	if status, _ := alice.post(path+"/line", url.Values{"path": {"c.txt"}, "side": {"new"}, "line": {"1"}, "body": {"Is it the last?"}}); status != 200 {
		t.Fatalf("the comment is answered %d", status)
	}
	_, page := alice.get(path + "?tab=changes")
	if !strings.Contains(page, "Is it the last?") || !strings.Contains(page, "too long to show in full") || strings.Contains(page, "Outdated") {
		t.Errorf("the page says %s", clipTo(anyTag.ReplaceAllString(page, " "), 5000))
	}
}

// A diff of 300 files is on several pages, each of a size that a phone can load, and every line
// is on one of them.
func TestLongDiffIsOnSeveralPages(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	files := map[string]string{"a-long-one.txt": ""}
	for i := range 299 {
		files[fmt.Sprintf("folder/with/a/name/file-%03d.go", i)] = strings.Repeat("package file // of some length, as lines are\n", 10) + fmt.Sprintf("last line of %03d\n", i)
	}
	var long strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&long, "this is line %d of many\n", i)
	}
	files["a-long-one.txt"] = long.String()
	path := h.pullWith(t, files)
	alice := h.visitor(t, "alice")
	next, pages, everything := path+"?tab=changes", 0, ""
	for next != "" {
		if pages++; pages > 50 {
			t.Fatal("the pages have no end")
		}
		status, page := alice.get(next)
		if status != 200 || len(page) > 300<<10 {
			t.Errorf("page %d is answered %d with %d bytes", pages, status, len(page))
		}
		everything += page
		at := strings.Index(page, `>Next files</a>`)
		if next = ""; at > 0 {
			start := strings.LastIndex(page[:at], `href="`) + len(`href="`)
			next = path + strings.ReplaceAll(page[start:start+strings.Index(page[start:], `"`)], "&amp;", "&")
		}
	}
	for i := range 299 {
		if !strings.Contains(everything, fmt.Sprintf("last line of %03d<", i)) {
			t.Errorf("file %d is not shown whole", i)
		}
	}
	for i := range 3000 {
		if !strings.Contains(everything, fmt.Sprintf("this is line %d of many<", i)) {
			t.Fatalf("line %d is not shown", i)
		}
	}
	// A comment far behind is written, and read, where its line is.
	if _, page := alice.get(path + "?at=new:2900:a-long-one.txt"); !strings.Contains(page, `id="line-form"`) || !strings.Contains(page, "this is line 2899 of many<") {
		t.Error("the form for a line far behind is not there")
	}
	for _, odd := range []string{"?from=-1", "?from=100000", "?from=3.100000", "?from=x.y", "?from=1.1.1", "?thread=none", "?tab=changes&from=99999999999999999999"} {
		if status, _ := alice.get(path + odd); status != 200 {
			t.Errorf("%s is answered %d", odd, status)
		}
	}
}

// On a phone a diff is one column: what was removed stands before what was added, and what is on
// both sides is there once.
func TestUnifiedDiffOnAPhone(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	path := h.pullWith(t, map[string]string{"gate.go": "package gate\n\nfunc Shut() string {\n\treturn \"silence, as it has to be in the night when all are asleep and a gate that squeaks is not wanted\"\n}\n"})
	alice := h.window(t, "alice")
	alice.Run("take a phone", chromedp.EmulateViewport(390, 850))
	alice.Open(path + "?tab=changes")
	lines := get[[]string](alice, `[...document.querySelectorAll(".diff tbody:not(.hunk) td:not(.n)")]
		.filter((cell) => cell.offsetParent && cell.getClientRects().length)
		.sort((a, b) => a.getBoundingClientRect().top - b.getBoundingClientRect().top)
		.map((cell) => getComputedStyle(cell, "::before").content.replaceAll('"', "").replace("none", "") + cell.textContent.trim())`)
	want := []string{
		"package gate", "", "−func Open() string {", "−return \"squeak\"", "+func Shut() string {", "+return \"silence, as it has to be in the night when all are asleep and a gate that squeaks is not wanted\"", "}",
	}
	if fmt.Sprint(lines) != fmt.Sprint(want) {
		t.Errorf("the phone shows %q", lines)
	}
	if wide := get[int](alice, `document.documentElement.scrollWidth`); wide > 390 {
		t.Errorf("the page is %d wide", wide)
	}
	alice.Click(`td.n.new a`)
	alice.Until(`document.getElementById("line-form") !== null`)
	alice.Accessible("a diff on a phone")
	alice.Shot("diff-phone")
}

// What a button asks, before it does something, is in sight on a phone, wherever the button is.
func TestQuestionsAreInSightOnAPhone(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	path := h.pullWith(t, map[string]string{"gate.go": "package gate\n"})
	root := h.window(t, "root")
	root.Run("take a phone", chromedp.EmulateViewport(390, 850))
	for _, page := range []struct{ path, button string }{
		{path, "#item-head .confirm > summary"}, {"/settings/people", ".confirm > summary"}, {"/settings", ".saved .confirm > summary"},
	} {
		root.Open(page.path)
		root.Click(page.button)
		root.Until(`document.querySelector(".confirm[open]") !== null`)
		if cut := get[bool](root, `(() => { const box = document.querySelector(".confirm[open] .confirm-body").getBoundingClientRect(); return box.left < 0 || box.right > innerWidth || box.bottom > innerHeight || box.width < 200; })()`); cut {
			t.Errorf("on %s a part of the question is out of sight", page.path)
		}
		root.Accessible("a question on " + page.path)
	}
}
