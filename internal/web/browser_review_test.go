package web

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/review"
	"github.com/toryo-dev/toryo/internal/review/judge"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
)

// pullReview makes a review of a pull request, as a review task does.
func (h *house) pullReview(t testing.TB, pull task.Key) store.Review {
	t.Helper()
	judgement, err := json.Marshal(map[string]any{
		"overall_review": "Nearly.", "weaknesses": []any{map[string]any{"point": "There is no test.", "paragraph_numbers": []int{1}}},
	})
	must(t, err)
	made, err := h.pages.Reviews.Reviewed(t.Context(), pull, judge.Report{
		Commit: "0123456789abcdef", Question: "# Pull request: Fix the gate for good\n\nCloses #1.", Verdict: "request_changes", Judgement: judgement,
		Answer: "$$[1] gate.go\n@@ -1,2 +1,2 @@\n-squeak\n+silence\n", Text: "Nearly.",
	})
	must(t, err)
	return made
}

// judgementJSON is an assessment that somebody has made elsewhere.
const judgementJSON = `{"overall_review": "Made by hand.", "strengths": ["It is short."]}`

// A person makes a review on the page: with an assessment as JSON, or by the model, with the
// answer pasted or in a file. What is wrong is said beside what was typed.
func TestNewReview(t *testing.T) {
	t.Parallel()
	h := newHouse(t, withReviews(t))
	alice := h.window(t, "alice")
	alice.Open("/reviews")
	alice.Click(`a[href="/reviews/new"]`)
	alice.At("/reviews/new")
	alice.Fill(`textarea[name=question]`, "How is a gate fixed?")
	alice.Fill(`textarea[name=answer]`, "$$[1] Oil the gate.")
	alice.Click(`#new-review details:has([name=judgement]) > summary`)
	alice.Fill(`textarea[name=judgement]`, `{"strengths": "many"}`)
	alice.Click(`input[name=judge][value=json]`)
	alice.Click(`#new-review [data-submit]`)
	alice.Sees(`#new-review [data-failure]`, "strengths is not a list")
	if kept := get[string](alice, `document.querySelector("textarea[name=answer]").value`); kept != "$$[1] Oil the gate." {
		t.Errorf("the answer is %q now", kept)
	}
	alice.Run("empty the field", chromedp.Evaluate(`document.querySelector("textarea[name=judgement]").value = ""`, nil))
	alice.Fill(`textarea[name=judgement]`, judgementJSON)
	alice.Click(`#new-review [data-submit]`)
	alice.Sees("main .text", "Made by hand.")
	alice.Accessible("a review that was made on the page")

	// By the model, with the answer in a file, and with what is known about grading.
	file := filepath.Join(t.TempDir(), "answer.txt")
	must(t, os.WriteFile(file, []byte("\uFEFFOil the gate.\r\n\r\nThen look at the hinges."), 0o600))
	alice.Open("/reviews/new")
	alice.Fill(`textarea[name=question]`, "How is a gate fixed?")
	alice.Click(`#new-review details:has([name=purpose]) > summary`)
	alice.Fill(`textarea[name=purpose]`, "It is about hinges.")
	alice.Fill(`textarea[name=grading]`, "Most have forgotten the hinges.")
	alice.Run("choose a file", chromedp.SetUploadFiles(`input[name=answer_file]`, []string{file}, chromedp.ByQuery))
	alice.Click(`#new-review [data-submit]`)
	alice.Sees("main .text", "The model likes it.")
	alice.Sees("#section-2 .text", "Then look at the hinges.")

	// Both texts can be read there, and the page says how the model gets them.
	alice.Click(`details.card:has(.hint) > summary`)
	alice.Sees("details.card .text", "It is about hinges.")
	alice.Sees("details.card .hint", "purpose of the question")
	alice.Click(`details.card .hint button`)
	if typed := get[string](alice, `document.querySelector("#chat-form textarea").value`); typed != "purpose of the question " {
		t.Errorf("the message is %q", typed)
	}
	alice.Click(`#chat-form [data-submit]`)
	alice.Sees("#messages .message.assistant .text", "It is in §2")
	alice.Open(get[string](alice, `document.querySelector("#messages .assistant a[href$='/sent']").getAttribute("href")`))
	alice.Sees("main pre", "It is about hinges.")
	// The question is there for other answers, and for nobody else.
	alice.Open("/reviews/new")
	alice.Sees("select[name=question_id] option", "How is a gate fixed?")
	if _, form := h.visitor(t, "bob").get("/reviews/new"); strings.Contains(form, "question_id") {
		t.Error("bob can choose alice's question")
	}
	// What the audit log has is that it was begun, and by whom.
	if log := strings.Join(h.audit(t), "\n"); !strings.Contains(log, "alice review.create judge=model done") {
		t.Errorf("the audit log is\n%s", log)
	}
}

