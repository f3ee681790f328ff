package ignore

import (
	"path"
	"slices"
	"strings"
)

// longest is the length of a line above which it is left out: no path that the
// kernel accepts is longer.
const longest = 4096

// Rules are the patterns of some ignore files. A later one overrides an earlier
// one.
type Rules []rule

type rule struct {
	dir      string   // where the file is, "." for the root
	segments []string // the pattern, cut at its slashes
	anywhere bool     // it has no slash: the name alone is compared
	negated  bool
	dirOnly  bool
}

// Add returns the rules with those of a file in the directory dir behind them. The
// receiver stays as it is.
func (r Rules) Add(dir, text string) Rules {
	all := slices.Clip(r)
	for line := range strings.Lines(strings.TrimPrefix(text, "\ufeff")) {
		line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		if rule, ok := parse(line); ok {
			rule.dir = dir
			all = append(all, rule)
		}
	}
	return all
}

func parse(line string) (rule, bool) {
	if strings.HasPrefix(line, "#") || len(line) > longest {
		return rule{}, false
	}
	line = trimSpaces(line)
	var r rule
	line, r.negated = strings.CutPrefix(line, "!")
	line, r.dirOnly = strings.CutSuffix(line, "/")
	if line == "" {
		return rule{}, false
	}
	r.anywhere = !strings.Contains(line, "/")
	if r.anywhere {
		r.segments = []string{line}
	} else {
		r.segments = split(strings.TrimPrefix(line, "/"))
	}
	return r, true
}

// trimSpaces cuts off the spaces at the end that no backslash stands before.
func trimSpaces(line string) string {
	end := 0
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case ' ':
			continue
		case '\\':
			i++
		}
		end = min(i+1, len(line))
	}
	return line[:end]
}

// split cuts a pattern at its slashes. One between brackets belongs to the set.
func split(pattern string) []string {
	var segments []string
	start := 0
	for i := 0; i < len(pattern); {
		switch pattern[i] {
		case '\\':
			if strings.HasPrefix(pattern[i:], `\/`) {
				segments = append(segments, pattern[start:i])
				start = i + 2
			}
			i += 2
		case '[':
			_, i = inSet(pattern, i, 0)
		case '/':
			segments = append(segments, pattern[start:i])
			i++
			start = i
		default:
			i++
		}
	}
	return append(segments, pattern[min(start, len(pattern)):])
}

// Ignored says whether the rules exclude a path. They are asked for the path alone:
// whatever is below a directory that they exclude is for the caller to leave out.
func (r Rules) Ignored(name string, isDir bool) bool {
	ignored, _ := r.Say(name, isDir)
	return ignored
}

// Say is Ignored for rules that come in parts: it reports too whether these rules say anything
// about the path.
func (r Rules) Say(name string, isDir bool) (ignored, said bool) {
	for i := len(r) - 1; i >= 0; i-- {
		if r[i].matches(name, isDir) {
			return !r[i].negated, true
		}
	}
	return false, false
}

func (r *rule) matches(name string, isDir bool) bool {
	if r.dirOnly && !isDir {
		return false
	}
	if r.dir != "." {
		below, ok := strings.CutPrefix(name, r.dir+"/")
		if !ok {
			return false
		}
		name = below
	}
	if r.anywhere {
		return matchSegment(r.segments[0], path.Base(name))
	}
	return matchPath(r.segments, strings.Split(name, "/"))
}
