package review

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/review/judge"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// Judge has the model review a document, waits for it and keeps the review. What is wrong with
// the document is said before the model is asked.
func (s *Service) Judge(ctx context.Context, who string, question store.Question, answer string) (store.Review, error) {
	paper, model, err := s.prepare(who, question, answer)
	if err != nil {
		return store.Review{}, err
	}
	judgement, err := s.judge(ctx, model, paper)
	if err != nil {
		return store.Review{}, err
	}
	return s.AddReviewOf(ctx, who, question, store.Review{AnswerText: paper.Answer, Judgement: judgement})
}

// judge asks the model, until the service stops.
func (s *Service) judge(ctx context.Context, model llm.Model, paper judge.Paper) (json.RawMessage, error) {
	judging, end := s.untilStop(ctx)
	defer end()
	judged, err := judge.Judge{Model: model, Prompts: s.Prompts, Log: s.Log}.Judge(judging, paper)
	if cause := context.Cause(judging); cause != nil && err != nil && (errors.Is(cause, errStopping) || errors.Is(cause, errLost) || errors.Is(err, context.DeadlineExceeded)) {
		err = cause
	}
	return judged.JSON, err
}

// BeginJudging keeps a document as a review without a judgement, and has the model judge it.
// That goes on without the caller and its context; what becomes of it stands with the
// review. What is wrong with the document is said at once, and nothing is kept then.
func (s *Service) BeginJudging(ctx context.Context, who string, question store.Question, answer string) (store.Review, error) {
	paper, model, err := s.prepare(who, question, answer)
	if err != nil {
		return store.Review{}, err
	}
	record, err := s.AddReviewOf(ctx, who, question, store.Review{
		AnswerText: paper.Answer, Judgement: json.RawMessage("{}"), State: store.Judging, HeldUntil: s.Now().Add(holdFor), Claim: uuid.NewString(),
	})
	if err != nil {
		return store.Review{}, err
	}
	return record, s.startJudging(ctx, record, model, paper)
}

// JudgeAgain has the model judge a review of the caller's own whose judgement has failed.
func (s *Service) JudgeAgain(ctx context.Context, who, id string) error {
	record, err := s.own(ctx, who, id)
	if err != nil {
		return err
	}
	question, err := s.QuestionOf(ctx, record)
	if err != nil {
		return err
	}
	paper, model, err := s.paper(question, record.AnswerText)
	if err != nil {
		return err
	}
	record.State, record.Cause, record.HeldUntil, record.Claim = store.Judging, "", s.Now().Add(holdFor), uuid.NewString()
	if err := s.Store.SetReviewState(ctx, store.NotJudged, record, s.Now()); err != nil {
		return err
	}
	return s.startJudging(ctx, record, model, paper)
}

// prepare checks a new document, and returns what the model reviews and the model.
func (s *Service) prepare(who string, question store.Question, answer string) (judge.Paper, llm.Model, error) {
	if err := named(who); err != nil {
		return judge.Paper{}, nil, err
	}
	if err := checkDocument(question, answer); err != nil {
		return judge.Paper{}, nil, err
	}
	return s.paper(question, answer)
}

// paper is what the model reviews, and the model.
func (s *Service) paper(question store.Question, answer string) (judge.Paper, llm.Model, error) {
	paper, err := judge.DocumentPaper(question.Text, answer, s.Language)
	if err != nil {
		return judge.Paper{}, nil, err
	}
	model, err := s.Model(ForReview)
	return paper, model, err
}

func (s *Service) startJudging(ctx context.Context, record store.Review, model llm.Model, paper judge.Paper) error {
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), answerWithin, errTooSlow)
	started := s.start(func() {
		defer cancel()
		s.finishJudging(ctx, record, model, paper)
	})
	if !started {
		s.endJudging(ctx, record, nil, errStopping)
		cancel()
		return errStopping
	}
	return nil
}

// finishJudging asks the model and stores what came of it. Meanwhile it shows that somebody
// works on the review.
func (s *Service) finishJudging(ctx context.Context, record store.Review, model llm.Model, paper judge.Paper) {
	held, release := s.holdReview(ctx, record)
	judgement, err := s.judge(held, model, paper)
	release()
	s.endJudging(ctx, record, judgement, err)
}

