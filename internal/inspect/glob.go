package inspect

import (
	"regexp"
	"strings"
)

// globs are patterns of paths. "**" stands for any number of folders, "*" and "?" stay
// within one name. A pattern without a slash is that of a name in any folder; one with a
// slash is that of a whole path. Upper and lower case are the same, as they are to some
// file systems.
type globs []*regexp.Regexp

// CheckGlob says whether a pattern can be used.
func CheckGlob(pattern string) bool {
	return pattern != "" && !strings.HasPrefix(pattern, "/") && !strings.ContainsAny(pattern, "[]{}!\\\x00\n")
}

func compile(patterns []string) globs {
	all := make(globs, 0, len(patterns))
	for _, pattern := range patterns {
		if !strings.Contains(pattern, "/") {
			pattern = "**/" + pattern
		}
		var text strings.Builder
		text.WriteString(`(?is)\A`)
		for pattern != "" {
			var plain string
			switch {
			case strings.HasPrefix(pattern, "**/"):
				pattern, plain = pattern[3:], `(?:.*/)?`
			case strings.HasPrefix(pattern, "**"):
				pattern, plain = pattern[2:], `.*`
			case pattern[0] == '*':
				pattern, plain = pattern[1:], `[^/]*`
			case pattern[0] == '?':
				pattern, plain = pattern[1:], `[^/]`
			default:
				end := strings.IndexAny(pattern, "*?")
				if end < 0 {
					end = len(pattern)
				}
				pattern, plain = pattern[end:], regexp.QuoteMeta(pattern[:end])
			}
			text.WriteString(plain)
		}
		all = append(all, regexp.MustCompile(text.String()+`\z`))
	}
	return all
}

func (g globs) match(path string) bool {
	for _, pattern := range g {
		if pattern.MatchString(path) {
			return true
		}
	}
	return false
}
