package broker

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"

	"github.com/toryo-dev/toryo/internal/task"
)

//go:embed prompts/development.md
var developmentPrompt string

//go:embed prompts/fixup.md
var fixUpPrompt string

//go:embed prompts/review.md
var reviewPrompt string

// rule separates what others wrote from what we say.
const rule = "===================="

// prompt is the task in words, for an executor that takes a prompt. What others
// wrote is put in once and not looked at again.
func prompt(a Assignment) string {
	text := developmentPrompt
	switch {
	case a.Task.Type == task.Review:
		text = reviewPrompt
	case a.Pull != nil && a.Pull.asksForChanges():
		text = fixUpPrompt
	}
	return strings.NewReplacer(
		"{{forge}}", string(a.Item.Key.Forge),
		"{{title}}", oneLine(a.Item.Title),
		"{{url}}", a.Item.URL,
		"{{repository}}", a.Item.Key.Repository,
		"{{number}}", strconv.FormatInt(a.Item.Key.Number, 10),
		"{{author}}", a.Item.Author,
		"{{body}}", a.Item.Body,
		"{{branch}}", a.Branch,
		"{{base}}", a.Base,
		"{{commit}}", a.Item.HeadCommit,
		"{{comments}}", commentsPart(a),
		"{{earlier}}", earlierPart(a),
		"{{reviews}}", reviewsPart(a),
		"{{issues}}", issuesPart(a),
		"{{diff}}", diffPart(a),
	).Replace(text)
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

func part(heading, body string) string {
	return fmt.Sprintf("\n%s %s\n%s\n%s\n", rule, heading, strings.TrimSpace(body), rule)
}

func commentsPart(a Assignment) string {
	var text strings.Builder
	for _, comment := range a.Comments {
		if comment.MaySteer() {
			text.WriteString(part("comment, by "+comment.Author, comment.Body))
		}
	}
	return text.String()
}

func earlierPart(a Assignment) string {
	if a.Earlier == "" {
		return ""
	}
	return part("summary of an earlier run on this", a.Earlier)
}

func reviewsPart(a Assignment) string {
	if a.Pull == nil {
		return ""
	}
	var text strings.Builder
	for _, review := range a.Pull.Summaries {
		if review.Body != "" && review.MaySteer() {
			text.WriteString(part("review, by "+review.Author, review.Body))
		}
	}
	for _, thread := range a.Pull.Threads {
		var talk []string
		for _, comment := range thread.Comments {
			talk = append(talk, comment.Author+": "+comment.Body)
		}
		text.WriteString(part(fmt.Sprintf("remark %s on %s", thread.ID, thread.Anchor), strings.Join(talk, "\n\n")))
	}
	return text.String()
}

func issuesPart(a Assignment) string {
	if a.Pull == nil {
		return ""
	}
	var text strings.Builder
	for _, issue := range a.Pull.Issues {
		text.WriteString(part(fmt.Sprintf("issue %d: %s", issue.Key.Number, oneLine(issue.Title)), issue.Body))
	}
	return text.String()
}

func diffPart(a Assignment) string {
	if a.Pull == nil {
		return ""
	}
	text := part("diff", a.Pull.Diff)
	if len(a.Pull.CutFiles) > 0 {
		text += "\nThe diff is too large to show whole. Left out, and to be read in the repository (git diff " +
			a.Base + "..." + a.Branch + "):\n- " + strings.Join(a.Pull.CutFiles, "\n- ") + "\n"
	}
	return text
}
