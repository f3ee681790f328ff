package llm

import (
	"encoding/json"
	"strings"
)

// LenientObject reads a JSON object that a model wrote, with the usual slips
// repaired: comments, commas before a closing bracket, line breaks inside strings,
// single quotes, and Python's True, False and None. It reports whether that gave
// an object.
func LenientObject(text string) (map[string]any, bool) { return lenientObject(text) }

func lenientObject(text string) (map[string]any, bool) {
	value, ok := lenientValue(text)
	object, isObject := value.(map[string]any)
	return object, ok && isObject
}

func lenientValue(text string) (any, bool) {
	text = strings.TrimSpace(text)
	var value any
	if json.Unmarshal([]byte(text), &value) == nil {
		return value, true
	}
	if json.Unmarshal([]byte(repair(text)), &value) == nil {
		return value, true
	}
	return nil, false
}

// matchingEnd returns the index after the bracket that closes the one at the
// start, or -1.
func matchingEnd(text string, start int) int {
	depth := 0
	for i := start; i < len(text); i++ {
		switch text[i] {
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		case '"':
			if i = stringEnd(text, i); i < 0 {
				return -1
			}
		}
	}
	return -1
}

// stringEnd returns the index of the quote that closes the string beginning at
// start, or -1.
func stringEnd(text string, start int) int {
	for i := start + 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case text[start]:
			return i
		}
	}
	return -1
}

var pythonWords = map[string]string{"True": "true", "False": "false", "None": "null"}

// repair rewrites text that is almost JSON.
func repair(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case c == '"' || c == '\'':
			end := stringEnd(text, i)
			if end < 0 {
				return text
			}
			b.WriteString(repairString(text[i+1:end], c))
			i = end + 1
		case strings.HasPrefix(text[i:], "//"):
			i = skipTo(text, i, "\n")
		case strings.HasPrefix(text[i:], "/*"):
			i = skipTo(text, i, "*/")
		case c == ',' && closesNext(text[i+1:]):
			i++
		case 'A' <= c && c <= 'Z':
			word := wordAt(text[i:])
			if plain, ok := pythonWords[word]; ok {
				b.WriteString(plain)
			} else {
				b.WriteString(word)
			}
			i += len(word)
		default:
			b.WriteByte(c)
			i++
		}
	}
	return b.String()
}

func skipTo(text string, from int, mark string) int {
	at := strings.Index(text[from:], mark)
	if at < 0 {
		return len(text)
	}
	return from + at + len(mark)
}

func closesNext(text string) bool {
	text = strings.TrimLeft(text, " \t\r\n")
	return text != "" && (text[0] == '}' || text[0] == ']')
}

func wordAt(text string) string {
	for i, c := range text {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return text[:i]
		}
	}
	return text
}

// repairString returns the inside of a string as a JSON string.
func repairString(inside string, quote byte) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := 0; i < len(inside); i++ {
		switch c := inside[i]; {
		case c == '\\' && i+1 < len(inside) && inside[i+1] == '\'':
			b.WriteByte('\'')
			i++
		case c == '\\' && i+1 < len(inside):
			b.WriteByte(c)
			i++
			b.WriteByte(inside[i])
		case c == '"' && quote == '\'':
			b.WriteString(`\"`)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\r':
			b.WriteString(`\r`)
		case c == '\t':
			b.WriteString(`\t`)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
