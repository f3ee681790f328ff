package judge

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

// Written makes a report of a review of the paper that somebody else has written: a
// verdict, a text and comments on lines. Comments on lines that the diff does not
// have go into the text.
func (p Paper) Written(verdict, text string, comments []Comment) (Report, error) {
	if !slices.Contains([]string{approve, comment, requestChanges}, verdict) {
		return Report{}, task.Errorf(task.Invalid, "there is no verdict %q; it is approve, comment or request_changes", textfmt.Shorten(verdict, longestShown))
	}
	report := Report{Commit: p.Commit, Question: p.Question, Answer: p.Answer, Verdict: verdict, Text: strings.TrimSpace(text)}
	made := form{
		Verdict: verdict, Overall: report.Text,
		Strengths: []remark{}, Weaknesses: []remark{}, ImportantPoints: []remark{}, FutureConsiderations: []remark{},
	}
	for _, one := range comments {
		number, found := p.sectionOf(one.Place)
		if !found || len(report.Comments) == maxComments {
			report.Text += fmt.Sprintf("\n\n- `%s:%d`: %s", one.Path, one.Line, indent(one.Text))
			made.Weaknesses = append(made.Weaknesses, remark{Text: one.Text, Numbers: []int{}})
			continue
		}
		report.Comments = append(report.Comments, one)
		made.Weaknesses = append(made.Weaknesses, remark{Text: one.Text, Numbers: []int{number}, Line: one.Line, Old: one.Old})
	}
	report.Text = strings.TrimSpace(report.Text)
	var err error
	report.Judgement, err = json.Marshal(made)
	return report, err
}

// sectionOf is the section that has a place.
func (p Paper) sectionOf(place Place) (int, bool) {
	for _, section := range p.Sections {
		if _, found := p.Hunks[section.Number].At(place); found {
			return section.Number, true
		}
	}
	return 0, false
}
