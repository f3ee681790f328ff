package forge

import (
	"strings"
	"unicode/utf8"
)

// MaxText is how many bytes a [Text] has at most, marker not counted: what every
// forge takes. Longer ones are cut and say so.
const MaxText = 60_000

// maxTitle is how many bytes a title has at most.
const maxTitle = 250

// Text is text that is safe to post: see [Neutraliser], which makes it. The zero
// value is empty.
type Text struct{ value string }

// String returns the text.
func (t Text) String() string { return t.value }

// With returns the text with the marker hidden at its end.
func (t Text) With(marker Marker) string {
	if marker == (Marker{}) {
		return t.value
	}
	if t.value == "" {
		return marker.String()
	}
	return t.value + "\n\n" + marker.String()
}

// TextOfPerson is what a person writes under their own account, as it is but for its length: the words are
// theirs, so nothing is neutralised.
func TextOfPerson(text string) Text { return Text{cut(Clean(text), MaxText, false)} }

// Clean makes text that was read safe to keep: invalid UTF-8 becomes U+FFFD,
// lines end in "\n", and control characters but tab and newline are dropped.
// Nothing else changes.
func Clean(text string) string {
	text = strings.ToValidUTF8(text, string(utf8.RuneError))
	if strings.IndexFunc(text, unwanted) < 0 {
		return text
	}
	text = strings.ReplaceAll(text, "\r\n", "\n")
	text = strings.ReplaceAll(text, "\r", "\n")
	return strings.Map(func(r rune) rune {
		if unwanted(r) {
			return -1
		}
		return r
	}, text)
}

// unwanted reports whether a character is a control character (C0, DEL or C1)
// other than tab and newline.
func unwanted(r rune) bool {
	return r < 0x20 && r != '\t' && r != '\n' || r >= 0x7f && r <= 0x9f
}

const cutNote = "\n\n*(cut: the rest was too long for a comment)*"

// cut shortens text to the limit, at a line if there is one near, and says so. A
// code fence that the cut leaves open is closed, so that the note is seen. If
// part of it is missing already, it says so in any case.
func cut(text string, limit int, missing bool) string {
	if len(text) <= limit && !missing {
		return text
	}
	const fenceRoom = 64
	end := min(len(text), limit-len(cutNote)-fenceRoom)
	for end < len(text) && !utf8.RuneStart(text[end]) {
		end--
	}
	kept := text[:end]
	if at := strings.LastIndexByte(kept, '\n'); at > end-2000 && at > 0 {
		kept = kept[:at]
	}
	if fence := openFence(kept); fence != "" && len(fence) < fenceRoom {
		kept += "\n" + fence
	}
	return kept + cutNote
}

// openFence returns what closes the code fence that is open at the end of the
// text, or "".
func openFence(text string) string {
	open := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		mark := line[:len(line)-len(strings.TrimLeft(line, "`~"))]
		switch {
		case open == "" && (strings.HasPrefix(mark, "```") || strings.HasPrefix(mark, "~~~")):
			open = mark
		case open != "" && line == mark && strings.HasPrefix(mark, open):
			open = ""
		}
	}
	return open
}