// multipartOf is a form with a file as browsers send it, with the type of its content.
func multipartOf(t testing.TB, fields map[string]string, file string, content []byte) (body *bytes.Buffer, kind string) {
	t.Helper()
	body = new(bytes.Buffer)
	form := multipart.NewWriter(body)
	for name, value := range fields {
		must(t, form.WriteField(name, value))
	}
	part, err := form.CreateFormFile(file, "a file")
	must(t, err)
	_, err = part.Write(content)
	must(t, err)
	must(t, form.Close())
	return body, form.FormDataContentType()
}

// upload sends the form of a new review, with a file, and returns the page that comes back.
func (v *visitor) upload(fields map[string]string, file string, content []byte) (int, string) {
	v.t.Helper()
	t := v.t
	body, kind := multipartOf(t, fields, file, content)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, v.house.web.URL+"/reviews", body)
	must(t, err)
	request.Header = v.header.Clone()
	request.Header.Set("Content-Type", kind)
	answer, err := v.client.Do(request)
	must(t, err)
	defer func() { _ = answer.Body.Close() }()
	var text strings.Builder
	_, err = readAll(&text, answer)
	must(t, err)
	return answer.StatusCode, text.String()
}

// Without scripts the form comes back with what was in it when something is wrong with it.
// Files are bounded, and are texts.
func TestNewReviewWithoutScripts(t *testing.T) {
	t.Parallel()
	h := newHouse(t, withReviews(t))
	alice := h.visitor(t, "alice")
	fields := map[string]string{"question": "How?", "judge": "json", "judgement": judgementJSON}
	send := func(who *visitor, fields map[string]string, file string, content []byte) (int, string) {
		t.Helper()
		return who.upload(fields, file, content)
	}
	if status, page := send(alice, fields, "answer_file", []byte("$$[1] Oil it.")); status != http.StatusOK || !strings.Contains(page, "Made by hand.") || !strings.Contains(page, "Oil it.") {
		t.Errorf("a review is made with %d %s", status, page)
	}
	if status, page := send(alice, fields, "answer_file", nil); status != http.StatusUnprocessableEntity || !strings.Contains(page, "needs the text of the answer") || !strings.Contains(page, "Made by hand.") {
		t.Errorf("an empty answer is answered %d %s", status, page)
	}
	for name, c := range map[string]struct {
		file    string
		content []byte
		status  int
	}{
		"no text":        {"answer_file", []byte{0xff, 0xfe, 0}, http.StatusUnprocessableEntity},
		"too large":      {"answer_file", bytes.Repeat([]byte("x"), 4<<20+1), http.StatusRequestEntityTooLarge},
		"much too large": {"judgement_file", bytes.Repeat([]byte("x"), maxUpload), http.StatusRequestEntityTooLarge},
		"another field":  {"whatever", []byte("x"), http.StatusUnprocessableEntity},
	} {
		if status, _ := send(alice, fields, c.file, c.content); status != c.status {
			t.Errorf("%s: a file is answered %d, want %d", name, status, c.status)
		}
	}
	if status, _ := send(h.visitor(t, "vera"), fields, "answer_file", []byte("x")); status != http.StatusForbidden {
		t.Errorf("a viewer gets %d", status)
	}
	// Nothing is left of what was refused.
	found, err := h.store.ListReviews(t.Context(), store.ReviewFilter{})
	must(t, err)
	if len(found) != 1 {
		t.Errorf("there are %d reviews", len(found))
	}
}

