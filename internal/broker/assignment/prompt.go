package assignment

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"

	"github.com/toryo-dev/toryo/internal/quote"
	"github.com/toryo-dev/toryo/internal/task"
)

//go:embed prompts/development.md
var developmentPrompt string

//go:embed prompts/fixup.md
var fixUpPrompt string

//go:embed prompts/merge.md
var mergePrompt string

//go:embed prompts/review.md
var reviewPrompt string

// prompt is the task in words, for an executor that takes a prompt. What others
// wrote is put in once and not looked at again.
// About says what the role is.
func prompt(a Assignment, about string) string {
	text := developmentPrompt
	switch {
	case a.Task.Type == task.Review:
		text = reviewPrompt
	case a.Pull != nil && a.Task.Cause == task.ReasonBaseConflict:
		text = mergePrompt
	case a.Pull != nil && (a.Pull.asksForChanges() || a.Task.Cause == task.ReasonChangesRequested):
		text = fixUpPrompt
	}
	return strings.NewReplacer(
		"{{role}}", strings.TrimSpace(string(a.Task.Role)+"\n"+about),
		"{{forge}}", string(a.Item.Key.Forge),
		"{{title}}", quote.Line(a.Item.Title),
		"{{url}}", quote.Line(a.Item.URL),
		"{{repository}}", quote.Line(a.Item.Key.Repository),
		"{{number}}", strconv.FormatInt(a.Item.Key.Number, 10),
		"{{description}}", strings.TrimSpace(part("description", a.Item.Author, a.Item.Body)),
		"{{branch}}", quote.Line(a.Branch),
		"{{base}}", quote.Line(a.Base),
		"{{commit}}", quote.Line(a.Item.HeadCommit),
		"{{comments}}", commentsPart(a),
		"{{earlier}}", earlierPart(a),
		"{{notes}}", notesPart(a),
		"{{reviews}}", reviewsPart(a),
		"{{asked}}", asked(a),
		"{{checks}}", checksPart(a),
		"{{issues}}", issuesPart(a),
		"{{diff}}", diffPart(a),
	).Replace(text)
}

// part is something that others wrote.
func part(source, author, body string) string {
	return "\n" + quote.Text(quote.Origin{Source: source, Author: author}, strings.TrimSpace(body)) + "\n"
}

func commentsPart(a Assignment) string {
	var text strings.Builder
	for _, comment := range a.Comments {
		if comment.Refused == "" {
			text.WriteString(part("comment", comment.Author, comment.Body))
		}
	}
	return text.String()
}

func earlierPart(a Assignment) string {
	if a.Earlier == "" {
		return ""
	}
	return part("summary of an earlier run on this", "", a.Earlier)
}

func reviewsPart(a Assignment) string {
	if a.Pull == nil {
		return ""
	}
	var text strings.Builder
	for _, review := range a.Pull.Summaries {
		if review.Body != "" && review.Refused == "" {
			text.WriteString(part("review", review.Author, review.Body))
		}
	}
	for _, thread := range a.Pull.Threads {
		for _, comment := range thread.Comments {
			text.WriteString(part(fmt.Sprintf("remark %s on %s", thread.ID, thread.Anchor), comment.Author, comment.Body))
		}
	}
	return text.String()
}

// asked says why a pull request needs changes.
func asked(a Assignment) string {
	switch {
	case a.Pull != nil && task.OnlyComment(a.Task.Cause, a.Task.Occasion, a.Pull.Summaries):
		return "Somebody has commented on the pull request below. If they ask for no change, change nothing, and print an answer to them."
	case a.Pull == nil || len(a.Pull.Checks) == 0:
		return "Reviewers asked for changes on the pull request below."
	case len(a.Pull.Threads)+len(a.Pull.Summaries) > 0:
		return "Checks of the pull request below failed, and reviewers asked for changes on it."
	default:
		return "Checks of the pull request below failed."
	}
}

// promptLog is how much of the end of a log is in a prompt, in bytes.
const promptLog = 4 << 10

func checksPart(a Assignment) string {
	if a.Pull == nil {
		return ""
	}
	var text strings.Builder
	for _, check := range a.Pull.Checks {
		said := check.Name + "\n" + check.Description + "\n" + check.URL
		if log := check.Log; log != "" {
			said += "\n\nThe end of its log:\n" + strings.ToValidUTF8(log[max(0, len(log)-promptLog):], "")
		}
		text.WriteString(part("failed check", "", said))
	}
	return text.String()
}

func issuesPart(a Assignment) string {
	if a.Pull == nil {
		return ""
	}
	var text strings.Builder
	for _, issue := range a.Pull.Issues {
		text.WriteString(part(fmt.Sprintf("issue %d: %s", issue.Key.Number, issue.Title), issue.Author, issue.Body))
	}
	return text.String()
}

func diffPart(a Assignment) string {
	if a.Pull == nil {
		return ""
	}
	text := part("diff", "", a.Pull.Diff)
	if len(a.Pull.CutFiles) > 0 {
		text += "\nThe diff is too large to show whole. Left out, and to be read in the repository (git diff " +
			quote.Line(a.Base) + "..." + quote.Line(a.Branch) + "):\n" + strings.TrimPrefix(part("file names", "", strings.Join(a.Pull.CutFiles, "\n")), "\n")
	}
	return text
}
