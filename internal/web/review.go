package web

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/a-h/templ"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/review"
	"github.com/toryo-dev/toryo/internal/review/judge"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// reviewStore is what the list of reviews needs of the database.
type reviewStore interface {
	ListReviews(ctx context.Context, filter store.ReviewFilter) ([]store.Review, error)
}

func (p *Pages) registerReviews(mux *http.ServeMux) {
	mux.HandleFunc("GET /reviews", p.page(access.Viewer, p.showReviews))
	mux.HandleFunc("GET /reviews/{id}", p.page(access.Viewer, p.showReview))
	mux.HandleFunc("GET /threads/{id}/context", p.page(access.Viewer, p.showContext))
	mux.HandleFunc("GET /threads/{id}/messages/{message}/sent", p.page(access.Viewer, p.showSent))
	mux.HandleFunc("POST /reviews/{id}/threads", p.act(action{name: "chat.begin", role: access.Operator, do: func(r *http.Request, v visit) (string, error) {
		made, err := p.Reviews.AddThread(r.Context(), v.user.Login, r.PathValue("id"), "")
		return "/reviews/" + r.PathValue("id") + "?thread=" + made.ID, err
	}}))
	mux.HandleFunc("POST /reviews/{id}/delete", p.act(action{name: "review.delete", role: access.Operator, do: func(r *http.Request, v visit) (string, error) {
		return "/reviews", p.Reviews.DeleteReview(r.Context(), v.user.Login, r.PathValue("id"))
	}}))
	mux.HandleFunc("POST /threads/{id}/messages", p.signedIn(access.Operator, p.ask))
}

// reviewRow is a review in a list.
type reviewRow struct {
	store.Review
	title string
}

func (p *Pages) showReviews(r *http.Request, v visit) (templ.Component, error) {
	all, err := p.Store.ListReviews(r.Context(), store.ReviewFilter{})
	if err != nil {
		return nil, err
	}
	var rows []reviewRow
	for _, one := range all {
		if one.Owner != v.user.Login && one.Pull == (task.Key{}) {
			continue
		}
		question, err := p.Reviews.QuestionOf(r.Context(), one)
		if err != nil {
			return nil, err
		}
		rows = append(rows, reviewRow{one, firstLine(question.Text)})
	}
	slices.Reverse(rows)
	return reviewsPage(v, rows), nil
}

// reviewView is a review with what was said about it.
type reviewView struct {
	store.Review
	question  store.Question
	sections  []judge.Section
	preamble  string // the answer, where it has no sections
	judgement judge.Judgement
	threads   []store.Thread
	thread    *store.Thread // the one that is shown
	said      []review.Said
}

func (p *Pages) showReview(r *http.Request, v visit) (templ.Component, error) {
	ctx, who := r.Context(), v.user.Login
	found, err := p.Reviews.Review(ctx, who, r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	view := reviewView{Review: found, sections: judge.ParseSections(found.AnswerText)}
	if len(view.sections) == 0 {
		view.preamble = found.AnswerText
	}
	if view.question, err = p.Reviews.QuestionOf(ctx, found); err != nil {
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
	return reviewPage(v, view), nil
}

// choose reads the thread that was asked for, or the newest of the reader's own.
func (view *reviewView) choose(ctx context.Context, reviews *review.Service, who, wanted string) (err error) {
	for i, thread := range view.threads {
		if thread.ID == wanted || wanted == "" && thread.Owner == who {
			view.thread = &view.threads[i]
		}
	}
	if view.thread != nil {
		view.said, err = reviews.Messages(ctx, who, view.thread.ID)
	}
	return err
}

// mine reports whether the reader may speak in the thread.
func (view *reviewView) mine(v visit) bool {
	return view.thread != nil && view.thread.Owner == v.user.Login && v.operator()
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

// sectionsText is how sections are named in a message.
func sectionsText(numbers []int) string {
	var names []string
	for _, number := range numbers {
		names = append(names, fmt.Sprintf("§%d", number))
	}
	return strings.Join(names, " ")
}

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
