package judge

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"github.com/toryo-dev/toryo/internal/lazyregexp"
	"github.com/toryo-dev/toryo/internal/messages"
	"github.com/toryo-dev/toryo/internal/task"
)

// Paper is what is judged.
type Paper struct {
	Question string
	Answer   string // in sections marked $$[N]
	Sections []Section
	Language task.Language
	// Instructions are what the role adds to the prompt.
	Instructions string

	// Of a pull request only.
	Commit string
	Notes  string       // from past reviews of the repository; what others wrote is quoted
	Hunks  map[int]Hunk // by section
	Cut    []string     // files that were left out for their size
}

// Pull is a pull request that is to be reviewed.
type Pull struct {
	URL      string // for people
	Title    string
	Body     string
	Issues   []Issue // that it is for
	Commit   string  // the head
	Diff     string  // as git writes it
	CutFiles []string
	// Language is that of the review; empty means that of the pull request.
	Language     task.Language
	Instructions string
	// MaxDiff is how many bytes of diff are judged; 0 means MaxDiff.
	MaxDiff int
	// Notes are from past reviews of the repository; what others wrote is quoted in them.
	Notes string
}

// Issue is an issue that a pull request is for.
type Issue struct {
	Number int64
	Title  string
	Body   string
}

// MaxDiff is how many bytes of a diff are judged when nothing else is said.
const MaxDiff = 200_000

// DocumentPaper makes a paper of a document. An answer without markers is numbered
// by paragraph.
func DocumentPaper(question, answer string, language task.Language) (Paper, error) {
	if strings.TrimSpace(question) == "" || strings.TrimSpace(answer) == "" {
		return Paper{}, task.Errorf(task.Invalid, "a review needs a question and an answer")
	}
	answer = MarkParagraphs(answer)
	return Paper{
		Question: question, Answer: answer, Sections: ParseSections(answer),
		Language: language.Of(question, answer),
	}, nil
}

// PullPaper makes a paper of a pull request. The question is its text and the
// issues with their acceptance criteria, and each hunk of the diff is a section. A
// diff that is too large is cut by file, and the answer says so.
func PullPaper(pull Pull) (Paper, error) {
	if pull.Commit == "" {
		return Paper{}, task.Errorf(task.Invalid, "the head commit of the pull request is not known")
	}
	language := pull.Language.OfItem(pull.Title, pull.Body, issuesText(pull.Issues))
	paper := Paper{
		Commit: pull.Commit, Hunks: map[int]Hunk{}, Cut: slices.Clone(pull.CutFiles),
		Language: language, Instructions: pull.Instructions, Notes: pull.Notes,
	}
	paper.Question = questionOf(pull, paper.Language)
	files, _, err := gitdiff.Parse(strings.NewReader(pull.Diff))
	if err != nil {
		return Paper{}, task.Wrap(task.Invalid, err, "the diff cannot be read")
	}
	room := cmp.Or(pull.MaxDiff, MaxDiff)
	for _, file := range files {
		hunks := hunksOf(file, pull.Commit)
		size := 0
		for _, hunk := range hunks {
			size += len(hunk.Text())
		}
		if size > room {
			paper.Cut = append(paper.Cut, pathOf(file))
			continue
		}
		room -= size
		for _, hunk := range hunks {
			number := len(paper.Sections) + 1
			paper.Hunks[number] = hunk
			paper.Sections = append(paper.Sections, Section{Number: number, Text: strings.TrimRight(hunk.Text(), "\n")})
		}
	}
	paper.Answer = Mark(paper.Sections)
	if len(paper.Cut) > 0 {
		paper.Answer = messages.Text(paper.Language, "judge.cut", strings.Join(paper.Cut, ", ")) + "\n\n" + paper.Answer
	}
	return paper, nil
}

func issuesText(issues []Issue) string {
	var b strings.Builder
	for _, issue := range issues {
		b.WriteString(issue.Title + "\n" + issue.Body + "\n")
	}
	return b.String()
}

