package review

import (
	"context"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// spokenIn is the language of the next turn of a thread: the one that was asked for, of
// the thread or of all; or else the one that its person writes in, now or last; or else
// that of the review.
func (s *Service) spokenIn(thread store.Thread, r store.Review, material Material, input string) task.Language {
	if thread.Language == "" && s.follows() {
		if spoken, told := task.Spoken(input); told {
			return spoken
		}
	}
	if told := s.told(thread); told != "" {
		return told
	}
	return s.Language.Of(material.Judgement.Overall, material.Question, r.AnswerText)
}

// follows reports whether conversations follow what people write in them.
func (s *Service) follows() bool { return s.Language != task.Japanese && s.Language != task.English }

// told is the language of a thread as far as it is known without its review: the one that
// was asked for, or the one that its person last wrote in.
func (s *Service) told(thread store.Thread) task.Language {
	switch {
	case thread.Language != "":
		return languageOr(thread.Language)
	case !s.follows():
		return s.Language
	default:
		return task.Language(thread.Spoken)
	}
}

// spokenLanguage is the language that a message tells, as it is kept with the thread.
func spokenLanguage(message string) string {
	if spoken, told := task.Spoken(message); told {
		return string(spoken)
	}
	return ""
}

// withLanguage fills in, for people, the language of a thread that follows its person.
func (s *Service) withLanguage(ctx context.Context, thread store.Thread, record store.Review) (store.Thread, error) {
	if thread.Language = string(s.told(thread)); thread.Language != "" {
		return thread, nil
	}
	material, err := s.material(ctx, record)
	if err != nil {
		return store.Thread{}, err
	}
	thread.Language = string(s.spokenIn(thread, record, material, ""))
	return thread, nil
}
