package ignore

import "strings"

// matchPath compares a pattern with a path, both cut at their slashes. Two stars
// stand for any number of directories, at the end for anything below. Only the
// last two stars are ever tried again, with one directory more: what those before
// them took cannot matter any more.
func matchPath(pattern, name []string) bool {
	p, n := 0, 0
	backTo, from := -1, 0
	for n < len(name) {
		switch {
		case p < len(pattern) && isAnyDepth(pattern[p]):
			if p == len(pattern)-1 {
				return true
			}
			p++
			backTo, from = p, n
		case p < len(pattern) && matchSegment(pattern[p], name[n]):
			p++
			n++
		case backTo >= 0:
			from++
			p, n = backTo, from
		default:
			return false
		}
	}
	return p == len(pattern)
}

// isAnyDepth says whether a segment is two or more stars and nothing else.
func isAnyDepth(segment string) bool {
	return len(segment) > 1 && strings.Trim(segment, "*") == ""
}

// matchSegment compares a pattern without slashes with a name, byte for byte as
// git does. Only the last star is ever tried again.
func matchSegment(pattern, name string) bool {
	p, n := 0, 0
	backTo, from := -1, 0
	for n < len(name) {
		if p < len(pattern) && pattern[p] == '*' {
			p++
			backTo, from = p, n
			continue
		}
		if next, ok := matchByte(pattern, p, name[n]); ok {
			p = next
			n++
			continue
		}
		if backTo < 0 {
			return false
		}
		from++
		p, n = backTo, from
	}
	return strings.Trim(pattern[p:], "*") == ""
}

// matchByte compares what is at p in a pattern, other than a star, with one byte,
// and returns where the pattern goes on.
func matchByte(pattern string, p int, c byte) (next int, ok bool) {
	if p >= len(pattern) {
		return p, false
	}
	switch pattern[p] {
	case '?':
		return p + 1, true
	case '[':
		found, next := inSet(pattern, p, c)
		return next, found
	case '\\':
		p++
		return p + 1, p < len(pattern) && pattern[p] == c
	}
	return p + 1, pattern[p] == c
}

// inSet says whether a byte is in the set that begins with the bracket at p, and
// where the set ends. A set that has no end has no bytes and takes the rest of the
// pattern.
func inSet(pattern string, p int, c byte) (found bool, next int) {
	p++
	negated := p < len(pattern) && (pattern[p] == '!' || pattern[p] == '^')
	if negated {
		p++
	}
	low := byte(0) // where a range may begin
	end := -1      // of the class that was looked for last: see opensClass
	for first := true; p < len(pattern); first = false {
		if pattern[p] == ']' && !first {
			return found != negated, p + 1
		}
		var hit bool
		if hit, low, p = member(pattern, p, &end, low, c); p < 0 {
			break
		}
		found = found || hit
	}
	return false, len(pattern)
}

// member reads one member of a set at p: a class, the end of the range that began
// with low, or a byte. It returns whether c is in it, where a range may begin after
// it, and where the set goes on; less than 0 is for a class that there is not.
func member(pattern string, p int, end *int, low, c byte) (hit bool, begins byte, next int) {
	if opensClass(pattern, p, end) {
		class, length, ok := namedClass(pattern[p+2:])
		if !ok {
			return false, 0, -1
		}
		return class(c), 0, p + 2 + length
	}
	if pattern[p] == '-' && low != 0 && p+1 < len(pattern) && pattern[p+1] != ']' {
		high, next := unescape(pattern, p+1)
		return low <= c && c <= high, 0, next
	}
	b, next := unescape(pattern, p)
	return b == c, b, next
}

// unescape returns the byte at p, or behind the backslash at p, and what follows.
func unescape(pattern string, p int) (b byte, next int) {
	if pattern[p] == '\\' {
		p++
	}
	if p >= len(pattern) {
		return 0, p
	}
	return pattern[p], p + 1
}

// opensClass says whether a set goes on at p with a class like [:alpha:], or with one
// that has no end. Otherwise the bracket stands for itself. The bracket that would
// close the class is the same one for many that could open it, so its place is kept in
// end: looking for it each time would cost the square of the pattern's length.
func opensClass(pattern string, p int, end *int) bool {
	if !strings.HasPrefix(pattern[p:], "[:") {
		return false
	}
	if *end < p+2 {
		next := strings.IndexByte(pattern[p+2:], ']')
		if next < 0 {
			return true
		}
		*end = p + 2 + next
	}
	return strings.HasSuffix(pattern[p+2:*end], ":")
}

// namedClass reads what follows the colon of a class like [:alpha:]. It is not ok if
// there is no such class or if it has no end.
func namedClass(rest string) (class func(byte) bool, length int, ok bool) {
	name, _, ok := strings.Cut(rest, ":]")
	if !ok {
		return nil, 0, false
	}
	class, ok = classes[name]
	return class, len(name) + 2, ok
}

// classes are those of the C locale.
var classes = map[string]func(byte) bool{
	"alnum":  func(c byte) bool { return isLetter(c) || isDigit(c) },
	"alpha":  isLetter,
	"blank":  func(c byte) bool { return c == ' ' || c == '\t' },
	"cntrl":  func(c byte) bool { return c < ' ' || c == 0x7f },
	"digit":  isDigit,
	"graph":  isGraphic,
	"lower":  isLower,
	"print":  func(c byte) bool { return c == ' ' || isGraphic(c) },
	"punct":  func(c byte) bool { return isGraphic(c) && !isLetter(c) && !isDigit(c) },
	"space":  func(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' },
	"upper":  isUpper,
	"xdigit": func(c byte) bool { return isDigit(c) || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F' },
}

func isDigit(c byte) bool   { return '0' <= c && c <= '9' }
func isLower(c byte) bool   { return 'a' <= c && c <= 'z' }
func isUpper(c byte) bool   { return 'A' <= c && c <= 'Z' }
func isLetter(c byte) bool  { return isLower(c) || isUpper(c) }
func isGraphic(c byte) bool { return ' ' < c && c < 0x7f }
