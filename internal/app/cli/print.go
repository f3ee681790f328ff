package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/toryo-dev/toryo/internal/textfmt"
)

// PrintJSON prints what a program wants to read.
func PrintJSON(out io.Writer, value any) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}

// Minutes is the layout of times in tables.
const Minutes = "2006-01-02 15:04"

// OrDash is the text, or a dash for a column that is empty.
func OrDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// OneLine is a title that a person wrote, as it may stand in a table.
func OneLine(text string) string {
	return textfmt.Shorten(textfmt.OneLine(strings.Map(Visible, text)), 60)
}

// Visible drops what would command the terminal or turn the order of letters around:
// titles are written by anybody.
func Visible(r rune) rune {
	switch {
	case unicode.IsSpace(r):
		return ' '
	case unicode.IsControl(r), unicode.Is(unicode.Cf, r):
		return -1
	}
	return r
}

// Size is a number of bytes as people read it, such as 3.4 MiB.
func Size(bytes int64) string {
	const step = 1024
	if bytes < step {
		return fmt.Sprintf("%d B", bytes)
	}
	value, unit := float64(bytes), ""
	for _, unit = range []string{"KiB", "MiB", "GiB", "TiB"} {
		if value /= step; value < step {
			break
		}
	}
	return fmt.Sprintf("%.1f %s", value, unit)
}
