package comments

import (
	"strings"
	"unicode"
)

// longestApproval is how many bytes a comment that approves has at most.
const longestApproval = 200

// approvals are the comments that approve a plan, as [Approves] reads them. They are listed in
// docs/runs.md.
var approvals = map[string]bool{
	"approve": true, "approved": true, "i approve": true, "lgtm": true, "looks good": true, "looks good to me": true,
	"go ahead": true, "please go ahead": true, "proceed": true, "please proceed": true, "ok": true, "okay": true, "ship it": true,
	"yes": true, "+1": true, ":+1:": true, ":thumbsup:": true, "👍": true,
	"承認": true, "承認します": true, "承認しました": true, "承認です": true, "了解": true, "了解です": true, "了解しました": true,
	"問題ありません": true, "問題ないです": true, "進めてください": true, "進めて下さい": true, "このまま進めてください": true,
	"okです": true, "はい": true,
}

// Approves reports whether a comment says that a plan is approved, and nothing else. Mentions
// of the bot at its beginning and end, punctuation around the words, capital letters and the
// width of letters make no difference. Own tells whether a login is ours.
func Approves(text string, own func(login string) bool) bool {
	if len(text) > longestApproval {
		return false
	}
	words := strings.Fields(strings.Map(plain, text))
	mention := func(word string) bool {
		login, is := strings.CutPrefix(strings.TrimRight(word, ",:;"), "@")
		return is && own(login)
	}
	for len(words) > 0 && mention(words[0]) {
		words = words[1:]
	}
	for len(words) > 0 && mention(words[len(words)-1]) {
		words = words[:len(words)-1]
	}
	said := strings.Join(words, " ")
	return approvals[said] || approvals[strings.TrimSpace(strings.Trim(said, " .,!~*_\"'`。、…"))]
}

// plain is a letter as [Approves] compares it, or -1 for one that cannot be seen and for the
// colour of a hand.
func plain(r rune) rune {
	const firstWide, lastWide, wide = '！', '～', '！' - '!'
	switch {
	case r >= firstWide && r <= lastWide:
		r -= wide
	case r == '\u3000':
		return ' '
	case unicode.Is(unicode.Cf, r), r >= '\uFE00' && r <= '\uFE0F', r >= '\U0001F3FB' && r <= '\U0001F3FF':
		return -1
	}
	return unicode.ToLower(r)
}
