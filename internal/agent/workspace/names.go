package workspace

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// reserved reports whether a part of the path is a name that git, on some system,
// takes for its own directory. A commit with one is refused everywhere.
func reserved(name string) bool {
	for _, part := range strings.FieldsFunc(name, func(r rune) bool { return r == '/' || r == '\\' }) {
		part = strings.Map(visible, part)
		part, _, _ = strings.Cut(part, ":")
		part = strings.TrimRight(part, " .")
		if strings.EqualFold(part, ".git") || strings.EqualFold(part, "git~1") {
			return true
		}
	}
	return false
}

// visible drops the characters that some file systems do not count.
func visible(r rune) rune {
	switch {
	case r >= 0x200c && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x206a && r <= 0x206f, r == 0xfeff:
		return -1
	}
	return r
}

// quote shows a file name that may hold anything.
func quote(name string) string {
	if utf8.ValidString(name) && strings.IndexFunc(name, func(r rune) bool { return !strconv.IsPrint(r) || r == '"' }) < 0 {
		return name
	}
	return strconv.Quote(name)
}
