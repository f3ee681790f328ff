package review

import "github.com/toryo-dev/toryo/internal/task"

// PurposeWord is what a message in a language says to have the purpose text given to the
// model.
func PurposeWord(language task.Language) string {
	if language == task.English {
		return "purpose of the question"
	}
	return "出題趣旨"
}

// GradingWord is the same for the grading impressions.
func GradingWord(language task.Language) string {
	if language == task.English {
		return "grading impression"
	}
	return "採点実感"
}
