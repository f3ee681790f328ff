package review

import (
	"context"
	"strings"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// maxListed is how many bytes of questions a listing has, and what goes over that by one.
const maxListed = 8 << 20

// AddQuestion keeps an official question. It belongs to the caller, and is read by those who
// may read a review of it. The same question again is the one that is there.
func (s *Service) AddQuestion(ctx context.Context, who string, q store.Question) (store.Question, error) {
	if err := named(who); err != nil {
		return store.Question{}, err
	}
	if strings.TrimSpace(q.Text) == "" {
		return store.Question{}, task.Errorf(task.Invalid, "a question needs a text")
	}
	if err := checkQuestion(q); err != nil {
		return store.Question{}, err
	}
	q.Owner, q.CreatedAt = who, s.Now()
	return s.Store.AddQuestion(ctx, q)
}

func checkQuestion(q store.Question) error {
	for what, text := range map[string]string{"question": q.Text, "purpose": q.PurposeText, "grading impression": q.GradingImpressionText} {
		if err := bounded(what, text, maxText); err != nil {
			return err
		}
	}
	return nil
}

// Questions returns questions that the caller may read, oldest first. There are fewer than
// the limit if they are large; the listing goes on after the last one.
func (s *Service) Questions(ctx context.Context, who, after string, limit int) ([]store.Question, error) {
	if err := named(who); err != nil {
		return nil, err
	}
	titles, err := s.Store.ListQuestions(ctx, store.QuestionFilter{Reader: who, After: after, Brief: true, Limit: limit})
	if err != nil {
		return nil, err
	}
	var found []store.Question
	for size := 0; len(found) < len(titles) && size < maxListed; {
		one, err := s.Store.Question(ctx, titles[len(found)].ID)
		if err != nil {
			return nil, err
		}
		found = append(found, one)
		size += len(one.Text) + len(one.PurposeText) + len(one.GradingImpressionText)
	}
	return found, nil
}

// QuestionTitles returns the beginnings of the questions that the caller may read, newest
// first.
func (s *Service) QuestionTitles(ctx context.Context, who string, limit int) ([]store.Question, error) {
	if err := named(who); err != nil {
		return nil, err
	}
	return s.Store.ListQuestions(ctx, store.QuestionFilter{Reader: who, Newest: true, Brief: true, Limit: limit})
}

// Question returns one question that the caller may read.
func (s *Service) Question(ctx context.Context, who, id string) (store.Question, error) {
	return s.readableQuestion(ctx, who, id, false)
}

func (s *Service) readableQuestion(ctx context.Context, who, id string, brief bool) (store.Question, error) {
	none := task.Errorf(task.NotFound, "there is no question %q", id)
	if id == "" || who == "" {
		return store.Question{}, none
	}
	found, err := s.Store.ListQuestions(ctx, store.QuestionFilter{Reader: who, ID: id, Brief: brief, Limit: 1})
	if err != nil {
		return store.Question{}, err
	}
	if len(found) == 0 {
		return store.Question{}, none
	}
	return found[0], nil
}

// QuestionOf returns the question that a review is of; of one with a text of its own
// there is only that. Whoever may read the review may read the question.
func (s *Service) QuestionOf(ctx context.Context, r store.Review) (store.Question, error) {
	if r.QuestionID == "" {
		return store.Question{Text: r.CustomQuestionText}, nil
	}
	return s.Store.Question(ctx, r.QuestionID)
}