// After an error what was said stands in the box, and can be sent again; then there is one
// message, and its answer.
func TestSendAgain(t *testing.T) {
	t.Parallel()
	h := newHouse(t, withReviews(t))
	one := h.review(t, "alice", paper)
	alice := h.window(t, "alice")
	alice.Open("/reviews/" + one.ID)
	alice.Fill(`#chat-form textarea`, "fail once, please")
	alice.Click(`#chat-form [data-submit]`)
	alice.Sees(`#messages .failure`, "No answer.")
	alice.Sees(`#chat-form [data-submit]`, "Send again")
	if kept := get[string](alice, `document.querySelector("#chat-form textarea").value`); kept != "fail once, please" {
		t.Errorf("the box has %q", kept)
	}
	alice.Accessible("a message without an answer")
	// So it is when the page is loaded anew.
	alice.Run("reload", chromedp.Reload())
	alice.Sees(`#chat-form [data-submit]`, "Send again")
	alice.Sees(`#messages .failure`, "No answer.")
	alice.Click(`#chat-form [data-submit]`)
	alice.Sees("#messages .message.assistant .text", "It is in §2")
	alice.Sees(`#chat-form [data-submit]`, "Send")
	if n := get[int](alice, `document.querySelectorAll("#messages .message").length`); n != 2 || get[bool](alice, `document.querySelector("#messages .failure") !== null`) {
		t.Errorf("%d messages are shown: %s", n, get[string](alice, `document.getElementById("messages").textContent`))
	}

	// Without a script too.
	bob := h.visitor(t, "alice")
	_, page := bob.post("/reviews/"+one.ID+"/messages", url.Values{"content": {"please fail"}})
	if !strings.Contains(page, ">please fail</textarea>") || !strings.Contains(page, "Send again") {
		t.Errorf("the page is %s", page)
	}
}

// A quotation that is not there does not make another one of the same section look wrong.
func TestTrueCitationBesideAFalseOne(t *testing.T) {
	t.Parallel()
	h := newHouse(t, withReviews(t))
	one := h.review(t, "alice", paper)
	_, page := h.visitor(t, "alice").post("/reviews/"+one.ID+"/messages", url.Values{"content": {"quote twice"}})
	_, said, _ := strings.Cut(page, `class="message assistant"`)
	first, rest, _ := strings.Cut(said, "Oil the gate")
	second, _, _ := strings.Cut(rest, "Paint the gate")
	if !strings.Contains(first, `<a class="cite" href="#section-1">§1</a>`) || !strings.Contains(second, `class="cite unconfirmed"`) {
		t.Errorf("the answer is %s", said)
	}
}

// A review of a pull request is shown in the words of pull requests, with its verdict and a
// way to the pull request.
func TestReviewOfAPullRequest(t *testing.T) {
	t.Parallel()
	h := newHouse(t, withReviews(t))
	pull := task.Key{Forge: task.Gitea, Repository: "team/app", Kind: task.Pull, Number: 7}
	_, _, err := h.store.Assign(t.Context(), store.NewTask{Key: pull, Type: task.Review, Role: "REVIEWER", Title: "Fix the gate for good", URL: "https://gitea.example/team/app/pulls/7", Reason: task.ReasonAssigned}, nil)
	must(t, err)
	one := h.pullReview(t, pull)
	vera := h.visitor(t, "vera")
	_, page := vera.get("/reviews/" + one.ID)
	for _, want := range []string{"<h1>Fix the gate for good</h1>", `href="https://gitea.example/team/app/pulls/7"`, "Changes requested", "<h2>Changes</h2>", "<h2>Review</h2>"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %s: %s", want, page)
		}
	}
	for _, unwanted := range []string{">Question<", "Answer by section", "Assessment"} {
		if strings.Contains(page, unwanted) {
			t.Errorf("the page says %q", unwanted)
		}
	}
	if _, list := vera.get("/reviews"); !strings.Contains(list, "Changes requested") {
		t.Errorf("the list is %s", list)
	}
}

