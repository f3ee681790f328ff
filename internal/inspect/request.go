package inspect

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/toryo-dev/toryo/internal/lazyregexp"
	"github.com/toryo-dev/toryo/internal/task"
)

// Request is what people ask for, in their own words. Nothing in it may be from a model:
// it could ask itself for what it does.
type Request struct {
	Texts []string
	Files []string // that people commented on
}

// Unasked returns the findings that the request does not ask for. It asks for a file by
// its path, by a folder that it is in, by its name alone if the file was there before as
// the only one of that name, or by a change of its kind, such as "add a CI workflow";
// and for packages from a host by the name of the host. It never asks for a secret.
//
// Of very many findings the first are returned, with one that says how many more there
// are. What can never be published is counted by itself.
func (r Request) Unasked(found []Found) []task.Finding {
	texts := make([]string, 0, len(r.Texts))
	for _, text := range r.Texts {
		texts = append(texts, strings.ToLower(own(text)))
	}
	var blocking, others []task.Finding
	for _, one := range found {
		asked := slices.ContainsFunc(texts, func(text string) bool { return asksFor(text, one) }) ||
			one.Kind != task.FindingHost && slices.Contains(r.Files, one.Path)
		switch {
		case one.Blocks():
			blocking = append(blocking, one.Finding)
		case !asked:
			others = append(others, one.Finding)
		}
	}
	return append(first(blocking, mostBlocking), first(others, mostFindings)...)
}

// first are so many findings at most, and one more that says that there are others.
func first(findings []task.Finding, most int) []task.Finding {
	if len(findings) <= most {
		return findings
	}
	more := task.Finding{Kind: findings[most].Kind, Detail: fmt.Sprintf("and %d more", len(findings)-most)}
	return append(findings[:most:most], more)
}

// asksFor reports whether a text, in small letters, asks for what was found.
func asksFor(text string, found Found) bool {
	if found.Kind == task.FindingHost {
		return names(text, found.Detail, anywhere)
	}
	file := strings.ToLower(found.Path)
	if file == "" {
		return false
	}
	if names(text, file, inPath) || found.Sole && names(text, path.Base(file), alone) {
		return true
	}
	for folder := path.Dir(file); folder != "."; folder = path.Dir(folder) {
		if namesFolder(text, folder) {
			return true
		}
	}
	return found.Kind == task.FindingProtected && asksForKind(text, found.Path) ||
		found.Kind == task.FindingSubmodule && asksForKind(text, ".gitmodules")
}

// asksForKind reports whether a text asks for a change of the kind of a protected file.
func asksForKind(text, file string) bool {
	return slices.ContainsFunc(protections, func(p protection) bool { return p.asked != nil && p.match(file) && asksForChange(text, p.asked) })
}

// asksForChange reports whether the pattern is in a text without the part that forbids.
func asksForChange(text string, pattern *lazyregexp.Regexp) bool {
	return slices.ContainsFunc(pattern.FindAllStringSubmatch(text, -1), func(match []string) bool {
		return strings.Join(match[1:], "") == ""
	})
}

// change is the pattern of texts that ask for a change of what the words are for: a verb
// right before them in English, one right after them in Japanese. What is caught in a
// group forbids it.
func change(words []string) *lazyregexp.Regexp {
	if len(words) == 0 {
		return nil
	}
	var quoted []string
	for _, one := range words {
		quoted = append(quoted, strings.ReplaceAll(regexp.QuoteMeta(one), " ", `\s+`))
	}
	kind := `(?:` + strings.Join(quoted, "|") + `)`
	verbs := strings.Join([]string{
		`add`, `add\s+(?:\S+\s+){1,4}as`, `adapt`, `adjust`, `change`, `configure`, `create`, `delete`, `disable`, `edit`, `enable`, `extend`, `introduce`,
		`migrate`, `modify`, `remove`, `rename`, `replace`, `rewrite`, `set\s+up`, `update`, `upgrade`, `write`,
	}, "|")
	return lazyregexp.New(`(?:(not|n't|n’t|never)\s+)?\b(?:` + verbs + `)\s+` +
		`(?:(?:a|an|all|another|existing|its|new|old|of|our|some|the|these|this|those|your)\s+){0,4}` + kind + `(?:[^\w/-]|\z)` +
		`|` + kind + `(?:の[^。\n]{0,10})?を[^。\n]{0,6}(?:追加|変更|修正|更新|作成|削除|導入|編集)((?:は|を)?(?:しない|せず|するな|不要|禁止))?`)
}

