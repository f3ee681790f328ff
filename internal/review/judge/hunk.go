package judge

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/toryo-dev/toryo/internal/lazyregexp"
)

// Hunk is a section of a diff: where it stands, and its lines.
type Hunk struct {
	Path   string
	Commit string
	// Start and End are the lines that it covers in the file as the commit has it,
	// or with Old in the file as it was before. Both are 0 for a change without
	// lines, such as that of a binary file.
	Start, End int
	Old        bool
	Note       string // what there is to say about a change without lines
	Lines      []Line
}

// Line is a line of a hunk.
type Line struct {
	Sign   byte // '+', '-' or ' '
	Number int  // in the file as it was for '-', in the new one for the others
	Text   string
}

// Place is a line of a diff.
type Place struct {
	Path string
	Line int
	Old  bool
}

var placePattern = lazyregexp.New(`^(.+):(\d+)-(\d+)@([0-9a-fA-F]{4,64})( \(old\))?$`)

// String is where the hunk stands, as a citation names it.
func (h Hunk) String() string {
	text := fmt.Sprintf("%s:%d-%d@%s", h.Path, h.Start, h.End, h.Commit)
	if h.Old {
		text += " (old)"
	}
	return text
}

// Text is the hunk as a section. Every line begins with its sign and number, so
// that none can be taken for a marker.
func (h Hunk) Text() string {
	var b strings.Builder
	b.WriteString(h.String() + "\n")
	if h.Note != "" {
		b.WriteString("(" + h.Note + ")\n")
	}
	for _, line := range h.Lines {
		fmt.Fprintf(&b, "%c%d\t%s\n", line.Sign, line.Number, line.Text)
	}
	return b.String()
}

// ParseHunk reads what [Hunk.Text] wrote, and reports whether the text is that.
func ParseHunk(text string) (Hunk, bool) {
	head, rest, _ := strings.Cut(text, "\n")
	parts := placePattern.FindStringSubmatch(head)
	if parts == nil {
		return Hunk{}, false
	}
	start, startErr := strconv.Atoi(parts[2])
	end, endErr := strconv.Atoi(parts[3])
	if startErr != nil || endErr != nil {
		return Hunk{}, false
	}
	hunk := Hunk{Path: parts[1], Start: start, End: end, Commit: parts[4], Old: parts[5] != ""}
	for line := range strings.Lines(rest) {
		line = strings.TrimRight(line, "\n")
		number, code, found := strings.Cut(line, "\t")
		if !found || len(number) < 2 || !strings.ContainsRune("+- ", rune(number[0])) {
			continue
		}
		if n, err := strconv.Atoi(number[1:]); err == nil {
			hunk.Lines = append(hunk.Lines, Line{Sign: number[0], Number: n, Text: code})
		}
	}
	return hunk, true
}

// At returns the line at a place of the hunk.
func (h Hunk) At(place Place) (Line, bool) {
	for _, line := range h.Lines {
		if h.Path == place.Path && line.Number == place.Line && (line.Sign == '-') == place.Old {
			return line, true
		}
	}
	// A line that did not change is also one of the old side, but its number there
	// is not kept: comments on it go to the new side.
	return Line{}, false
}
