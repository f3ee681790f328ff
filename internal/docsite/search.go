package docsite

import (
	"bytes"
	"cmp"
	"iter"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
)

// What is read of a query, and what is shown of what was found.
const (
	maxQuery      = 200 // bytes
	maxResults    = 30
	snippetLength = 180 // characters
	snippetBefore = 50  // characters before the first word that was looked for
)

// How much a word counts that is in the title of a page, in a heading, or in the text below
// it. A word that only begins as asked for counts one less.
const (
	inTitle   = 12
	inHeading = 6
	inText    = 2
	nearby    = 0 // in the title of the page that a section is on
	phrase    = 3 // for all words of the query, one behind the other
)

// section is what stands below one heading.
type section struct {
	page    *Page
	heading Heading // zero for what stands before the second one
	text    string
	small   string // the text folded
	whole   string // heading and text folded, one behind the other
}

// Result is a section that was found.
type Result struct {
	Page    *Page
	Heading Heading // without text for the beginning of the page
	Title   []Piece
	Snippet []Piece
}

// Path is where the section is on the server.
func (r Result) Path() string {
	if r.Heading.ID == "" {
		return r.Page.Path()
	}
	return r.Page.Path() + "#" + r.Heading.ID
}

// Piece is a part of a text, marked if it was looked for.
type Piece struct {
	Text   string
	Marked bool
}

// wordIndex says in which sections each word is.
type wordIndex struct {
	words []string // sorted
	found map[string][]occurrence
}

// occurrence is a word in a section.
type occurrence struct{ section, weight int }

// buildIndex reads the sections and makes the index of their words.
func (l *Library) buildIndex(s *shelf) {
	sources := make(map[string]*source)
	for _, one := range s.pages {
		sources[one.pageName()] = one
	}
	for page := l.pages[""].Next; page != nil; page = page.Next { // the index itself says nothing more
		l.sections = append(l.sections, sources[page.Name].sections(page)...)
	}
	l.words.found = make(map[string][]occurrence)
	for i, one := range l.sections {
		weights := make(map[string]int)
		note := func(text string, weight int) {
			for _, word := range wordsOf(text) {
				weights[word.text] = max(weights[word.text], weight)
			}
		}
		if one.heading.ID == "" {
			note(one.page.Title, inTitle)
		} else {
			note(one.page.Title, nearby)
		}
		note(one.heading.Text, inHeading)
		note(one.text, inText)
		for word, weight := range weights {
			l.words.found[word] = append(l.words.found[word], occurrence{i, weight})
		}
	}
	for word := range l.words.found {
		l.words.words = append(l.words.words, word)
	}
	slices.Sort(l.words.words)
}

// sections are the parts of a page.
func (s *source) sections(page *Page) []section {
	known := make(map[ast.Node]*heading)
	for _, h := range s.headings {
		known[h.Heading] = h
	}
	parts := []section{{page: page}}
	var text bytes.Buffer
	end := func() {
		part := &parts[len(parts)-1]
		part.text = strings.Join(strings.Fields(text.String()), " ")
		heading := folded(part.heading.Text) + " "
		part.whole = heading + folded(part.text)
		part.small = part.whole[len(heading):]
		text.Reset()
	}
	for block := s.document.FirstChild(); block != nil; block = block.NextSibling() {
		h := known[block]
		switch {
		case h == nil:
			writeText(&text, block, s.text)
		case h.Level > 1:
			end()
			parts = append(parts, section{page: page, heading: Heading{h.Level, h.id, h.text}})
		}
	}
	end()
	return parts
}

// Search finds the sections that have every word of a query, the best first. A word is found
// by its beginning. Of a query that is too long the beginning counts, see [Query].
func (l *Library) Search(query string) []Result {
	query = Query(query)
	wanted := queryWords(query)
	if len(wanted) == 0 {
		return nil
	}
	scores := l.words.look(wanted[0])
	for _, word := range wanted[1:] {
		also := l.words.look(word)
		for at, score := range scores {
			if more, found := also[at]; found {
				scores[at] = score + more
			} else {
				delete(scores, at)
			}
		}
	}
	whole := folded(strings.TrimSpace(query))
	var best []occurrence
	for at, score := range scores {
		one := l.sections[at]
		if score == nearby {
			continue // only the title of the page has the words
		}
		if strings.Contains(one.whole, whole) {
			score += phrase
		}
		best = append(best, occurrence{at, score})
	}
	slices.SortFunc(best, func(a, b occurrence) int { return cmp.Or(b.weight-a.weight, a.section-b.section) })
	best = best[:min(len(best), maxResults)]
	results := make([]Result, len(best))
	for i, one := range best {
		results[i] = l.sections[one.section].result(wanted)
	}
	return results
}

// look returns the sections that have a word that begins so, with how much it counts there.
func (w wordIndex) look(beginning string) map[int]int {
	scores := make(map[int]int)
	first, _ := slices.BinarySearch(w.words, beginning)
	for _, word := range w.words[first:] {
		if !strings.HasPrefix(word, beginning) {
			break
		}
		for _, one := range w.found[word] {
			weight := one.weight
			if word != beginning && weight > nearby {
				weight--
			}
			scores[one.section] = max(scores[one.section], weight)
		}
	}
	return scores
}