// errLost ends the work on a review that was deleted, or that somebody else has taken over.
var errLost = errors.New("the review was deleted, or somebody else works on it")

// lost reports whether that is what the database says.
func lost(err error) bool {
	code := task.CodeOf(err)
	return code == task.Conflict || code == task.NotFound
}

// holdReview keeps the review ours until release is called. Its context ends when the review
// is lost: the model is not paid for nothing.
func (s *Service) holdReview(ctx context.Context, record store.Review) (held context.Context, release func()) {
	held, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(holdFor / 3)
		defer ticker.Stop()
		for {
			select {
			case <-held.Done():
				return
			case <-ticker.C:
				still := store.Review{ID: record.ID, Claim: record.Claim, State: store.Judging, HeldUntil: s.Now().Add(holdFor)}
				err := s.Store.SetReviewState(held, store.Judging, still, s.Now())
				if lost(err) {
					cancel(errLost)
				} else if err != nil && held.Err() == nil {
					s.Log.DebugContext(ctx, "failed to hold a review that is being made", "review", record.ID, "error", err)
				}
			}
		}
	}()
	return held, func() {
		cancel(nil)
		<-done
	}
}

// endJudging stores a judgement, or why there is none. If the review is lost, what becomes of it
// is up to others.
func (s *Service) endJudging(ctx context.Context, record store.Review, judgement json.RawMessage, failed error) {
	if errors.Is(failed, errLost) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeWithin)
	defer cancel()
	end := store.Review{ID: record.ID, Claim: record.Claim, State: store.Judged, Judgement: judgement}
	if failed == nil {
		failed = bounded("review", string(judgement), maxText)
	}
	if failed == nil {
		err := s.Store.SetReviewState(ctx, store.Judging, end, s.Now())
		if err == nil || lost(err) {
			return
		}
		failed = err
	}
	end.State, end.Judgement, end.Cause = store.NotJudged, nil, causeOf(failed)
	err := s.Store.SetReviewState(ctx, store.Judging, end, s.Now())
	if lost(err) {
		return
	}
	s.Log.WarnContext(ctx, "failed to review a document", "review", record.ID, "error", failed)
	if err != nil {
		s.Log.ErrorContext(ctx, "failed to mark a review as failed; it expires by itself", "review", record.ID, "error", err)
	}
}

// Interrupted is the cause of what nobody works on any more.
const Interrupted = "interrupted"

// Current is a review as people are shown it: one that nobody works on any more has failed.
func (s *Service) Current(r store.Review) store.Review {
	if r.State == store.Judging && !r.HeldUntil.After(s.Now()) {
		r.State, r.Cause = store.NotJudged, Interrupted
	}
	return r
}

// checkJudged refuses to talk about a review that is not there yet.
func checkJudged(r store.Review) error {
	if r.State == store.Judged {
		return nil
	}
	return task.Errorf(task.Conflict, "the answer has no assessment yet").WithHint("look at the review")
}

// checkDocument refuses what cannot be reviewed before a model is asked.
func checkDocument(question store.Question, answer string) error {
	if strings.TrimSpace(question.Text) == "" {
		return task.Errorf(task.Invalid, "a review needs a question")
	}
	if err := checkQuestion(question); err != nil {
		return err
	}
	record := store.Review{CustomQuestionText: question.Text, AnswerText: judge.MarkParagraphs(answer), Judgement: []byte("{}")}
	return checkReview(record)
}

// AddReviewOf keeps a review of a document in the history of its owner, and its question
// if that is an official one which is not kept yet: one with a purpose text or grading
// impressions.
func (s *Service) AddReviewOf(ctx context.Context, who string, question store.Question, r store.Review) (store.Review, error) {
	if err := named(who); err != nil {
		return store.Review{}, err
	}
	r.QuestionID, r.CustomQuestionText = question.ID, ""
	if question.ID == "" {
		r.CustomQuestionText = question.Text
	}
	if err := checkReview(r); err != nil {
		return store.Review{}, err // before a question is kept for nothing
	}
	if question.ID == "" && (question.PurposeText != "" || question.GradingImpressionText != "") {
		kept, err := s.AddQuestion(ctx, who, question)
		if err != nil {
			return store.Review{}, err
		}
		r.QuestionID, r.CustomQuestionText = kept.ID, ""
	}
	return s.AddReview(ctx, who, r)
}
