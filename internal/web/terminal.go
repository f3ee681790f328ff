package web

import (
	"context"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"github.com/toryo-dev/toryo/internal/lazyregexp"
)

// maxOutput is how much of an output the page shows: the beginning and the end.
const maxOutput = 64 << 10

// escape matches what a terminal takes as a command: sequences that set colours
// (the first group), any other sequence, and single control characters.
var escape = lazyregexp.New(`\x1b\[([0-9;]*)m|\x1b\[[\x30-\x3f]*[\x20-\x2f]*[\x40-\x7e]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b.|[\x00-\x08\x0b-\x1f\x7f]`)

// terminal shows the output of a program with its colours. Every other command to
// a terminal is left out.
func terminal(output string) templ.Component {
	return templ.ComponentFunc(func(_ context.Context, w io.Writer) error {
		var shown strings.Builder
		open, at := false, 0
		var look []string
		output = shortened(output)
		write := func(text string) {
			if text == "" {
				return
			}
			if len(look) > 0 && !open {
				shown.WriteString(`<span class="` + strings.Join(look, " ") + `">`)
				open = true
			}
			shown.WriteString(templ.EscapeString(text))
		}
		for _, found := range escape.FindAllStringSubmatchIndex(output, -1) {
			write(output[at:found[0]])
			at = found[1]
			if found[2] < 0 {
				continue
			}
			if open {
				shown.WriteString("</span>")
				open = false
			}
			look = restyle(look, output[found[2]:found[3]])
		}
		write(output[at:])
		if open {
			shown.WriteString("</span>")
		}
		_, err := io.WriteString(w, shown.String())
		return err
	})
}

// restyle applies the numbers of a sequence to the classes that are in force.
func restyle(look []string, numbers string) []string {
	for text := range strings.SplitSeq(numbers, ";") {
		number, err := strconv.Atoi(text)
		if err != nil {
			number = 0 // nothing is as good as 0
		}
		if number == 38 || number == 48 { // a colour from a larger set follows: the page has none
			return look
		}
		look = restyled(look, number)
	}
	return look
}

func restyled(look []string, number int) []string {
	switch {
	case number == 0:
		return nil
	case number >= 1 && number <= 4:
		return append(without(look, "t"), "t"+strconv.Itoa(number))
	case number >= 30 && number <= 37, number >= 90 && number <= 97:
		return append(without(look, "f"), "f"+strconv.Itoa(number%10))
	case number == 39:
		return without(look, "f")
	case number >= 22 && number <= 24:
		return without(look, "t")
	default:
		return look
	}
}

func without(look []string, kind string) []string {
	return slices.DeleteFunc(slices.Clone(look), func(class string) bool { return strings.HasPrefix(class, kind) })
}

// shortened keeps the beginning and the end of a long text.
func shortened(text string) string {
	if len(text) <= maxOutput {
		return text
	}
	half := maxOutput / 2
	return strings.ToValidUTF8(text[:half], "") + "\n⋯\n" + strings.ToValidUTF8(text[len(text)-half:], "")
}

// looksLikeDiff reports whether a text is a patch.
func looksLikeDiff(text string) bool {
	return strings.HasPrefix(text, "diff --git ") || strings.HasPrefix(text, "--- ") && strings.Contains(text, "\n+++ ") || strings.Contains(text, "\n@@ -")
}

// maxPatchLines is how many lines of a patch are shown: each has some bytes of HTML around it.
const maxPatchLines = 3000

// patch shows a patch line by line, in colours.
func patch(text string) templ.Component {
	return templ.ComponentFunc(func(_ context.Context, w io.Writer) error {
		var shown strings.Builder
		lines := 0
		for line := range strings.Lines(shortened(escape.ReplaceAllString(text, ""))) {
			if lines++; lines > maxPatchLines {
				shown.WriteString("⋯\n")
				break
			}
			class := ""
			switch {
			case strings.HasPrefix(line, "+"):
				class = "plus"
			case strings.HasPrefix(line, "-"):
				class = "minus"
			case strings.HasPrefix(line, "@@"):
				class = "at"
			}
			if class == "" {
				shown.WriteString(templ.EscapeString(line))
				continue
			}
			shown.WriteString(`<span class="` + class + `">` + templ.EscapeString(line) + `</span>`)
		}
		_, err := io.WriteString(w, shown.String())
		return err
	})
}
