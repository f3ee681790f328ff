// Package textfmt has the small things that are done to texts everywhere: making them one
// line, shorter, part of a name, or a block of code, and how numbers are written in them.
package textfmt

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// OneLine is a text with one space in place of each run of spaces and line breaks.
func OneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// FirstLine is the first line of a text that has something in it.
func FirstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return strings.TrimSpace(line)
}

// UpperFirst is a text that begins with a capital letter, for a part of a sentence that
// stands alone.
func UpperFirst(s string) string {
	first, size := utf8.DecodeRuneInString(s)
	if upper := unicode.ToUpper(first); size > 0 && upper != first {
		return string(upper) + s[size:]
	}
	return s
}

// Shorten is a text of at most so many characters. Where some are left out, the last one
// is an ellipsis.
func Shorten(s string, most int) string {
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	count := 0
	for at := range s {
		if count++; count == most {
			return s[:at] + "…"
		}
	}
	return ""
}

// Clip is the beginning of a text that has at most so many bytes. It ends with a whole
// character.
func Clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}

// Cut is the beginning of a text that has at most so many bytes, with a line below it that
// says so if some are left out.
func Cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return Clip(s, most) + "\n[cut]"
}

// Slug is the Latin letters and digits of a text as part of a file's or a branch's name:
// words in lower case with hyphens, at most so many bytes. Nothing is left of a text in
// another script.
func Slug(s string, most int) string {
	var slug strings.Builder
	for word := range strings.FieldsFuncSeq(strings.ToLower(s), func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') }) {
		if slug.Len() > 0 {
			word = "-" + word
		}
		if slug.Len()+len(word) > most {
			break
		}
		slug.WriteString(word)
	}
	return slug.String()
}

// Fence is a code fence of Markdown that nothing in the text can close.
func Fence(s string) string {
	longest := 2
	for run := range strings.FieldsFuncSeq(s, func(r rune) bool { return r != '`' }) {
		longest = max(longest, len(run))
	}
	return strings.Repeat("`", longest+1)
}

// ShortCommit is a commit as people name it.
func ShortCommit(commit string) string { return Clip(commit, 10) }

// escapes are the control sequences by which programs color a terminal.
var escapes = regexp.MustCompile("\x1b(?:\\[[0-9;?]*[\\x20-\\x2f]*[\\x40-\\x7e]|\\][^\x07\x1b]*(?:\x07|\x1b\\\\)|[\\x40-\\x5a\\x5c-\\x5f])")

// StripEscapes removes the control sequences by which programs color a terminal.
func StripEscapes(s string) string { return escapes.ReplaceAllString(s, "") }
