package agent

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/toryo-dev/toryo/internal/messages"
	"github.com/toryo-dev/toryo/internal/review/judge"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// writtenReview is a review that a command writes as JSON. Without it, all that
// the command writes is the text.
type writtenReview struct {
	Verdict  string             `json:"verdict"`
	Text     string             `json:"text"`
	Comments []wire.LineComment `json:"comments"`
}

// verdictComment is what a command's text is, unless it says otherwise.
const verdictComment = "comment"

var verdicts = []string{"approve", verdictComment, "request_changes"}

// review makes the result of a command that has reviewed.
func (c Command) review(in task.Language, run Run, output string) (wire.Result, error) {
	if strings.TrimSpace(output) == "" {
		return failed(task.Review, in, messages.Text(in, "command.silent"), ""), nil
	}
	paper, err := paperOf(run.Assignment, in)
	if err != nil {
		return failed(task.Review, in, messages.Text(in, "command.failed", err.Error()), output), nil
	}
	written := readReview(output)
	var comments []judge.Comment
	for _, c := range written.Comments {
		comments = append(comments, judge.Comment{Place: judge.Place{Path: c.Path, Line: c.Line, Old: c.Old}, Text: c.Text})
	}
	report, err := paper.Written(written.Verdict, written.Text, comments)
	if err != nil {
		return wire.Result{}, err
	}
	return wire.Result{Outcome: task.OutcomeDone, Reason: string(task.ReasonCompleted), Review: reviewResult(report)}, nil
}

// readReview reads what a command wrote: JSON of the right shape, also in a code
// block, or any text.
func readReview(output string) writtenReview {
	text := strings.TrimSpace(output)
	inside := text
	if rest, fenced := strings.CutPrefix(text, "```json"); fenced {
		inside = strings.TrimSuffix(strings.TrimSpace(rest), "```")
	}
	var written writtenReview
	if json.Unmarshal([]byte(inside), &written) == nil && slices.Contains(verdicts, written.Verdict) &&
		(written.Text != "" || len(written.Comments) > 0) {
		return written
	}
	return writtenReview{Verdict: verdictComment, Text: text}
}