// A review is its owner's until it is shared: then others read it and talk about it, each
// in conversations of their own, until that is taken back.
func TestSharedReview(t *testing.T) {
	t.Parallel()
	h := newHouse(t, withReviews(t))
	one := h.review(t, "alice", paper)
	alice := h.window(t, "alice")
	bob, vera := h.visitor(t, "bob"), h.visitor(t, "vera")
	page := "/reviews/" + one.ID
	if status, _ := bob.get(page); status != http.StatusNotFound {
		t.Fatalf("bob gets %d", status)
	}
	alice.Run("take a phone", chromedp.EmulateViewport(390, 850))
	alice.Open(page)
	for _, menu := range []string{`.confirm:has(form[action$="/delete"])`, "#share"} {
		alice.Click(menu + " > summary")
		if !get[bool](alice, `(() => { const r = document.querySelector(`+testkit.Quoted(menu+" > .confirm-body")+`).getBoundingClientRect(); return r.width > 200 && r.left >= 0 && r.right <= innerWidth; })()`) {
			t.Errorf("what %s opens is cut off", menu)
		}
	}
	alice.Accessible("the form that shares")
	alice.Shot("review-share-narrow")
	alice.Run("choose bob", chromedp.SetValue(`#share select[name=person]`, "bob", chromedp.ByQuery))
	alice.Click(`#share form[action$="/share"] button`)
	alice.Sees("#share > summary", "Shared (1)")
	if status, text := bob.get(page); status != http.StatusOK || !strings.Contains(text, "Shared by alice") || strings.Contains(text, page+"/delete") {
		t.Errorf("bob gets %d %s", status, text)
	}
	if _, list := bob.get("/reviews"); !strings.Contains(list, one.ID) {
		t.Error("it is not in bob's list")
	}
	if status, _ := vera.get(page); status != http.StatusNotFound {
		t.Errorf("vera gets %d", status)
	}
	_, said := bob.post(page+"/messages", url.Values{"content": {"§2?"}})
	_, rest, _ := strings.Cut(said, `action="/threads/`)
	thread, _, _ := strings.Cut(rest, "/messages")
	if _, hers := h.visitor(t, "alice").get(page + "?thread=" + thread); strings.Contains(hers, "It is in") {
		t.Error("alice reads what bob has said")
	}
	for _, path := range []string{page + "/delete", page + "/share", page + "/unshare"} {
		if status, _ := bob.post(path, url.Values{"person": {"vera"}}); status != http.StatusForbidden {
			t.Errorf("bob gets %d from %s", status, path)
		}
	}
	if status, _ := h.visitor(t, "alice").post(page+"/unshare", url.Values{"person": {"bob"}}); status != http.StatusOK {
		t.Errorf("to take it back answers %d", status)
	}
	for _, path := range []string{page, "/threads/" + thread + "/context"} {
		if status, _ := bob.get(path); status != http.StatusNotFound {
			t.Errorf("afterwards bob gets %d from %s", status, path)
		}
	}
	if status, _ := h.visitor(t, "alice").post(page+"/share", url.Values{"everyone": {"1"}}); status != http.StatusOK {
		t.Errorf("to share it with everyone answers %d", status)
	}
	if status, _ := vera.get(page); status != http.StatusOK {
		t.Errorf("vera gets %d of what is everyone's", status)
	}
}

// gated is a model that answers when it is let.
type gated struct {
	llm.Model
	gate chan struct{}
}

// Chat implements llm.Model.
func (g gated) Chat(ctx context.Context, request llm.Request, sink llm.Sink) (llm.Response, error) {
	select {
	case <-g.gate:
	case <-ctx.Done():
		return llm.Response{}, ctx.Err()
	}
	return g.Model.Chat(ctx, request, sink)
}

