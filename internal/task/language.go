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

// Of returns the language for something with these texts, which is the one that is
// set, or else that of the first text that says something.
func (l Language) Of(texts ...string) Language {
	if l == Japanese || l == English {
		return l
	}
	for _, text := range texts {
		if written, said := writtenIn(text); said {
			return written
		}
	}
	return English
}

// OfItem returns the language for an item. Title and body count alike: a title is often
// a name or an error message, and then the body says which language people write. Where
// neither says anything, the other texts count as in [Language.Of].
func (l Language) OfItem(title, body string, others ...string) Language {
	if l == Japanese || l == English {
		return l
	}
	inTitle, titled := writtenIn(title)
	inBody, bodied := writtenIn(body)
	switch {
	case titled && inTitle == Japanese, bodied && inBody == Japanese:
		return Japanese
	case titled || bodied:
		return English
	default:
		return l.Of(others...)
	}
}

// writtenIn is the language of a text, and whether it says anything. Japanese is written
// with few characters and many English names: a quarter as many are enough.
func writtenIn(text string) (in Language, says bool) {
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
		return Japanese, true
	}
	return English, latin > 0
}

// quotedLine is a line that repeats what somebody else has said.
var quotedLine = regexp.MustCompile(`(?m)^[ \t]*>.*$`)

// Spoken is the language that a person speaks in a message, and whether the message
// tells: one word, such as OK or the name of something, is written so in every language.
// What it quotes does not count, nor do names of files.
func Spoken(text string) (in Language, tells bool) {
	text = withoutQuotations(code.ReplaceAllString(quotedLine.ReplaceAllString(text, " "), " "))
	if in, says := writtenIn(text); says && in == Japanese {
		return Japanese, true
	}
	words := 0
	for field := range strings.FieldsSeq(text) {
		word := strings.TrimFunc(field, func(r rune) bool { return !unicode.IsLetter(r) })
		if len(word) > 1 && !strings.ContainsFunc(word, func(r rune) bool { return !unicode.IsLetter(r) && r != '\'' && r != '’' && r != '-' }) {
			words++
		}
	}
	return English, words > 1
}

// quotationMarks are the marks around a quotation, by the one that opens it. The straight mark
// does both.
var quotationMarks = map[rune]rune{'“': '”', '「': '」', '『': '』'}

const straightMark = '"'

// withoutQuotations leaves out what stands in quotation marks: it is somebody else's.
func withoutQuotations(text string) string {
	letters := []rune(text)
	ends := endsOfQuotations(letters)
	var rest strings.Builder
	for at := 0; at < len(letters); at++ {
		end := ends[at]
		if letters[at] == straightMark {
			end = endOfStraight(letters, at)
		}
		if end > 0 {
			rest.WriteByte(' ')
			at = end
			continue
		}
		rest.WriteRune(letters[at])
	}
	return rest.String()
}

// endsOfQuotations returns for each mark that opens a quotation where that ends, and 0 for
// all other letters. Quotations can stand within others. One that was cut for its length ends
// in … and may have opened more of them than it has closed. Each letter is looked at a fixed
// number of times, however many marks there are.
func endsOfQuotations(letters []rune) []int {
	ends := make([]int, len(letters))
	for opening, closing := range quotationMarks {
		var open []int // the marks that are not closed yet
		for at, letter := range letters {
			switch {
			case letter == opening:
				open = append(open, at)
			case letter == closing && len(open) > 0:
				ends[open[len(open)-1]] = at
				open = open[:len(open)-1]
			}
		}
		cut := 0
		for at := len(letters) - 1; at >= 0 && len(open) > 0; at-- {
			switch {
			case letters[at] == closing && at > 0 && letters[at-1] == '…':
				cut = at
			case at == open[len(open)-1]:
				ends[at] = cut
				open = open[:len(open)-1]
			}
		}
	}
	return ends
}

// endOfStraight is where the quotation ends that a straight mark opens, or 0. The mark is also
// the sign for inches, and ends in its line.
func endOfStraight(letters []rune, at int) int {
	for end := at + 1; end < len(letters) && letters[end] != '\n'; end++ {
		if letters[end] == straightMark {
			return end
		}
	}
	return 0
}
