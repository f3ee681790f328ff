package judge

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/toryo-dev/toryo/internal/messages"
)

// Report is a review of a pull request: what is kept of it, and what the forge is
// given.
type Report struct {
	Commit    string
	Question  string
	Answer    string
	Judgement json.RawMessage
	Verdict   string // approve, comment or request_changes
	Text      string
	Comments  []Comment // on lines that the diff has
}

// Comment is a comment on a line.
type Comment struct {
	Place
	Text string
}

// maxComments is how many comments on lines a review has. What is beyond that
// stands in its text.
const maxComments = 50

// Report makes a report of the judgement of a pull request. A remark about a line
// that the diff does not have goes into the text.
func (j Judged) Report(paper Paper) Report {
	in := paper.Language
	report := Report{
		Commit: paper.Commit, Question: paper.Question, Answer: paper.Answer, Judgement: j.JSON, Verdict: j.form.Verdict,
	}
	var text strings.Builder
	fmt.Fprintf(&text, "**%s**\n\n%s\n", messages.Text(in, "judge.verdict_"+j.form.Verdict), j.form.Overall)
	lists := j.form.lists()
	for _, field := range ItemFields {
		heading := "\n**" + messages.Text(in, "judge.field_"+field) + "**\n\n"
		for _, remark := range *lists[field] {
			place, found := paper.placeOf(remark)
			if found && field != Strengths && len(report.Comments) < maxComments {
				report.Comments = append(report.Comments, Comment{place, remark.Text})
				continue
			}
			text.WriteString(heading)
			heading = ""
			fmt.Fprintf(&text, "- %s%s\n", indent(remark.Text), paper.named(remark))
		}
	}
	if len(paper.Cut) > 0 {
		text.WriteString("\n" + messages.Text(in, "judge.cut", strings.Join(paper.Cut, ", ")) + "\n")
	}
	if j.Scripted {
		text.WriteString("\n" + messages.Text(in, "judge.scripted") + "\n")
	}
	report.Text = strings.TrimSpace(text.String())
	return report
}

func indent(text string) string { return strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  ") }

// placeOf is the line that a remark is about, if the diff has it.
func (p Paper) placeOf(r remark) (Place, bool) {
	for _, number := range r.Numbers {
		hunk := p.Hunks[number]
		place := Place{Path: hunk.Path, Line: r.Line, Old: r.Old}
		if _, found := hunk.At(place); found && r.Line > 0 {
			return place, true
		}
	}
	return Place{}, false
}

// named says which hunks a remark is about.
func (p Paper) named(r remark) string {
	var names []string
	for _, number := range r.Numbers {
		if hunk, found := p.Hunks[number]; found {
			names = append(names, fmt.Sprintf("`%s:%d-%d`", hunk.Path, hunk.Start, hunk.End))
		}
	}
	if len(names) == 0 {
		return ""
	}
	return " (" + strings.Join(names, ", ") + ")"
}
