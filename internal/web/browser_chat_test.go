package web

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/llm/script"
	"github.com/toryo-dev/toryo/internal/review"
	"github.com/toryo-dev/toryo/internal/store"
)

// answers is what the scripted model says: with "attack 3", the third of the
// attacks.
func answers(t testing.TB) []byte {
	t.Helper()
	text := "model: scripted\nrules:\n"
	for i, attack := range attacks {
		quoted, err := json.Marshal(strings.ReplaceAll(attack, "$", "$$"))
		must(t, err)
		text += fmt.Sprintf("  - {when: {last: %q}, answer: {text: %s}}\n", attackNumber(i), quoted)
	}
	return []byte(text + plainAnswers)
}

func attackNumber(i int) string { return fmt.Sprintf("attack %d.", i) }

const plainAnswers = `
  - name: judge
    when: {system: submit_review}
    answer:
      calls:
        - name: submit_review
          arguments: {overall_review: "The model likes it.", weaknesses: [{text: "The hinges are missing.", paragraph_numbers: ["2"]}]}
  - name: fails once
    times: 1
    when: {last: "fail once"}
    answer: {error: {status: 400, message: "no such question"}}
  - name: two quotations
    when: {last: "quote twice"}
    answer: {text: "It says §1 「Oil the gate」, and not §1 「Paint the gate」."}
  - name: failure
    when: {last: "please fail"}
    answer: {error: {status: 400, message: "no such question"}}
  - name: attack
    when: {last: "attack me"}
    answer: {text: "<script>alert(1)</script> **§1** [x](javascript:alert(1))"}
  - name: answer
    answer: {text: "It is in §2 「the hinges」, and not in §9.", pace: 1ms}
`

// withReviews lets the pages of a house talk about reviews with a scripted model.
func withReviews(t testing.TB) with {
	t.Helper()
	parsed, err := script.Parse("answers", answers(t))
	must(t, err)
	return func(o *Options) {
		database, both := o.Store.(review.Store)
		if !both {
			t.Fatal("the database of the pages is not one for reviews")
		}
		model := script.NewModel(parsed, llm.Endpoint{ContextLength: 100_000, MaxTokens: 1000})
		service := review.New(review.Options{
			Store: database, Now: time.Now, Log: slog.New(slog.DiscardHandler),
			Model: func(review.Purpose) (llm.Model, error) { return model, nil },
		})
		t.Cleanup(service.Stop)
		o.Reviews = service
	}
}

func (h *house) review(t testing.TB, owner, answer string) store.Review {
	t.Helper()
	judgement, err := json.Marshal(map[string]any{
		"overall_review": "A good answer, but " + attacks[0],
		"strengths":      []any{map[string]any{"point": "It names the oil", "paragraph_numbers": []int{1}}},
		"weaknesses":     []any{map[string]any{"point": "The hinges are missing " + attacks[1], "paragraph_numbers": []int{1, 2}}},
	})
	must(t, err)
	made, err := h.pages.Reviews.AddReview(t.Context(), owner, store.Review{CustomQuestionText: "How is a gate fixed?", AnswerText: answer, Judgement: judgement})
	must(t, err)
	return made
}

// ask says something in a thread and waits for the answer.
func (h *house) ask(t testing.TB, who, thread, content string) {
	t.Helper()
	turn, err := h.pages.Reviews.Ask(t.Context(), who, thread, review.Message{Content: content})
	must(t, err)
	_, err = turn.Follow(t.Context(), nil)
	must(t, err)
}

// Whatever an answer, a judgement or a model says is shown as text.
func TestAttacksInReviewsAreText(t *testing.T) {
	t.Parallel()
	h := newHouse(t, withReviews(t))
	var answer strings.Builder
	judgement := map[string]any{"overall_review": strings.Join(attacks, "\n\n")}
	var items []any
	for i, attack := range attacks {
		fmt.Fprintf(&answer, "$$[%d] %s\n\n", i+1, attack)
		items = append(items, map[string]any{"point": attack, "paragraph_numbers": []int{i + 1}})
	}
	judgement["weaknesses"] = items
	encoded, err := json.Marshal(judgement)
	must(t, err)
	one, err := h.pages.Reviews.AddReview(t.Context(), "alice", store.Review{CustomQuestionText: strings.Join(attacks, "\n"), AnswerText: answer.String(), Judgement: encoded})
	must(t, err)
	thread, err := h.pages.Reviews.AddThread(t.Context(), "alice", one.ID, "en")
	must(t, err)
	for i, attack := range attacks {
		h.ask(t, "alice", thread.ID, attackNumber(i)+" "+attack)
	}
	alice := h.window(t, "alice")
	alice.Open("/reviews")
	scripts := get[int](alice, `document.scripts.length`)
	for _, path := range []string{"/reviews", "/reviews/" + one.ID, "/threads/" + thread.ID + "/context?input=%3Cscript%3Ealert(1)%3C/script%3E"} {
		alice.Open(path)
		alice.harmless(path, scripts)
	}
	shown := func() int { return get[int](alice, `document.querySelectorAll("#messages .message.assistant").length`) }
	all := 0
	for query, more := "?", true; more; more = query != "" {
		alice.Open("/reviews/" + one.ID + query)
		alice.harmless(query, scripts)
		all += shown()
		query = get[string](alice, `document.querySelector("#messages a[href*='earlier=']:not([href*='earlier=0'])")?.getAttribute("href") ?? ""`)
	}
	if all != len(attacks) {
		t.Errorf("%d answers are shown", all)
	}
	// So is what comes in pieces.
	alice.Open("/reviews/" + one.ID)
	before := shown()
	alice.Fill(`#chat-form textarea`, attackNumber(0))
	alice.Click(`#chat-form [data-submit]`)
	alice.Until(fmt.Sprintf(`document.querySelectorAll("#messages .message.assistant[data-message]").length === %d`, before+1))
	alice.harmless("the chat as it comes", scripts)
}

