package web

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/toryo-dev/toryo/internal/review/judge"
	"github.com/toryo-dev/toryo/internal/store"
)

// A long answer and a long conversation are shown in parts: the page stays small, and every
// section can be reached.
func TestLongReview(t *testing.T) {
	t.Parallel()
	h := newHouse(t, withReviews(t))
	var answer strings.Builder
	for n := 1; n <= 300; n++ {
		fmt.Fprintf(&answer, "$$[%d] file%d.go\n@@ -1,9 +1,9 @@\n%s", n, n, strings.Repeat("-old < line\n+new < line 日本語の行\n", 20))
	}
	one := h.review(t, "alice", answer.String())
	thread, err := h.pages.Reviews.AddThread(t.Context(), "alice", one.ID, "en")
	must(t, err)
	for i := range 30 {
		h.ask(t, "alice", thread.ID, fmt.Sprintf("question %d. %s", i, strings.Repeat("and more ", 200)))
	}
	alice := h.visitor(t, "alice")
	small := func(path string) string {
		t.Helper()
		status, page := alice.get(path)
		if status != http.StatusOK || len(page) > 300_000 {
			t.Errorf("%s answers %d with %d bytes", path, status, len(page))
		}
		return page
	}
	page := small("/reviews/" + one.ID)
	if !strings.Contains(page, `id="section-1"`) || strings.Contains(page, `id="section-299"`) || strings.Contains(page, "question 5.") || !strings.Contains(page, "question 29.") {
		t.Error("the first page has not what it should have")
	}
	if all := small("/reviews/" + one.ID + "?from=299"); !strings.Contains(all, `id="section-299"`) || strings.Contains(all, `id="section-1"`) {
		t.Error("the page of section 299 has not what it should have")
	}
	// From page to page one sees every message.
	said := map[string]bool{}
	earlier := regexp.MustCompile(`href="(\?earlier=[1-9][0-9]*)[^"]*"`)
	for path := "?"; path != ""; {
		page := small("/reviews/" + one.ID + path)
		for _, found := range regexp.MustCompile(`question [0-9]+\.`).FindAllString(page, -1) {
			said[found] = true
		}
		path = ""
		if link := earlier.FindStringSubmatch(page); link != nil {
			path = link[1]
		}
	}
	if len(said) != 30 {
		t.Errorf("%d questions were seen", len(said))
	}
	// From page to page one sees every section once, and comes back.
	seen := 0
	next := regexp.MustCompile(`href="(\?from=[0-9]+)[^"]*">Next sections`)
	for path := "?"; ; {
		page := small("/reviews/" + one.ID + path)
		seen += strings.Count(page, `id="section-`)
		link := next.FindStringSubmatch(page)
		if link == nil {
			if !strings.Contains(page, "Previous sections") {
				t.Error("the last page does not lead back")
			}
			break
		}
		path = link[1]
	}
	if seen != 300 {
		t.Errorf("%d sections were seen", seen)
	}
}

// However long the texts of a review are, its page stays small, and each text can be read
// whole.
func TestLargeTextsOfAReview(t *testing.T) {
	t.Parallel()
	h := newHouse(t, withReviews(t))
	large := func(word string, bytes int) string { return strings.Repeat(word, bytes/len(word)) + "THE END" }
	remarks := make([]any, 800)
	for i := range remarks {
		remarks[i] = map[string]any{"point": large("**a** <b> ", 300), "paragraph_numbers": []int{1, 2, 3}}
	}
	judgement, err := json.Marshal(map[string]any{"overall_review": large("*x* & ", 100<<10), "weaknesses": remarks})
	must(t, err)
	alice := h.visitor(t, "alice")
	for name, answer := range map[string]string{
		"without sections": large("<&\n", 3<<20),
		"one section":      "$$[1] " + large("a & b\n\n- c\n", 3<<20),
		"a diff":           "$$[1] gate.go\n@@ -1 +1 @@\n" + large("+<\n", 3<<20),
		"two sections":     "$$[1] " + large("§1 ", 500<<10) + "\n$$[2] " + large("x", 500<<10),
	} {
		made, err := h.pages.Reviews.AddReviewOf(t.Context(), "alice", store.Question{
			Text: large("# q\n", 900<<10), PurposeText: large("> p\n", 900<<10), GradingImpressionText: large("<g>", 900<<10),
		}, store.Review{AnswerText: answer, Judgement: judgement})
		must(t, err)
		thread, err := h.pages.Reviews.AddThread(t.Context(), "alice", made.ID, "en")
		must(t, err)
		for range 4 {
			h.ask(t, "alice", thread.ID, large("§1 <q> ", 200<<10))
		}
		_, page := alice.get("/reviews/" + made.ID)
		if len(page) > 300_000 {
			t.Errorf("%s: the page has %d bytes", name, len(page))
		}
		links := regexp.MustCompile(`href="(/(?:reviews|threads)/[^"]*(?:/text|/text/[a-z0-9-]+))"`).FindAllStringSubmatch(page, -1)
		kinds := map[string]bool{}
		for _, link := range links {
			kinds[regexp.MustCompile(`[0-9a-f-]{20,}`).ReplaceAllString(link[1], "")] = true
			if status, text := alice.get(link[1]); status != http.StatusOK || !strings.Contains(text, "THE END") {
				t.Errorf("%s: %s answers %d with %d bytes", name, link[1], status, len(text))
			}
			if status, _ := h.visitor(t, "bob").get(link[1]); status != http.StatusNotFound {
				t.Errorf("%s: bob gets %d from %s", name, status, link[1])
			}
		}
		if len(kinds) < 6 { // question, purpose, grading, judgement, the answer or a section, a message
			t.Errorf("%s: only these can be read whole: %v", name, kinds)
		}
	}
}

