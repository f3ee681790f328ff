package review

import (
	"sort"
	"strconv"
	"strings"
	"unicode"

	"github.com/toryo-dev/toryo/internal/lazyregexp"
	"github.com/toryo-dev/toryo/internal/review/judge"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

// CitationState says what came of checking a citation.
type CitationState string

// The states of a citation.
const (
	Confirmed CitationState = "confirmed" // it exists, and quoted words stand there
	Missing   CitationState = "missing"   // there is no such section, or no such lines
	Misquoted CitationState = "misquoted" // the quoted words do not stand there
	Stale     CitationState = "stale"     // a later push changed what it is about
)

// Citation is a place that an answer cites: a section, or lines of a file in a
// commit.
type Citation struct {
	Text    string        `json:"text"` // as the answer has it
	Section int           `json:"section,omitempty"`
	Path    string        `json:"path,omitempty"`
	Start   int           `json:"start,omitempty"`
	End     int           `json:"end,omitempty"`
	Commit  string        `json:"commit,omitempty"`
	Quote   string        `json:"quote,omitempty"`
	State   CitationState `json:"state"`
}

// String is where the citation is.
func (c Citation) String() string { return c.Text }

const quotePattern = `(?:「([^」]+)」|“([^”]+)”|"([^"\n]+)")`

var (
	citationPattern = lazyregexp.New("§(" + digits + ")|([^\\s:`「」『』“”\"'()（）\\[\\]<>、。，；;]+):(\\d+)(?:-(\\d+))?@([0-9a-fA-F]{4,64})")
	quoteAfter      = lazyregexp.New("^[`)）]?\\s*(?:の|は|では|に|:|：|,|、)?\\s*" + quotePattern)
	quoteBefore     = lazyregexp.New(quotePattern + "\\s*[(（\\[]?`?$")
)

// Citations returns what an answer cites, with the words that it quotes right
// behind a citation or right before it. Nothing is checked yet. The same citation
// of the same words is there once.
func Citations(answer string) []Citation {
	var found []Citation
	seen := map[Citation]bool{}
	for _, citation := range everyCitation(answer) {
		if !seen[citation] {
			seen[citation] = true
			found = append(found, citation)
		}
	}
	return found
}

// everyCitation returns what an answer cites in order, as often as it does.
func everyCitation(answer string) []Citation {
	var found []Citation
	free := 0 // where what may be quoted before a citation begins
	for _, at := range citationPattern.FindAllStringSubmatchIndex(answer, -1) {
		citation, ok := citationAt(answer, at)
		if !ok {
			continue
		}
		next := at[1]
		if after := quoteAfter.FindStringSubmatchIndex(answer[at[1]:]); after != nil {
			citation.Quote = quoted(answer[at[1]:], after)
			next = at[1] + after[1]
		} else if before := quoteBefore.FindStringSubmatchIndex(answer[free:at[0]]); before != nil {
			citation.Quote = quoted(answer[free:at[0]], before)
		}
		free = max(free, next)
		found = append(found, citation)
	}
	return found
}

// Mark is a section that a text names, and whether what is said there is true. The state
// is empty for one that was not checked.
type Mark struct {
	Section int
	State   CitationState
}

// Marks returns the sections that an answer names, in order and as often as it does, each
// with the state of that very citation: §1 with the words that stand there is true, also if
// it is cited once more with words that do not.
func Marks(answer string, cited []Citation) []Mark {
	type place struct {
		section int
		quote   string
	}
	states := map[place]CitationState{}
	for _, one := range cited {
		if one.Section > 0 {
			states[place{one.Section, one.Quote}] = one.State
		}
	}
	var marks []Mark
	for _, one := range everyCitation(answer) {
		if one.Path == "" {
			marks = append(marks, Mark{one.Section, states[place{one.Section, one.Quote}]})
		}
	}
	return marks
}

// Shown is a citation as people are told of it: with the words that are not there, since
// the same place may be cited with others that are.
func (c Citation) Shown() string {
	if c.State != Misquoted || c.Quote == "" {
		return c.Text
	}
	return c.Text + "「" + textfmt.Shorten(textfmt.OneLine(c.Quote), maxShownQuote) + "」"
}

// maxShownQuote is how many letters of a quotation are shown beside the answer that has it.
const maxShownQuote = 60

func citationAt(answer string, at []int) (Citation, bool) {
	part := func(n int) string {
		if at[2*n] < 0 {
			return ""
		}
		return answer[at[2*n]:at[2*n+1]]
	}
	citation := Citation{Text: part(0)}
	if digits := part(1); digits != "" {
		number, ok := judge.ParseNumber(digits)
		citation.Section = number
		return citation, ok
	}
	citation.Path, citation.Commit = part(2), strings.ToLower(part(5))
	start, err := strconv.Atoi(part(3))
	if err != nil {
		return citation, false
	}
	citation.Start, citation.End = start, start
	if end := part(4); end != "" {
		if citation.End, err = strconv.Atoi(end); err != nil {
			return citation, false
		}
	}
	return citation, true
}

// quoted is the one group of a quotation that matched.
func quoted(text string, at []int) string {
	for group := 1; 2*group < len(at); group++ {
		if at[2*group] >= 0 {
			return text[at[2*group]:at[2*group+1]]
		}
	}
	return ""
}

// Check says of a citation whether it exists and whether the quoted words stand
// there.
func (c Citation) Check(sections []judge.Section, commit string) CitationState {
	if c.Path == "" {
		at, found := sectionAt(sections, c.Section)
		switch {
		case !found:
			return Missing
		case c.Quote != "" && !standsIn(c.Quote, plainSection(sections[at])):
			return Misquoted
		}
		return Confirmed
	}
	text, found := linesOf(sections, c, commit)
	switch {
	case !found:
		return Missing
	case c.Quote != "" && !standsIn(c.Quote, text):
		return Misquoted
	}
	return Confirmed
}

// plainSection is the text of a section; of a hunk, its lines without signs and
// numbers.
func plainSection(section judge.Section) string {
	hunk, isHunk := judge.ParseHunk(section.Text)
	if !isHunk {
		return section.Text
	}
	return plainLines(hunk.Lines) + "\n" + section.Text
}

func plainLines(lines []judge.Line) string {
	texts := make([]string, len(lines))
	for i, line := range lines {
		texts[i] = line.Text
	}
	return strings.Join(texts, "\n")
}

// linesOf is the text of the lines that a citation names, if the diff shows them
// all.
func linesOf(sections []judge.Section, c Citation, commit string) (string, bool) {
	lower := strings.ToLower(commit)
	if commit == "" || c.Start < 1 || c.End < c.Start || !strings.HasPrefix(lower, c.Commit) && !strings.HasPrefix(c.Commit, lower) {
		return "", false
	}
	for _, section := range sections {
		hunk, isHunk := judge.ParseHunk(section.Text)
		if !isHunk || hunk.Path != c.Path {
			continue
		}
		for _, old := range []bool{false, true} {
			if lines := within(hunk.Lines, c.Start, c.End, old); len(lines) == c.End-c.Start+1 {
				return plainLines(lines), true
			}
		}
	}
	return "", false
}

// within returns the lines of one side that are in the range.
func within(lines []judge.Line, start, end int, old bool) []judge.Line {
	var found []judge.Line
	for _, line := range lines {
		if (line.Sign == '-') == old && line.Number >= start && line.Number <= end {
			found = append(found, line)
		}
	}
	return found
}

var ellipsis = lazyregexp.New(`…+|\.{3,}`)

// standsIn reports whether quoted words stand in a text, without regard to spaces
// and line breaks. What an ellipsis leaves out may be anything.
func standsIn(quote, text string) bool {
	text = withoutSpace(text)
	for _, piece := range ellipsis.Split(quote, -1) {
		piece = withoutSpace(piece)
		at := strings.Index(text, piece)
		if at < 0 {
			return false
		}
		text = text[at+len(piece):]
	}
	return true
}

func withoutSpace(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, text)
}