const paper = "$$[1] Oil the gate.\n\n$$[2] Then look at the hinges.\n<img src=x onerror=alert(1)>\n"

// A person asks about a section with the mouse; the answer comes in pieces, its
// citations lead to their sections and say whether they are true.
func TestChatAboutAReview(t *testing.T) {
	t.Parallel()
	h := newHouse(t, withReviews(t))
	one := h.review(t, "alice", paper)
	alice := h.window(t, "alice")
	alice.Click(`nav a[href="/reviews"]`)
	alice.Click(`a[href="/reviews/` + one.ID + `"]`)
	alice.Until(`location.pathname.startsWith("/reviews/") && document.readyState === "complete"`)
	scripts := get[int](alice, `document.scripts.length`)
	for range 2 { // once is enough
		alice.Click(`[data-cite="§2"]`)
	}
	alice.Fill(`#chat-form textarea`, "what is there?")
	if typed := get[string](alice, `document.querySelector("#chat-form textarea").value`); typed != "§2 what is there?" {
		t.Errorf("the message is %q", typed)
	}
	alice.Click(`#chat-form [data-submit]`)
	alice.Sees("#messages .message.assistant .text", "It is in §2")
	alice.Sees("#messages .cites .badge-ok", "Confirmed")
	alice.Sees("#messages .cites .badge-bad", "No such section")
	if link := get[string](alice, `document.querySelector("#messages .assistant .text a.cite").hash`); link != "#section-2" {
		t.Errorf("the citation leads to %q", link)
	}
	alice.Until(`location.search.startsWith("?thread=")`) // the conversation has begun with the message
	alice.Click(`.list [data-cite^="§1 §2"]`)
	if typed := get[string](alice, `document.querySelector("#chat-form textarea").value`); !strings.HasPrefix(typed, "§1 §2 “The hinges are missing ") {
		t.Errorf("an item of the judgement puts %q into the message", typed)
	}
	alice.Fill(`#chat-form textarea`, "attack me")
	alice.Click(`#chat-form [data-submit]`)
	alice.Until(`document.querySelectorAll("#messages .message[data-message]").length === 4`)
	alice.harmless("the chat", scripts)
	alice.Accessible("the chat")
	alice.Shot("review")
	alice.Fill(`#chat-form textarea`, "please fail")
	alice.Click(`#chat-form [data-submit]`)
	alice.Until(`document.querySelector("#messages .failure")`)

	// Everything is there again when the page is loaded anew, and what the model
	// is sent can be read.
	alice.Run("reload", chromedp.Reload())
	alice.Sees("#messages .message.assistant .text", "It is in §2")
	alice.harmless("the chat after loading it again", scripts)
	thread := get[string](alice, `document.querySelector("#chat-form").action.split("/").at(-2)`)
	alice.Open("/threads/" + thread + "/context?input=" + url.QueryEscape("§1 why?"))
	alice.Sees("main pre", "Oil the gate.")
	alice.Accessible("what the model is sent")

	// So can what it was sent for an answer, then: without what was said later.
	alice.Open("/reviews/" + one.ID)
	sent := get[string](alice, `document.querySelector("#messages .assistant a[href$='/sent']").getAttribute("href")`)
	alice.Open(sent)
	alice.Sees("main pre", "what is there?")
	alice.Sees("main pre", "Then look at the hinges.")
	if get[bool](alice, `document.body.textContent.includes("attack me")`) {
		t.Error("what was said later is shown as sent before")
	}
	alice.Accessible("what the model was sent")

	// It is hers alone.
	bob := h.visitor(t, "bob")
	for _, path := range []string{"/reviews/" + one.ID, "/threads/" + thread + "/context", sent} {
		if status, _ := bob.get(path); status != 404 {
			t.Errorf("someone else gets %d from %s", status, path)
		}
	}
	if status, _ := bob.post("/threads/"+thread+"/messages", url.Values{"content": {"x"}}); status != 404 {
		t.Errorf("someone else who speaks gets %d", status)
	}
	if _, page := bob.get("/reviews"); strings.Contains(page, one.ID) {
		t.Error("someone else sees it in the list")
	}
}

// Without scripts the chat waits for the answer and shows it.
func TestChatWithoutScripts(t *testing.T) {
	t.Parallel()
	h := newHouse(t, withReviews(t))
	one := h.review(t, "alice", paper)
	alice := h.visitor(t, "alice")
	status, page := alice.post("/reviews/"+one.ID+"/messages", url.Values{"content": {"§2?"}})
	_, rest, _ := strings.Cut(page, `action="/threads/`)
	thread, _, found := strings.Cut(rest, "/messages")
	if !found {
		t.Fatalf("no conversation has begun: %s", page)
	}
	if status != 200 || !strings.Contains(page, `href="#section-2">§2</a>`) || !strings.Contains(page, `class="cite unconfirmed" href="#section-9"`) {
		t.Errorf("the answer is %d %s", status, page)
	}
	if log := h.audit(t); log[0] != "alice chat.ask /reviews/"+one.ID+"/messages done" {
		t.Errorf("the audit log ends with %q", log[0])
	}
	if status, _ := alice.post("/threads/"+thread+"/messages", url.Values{"content": {" "}}); status != 422 {
		t.Errorf("an empty message answers %d", status)
	}
	if status, _ := alice.post("/reviews/"+one.ID+"/delete", nil); status != 200 {
		t.Errorf("to delete it answers %d", status)
	}
}
