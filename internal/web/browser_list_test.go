package web

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/store"
)

// The filters of a list are folded on a narrow screen, and are there when the screen becomes wide.
func TestFiltersUnfold(t *testing.T) {
	t.Parallel()
	h := newHouse(t, withBroker)
	vera := h.window(t, "vera")
	vera.Run("hold the phone upright", chromedp.EmulateViewport(390, 844))
	vera.Open("/queue?q=gate")
	vera.Until(`!document.querySelector(".fold").open`)
	vera.Run("turn the phone", chromedp.EmulateViewport(844, 390))
	vera.Until(`document.querySelector(".fold").open && document.querySelector("select[name=state]").getBoundingClientRect().height > 0`)
	vera.Run("turn it back", chromedp.EmulateViewport(390, 844))
	vera.Until(`!document.querySelector(".fold").open`)
}

// full makes enough rows for every list.
func (h *house) full(t testing.TB) {
	t.Helper()
	h.repository(t)
	h.many(t, 30)
	_, err := h.board.EnsureUser(t.Context(), "root", forge.AdminAccess)
	must(t, err)
	for i := range 30 {
		_, err := h.board.As("root").CreateIssue(t.Context(), "team/app", forge.NewIssue{Title: fmt.Sprint("A rather long title of an issue, number ", i), Labels: []string{"bug"}})
		must(t, err)
		_, err = access.Tokens{Store: h.store, Now: time.Now}.Create(t.Context(), access.Agent, fmt.Sprint("agent-", i))
		must(t, err)
		_, err = h.pages.Reviews.AddReview(t.Context(), "root", store.Review{CustomQuestionText: fmt.Sprint("Question ", i), AnswerText: paper, Judgement: []byte(`{"overall_review":"x"}`)})
		must(t, err)
		must(t, h.pages.audited(t.Context(), "root", "test", fmt.Sprint("entry ", i), func() error { return nil }))
	}
}

// Every list has at least 15 rows on a screen, and the form that saves a view is in the window.
func TestListsFitTheScreen(t *testing.T) {
	t.Parallel()
	h := newSteeredHouse(t, withBroker, withReviews(t))
	h.full(t)
	root := h.window(t, "root")
	root.Run("choose a size", chromedp.EmulateViewport(1280, 850))
	for _, path := range []string{"/queue", "/agents", "/reviews", "/settings", "/settings/audit", "/board/team/app/issues"} {
		root.Open(path)
		root.Shot("list" + strings.ReplaceAll(path, "/", "-"))
		rows := get[int](root, `[...document.querySelectorAll(".dense tbody tr, #items > li")].filter((row) => row.getBoundingClientRect().bottom <= innerHeight).length`)
		if rows < 15 {
			t.Errorf("%s has %d rows on a screen", path, rows)
		}
	}
	for _, width := range []int64{1280, 390} {
		root.Run("choose a size", chromedp.EmulateViewport(width, 850))
		for _, path := range []string{"/queue", "/agents", "/reviews", "/settings", "/settings/audit", "/settings/people", "/settings/webhooks", "/board", "/board/team/app/issues"} {
			root.Open(path)
			root.Click(`.saved summary`)
			root.Until(`document.querySelector(".saved .confirm").open`)
			if !get[bool](root, `(() => { const at = document.querySelector(".saved .confirm-body").getBoundingClientRect(); return at.width > 100 && at.left >= 0 && at.right <= innerWidth; })()`) {
				t.Errorf("%s at a width of %d: the form that saves a view is not in the window", path, width)
			}
		}
	}
}

// On a phone a list can be put in order, and all its rows can be picked.
func TestOrderOnAPhone(t *testing.T) {
	t.Parallel()
	h := newSteeredHouse(t, withBroker)
	h.assignOne(t, 1, "Beta")
	h.assignOne(t, 2, "Alpha")
	alice := h.window(t, "alice")
	alice.Run("hold a phone", chromedp.EmulateViewport(390, 844))
	alice.Open("/queue")
	hidden := get[string](alice, `[...document.querySelectorAll("#rows thead :is(a, input)")].filter((one) => { const at = one.getBoundingClientRect(); return at.height < 16 || at.width < 16 || at.right > innerWidth; }).map((one) => one.outerHTML).join()`)
	if hidden != "" {
		t.Errorf("cannot be seen: %s", hidden)
	}
	alice.Click(`#rows thead a[href="/queue?sort=title"]`)
	alice.Until(`location.search === "?sort=title" && document.querySelector("#rows td.main").textContent.includes("Alpha")`)
	alice.Click(`[data-pick-all]`)
	if picked := get[int](alice, `document.querySelectorAll('#rows input[name="pick"]:checked').length`); picked != 2 {
		t.Errorf("%d rows are picked", picked)
	}
	alice.Shot("list-phone")
}

// What somebody has typed is not taken away when the page changes, with the focus or without, and
// what somebody has opened is not taken for something else with the same title. What has changed
// meanwhile comes when the text is gone.
func TestTypedTextIsKept(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.repository(t)
	h.push(t, "package gate\n\nfunc Open() string {\n\treturn \"silence\"\n}\n\nfunc Close() {}\n")
	hands := h.board.As(bot)
	pull, _, err := hands.CreatePull(t.Context(), "team/app", forge.NewPull{Title: "Fix the gate", Head: "fix"})
	must(t, err)
	_, err = hands.AddReview(t.Context(), pull.Key, forge.NewReview{Verdict: forge.Remark, Body: "Two questions.", Lines: []forge.LineRemark{
		{Anchor: forge.Anchor{Path: "gate.go", Side: forge.NewSide, Line: 4}, Body: "Is it silent?"},
		{Anchor: forge.Anchor{Path: "gate.go", Side: forge.NewSide, Line: 7}, Body: "Is it closed?"},
	}})
	must(t, err)
	alice := h.window(t, "alice")
	alice.Open(itemURL(pull.Key))
	alice.IsLive()
	const answers = `document.querySelectorAll('#conversation details[data-key^="answer-"]')`
	if count := get[int](alice, answers+`.length`); count != 2 {
		t.Fatalf("there are %d threads", count)
	}
	says := func(text string) {
		t.Helper()
		_, err := hands.AddComment(t.Context(), pull.Key, text)
		must(t, err)
	}
	alice.Click(`#conversation details[data-key^="answer-"] > summary`)
	says("First comment")
	alice.Sees("#conversation", "First comment")
	if open := get[int](alice, `[...`+answers+`].filter((one) => one.open).length`); open != 1 {
		t.Errorf("%d forms are open", open)
	}
	alice.Fill(`#conversation details[open] textarea`, "I have listened.")
	alice.Run("go elsewhere", chromedp.Evaluate(`document.activeElement.blur()`, nil))
	says("Second comment")
	must(t, hands.AddLabel(t.Context(), pull.Key, "urgent"))
	alice.Sees("#labels", "urgent") // so the page has asked for what is new
	if text := get[string](alice, `document.querySelector("#conversation details[open] textarea").value`); text != "I have listened." {
		t.Errorf("the text is %q", text)
	}
	alice.Run("take it back", chromedp.Evaluate(`{ const text = document.querySelector("#conversation details[open] textarea"); text.focus(); text.value = ""; text.blur(); }`, nil))
	alice.Sees("#conversation", "Second comment")
}
