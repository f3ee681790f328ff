package judge

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Section is a numbered piece of an answer.
type Section struct {
	Number int
	Text   string
}

const (
	markerOpen  = "$$["
	markerClose = "]"
	// maxDigits bounds a number, so that it fits into an int everywhere.
	maxDigits = 9
)

// ParseSections returns the sections of an answer by number.
//
// A marker $$[N] counts at the very start of a line; what follows it, on that line
// and below, belongs to section N until the next marker. What comes before the
// first marker belongs to no section, so that a text without markers has none. A
// number that is used again adds to its section, after an empty line.
func ParseSections(answer string) []Section {
	var sections []Section
	var pieces [][]string // of the sections
	at := map[int]int{}   // of a number in sections
	current, from, offset := -1, 0, 0
	end := func(to int) {
		if current < 0 {
			return
		}
		if text := strings.Trim(answer[from:to], "\r\n"); text != "" {
			pieces[current] = append(pieces[current], text)
		}
	}
	for line := range strings.Lines(answer) {
		if number, rest, marked := parseMarker(line); marked {
			end(offset)
			place, seen := at[number]
			if !seen {
				place = len(sections)
				at[number] = place
				sections, pieces = append(sections, Section{Number: number}), append(pieces, nil)
			}
			current, from = place, offset+len(line)-len(rest)
		}
		offset += len(line)
	}
	end(len(answer))
	for i := range sections {
		sections[i].Text = strings.Join(pieces[i], "\n\n")
	}
	slices.SortStableFunc(sections, func(a, b Section) int { return a.Number - b.Number })
	return sections
}

// CountMarkers returns how many markers an answer has. A number can be used again.
func CountMarkers(answer string) int {
	count := 0
	for line := range strings.Lines(answer) {
		if _, _, marked := parseMarker(line); marked {
			count++
		}
	}
	return count
}

// parseMarker reads the marker at the start of a line. Spaces and the line's end
// right after it are not part of the section.
func parseMarker(line string) (number int, rest string, marked bool) {
	after, found := strings.CutPrefix(line, markerOpen)
	if !found {
		return 0, "", false
	}
	digits, rest, found := strings.Cut(after, markerClose)
	if !found {
		return 0, "", false
	}
	number, ok := ParseNumber(digits)
	if !ok {
		return 0, "", false
	}
	return number, strings.TrimLeft(rest, " \t\u3000\r\n"), true
}

// ParseNumber reads digits, ASCII or full-width, and nothing else.
func ParseNumber(digits string) (int, bool) {
	var ascii strings.Builder
	for _, r := range digits {
		switch {
		case r >= '0' && r <= '9':
			ascii.WriteRune(r)
		case r >= '０' && r <= '９':
			ascii.WriteRune(r - '０' + '0')
		default:
			return 0, false
		}
	}
	text := strings.TrimLeft(ascii.String(), "0")
	if text == "" {
		return 0, ascii.Len() > 0
	}
	if len(text) > maxDigits {
		return 0, false
	}
	number, err := strconv.Atoi(text)
	return number, err == nil
}

// Mark writes sections as an answer that [ParseSections] reads back. Lines of a
// text that look like markers get a space in front.
func Mark(sections []Section) string {
	var b strings.Builder
	for _, section := range sections {
		fmt.Fprintf(&b, "%s%d%s\n", markerOpen, section.Number, markerClose)
		for line := range strings.Lines(section.Text) {
			if _, _, marked := parseMarker(line); marked {
				b.WriteByte(' ')
			}
			b.WriteString(line)
		}
		b.WriteString("\n\n")
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// MarkParagraphs numbers the paragraphs of a text that has no markers. A text that
// has some is returned as it is.
func MarkParagraphs(text string) string {
	if len(ParseSections(text)) > 0 {
		return text
	}
	var sections []Section
	for paragraph := range strings.SplitSeq(strings.ReplaceAll(text, "\r\n", "\n"), "\n\n") {
		if paragraph = strings.Trim(paragraph, "\n"); strings.TrimSpace(paragraph) != "" {
			sections = append(sections, Section{Number: len(sections) + 1, Text: paragraph})
		}
	}
	if len(sections) == 0 {
		return text
	}
	return Mark(sections)
}
