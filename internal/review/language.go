package review

import (
	"context"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// spokenIn is the language of the next turn of a thread: the one that was asked for, of
// the thread or of all; or else the one that its person writes in, now or last; or else
// that of the review.
func (s *Service) spokenIn(thread store.Thread, r store.Review, material Material, history []store.Message, input string) task.Language {
	if thread.Language != "" {
		return languageOr(thread.Language)
	}
	if s.Language == task.Japanese || s.Language == task.English {
		return s.Language
	}
	if spoken, told := task.Spoken(input); told {
		return spoken
	}
	for i := len(history) - 1; i >= 0; i-- {
		if history[i].Role != store.UserMessage {
			continue
		}
		if spoken, told := task.Spoken(history[i].Content); told {
			return spoken
		}
	}
	return s.Language.Of(material.Judgement.Overall, material.Question, r.AnswerText)
}

// withLanguage fills in, for people, the language of a thread that follows its person.
func (s *Service) withLanguage(ctx context.Context, thread store.Thread) (store.Thread, error) {
	if thread.Language != "" {
		return thread, nil
	}
	record, err := s.Store.Review(ctx, thread.ReviewID)
	if err != nil {
		return store.Thread{}, err
	}
	material, err := s.material(ctx, record)
	if err != nil {
		return store.Thread{}, err
	}
	said, err := s.Store.Messages(ctx, thread.ID)
	if err != nil {
		return store.Thread{}, err
	}
	thread.Language = string(s.spokenIn(thread, record, material, answered(said), ""))
	return thread, nil
}
