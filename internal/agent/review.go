package agent

import (
	"encoding/json"
	"slices"
	"strings"

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
func (c Command) review(in Language, run Run, output string) (wire.Result, error) {
	if strings.TrimSpace(output) == "" {
		return failed(in, silentText.in(in), ""), nil
	}
	written := readReview(output)
	judgement, err := json.Marshal(written)
	if err != nil {
		return wire.Result{}, task.Wrap(task.Internal, err, "the review cannot be written down")
	}
	review := &wire.ReviewResult{
		Question: run.Assignment.Prompt, Answer: output, Judgement: judgement,
		Verdict: written.Verdict, Text: written.Text, Comments: written.Comments,
	}
	if run.Work.Pull != nil {
		review.Commit = run.Work.Pull.Commit
	}
	return wire.Result{Outcome: outcomeDone, Reason: string(task.ReasonCompleted), Review: review}, nil
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
