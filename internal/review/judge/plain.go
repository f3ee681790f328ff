package judge

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode"
	"unicode/utf16"
)

// plainJSON writes a JSON value on one line, with every character as it is and not as
// an escape such as \u5951: models and people read it. Quotes, backslashes and control
// characters stay escaped, so that it means the same.
func plainJSON(value []byte) ([]byte, error) {
	line := bytes.NewBuffer(make([]byte, 0, len(value)))
	if err := json.Compact(line, value); err != nil {
		return nil, err
	}
	rest := line.Bytes()
	plain := make([]byte, 0, len(rest))
	for {
		at := bytes.IndexByte(rest, '\\') // stands in strings only
		if at < 0 {
			return append(plain, rest...), nil
		}
		plain = append(plain, rest[:at]...)
		read := 2
		switch rest[at+1] {
		case '/':
			plain = append(plain, '/')
		case 'u':
			var char rune
			char, read = escaped(rest[at:])
			plain = appendPlain(plain, char, rest[at:at+read])
		default:
			plain = append(plain, rest[at:at+read]...)
		}
		rest = rest[at+read:]
	}
}

const (
	escapeLength = len(`\u0000`)
	pairLength   = 2 * escapeLength // of a character that needs two
)

// escaped reads the character that an escape, or a pair of them, stands for.
func escaped(text []byte) (char rune, read int) {
	first := codeUnit(text)
	if !utf16.IsSurrogate(first) {
		return first, escapeLength
	}
	if len(text) >= pairLength && text[escapeLength] == '\\' && text[escapeLength+1] == 'u' {
		if both := utf16.DecodeRune(first, codeUnit(text[escapeLength:])); both != unicode.ReplacementChar {
			return both, pairLength
		}
	}
	return unicode.ReplacementChar, escapeLength
}

func codeUnit(text []byte) rune {
	unit, err := strconv.ParseUint(string(text[len(`\u`):escapeLength]), 16, 16)
	if err != nil { // valid JSON has four digits
		return unicode.ReplacementChar
	}
	return rune(unit)
}

// appendPlain appends a character, or its escape where JSON needs one.
func appendPlain(to []byte, char rune, escape []byte) []byte {
	switch {
	case char == '"' || char == '\\':
		return append(to, '\\', byte(char))
	case unicode.IsControl(char):
		return append(to, escape...)
	default:
		return append(to, string(char)...)
	}
}
