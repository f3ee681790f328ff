package web

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
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
		questions, err := p.Reviews.Questions(r.Context())
		return newReviewPage(v, newReview{judge: byModel, questionID: r.URL.Query().Get("question"), questions: questions}), err
	}))
	mux.HandleFunc("POST /reviews", p.signedInWith(access.Operator, readUpload, p.createReview))
}

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
func (f newReview) asked(ctx context.Context, reviews *review.Service) (store.Question, error) {
	if f.questionID == "" {
		return store.Question{Text: f.question, PurposeText: f.purpose, GradingImpressionText: f.grading}, nil
	}
	if f.question != "" || f.purpose != "" || f.grading != "" {
		return store.Question{}, task.Errorf(task.Invalid, "give either a kept question or the text of another one")
	}
	return reviews.Question(ctx, f.questionID)
}

// createReview makes a review, by the model or of what somebody else has found. Whoever has a
// script is told how it went in a stream; others wait for the page. The form comes back
// with what was in it if it cannot be done.
func (p *Pages) createReview(w http.ResponseWriter, r *http.Request, v visit) {
	form := newReviewOf(r)
	making := func(ctx context.Context) (made store.Review, err error) {
		err = p.audited(ctx, v.user.Login, "review.create", "judge="+form.judge, func() error {
			made, err = p.makeReview(ctx, v.user.Login, form)
			return err
		})
		return made, err
	}
	if strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
		p.streamMaking(w, r, v, making)
		return
	}
	made, err := making(r.Context())
	if err != nil {
		p.showFormAgain(w, r, v, form, err)
		return
	}
	http.Redirect(w, r, "/reviews/"+made.ID, http.StatusSeeOther)
}

func (p *Pages) makeReview(ctx context.Context, who string, form newReview) (store.Review, error) {
	question, err := form.asked(ctx, p.Reviews)
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
		judging, err := p.Reviews.BeginJudging(ctx, who, question, form.answer)
		if err != nil {
			return store.Review{}, err
		}
		return judging.Wait(ctx)
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
	if form.questions, err = p.Reviews.Questions(r.Context()); err != nil {
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

// streamMaking makes a review while it shows that the connection is alive, and ends with
// where the review is or with what went wrong.
func (p *Pages) streamMaking(w http.ResponseWriter, r *http.Request, v visit, do func(context.Context) (store.Review, error)) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	to := stream{w, http.NewResponseController(w)}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	type ending struct {
		made store.Review
		err  error
	}
	ended := make(chan ending, 1)
	go func() { // ends with the review or with the context
		made, err := do(ctx)
		ended <- ending{made, err}
	}()
	alive := time.NewTicker(aliveEvery)
	defer alive.Stop()
	for {
		select {
		case <-alive.C:
			if _, err := io.WriteString(w, ": alive\n\n"); err != nil || to.control.Flush() != nil {
				return // whoever went away finds the review in the list
			}
		case end := <-ended:
			if end.err != nil && task.CodeOf(end.err) == task.Internal && ctx.Err() == nil {
				p.Log.ErrorContext(ctx, "a review was not made", "error", end.err)
			}
			p.sendEnding(ctx, v, to, "/reviews/"+end.made.ID, end.err)
			return
		}
	}
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
