package inspect

import (
	"path"
	"regexp"
	"strings"

	"github.com/toryo-dev/toryo/internal/lazyregexp"
)

// globs are patterns of paths. "**" stands for any number of folders, "*" and "?" stay
// within one name. A pattern without a slash is that of a name in any folder; one with a
// slash is that of a whole path. Upper and lower case are the same, as they are to some
// file systems.
type globs []*lazyregexp.Regexp

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
		all = append(all, expression(pattern))
	}
	return all
}

// expression is the pattern of a whole path.
func expression(pattern string) *lazyregexp.Regexp {
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
	return lazyregexp.New(text.String() + `\z`)
}

// above are the folders that what the patterns match is in, but for those that can be
// any folder.
func above(patterns []string) globs {
	var folders globs
	for _, pattern := range patterns {
		for folder := path.Dir(pattern); strings.Trim(folder, "*./") != ""; folder = path.Dir(folder) {
			folders = append(folders, expression(folder))
		}
	}
	return folders
}

func (g globs) match(name string) bool {
	for _, pattern := range g {
		if pattern.MatchString(name) {
			return true
		}
	}
	return false
}