// So does the page of a review whose remarks are many or name many sections, and of a conversation
// whose last message is long and has no answer. What is in no box can be sent again at its place.
func TestManyNumbersAndRemarksOfAReview(t *testing.T) {
	t.Parallel()
	h := newHouse(t, withReviews(t))
	numbers := make([]int, 120_000)
	for i := range numbers {
		numbers[i] = i + 1
	}
	var answer strings.Builder
	for n := 1; n <= 10_000; n++ {
		fmt.Fprintf(&answer, "$$[%d] section %d\n", n, n)
	}
	for name, judgement := range map[string]map[string]any{
		"a remark with many sections": {"strengths": []any{map[string]any{"point": strings.Repeat("a <b> ", 100), "paragraph_numbers": numbers}}},
		"many remarks":                {"weaknesses": slices.Repeat([]any{"a"}, 200_000)},
	} {
		encoded, err := json.Marshal(judgement)
		must(t, err)
		one, err := h.pages.Reviews.AddReviewOf(t.Context(), "alice", store.Question{Text: "Why?"}, store.Review{AnswerText: answer.String(), Judgement: encoded})
		must(t, err)
		alice := h.visitor(t, "alice")
		if _, page := alice.get("/reviews/" + one.ID); len(page) > 300_000 || !strings.Contains(page, "/text/judgement") {
			t.Errorf("%s: the page has %d bytes", name, len(page))
		}
		if _, page := alice.get("/reviews/" + one.ID + "?remark=1"); len(page) > 300_000 {
			t.Errorf("%s: with a remark in the box the page has %d bytes", name, len(page))
		}
	}
	one := h.review(t, "alice", "$$[1] "+strings.Repeat("a & b\n\n- c\n", 300_000))
	alice := h.visitor(t, "alice")
	for size, drafted := range map[int]bool{1 << 10: true, 250 << 10: false} {
		thread, err := h.pages.Reviews.AddThread(t.Context(), "alice", one.ID, "en")
		must(t, err)
		alice.post("/threads/"+thread.ID+"/messages", url.Values{"content": {"please fail " + strings.Repeat("<\"", size/2)}})
		_, page := alice.get("/reviews/" + one.ID + "?thread=" + thread.ID)
		if len(page) > 300_000 {
			t.Errorf("with a message of %d bytes without an answer the page has %d bytes", size, len(page))
		}
		if !strings.Contains(page, "please fail") || strings.Contains(page, "required>please fail") != drafted || strings.Contains(page, `name="repeat"`) == drafted {
			t.Errorf("with a message of %d bytes it is not in the box, or cannot be sent again: drafted %v, repeat %v", size, strings.Contains(page, "required>please fail"), strings.Contains(page, `name="repeat"`))
		}
	}
}

// countedContext counts how often somebody asks whether it has ended, as each piece of a page does
// that is made.
type countedContext struct {
	context.Context //nolint:containedctx // it is one
	asked           *atomic.Int64
}

func (c countedContext) Err() error {
	c.asked.Add(1)
	return c.Context.Err()
}

// Remarks that are not shown are counted, and not made.
func TestRemarksThatAreNotShown(t *testing.T) {
	t.Parallel()
	view := reviewView{}
	for i := range 50_000 {
		view.judgement.Items = append(view.judgement.Items, judge.Item{Field: judge.ItemFields[i%len(judge.ItemFields)], JSON: []byte(`"a"`)})
	}
	var asked atomic.Int64
	must(t, view.layRemarks(countedContext{t.Context(), &asked}, visit{}, nil))
	shown := 0
	for _, of := range view.pieces.remarks {
		shown += len(of.items)
	}
	if shown == 0 || shown+view.pieces.leftOut != 50_000 || asked.Load() > 20_000 {
		t.Errorf("%d are shown and %d are not, for %d pieces", shown, view.pieces.leftOut, asked.Load())
	}
}

// A link to a section leads to the page that has it, and what is put into the message leads
// back to the sections that were read. §1 is not in §12.
func TestSectionsOnOtherPages(t *testing.T) {
	t.Parallel()
	h := newHouse(t, withReviews(t))
	var answer strings.Builder
	for n := 1; n <= 150; n++ {
		fmt.Fprintf(&answer, "$$[%d] section %d\n", n, n)
	}
	one := h.review(t, "alice", answer.String())
	alice := h.visitor(t, "alice")
	_, page := alice.post("/reviews/"+one.ID+"/messages", url.Values{"content": {"please fail §120 and §12"}})
	if !strings.Contains(page, `from=120&amp;thread=`) || !strings.Contains(page, `href="#section-12"`) {
		t.Errorf("the page is %s", page)
	}
	if _, page := alice.get("/reviews/" + one.ID + "?section=1"); !strings.Contains(page, "please fail §120 and §12\n§1 </textarea>") {
		t.Errorf("§1 is not put in: %s", page)
	}
	if _, page := alice.get("/reviews/" + one.ID + "?from=120"); !strings.Contains(page, `?quote=130&amp;from=120`) {
		t.Errorf("what is quoted leads elsewhere: %s", page)
	}
}
