package review

import (
	"context"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// PurposeWord is what a message in a language says to have the purpose text given to the
// model.
func PurposeWord(language task.Language) string { return wordingIn(string(language)).purposeWords[0] }

// GradingWord is the same for the grading impressions.
func GradingWord(language task.Language) string { return wordingIn(string(language)).gradingWords[0] }

// LanguageOf is the language that a new conversation about a review has.
func (s *Service) LanguageOf(ctx context.Context, r store.Review) (task.Language, error) {
	return s.languageOf(ctx, r)
}
