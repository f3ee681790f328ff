package web

import (
	"context"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/review"
)

// A review that the model makes is in the list from the beginning. Its page says that it is in
// the making, and shows it when it is there; or says why not, and has it tried again.
func TestReviewInTheMaking(t *testing.T) {
	t.Parallel()
	h := newHouse(t, withReviews(t))
	inner, err := h.pages.Reviews.Model(review.ForReview)
	must(t, err)
	gate := make(chan struct{})
	var model llm.Model = gated{inner, gate}
	h.pages.Reviews.Model = func(review.Purpose) (llm.Model, error) { return model, nil }
	alice := h.window(t, "alice")
	alice.Open("/reviews/new")
	alice.Fill(`textarea[name=question]`, "How is a gate fixed?")
	alice.Fill(`textarea[name=answer]`, "Oil the gate.")
	alice.Click(`#new-review [data-submit]`)
	alice.Sees("[data-judging]", "The model is assessing the answer.")
	alice.Sees("#section-1 .text", "Oil the gate.")
	alice.Accessible("a review in the making")
	if get[bool](alice, `document.getElementById("chat-form") !== null`) {
		t.Error("one can talk about a review that is not there")
	}
	visitor := h.visitor(t, "alice")
	if _, list := visitor.get("/reviews"); !strings.Contains(list, "Assessing") {
		t.Error("the list does not say so")
	}
	close(gate)
	alice.Sees("main .text", "The model likes it.")
	alice.Sees("#chat-form [data-submit]", "Send")

	// A failure stands with what was sent.
	model = failing{inner}
	_, page := visitor.upload(map[string]string{"question": "Why?", "judge": "model"}, "answer_file", []byte("Because of the hinges."))
	h.pages.Reviews.Wait(t.Context())
	id := regexp.MustCompile(`/reviews/([0-9a-f-]+)/text/state`).FindStringSubmatch(page)
	if id == nil {
		id = regexp.MustCompile(`/reviews/([0-9a-f-]+)/judge`).FindStringSubmatch(page)
	}
	if id == nil {
		t.Fatalf("the page is %s", page)
	}
	_, page = visitor.get("/reviews/" + id[1])
	for _, want := range []string{"The assessment failed", "no such model", "Because of the hinges.", "Retry"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %q: %s", want, page)
		}
	}
	model = inner
	visitor.post("/reviews/"+id[1]+"/judge", nil)
	h.pages.Reviews.Wait(t.Context())
	if _, page := visitor.get("/reviews/" + id[1]); !strings.Contains(page, "The model likes it.") {
		t.Errorf("the page is %s", page)
	}
}

// failing is a model that cannot be used.
type failing struct{ llm.Model }

// Chat implements llm.Model.
func (failing) Chat(context.Context, llm.Request, llm.Sink) (llm.Response, error) {
	return llm.Response{}, &llm.Error{Kind: llm.UnknownModel, Provider: "test", Detail: "no such model"}
}

// When the connection breaks while an answer is on its way, the page waits for the answer and
// shows it: nothing is asked twice.
func TestConnectionLostDuringAnAnswer(t *testing.T) {
	t.Parallel()
	h := newHouse(t, withReviews(t))
	inner, err := h.pages.Reviews.Model(review.ForChat)
	must(t, err)
	gate := make(chan struct{})
	h.pages.Reviews.Model = func(review.Purpose) (llm.Model, error) { return gated{inner, gate}, nil }
	one := h.review(t, "alice", paper)
	alice := h.window(t, "alice")
	alice.Allowed = []string{"ERR_", "Failed to load"}
	alice.Open("/reviews/" + one.ID)
	alice.Fill(`#chat-form textarea`, "what is there?")
	alice.Click(`#chat-form [data-submit]`)
	alice.Sees("#messages .message.user .text", "what is there?")
	h.web.CloseClientConnections()
	alice.Until(`document.querySelector("#messages [data-answering]:not([hidden])") !== null`)
	if get[bool](alice, `document.querySelector("#messages .failure") !== null`) || get[string](alice, `document.querySelector("#chat-form [data-submit]").textContent`) != "Send" {
		t.Errorf("the page says %s", get[string](alice, `document.getElementById("chat").textContent`))
	}
	// Something else is said meanwhile: each answer stands after its question.
	alice.Fill(`#chat-form textarea`, "and then?")
	alice.Click(`#chat-form [data-submit]`)
	// What is on the page stays where it is when the answer comes.
	alice.Run("mark the message", chromedp.Evaluate(`document.querySelector("#messages .message.user").marked = true`, nil))
	close(gate)
	alice.Until(`document.querySelectorAll("#messages .message.assistant[data-message]").length === 2`)
	alice.Until(`document.querySelectorAll("#messages .thinking").length === 0`)
	if order := get[string](alice, `[...document.querySelectorAll("#messages .message")].map((m) => m.classList[1]).join(" ")`); order != "user assistant user assistant" {
		t.Errorf("the messages are in the order %s", order)
	}
	if n := get[int](alice, `document.querySelectorAll("#messages .message").length`); n != 4 || !get[bool](alice, `document.querySelector("#messages .message.user").marked === true`) {
		t.Errorf("%d messages are shown: %s", n, get[string](alice, `document.getElementById("messages").textContent`))
	}
}

// What a page asks for that waits for an answer has the message and its answer, however much was
// said after them.
func TestMessagesFromOneOn(t *testing.T) {
	t.Parallel()
	h := newHouse(t, withReviews(t))
	one := h.review(t, "alice", paper)
	thread, err := h.pages.Reviews.AddThread(t.Context(), "alice", one.ID, "en")
	must(t, err)
	for range 15 {
		h.ask(t, "alice", thread.ID, "what is there?")
	}
	said, err := h.pages.Reviews.Messages(t.Context(), "alice", thread.ID)
	must(t, err)
	_, page := h.visitor(t, "alice").get("/threads/" + thread.ID + "/messages?from=" + said[0].ID)
	for _, message := range said[:2] {
		if !strings.Contains(page, `data-message="`+message.ID+`"`) {
			t.Errorf("the message %s is missing", message.ID)
		}
	}
}

// What is sent twice under one name, because the connection broke before the page knew, is one
// message in one conversation.
func TestMessageThatIsSentTwice(t *testing.T) {
	t.Parallel()
	h := newHouse(t, withReviews(t))
	one := h.review(t, "alice", paper)
	alice := h.visitor(t, "alice")
	alice.header.Set("Accept", "text/event-stream")
	form := url.Values{"content": {"what is there?"}, "key": {"0123"}}
	if _, events := alice.post("/reviews/"+one.ID+"/messages", form); !strings.Contains(events, "event: message") {
		t.Fatalf("the events are %s", events)
	}
	threads, err := h.pages.Reviews.Threads(t.Context(), "alice", one.ID)
	must(t, err)
	if _, events := alice.post("/reviews/"+one.ID+"/messages", form); !strings.Contains(events, "event: made") || !strings.Contains(events, threads[0].ID) {
		t.Errorf("the second time the events are %s", events)
	}
	alice.post("/reviews/"+one.ID+"/messages", url.Values{"content": {"what is there?"}, "key": {"4567"}}) // another one
	threads, err = h.pages.Reviews.Threads(t.Context(), "alice", one.ID)
	must(t, err)
	if len(threads) != 2 {
		t.Errorf("there are %d conversations", len(threads))
	}
	for _, thread := range threads {
		if said, err := h.pages.Reviews.Messages(t.Context(), "alice", thread.ID); err != nil || len(said) != 2 {
			t.Errorf("a conversation is %+v, %v", said, err)
		}
	}
}