func questionOf(pull Pull, in task.Language) string {
	var b strings.Builder
	for _, issue := range pull.Issues {
		fmt.Fprintf(&b, "# %s #%d: %s\n\n%s\n\n", messages.Text(in, "judge.issue"), issue.Number, issue.Title, strings.TrimSpace(issue.Body))
		if criteria := Criteria(issue.Body); len(criteria) > 0 {
			fmt.Fprintf(&b, "## %s\n\n- %s\n\n", messages.Text(in, "judge.criteria"), strings.Join(criteria, "\n- "))
		}
	}
	fmt.Fprintf(&b, "# %s: %s\n\n", messages.Text(in, "judge.pull"), pull.Title)
	if pull.URL != "" {
		b.WriteString(pull.URL + "\n\n")
	}
	b.WriteString(strings.TrimSpace(pull.Body) + "\n")
	return b.String()
}

var (
	criteriaHeading = lazyregexp.New(`(?i)^\s*(?:#{1,6}\s*|\*\*)?(?:acceptance criteria|definition of done|done when|受け入れ(?:条件|基準|要件)|受入(?:条件|基準)|完了(?:条件|の定義))\s*(?:\*\*)?\s*[:：]?\s*(?:\*\*)?\s*$`)
	anyHeading      = lazyregexp.New(`^\s*#{1,6}\s`)
	listEntry       = lazyregexp.New(`^\s*(?:[-*+・]|\d+[.)])\s*(\[[ xX]\]\s*)?(.+)$`)
)

// Criteria returns the acceptance criteria of an issue: the list below a heading
// that calls itself so, and every box to tick elsewhere.
func Criteria(body string) []string {
	var criteria []string
	below := false
	for line := range strings.Lines(body) {
		line = strings.TrimRight(line, "\r\n")
		switch entry := listEntry.FindStringSubmatch(line); {
		case criteriaHeading.MatchString(line):
			below = true
		case anyHeading.MatchString(line):
			below = false
		case len(entry) == 3 && (below || entry[1] != ""):
			criteria = append(criteria, strings.TrimSpace(entry[2]))
		}
	}
	return criteria
}

func pathOf(file *gitdiff.File) string { return onOneLine(cmp.Or(file.NewName, file.OldName)) }

// onOneLine shows a path that git lets have anything in it.
func onOneLine(path string) string {
	if strings.ContainsFunc(path, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\uFFFD' }) {
		return strconv.Quote(path)
	}
	return path
}

func hunksOf(file *gitdiff.File, commit string) []Hunk {
	path := pathOf(file)
	if len(file.TextFragments) == 0 {
		return []Hunk{{Path: path, Commit: commit, Note: noteOn(file)}}
	}
	var hunks []Hunk
	for _, fragment := range file.TextFragments {
		hunk := Hunk{Path: path, Commit: commit, Start: int(fragment.NewPosition), End: int(fragment.NewPosition + fragment.NewLines - 1)}
		if fragment.NewLines == 0 {
			hunk.Old = true
			hunk.Start, hunk.End = int(fragment.OldPosition), int(fragment.OldPosition+fragment.OldLines-1)
		}
		hunk.Lines = linesOf(fragment)
		hunks = append(hunks, hunk)
	}
	return hunks
}

func linesOf(fragment *gitdiff.TextFragment) []Line {
	before, after := int(fragment.OldPosition), int(fragment.NewPosition)
	lines := make([]Line, 0, len(fragment.Lines))
	for _, line := range fragment.Lines {
		text := strings.ToValidUTF8(strings.TrimRight(line.Line, "\r\n"), "\uFFFD")
		text = strings.ReplaceAll(text, "\x00", "\uFFFD")
		switch line.Op {
		case gitdiff.OpDelete:
			lines = append(lines, Line{'-', before, text})
			before++
		case gitdiff.OpAdd:
			lines = append(lines, Line{'+', after, text})
			after++
		default:
			lines = append(lines, Line{' ', after, text})
			before++
			after++
		}
	}
	return lines
}

func noteOn(file *gitdiff.File) string {
	switch {
	case file.IsBinary:
		return "binary file"
	case file.IsRename:
		return "renamed from " + onOneLine(file.OldName)
	case file.IsCopy:
		return "copied from " + onOneLine(file.OldName)
	case file.IsDelete:
		return "deleted"
	case file.IsNew:
		return "new and empty"
	default:
		return "no lines changed"
	}
}
