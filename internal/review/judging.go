package review

import (
	"context"
	"strings"

	"github.com/toryo-dev/toryo/internal/review/judge"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// Judging is a document that the model reviews.
type Judging struct {
	done chan struct{} // closed when the rest is there
	made store.Review
	err  error
}

// BeginJudging has the model review a document. It goes on without the caller and its
// context: the review is found in the history then. What is wrong with the document is said
// at once.
func (s *Service) BeginJudging(ctx context.Context, who string, question store.Question, answer string) (*Judging, error) {
	if err := named(who); err != nil {
		return nil, err
	}
	if err := checkDocument(question, answer); err != nil {
		return nil, err
	}
	judging := &Judging{done: make(chan struct{})}
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), answerWithin, errTooSlow)
	started := s.start(func() {
		defer cancel()
		defer close(judging.done)
		judging.made, judging.err = s.Judge(ctx, who, question, answer)
		if judging.err != nil {
			s.Log.WarnContext(ctx, "failed to review a document", "error", judging.err)
		}
	})
	if !started {
		cancel()
		return nil, errStopping
	}
	return judging, nil
}

// Wait returns the review when it is stored, or why there is none. It ends with its
// context.
func (j *Judging) Wait(ctx context.Context) (store.Review, error) {
	select {
	case <-j.done:
		return j.made, j.err
	case <-ctx.Done():
		return store.Review{}, ctx.Err()
	}
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
		kept, err := s.AddQuestion(ctx, question)
		if err != nil {
			return store.Review{}, err
		}
		r.QuestionID, r.CustomQuestionText = kept.ID, ""
	}
	return s.AddReview(ctx, who, r)
}
