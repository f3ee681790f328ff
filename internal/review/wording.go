package review

import (
	_ "embed" // for the prompts
	"strings"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/messages"
	"github.com/toryo-dev/toryo/internal/task"
)

//go:embed prompts/system_ja.md
var systemJapanese string

//go:embed prompts/system_en.md
var systemEnglish string

//go:embed prompts/summarize_ja.md
var summarizeJapanese string

//go:embed prompts/summarize_en.md
var summarizeEnglish string

// wording is what depends on the language of a conversation besides the texts of
// package messages.
type wording struct {
	language          task.Language
	system, summarize string // prompts

	// purposeWords and gradingWords ask for their blocks, in lower case.
	purposeWords, gradingWords []string
}

// text is a text in the language.
func (w wording) text(key string, args ...any) string { return messages.Text(w.language, key, args...) }

// gap stands between two ranges of sections, in every language.
const gap = "……"

var wordings = map[task.Language]wording{
	task.Japanese: {
		language:     task.Japanese,
		system:       strings.TrimSpace(systemJapanese) + "\n\n" + strings.TrimSpace(llm.UntrustedRule),
		summarize:    strings.TrimSpace(summarizeJapanese) + "\n\n" + strings.TrimSpace(llm.UntrustedRule),
		purposeWords: []string{"出題趣旨"}, gradingWords: []string{"採点実感"},
	},
	task.English: {
		language:     task.English,
		system:       strings.TrimSpace(systemEnglish) + "\n\n" + strings.TrimSpace(llm.UntrustedRule),
		summarize:    strings.TrimSpace(summarizeEnglish) + "\n\n" + strings.TrimSpace(llm.UntrustedRule),
		purposeWords: []string{"purpose of the question", "purpose text", "出題趣旨"},
		gradingWords: []string{"grading impression", "採点実感"},
	},
}

// wordingIn returns the wording of a language; Japanese is the one of the
// specification, and of every thread that names no other.
func wordingIn(language string) wording {
	if found, ok := wordings[task.Language(language)]; ok {
		return found
	}
	return wordings[task.Japanese]
}
