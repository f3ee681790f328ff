package git

import (
	"fmt"
	"strings"
)

// StreamName writes the name of a file in quotes, as fast-import reads them.
func StreamName(name string) string {
	var text strings.Builder
	text.WriteByte('"')
	for i := range len(name) {
		switch c := name[i]; {
		case c == '"' || c == '\\':
			text.WriteByte('\\')
			text.WriteByte(c)
		case c < 0x20 || c >= 0x7f:
			fmt.Fprintf(&text, `\%03o`, c)
		default:
			text.WriteByte(c)
		}
	}
	text.WriteByte('"')
	return text.String()
}