// While an answer comes there is a sign of it, also on a page that is opened meanwhile, and
// there the answer appears by itself.
func TestAnswerOnItsWay(t *testing.T) {
	t.Parallel()
	h := newHouse(t, withReviews(t))
	inner, err := h.pages.Reviews.Model(review.ForChat)
	must(t, err)
	gate := make(chan struct{})
	h.pages.Reviews.Model = func(review.Purpose) (llm.Model, error) { return gated{inner, gate}, nil }
	one := h.review(t, "alice", paper)
	first, second := h.window(t, "alice"), h.window(t, "alice")
	first.Open("/reviews/" + one.ID)
	first.Fill(`#chat-form textarea`, "what is there?")
	first.Click(`#chat-form [data-submit]`)
	first.Sees("#messages .thinking", "Writing an answer")
	first.Sees("#messages .message.user .text", "what is there?")
	second.Open("/reviews/" + one.ID)
	second.Sees("#messages .thinking", "Writing an answer")
	close(gate)
	for _, window := range []*window{first, second} {
		window.Sees("#messages .message.assistant .text", "It is in §2")
		window.Until(`document.querySelectorAll("#messages .thinking").length === 0`)
	}
}

// Clicking a section twice, or its text, or a remark, puts it into the message once. Without
// scripts the same links do.
func TestWhatIsPutIntoAMessage(t *testing.T) {
	t.Parallel()
	h := newHouse(t, withReviews(t))
	one := h.review(t, "alice", "$$[1] Oil the gate.\n$$[12] Then look at the hinges.\n")
	alice := h.window(t, "alice")
	alice.Open("/reviews/" + one.ID)
	for _, selector := range []string{
		`[data-cite="§12"]`, `[data-cite="§1"]`, `[data-cite="§12"]`, `[data-cite="§1"]`,
		`#section-12 .quote`, `#section-12 .quote`, `.list [data-cite^="§1 “It names"]`, `.list [data-cite^="§1 “It names"]`,
	} {
		alice.Click(selector)
	}
	const want = "§12 §1 §12 “Then look at the hinges.” §1 “It names the oil” "
	if typed := get[string](alice, `document.querySelector("#chat-form textarea").value`); typed != want {
		t.Errorf("the message is %q, want %q", typed, want)
	}
	for query, want := range map[string]string{
		"section=12": "§12 ", "quote=12": "§12 “Then look at the hinges.” ", "remark=1": "§1 “It names the oil” ", "section=5": "", "remark=99": "", "section=x": "",
	} {
		if _, page := h.visitor(t, "alice").get("/reviews/" + one.ID + "?" + query); !strings.Contains(page, ">"+want+"</textarea>") {
			t.Errorf("with %s the box has not %q", query, want)
		}
	}
}

// The list is read page by page, and searched.
func TestListOfReviews(t *testing.T) {
	t.Parallel()
	h := newHouse(t, withReviews(t))
	for i := range rowsPerPage + 5 {
		_, err := h.pages.Reviews.AddReview(t.Context(), "alice", store.Review{CustomQuestionText: fmt.Sprintf("Question %d of them", i), AnswerText: "$$[1] x", Judgement: []byte(`{}`)})
		must(t, err)
	}
	h.pullReview(t, task.Key{Forge: task.Gitea, Repository: "team/app", Kind: task.Pull, Number: 7})
	alice := h.visitor(t, "alice")
	rows := func(path string) (int, string) {
		t.Helper()
		_, page := alice.get(path)
		return strings.Count(page, `<td class="main"><a `), page
	}
	n, page := rows("/reviews")
	if n != rowsPerPage {
		t.Errorf("the first page has %d reviews", n)
	}
	if !strings.Contains(page, `rel="next" href="/reviews?page=2"`) {
		t.Error("the first page does not lead to the second")
	}
	if n, page := rows("/reviews?page=2"); n != 6 || strings.Contains(page, `rel="next"`) || !strings.Contains(page, `rel="prev"`) {
		t.Errorf("the second page has %d reviews", n)
	}
	for query, want := range map[string]int{"q=Question+12": 1, "q=question": rowsPerPage, "q=nothing+such": 0, "type=pulls": 1, "type=pulls&q=gate": 1, "type=documents&q=gate": 0} {
		if n, _ := rows("/reviews?" + query); n != want {
			t.Errorf("%s finds %d reviews, want %d", query, n, want)
		}
	}
}