// CheckCitations finds and checks what an answer cites.
func CheckCitations(answer string, sections []judge.Section, commit string) []Citation {
	found := Citations(answer)
	for i := range found {
		found[i].State = found[i].Check(sections, commit)
	}
	return found
}

// markStale marks the confirmed citations whose lines the newer diff no longer has
// as they were.
func markStale(citations []Citation, sections, newer []judge.Section, commit string) {
	for i, citation := range citations {
		if citation.State == Confirmed && !stillThere(citation, sections, newer, commit) {
			citations[i].State = Stale
		}
	}
}

func stillThere(c Citation, sections, newer []judge.Section, commit string) bool {
	path := c.Path
	var text string
	if path == "" {
		at := sort.Search(len(sections), func(i int) bool { return sections[i].Number >= c.Section })
		hunk, isHunk := judge.ParseHunk(sections[at].Text)
		if !isHunk {
			return true
		}
		path, text = hunk.Path, changed(hunk)
	} else {
		text, _ = linesOf(sections, c, commit)
	}
	for _, section := range newer {
		if hunk, isHunk := judge.ParseHunk(section.Text); isHunk && hunk.Path == path && holds(hunk, text) {
			return true
		}
	}
	return false
}

// changed is what a hunk adds and removes, without what is around it.
func changed(hunk judge.Hunk) string {
	var lines []judge.Line
	for _, line := range hunk.Lines {
		if line.Sign != ' ' {
			lines = append(lines, line)
		}
	}
	return plainLines(lines)
}

// holds reports whether a newer hunk has the text whole, as one run of lines: on one
// side, or among what it changes.
func holds(hunk judge.Hunk, text string) bool {
	last := 0
	for _, line := range hunk.Lines {
		last = max(last, line.Number)
	}
	for _, view := range []string{
		changed(hunk), plainLines(within(hunk.Lines, 1, last, false)), plainLines(within(hunk.Lines, 1, last, true)),
	} {
		if strings.Contains("\n"+view+"\n", "\n"+text+"\n") {
			return true
		}
	}
	return false
}
