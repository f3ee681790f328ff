package web

import (
	"io"
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
)

// textPart is a text of a review that has an address of its own, because it can be longer than a
// page.
type textPart string

// The texts. That of a section is called section-3.
const (
	questionPart  textPart = "question"
	purposePart   textPart = "purpose"
	gradingPart   textPart = "grading"
	answerPart    textPart = "answer"
	judgementPart textPart = "judgement"
	statePart     textPart = "state" // for the script, while a model works on it
)

const sectionPart = "section-"

func (p *Pages) registerTexts(mux *http.ServeMux) {
	mux.HandleFunc("GET /reviews/{id}/text/{part}", p.signedIn(access.Viewer, p.plain(p.reviewText)))
	mux.HandleFunc("GET /threads/{id}/messages/{message}/text", p.signedIn(access.Viewer, p.plain(p.messageText)))
	mux.HandleFunc("GET /threads/{id}/messages", p.page(access.Viewer, p.showMessages))
}

// textURL is where a text of the review can be read whole.
func (view *reviewView) textURL(part textPart) templ.SafeURL {
	return templ.SafeURL("/reviews/" + view.ID + "/text/" + string(part))
}

// plain answers with a text as it is.
func (p *Pages) plain(read func(r *http.Request, v visit) (string, error)) func(http.ResponseWriter, *http.Request, visit) {
	return func(w http.ResponseWriter, r *http.Request, v visit) {
		text, err := read(r, v)
		if err != nil {
			p.fail(w, r, v, err)
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		if _, err := io.WriteString(w, text); err != nil {
			p.Log.DebugContext(r.Context(), "client disconnected", "error", err)
		}
	}
}

// reviewText is one text of a review, whole.
func (p *Pages) reviewText(r *http.Request, v visit) (string, error) {
	found, err := p.Reviews.Review(r.Context(), v.user.Login, r.PathValue("id"))
	if err != nil {
		return "", err
	}
	part := textPart(r.PathValue("part"))
	switch part {
	case statePart:
		return string(found.State), nil
	case answerPart:
		return found.AnswerText, nil
	case judgementPart:
		return string(found.Judgement), nil
	case questionPart, purposePart, gradingPart:
		question, err := p.Reviews.QuestionOf(r.Context(), found)
		return map[textPart]string{questionPart: question.Text, purposePart: question.PurposeText, gradingPart: question.GradingImpressionText}[part], err
	}
	if name, is := strings.CutPrefix(string(part), sectionPart); is {
		sections := judge.ParseSections(found.AnswerText)
		if at := slices.IndexFunc(sections, func(one judge.Section) bool { return strconv.Itoa(one.Number) == name }); at >= 0 {
			return sections[at].Text, nil
		}
	}
	return "", task.Errorf(task.NotFound, "the review has no such text")
}

// messageText is one message, whole.
func (p *Pages) messageText(r *http.Request, v visit) (string, error) {
	said, err := p.Reviews.Messages(r.Context(), v.user.Login, r.PathValue("id"))
	if err != nil {
		return "", err
	}
	at := slices.IndexFunc(said, func(one review.Said) bool { return one.ID == r.PathValue("message") })
	if at < 0 {
		return "", task.Errorf(task.NotFound, "there is no such message in this conversation")
	}
	return said[at].Content, nil
}

// showMessages is a message and what was said after it: what a page asks for that waits for an
// answer.
func (p *Pages) showMessages(r *http.Request, v visit) (templ.Component, error) {
	said, err := p.Reviews.Messages(r.Context(), v.user.Login, r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	from := r.URL.Query().Get("from")
	at := slices.IndexFunc(said, func(one review.Said) bool { return one.ID == from })
	if at < 0 {
		return nil, task.Errorf(task.NotFound, "there is no such message in this conversation")
	}
	view := reviewView{said: said[at:], thread: &store.Thread{ID: r.PathValue("id"), Owner: v.user.Login}}
	if err := view.layFirstMessages(withPageSource(r.Context()), v); err != nil {
		return nil, err
	}
	return templ.Join(view.pieces.messages...), nil
}
