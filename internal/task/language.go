package task

import (
	"regexp"
	"strings"
	"unicode"
)

// Language is the language of what people read.
type Language string

// The languages. Automatic follows the text of the item.
const (
	Automatic Language = "auto"
	Japanese  Language = "ja"
	English   Language = "en"
)

// Name is the name of the language in English, for prompts.
func (l Language) Name() string {
	if l == Japanese {
		return "Japanese"
	}
	return "English"
}

// code is what a text quotes and does not say.
var code = regexp.MustCompile("(?s)```.*?(```|$)|`[^`\n]*`|https?://[^\\s<>\"]+|<!--.*?(-->|$)")

// Of returns the language for an item with these texts, which is the one that is
// set, or else that of the first text that says something. Japanese is written
// with few characters and many English names: a quarter as many are enough.
func (l Language) Of(texts ...string) Language {
	if l == Japanese || l == English {
		return l
	}
	for _, text := range texts {
		japanese, latin := 0, 0
		for _, letter := range code.ReplaceAllString(text, " ") {
			switch {
			case unicode.In(letter, unicode.Hiragana, unicode.Katakana, unicode.Han):
				japanese++
			case unicode.IsLetter(letter):
				latin++
			}
		}
		if japanese > 0 && japanese*4 >= latin {
			return Japanese
		}
		if strings.TrimSpace(text) != "" && latin > 0 {
			return English
		}
	}
	return English
}
