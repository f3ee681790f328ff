package web

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/a-h/templ"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/review"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// Who judges a new review.
const (
	byModel = "model"
	byHand  = "json"
)

func (p *Pages) registerNewReview(mux *http.ServeMux) {
	mux.HandleFunc("GET /reviews/new", p.page(access.Operator, func(r *http.Request, v visit) (templ.Component, error) {
		questions, err := p.Reviews.QuestionTitles(r.Context(), v.user.Login, questionsOnPage)
		return newReviewPage(v, newReview{judge: byModel, questionID: r.URL.Query().Get("question"), questions: questions}), err
	}))
	mux.HandleFunc("POST /reviews", p.signedInWith(access.Operator, readUpload, p.createReview))
}

// questionsOnPage is how many questions can be chosen from.
const questionsOnPage = 100

// newReview is the form of a review that is to be made.
type newReview struct {
	question, questionID string // one of them
	purpose, grading     string
	answer, judgement    string
	judge                string
	failure              string
	questions            []store.Question
}

func newReviewOf(r *http.Request) newReview {
	value := r.PostFormValue
	return newReview{
		question: strings.TrimSpace(value("question")), questionID: value("question_id"),
		purpose: strings.TrimSpace(value("purpose")), grading: strings.TrimSpace(value("grading")),
		answer: cmp.Or(value("answer_file"), value("answer")), judgement: cmp.Or(value("judgement_file"), value("judgement")),
		judge: value("judge"),
	}
}

// asked is the question of the form.
func (f newReview) asked(ctx context.Context, reviews *review.Service, who string) (store.Question, error) {
	if f.questionID == "" {
		return store.Question{Text: f.question, PurposeText: f.purpose, GradingImpressionText: f.grading}, nil
	}
	if f.question != "" || f.purpose != "" || f.grading != "" {
		return store.Question{}, task.Errorf(task.Invalid, "give either a kept question or the text of another one")
	}
	return reviews.Question(ctx, who, f.questionID)
}

// createReview makes a review, by the model or of what somebody else has found. What the
// model makes is there later: the page of the review says how it goes. Whoever has a script
// is told in an event where the review is or what is wrong; for others the form comes back
// with what was in it.
func (p *Pages) createReview(w http.ResponseWriter, r *http.Request, v visit) {
	form := newReviewOf(r)
	var made store.Review
	err := p.audited(r.Context(), v.user.Login, "review.create", "judge="+form.judge, func() (err error) {
		made, err = p.makeReview(r.Context(), v.user.Login, form)
		return err
	})
	page := "/reviews/" + made.ID
	switch {
	case strings.Contains(r.Header.Get("Accept"), "text/event-stream"):
		if err != nil && task.CodeOf(err) == task.Internal {
			p.Log.ErrorContext(r.Context(), "a review was not made", "error", err)
		}
		p.sendEnding(r.Context(), v, newStream(w), page, err)
	case err != nil:
		p.showFormAgain(w, r, v, form, err)
	default:
		http.Redirect(w, r, page, http.StatusSeeOther)
	}
}

func (p *Pages) makeReview(ctx context.Context, who string, form newReview) (store.Review, error) {
	question, err := form.asked(ctx, p.Reviews, who)
	if err != nil {
		return store.Review{}, err
	}
	switch form.judge {
	case byHand:
		if strings.TrimSpace(form.judgement) == "" {
			return store.Review{}, task.Errorf(task.Invalid, "the assessment is missing")
		}
		return p.Reviews.AddReviewOf(ctx, who, question, store.Review{AnswerText: form.answer, Judgement: json.RawMessage(form.judgement)})
	case byModel:
		return p.Reviews.BeginJudging(ctx, who, question, form.answer)
	default:
		return store.Review{}, task.Errorf(task.Invalid, "say who assesses the answer")
	}
}

// showFormAgain shows the form with what is wrong with it.
func (p *Pages) showFormAgain(w http.ResponseWriter, r *http.Request, v visit, form newReview, err error) {
	info := task.CodeOf(err).Info()
	if info.Code == task.Internal {
		p.fail(w, r, v, err)
		return
	}
	form.failure = problemText(v, err)
	if form.questions, err = p.Reviews.QuestionTitles(r.Context(), v.user.Login, questionsOnPage); err != nil {
		p.fail(w, r, v, err)
		return
	}
	p.write(w, r, info.Status, newReviewPage(v, form))
}

// problemText is what a person is told about an error in a line.
func problemText(v visit, err error) string {
	coded, found := task.AsError(err)
	if !found || coded.Code == task.Internal {
		return v.t("problem.title")
	}
	if coded.Hint == "" {
		return coded.Message
	}
	return coded.Message + " (" + coded.Hint + ")"
}

// sendEnding sends the last event of something that a person waits for: where the result
// is, or what went wrong.
func (p *Pages) sendEnding(ctx context.Context, v visit, to stream, page string, err error) {
	event, last := "made", piece{Page: page}
	if err != nil {
		event, last = "problem", piece{Text: problemText(v, err)}
	}
	if err := to.sendJSON(event, last); err != nil {
		p.Log.DebugContext(ctx, "client disconnected", "error", err)
	}
}

// questionName tells questions apart that begin with the same line.
func questionName(question store.Question) string {
	return firstLine(question.Text) + " (" + question.CreatedAt.Format(time.DateOnly) + ")"
}