func (s section) result(wanted []string) Result {
	title := s.heading.Text
	if s.heading.ID == "" {
		title = s.page.Title
	}
	return Result{Page: s.page, Heading: s.heading, Title: marked(title, wanted), Snippet: marked(snippet(s.text, s.small, wanted), wanted)}
}

// snippet is the part of a text, of which small is the folded one, around the first word that was looked for.
func snippet(text, small string, wanted []string) string {
	start := 0
	for word := range eachWord(text, small) {
		if isWanted(word, wanted) {
			start = word.start
			break
		}
	}
	for before := 0; start > 0 && before < snippetBefore; before++ {
		_, size := utf8.DecodeLastRuneInString(text[:start])
		start -= size
	}
	if space := strings.IndexByte(text[start:], ' '); start > 0 && space >= 0 && space < snippetBefore/2 {
		start += space + 1
	}
	shown := beginning(text[start:])
	if start > 0 {
		shown = "… " + shown
	}
	return shown
}

// beginning is the beginning of a text, up to the end of a word if it has spaces.
func beginning(text string) string {
	count := 0
	for at := range text {
		if count == snippetLength {
			if space := strings.LastIndexByte(text[:at], ' '); space > at-snippetBefore {
				at = space
			}
			return text[:at] + " …"
		}
		count++
	}
	return text
}

// marked cuts a text into pieces, with the words that were looked for marked.
func marked(text string, wanted []string) []Piece {
	var pieces []Piece
	add := func(from, to int, is bool) {
		if from < to {
			pieces = append(pieces, Piece{text[from:to], is})
		}
	}
	at := 0     // what is before is in the pieces
	begin := -1 // of what is to be marked, up to end
	end := 0
	flush := func() {
		if begin >= 0 {
			add(at, begin, false)
			add(begin, end, true)
			at, begin = end, -1
		}
	}
	for _, word := range wordsOf(text) {
		if !isWanted(word, wanted) {
			continue
		}
		if begin < 0 || word.start > end {
			flush()
			begin = word.start
		}
		end = max(end, word.end)
	}
	flush()
	add(at, len(text), false)
	return pieces
}

func isWanted(w word, wanted []string) bool {
	return slices.ContainsFunc(wanted, func(one string) bool { return strings.HasPrefix(w.text, one) })
}

// word is one in a text, and where. Of a writing without spaces it is two characters, or the
// last one alone.
type word struct {
	text       string // in small letters
	start, end int
	wide       bool // of a writing without spaces
}

// wordsOf cuts a text into words.
func wordsOf(text string) []word { return slices.Collect(eachWord(text, folded(text))) }

// eachWord gives the words of a text, of which small is the folded one: letters and digits. Of a
// run of Chinese characters and kana each two that follow each other are a word, since nothing
// says where words begin. The texts of words are parts of small.
func eachWord(text, small string) iter.Seq[word] {
	return func(yield func(word) bool) {
		var last word    // begun, and not given yet
		from, to := 0, 0 // where it is in small
		give := func() bool {
			given := last
			given.text, last = small[from:to], word{}
			return given.end == 0 || yield(given)
		}
		for start, at := 0, 0; start < len(text); {
			r, size := utf8.DecodeRuneInString(text[start:])
			one := word{start: start, end: start + size, wide: wide(r)}
			end := at + utf8.RuneLen(fold(r))
			joins := last.end > 0 && last.wide == one.wide && (one.wide || isWordPart(r))
			if joins {
				last.end, to = one.end, end
			}
			if !joins || one.wide {
				if !give() {
					return
				}
				if isWordPart(r) {
					last, from, to = one, at, end
				}
			}
			start, at = one.end, end
		}
		give()
	}
}

// isWordPart reports whether a character is one of a word.
func isWordPart(r rune) bool {
	return wide(r) || unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r)
}

// wide reports whether a character is of a writing without spaces.
func wide(r rune) bool {
	return r == 'ー' || unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana)
}

// fold makes a small letter of a character, and a narrow one of a full-width one.
func fold(r rune) rune {
	if r >= '！' && r <= '～' {
		r -= '！' - '!'
	}
	return unicode.ToLower(r)
}

func folded(text string) string { return strings.Map(fold, text) }

// queryWords are the words that are looked for. In a run without spaces, pairs with hiragana
// are left out where there are others: they are mostly particles and endings, which the text
// may have otherwise.
func queryWords(query string) []string {
	words := wordsOf(query)
	var wanted []string
	for first := 0; first < len(words); {
		run := first + 1
		for words[first].wide && run < len(words) && words[run].wide && words[run].start < words[run-1].end {
			run++
		}
		wanted = append(wanted, runWords(words[first:run])...)
		first = run
	}
	slices.Sort(wanted)
	return slices.Compact(wanted)
}

// runWords are the words of one run.
func runWords(run []word) []string {
	if len(run) > 1 {
		run = run[:len(run)-1] // the last character is in the pair before
	}
	var all, strong []string
	for _, w := range run {
		all = append(all, w.text)
		if !strings.ContainsFunc(w.text, func(r rune) bool { return unicode.Is(unicode.Hiragana, r) }) {
			strong = append(strong, w.text)
		}
	}
	if len(strong) > 0 {
		return strong
	}
	return all
}

// Query is what counts of what somebody looks for: its beginning, in whole characters.
func Query(text string) string {
	if len(text) > maxQuery {
		text = text[:maxQuery]
	}
	return strings.ToValidUTF8(text, "")
}
