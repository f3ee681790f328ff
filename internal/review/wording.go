package review

import (
	"embed"
	"io/fs"
	"strings"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/messages"
	"github.com/toryo-dev/toryo/internal/prompt"
	"github.com/toryo-dev/toryo/internal/task"
)

//go:embed prompts/*.md
var embedded embed.FS

// wording is what depends on the language of a conversation besides the texts of
// package messages.
type wording struct {
	language                task.Language
	system, summarize, user string // prompts
}

// text is a text in the language.
func (w wording) text(key string, args ...any) string { return messages.Text(w.language, key, args...) }

// asked is the last message: the question of the person.
func (w wording) asked(input string) string {
	return prompt.Fill(w.user, map[string]string{questionPlace: input})
}

// questionPlace is the place of the person's message in its prompt.
const questionPlace = "question"

// gap stands between two ranges of sections, in every language.
const gap = "……"

// purposeWords and gradingWords ask for their blocks, in lower case: whatever the
// language of the rest of the message is.
var (
	purposeWords = []string{PurposeWord(task.Japanese), PurposeWord(task.English), "purpose text"}
	gradingWords = []string{GradingWord(task.Japanese), GradingWord(task.English)}
)

// wordingIn is the wording in a language, with the prompts of the configuration.
func (s *Service) wordingIn(language task.Language) (wording, error) {
	return newWording(language, s.Prompts)
}

// newWording reads the prompts of a language. Whatever replaces them, the model is told
// what quoted text is.
func newWording(language task.Language, replaced fs.FS) (w wording, err error) {
	w.language = language
	if w.system, err = prompt.Read(embedded, replaced, promptName("system", language)); err != nil {
		return wording{}, err
	}
	if w.summarize, err = prompt.Read(embedded, replaced, promptName("summarize", language)); err != nil {
		return wording{}, err
	}
	if w.user, err = prompt.Read(embedded, replaced, promptName("user", language), questionPlace); err != nil {
		return wording{}, err
	}
	rule := "\n\n" + strings.TrimSpace(llm.UntrustedRule)
	w.system += rule
	w.summarize += rule
	return w, nil
}

func promptName(what string, language task.Language) string {
	return "review_chat_" + what + "_" + string(language) + ".md"
}

// languageOr is a language that there are texts in; Japanese is the one of the
// specification, and of every thread that names no other.
func languageOr(language string) task.Language {
	if task.Language(language) == task.English {
		return task.English
	}
	return task.Japanese
}
