package web

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/review"
	"github.com/toryo-dev/toryo/internal/review/judge"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

// reviewStore is what the pages about reviews need of the database.
type reviewStore interface {
	ListReviews(ctx context.Context, filter store.ReviewFilter) ([]store.Review, error)
	TaskOf(ctx context.Context, key task.Key, kind task.Type) (task.Task, error)
}

func (p *Pages) registerReviews(mux *http.ServeMux) {
	p.registerNewReview(mux)
	p.registerTexts(mux)
	mux.HandleFunc("GET /reviews", p.page(access.Viewer, p.showReviews))
	mux.HandleFunc("POST /reviews/many", p.signedIn(access.Operator, p.deleteReviews))
	mux.HandleFunc("GET /reviews/{id}", p.page(access.Viewer, p.showReview))
	mux.HandleFunc("GET /threads/{id}/context", p.page(access.Viewer, p.showContext))
	mux.HandleFunc("GET /threads/{id}/messages/{message}/sent", p.page(access.Viewer, p.showSent))
	on := func(path, name string, do func(r *http.Request, v visit, id string) (string, error), noted ...string) {
		mux.HandleFunc("POST /reviews/{id}/"+path, p.act(action{name: name, role: access.Operator, noted: noted, do: func(r *http.Request, v visit) (string, error) {
			return do(r, v, r.PathValue("id"))
		}}))
	}
	on("threads", "chat.begin", func(r *http.Request, v visit, id string) (string, error) {
		made, err := p.Reviews.AddThread(r.Context(), v.user.Login, id, "")
		return threadURL(made), err
	})
	on("delete", "review.delete", func(r *http.Request, v visit, id string) (string, error) {
		return "/reviews", p.Reviews.DeleteReview(r.Context(), v.user.Login, id)
	})
	on("judge", "review.judge", func(r *http.Request, v visit, id string) (string, error) {
		return "/reviews/" + id, p.Reviews.JudgeAgain(r.Context(), v.user.Login, id)
	})
	on("share", "review.share", func(r *http.Request, v visit, id string) (string, error) {
		with, err := sharedWith(r)
		if err != nil {
			return "", err
		}
		return "/reviews/" + id + "#share", p.Reviews.Share(r.Context(), v.user.Login, id, with)
	}, "person", "everyone")
	on("unshare", "review.unshare", func(r *http.Request, v visit, id string) (string, error) {
		with, err := sharedWith(r)
		if err != nil {
			return "", err
		}
		return "/reviews/" + id + "#share", p.Reviews.Unshare(r.Context(), v.user.Login, id, with)
	}, "person", "everyone")
	mux.HandleFunc("POST /reviews/{id}/messages", p.signedIn(access.Operator, p.askAbout))
	mux.HandleFunc("POST /threads/{id}/messages", p.signedIn(access.Operator, func(w http.ResponseWriter, r *http.Request, v visit) {
		p.ask(w, r, v, r.PathValue("id"))
	}))
}

// sharedWith is with whom a form shares a review.
func sharedWith(r *http.Request) (review.Readers, error) {
	if r.PostFormValue("everyone") != "" {
		return review.Readers{Everyone: true}, nil
	}
	person := strings.TrimSpace(r.PostFormValue("person"))
	if person == "" {
		return review.Readers{}, task.Errorf(task.Invalid, "say with whom the review is shared")
	}
	return review.Readers{People: []string{person}}, nil
}

// threadURL is where a conversation is read.
func threadURL(thread store.Thread) string {
	return "/reviews/" + thread.ReviewID + "?thread=" + thread.ID + "#chat-form"
}

// reviewRow is a review in a list.
type reviewRow struct {
	store.Review
	title string
}

func (row reviewRow) ofPull() bool { return row.Pull != (task.Key{}) }

// others reports whether the review belongs to somebody else, who has shared it.
func (row reviewRow) others(v visit) bool {
	return !row.ofPull() && row.Owner != v.user.Login
}

// reviewView is a review with what was said about it.
type reviewView struct {
	reviewRow
	link      string // to the pull request; empty if that is not known
	question  store.Question
	sections  []judge.Section
	preamble  string // the answer, where it has no sections
	judgement judge.Judgement
	threads   []store.Thread
	thread    *store.Thread // the one that is shown
	said      []review.Said
	from      int             // the section with which the page was asked to begin; 0 for the first
	shown     []judge.Section // those on this page
	earlier   int             // how many messages before those on this page there are
	later     bool            // there are messages after them
	pieces    pieces          // what of it is on this page
	draft     string          // what stands in the box for the next message
	again     string          // the message without an answer that the draft is
	shared    review.Readers  // with whom, if it is the reader's
	people    []string        // with whom else it can be shared
	language  task.Language   // of the conversation, or of the one that would begin
}