// mailBelow is where another mail begins in an answer by mail, or its signature.
var mailBelow = lazyregexp.New(`(?im)^(?:-- ?\r?$|-{2,} ?(?:original message|forwarded message|元のメッセージ)|_{20,}\r?$|on .{1,300} wrote:\r?$|` +
	`(?:from|差出人) ?[:：].*\n(?:[^\n]+\n){0,4}(?:sent|date|to|subject|送信日時|日付|宛先|件名) ?[:：])`)

// quotedLine is a line of somebody else.
var quotedLine = lazyregexp.New(`(?m)^[ \t]*>.*$`)

// own is a text without what it quotes, and without the mail that it answers.
func own(text string) string {
	if at := mailBelow.FindStringIndex(text); at != nil {
		text = text[:at[0]]
	}
	return quotedLine.ReplaceAllString(text, "")
}

// Where a name may stand in a text.
type position int

const (
	alone    position = iota // not as a part of a path
	inPath                   // also at the end of a longer path or address
	anywhere                 // also in an address
)

// names reports whether a text names something: what is before and after it may not
// make it a part of another name.
func names(text, name string, at position) bool {
	return each(text, name, func(before, after string) bool {
		if at == anywhere {
			return !endsName(before) && !beginsName(after)
		}
		if strings.HasPrefix(after, "/") {
			return false
		}
		if strings.HasSuffix(before, "/") && at == alone {
			before = strings.TrimSuffix(before, "./")
			if strings.HasSuffix(before, "/") {
				return false
			}
		}
		return !endsName(before) && !beginsName(after)
	})
}

// namesFolder reports whether a text names a folder and not only something in it. One
// word alone names a folder if it begins with a dot or a slash follows.
func namesFolder(text, folder string) bool {
	return each(text, folder, func(before, after string) bool {
		before = strings.TrimSuffix(before, "./")
		rest, slash := strings.CutPrefix(after, "/")
		if endsName(before) || strings.HasSuffix(before, "/") || beginsName(rest) || !slash && beginsName(after) {
			return false
		}
		return slash || strings.Contains(folder, "/") || strings.HasPrefix(folder, ".")
	})
}

// each reports whether one of the places at which a text has a name fits.
func each(text, name string, fits func(before, after string) bool) bool {
	for from := 0; name != ""; {
		at := strings.Index(text[from:], name)
		if at < 0 {
			return false
		}
		at += from
		if fits(text[:at], text[at+len(name):]) {
			return true
		}
		from = at + 1
	}
	return false
}

// isName reports whether a character is part of names. Letters that others than English
// write stand next to names without a space.
func isName(c rune) bool {
	return c < utf8.RuneSelf && (unicode.IsLetter(c) || unicode.IsDigit(c) || c == '_' || c == '-')
}

// endsName reports whether what was before a name makes it the rest of another one.
func endsName(before string) bool {
	last, _ := utf8.DecodeLastRuneInString(before)
	return isName(last) || last == '.'
}

// beginsName reports whether what follows a name makes it the start of another one. A
// full stop at the end of a sentence does not.
func beginsName(after string) bool {
	first, size := utf8.DecodeRuneInString(after)
	if first == '.' {
		next, _ := utf8.DecodeRuneInString(after[size:])
		return isName(next)
	}
	return isName(first)
}
