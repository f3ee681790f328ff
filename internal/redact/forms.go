package redact

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// forms lists the ways in which a secret turns up in text: as it is, quoted for
// Go or JSON, escaped for a URL, in hexadecimal digits and in base64.
func forms(secret string) []string {
	all := []string{secret, quoted(secret)}
	all = append(all, jsonQuoted(secret)...)
	for _, escaped := range []string{url.QueryEscape(secret), url.PathEscape(secret)} {
		all = append(all, escaped, lowerEscapes(escaped))
	}
	if user := url.UserPassword("", secret).String(); len(user) > 1 {
		all = append(all, user[1:])
	}
	digits := hex.EncodeToString([]byte(secret))
	all = append(all, digits, strings.ToUpper(digits))
	return append(all, encoded(secret)...)
}

func quoted(secret string) string {
	text := strconv.Quote(secret)
	return text[1 : len(text)-1]
}

// jsonQuoted gives the JSON string with and without the escapes for HTML, which
// not every encoder makes.
func jsonQuoted(secret string) []string {
	var all []string
	for _, html := range []bool{true, false} {
		text := new(strings.Builder)
		encoder := json.NewEncoder(text)
		encoder.SetEscapeHTML(html)
		if err := encoder.Encode(secret); err == nil { // every string has a JSON form
			line := strings.TrimSuffix(text.String(), "\n")
			all = append(all, line[1:len(line)-1])
		}
	}
	return all
}

var percentEscape = regexp.MustCompile(`%[0-9A-F]{2}`)

// lowerEscapes writes %2F as %2f, as some programs do.
func lowerEscapes(text string) string {
	return percentEscape.ReplaceAllStringFunc(text, strings.ToLower)
}

// encoded gives the base64 of the secret, by itself and inside a longer text
// such as "user:secret" of basic authentication. There, what surrounds the secret
// shares its first and last characters; the part between those depends only on
// how far into a group of three bytes the secret begins.
func encoded(secret string) []string {
	var all []string
	for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
		all = append(all,
			encoding.EncodeToString([]byte(secret)),
			encoding.WithPadding(base64.NoPadding).EncodeToString([]byte(secret)))
		for before := range 3 {
			text := encoding.EncodeToString([]byte(strings.Repeat("\x00", before) + secret))
			first := (before*8 + 5) / 6
			last := (before + len(secret)) * 8 / 6
			all = append(all, text[first:last])
		}
		for _, width := range lineWidths {
			all = append(all, broken(encoding.EncodeToString([]byte(secret)), width)...)
		}
	}
	return all
}

// lineWidths are those at which programs break base64 into lines.
var lineWidths = []int{64, 76}

// broken are the lines of a text that is broken at a width; those at the end may be
// too short to be told from something else.
func broken(text string, width int) []string {
	var lines []string
	for len(text) > width {
		lines = append(lines, text[:width])
		text = text[width:]
	}
	if len(lines) > 0 && len(text) >= minLine {
		lines = append(lines, text)
	}
	return lines
}