func (p *Pages) showReview(r *http.Request, v visit) (templ.Component, error) {
	ctx, who := r.Context(), v.user.Login
	found, err := p.Reviews.Review(ctx, who, r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	view := reviewView{reviewRow: reviewRow{Review: found}, sections: judge.ParseSections(found.AnswerText), from: numberIn(r.URL.Query(), "from")}
	if len(view.sections) == 0 {
		view.preamble = found.AnswerText
	}
	if view.question, err = p.Reviews.QuestionOf(ctx, found); err != nil {
		return nil, err
	}
	if err := p.entitle(ctx, &view); err != nil {
		return nil, err
	}
	if len(found.Judgement) > 0 {
		if view.judgement, err = judge.ParseJudgement(found.Judgement); err != nil {
			return nil, err
		}
	}
	if view.threads, err = p.Reviews.Threads(ctx, who, found.ID); err != nil {
		return nil, err
	}
	if err := view.choose(ctx, p.Reviews, who, r.URL.Query().Get("thread")); err != nil {
		return nil, err
	}
	if err := p.readShares(ctx, v, &view); err != nil {
		return nil, err
	}
	view.language = p.Reviews.Language.Of(view.judgement.Overall, view.question.Text, found.AnswerText)
	if view.talks() {
		view.language = task.Language(view.thread.Language)
	}
	view.compose(v, r.URL.Query())
	if err := view.layOut(ctx, v, r.URL.Query()); err != nil {
		return nil, err
	}
	return reviewPage(v, &view), nil
}

// entitle gives a review its title. One of a pull request has that of the task that made it,
// which also knows where the pull request is.
func (p *Pages) entitle(ctx context.Context, view *reviewView) error {
	view.title = firstLine(view.question.Text)
	if !view.ofPull() {
		return nil
	}
	if view.Pull.Forge == task.Board {
		view.link = itemURL(view.Pull)
	}
	of, found, err := store.Optional(p.Store.TaskOf(ctx, view.Pull, task.Review))
	if err != nil || !found {
		return err
	}
	if of.Title != "" {
		view.title = firstLine(of.Title)
	}
	view.link = itemLink(of)
	return nil
}

// readShares reads with whom the review is shared, for its owner.
func (p *Pages) readShares(ctx context.Context, v visit, view *reviewView) (err error) {
	if !view.owned(v) {
		return nil
	}
	if view.shared, err = p.Reviews.SharedWith(ctx, v.user.Login, view.ID); err != nil {
		return err
	}
	users, err := p.Store.ListUsers(ctx)
	for _, user := range users {
		if user.Login != v.user.Login && !slices.Contains(view.shared.People, user.Login) {
			view.people = append(view.people, user.Login)
		}
	}
	return err
}

// choose reads the thread that was asked for, or the newest of the reader's own.
func (view *reviewView) choose(ctx context.Context, reviews *review.Service, who, wanted string) (err error) {
	for i, thread := range view.threads {
		if thread.ID == wanted || wanted == "" && thread.Owner != "" {
			view.thread = &view.threads[i]
		}
	}
	if view.thread == nil {
		return nil
	}
	if view.said, err = reviews.Messages(ctx, who, view.thread.ID); err != nil {
		return err
	}
	if last := len(view.said) - 1; last >= 0 && view.said[last].State == store.Unanswered && view.thread.Owner != "" && drafts(view.said[last].Content) {
		view.draft, view.again = view.said[last].Content, view.said[last].ID
	}
	return nil
}

// drafts reports whether a message without an answer is short enough to stand in the box. A
// longer one can be sent again where it stands.
func drafts(message string) bool {
	return len(message) <= longestDraft && len(templ.EscapeString(message)) <= longestDraft
}

// owned reports whether the review is one of the reader's, who may change it.
func (view *reviewView) owned(v visit) bool {
	return !view.ofPull() && !view.others(v) && v.operator()
}

// talks reports whether the thread that is shown is one in which the reader can speak. If
// not, what the reader says begins another one.
func (view *reviewView) talks() bool { return view.thread != nil && view.thread.Owner != "" }

// action is where a message is sent.
func (view *reviewView) action() string {
	if view.talks() {
		return "/threads/" + view.thread.ID + "/messages"
	}
	return "/reviews/" + view.ID + "/messages"
}

// compose puts into the box what a link was followed for: a section, its text or a remark.
func (view *reviewView) compose(v visit, asked map[string][]string) {
	text := ""
	named, quoted := numberIn(asked, "section"), numberIn(asked, "quote")
	for _, section := range view.sections {
		switch {
		case named > 0 && section.Number == named:
			text = sectionName(named)
		case quoted > 0 && section.Number == quoted:
			text = sectionQuote(v, section)
		}
	}
	if n := numberIn(asked, "remark"); n > 0 && n <= len(view.judgement.Items) {
		text = remarkText(v, view.judgement.Items[n-1])
	}
	if text != "" && !says(view.draft, text) {
		view.draft = strings.TrimSpace(view.draft+"\n"+text) + " "
	}
}

// says reports whether a message has a text already. §1 is not in §12.
func says(message, text string) bool {
	number := func(letter byte) bool { return '0' <= letter && letter <= '9' }
	for rest := message; ; {
		_, after, found := strings.Cut(rest, text)
		if !found {
			return false
		}
		if after == "" || !number(after[0]) || !number(text[len(text)-1]) {
			return true
		}
		rest = after
	}
}

// asks reports whether the reader can talk about the review.
func (view *reviewView) asks(v visit) bool { return v.operator() && view.State == store.Judged }

// here is the page with something put into the message.
func (view *reviewView) here(name string, number int) templ.SafeURL {
	return view.page(name, number, "chat-form")
}

func sectionName(number int) string { return "§" + strconv.Itoa(number) }

// longestQuote is how many letters of a section or a remark are put into a message.
const longestQuote = 200

// sectionQuote is a section with its text, to be put into a message.
func sectionQuote(v visit, section judge.Section) string {
	return v.t("review.quoted", sectionName(section.Number), quoteOf(section.Text))
}

// remarkText is a remark of a judgement with the sections that it is about, to be put into
// a message.
func remarkText(v visit, item judge.Item) string {
	return strings.TrimSpace(v.t("review.quoted", sectionsText(item.Numbers), quoteOf(strings.Join(itemText(item), " "))))
}

func quoteOf(text string) string { return textfmt.Shorten(textfmt.OneLine(text), longestQuote) }

// reviewWords are what the parts of a review are called.
type reviewWords struct{ question, answer, judgement string }

// words are those for a document, or those for a pull request, which has no question and
// no answer.
func (view *reviewView) words(v visit) reviewWords {
	if view.ofPull() {
		return reviewWords{v.t("review.pull_text"), v.t("review.pull_changes"), v.t("review.pull_judgement")}
	}
	return reviewWords{v.t("review.question"), v.t("review.answer"), v.t("review.judgement")}
}

// itemText is what an item of a judgement says, in lines.
func itemText(item judge.Item) []string {
	var text string
	if json.Unmarshal(item.JSON, &text) == nil {
		return []string{text}
	}
	var fields map[string]any
	if json.Unmarshal(item.JSON, &fields) != nil {
		return []string{string(item.JSON)}
	}
	var lines []string
	for _, name := range slices.Sorted(keysOf(fields)) {
		if !strings.HasPrefix(name, "paragraph_number") && fields[name] != nil {
			lines = append(lines, fmt.Sprint(fields[name]))
		}
	}
	return lines
}

// remarkLines is what an item of a judgement says, as one text.
func remarkLines(item judge.Item) string { return strings.Join(itemText(item), "\n\n") }

// sectionsText is how sections are named in a message. Of very many the first are.
func sectionsText(numbers []int) string {
	var names []string
	for _, number := range firstNumbers(numbers) {
		names = append(names, sectionName(number))
	}
	if len(names) < len(numbers) {
		names = append(names, "…")
	}
	return strings.Join(names, " ")
}

// firstNumbers are the sections of a remark that are named.
func firstNumbers(numbers []int) []int { return numbers[:min(len(numbers), numbersOfRemark)] }

// showContext is what the model is sent for an input.
func (p *Pages) showContext(r *http.Request, v visit) (templ.Component, error) {
	composed, err := p.Reviews.Preview(r.Context(), v.user.Login, r.PathValue("id"), r.URL.Query().Get("input"))
	if err != nil {
		return nil, err
	}
	return contextPage(v, false, composed.Given()), nil
}

// showSent is what the model was sent for an answer, then.
func (p *Pages) showSent(r *http.Request, v visit) (templ.Component, error) {
	given, err := p.Reviews.Sent(r.Context(), v.user.Login, r.PathValue("id"), r.PathValue("message"))
	if err != nil {
		return nil, err
	}
	return contextPage(v, true, given), nil
}
