package phase

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/phase/conversation"
	"github.com/toryo-dev/toryo/internal/phase/tool"
	"github.com/toryo-dev/toryo/internal/phase/turn"
	"github.com/toryo-dev/toryo/internal/task"
)

// CommentChecks say how comments are looked for during a run.
type CommentChecks struct {
	Off   bool // only the answer to a question of the run is taken up
	Every int  // loops of the model; 0 means 1
}

const (
	// commentsBlock begins the names of the pinned blocks with comments.
	commentsBlock = "comments-"
	// longestComment is how much of a comment the model is shown.
	longestComment = 16_000

	commentsHeading = "# Additional instructions\n\nPeople have commented on the task since the last look. These are additional instructions from them, oldest first."
	commentsGoOn    = "Take them into account and go on with the task."
)

// checkpoint looks for signals: stop and pause first, which end the context, then
// comments.
func (t *talk) checkpoint(ctx context.Context, point turn.Point) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if point == turn.BeforeTurn {
		t.loops++
	}
	if (t.loops-1)%max(t.run.Comments.Every, 1) == 0 {
		t.takeComments(ctx)
	}
	if point == turn.AfterResults && t.afterResults != nil {
		return t.afterResults(ctx)
	}
	return nil
}

// takeComments gives the model what people have said since the last look. What
// goes wrong is logged; the comments are found at the next look, because the
// journal does not have them as taken.
func (t *talk) takeComments(ctx context.Context) {
	if t.deaf || t.run.Comments.Off && !t.run.state.asking {
		return
	}
	comments, err := t.run.Desk.Comments(ctx, t.run.state.position)
	if err != nil {
		t.run.Log.WarnContext(ctx, "new comments could not be looked for", "error", err)
		return
	}
	comments = slices.DeleteFunc(comments, func(c Comment) bool { return c.Position <= t.run.state.position })
	if len(comments) == 0 {
		return
	}
	signal, texts := judge(comments)
	if len(texts) == 0 {
		err = t.run.append(ctx, task.SignalTaken, Entry{Step: t.run.step(), Signal: signal})
	} else {
		t.journal.signal = signal
		err = t.conversation.Pin(ctx, conversation.Block{
			Name: fmt.Sprint(commentsBlock, signal.Position),
			Text: commentsHeading + "\n\n" + strings.Join(texts, "\n\n") + "\n\n" + commentsGoOn,
		})
		t.journal.signal = nil
	}
	if err != nil {
		t.run.Log.WarnContext(ctx, "new comments could not be added to the conversation", "error", err)
	}
}

// setAside takes what people said before the run began and that does not count out of
// what the model is told. It is kept for the record.
func (r *run) setAside() {
	counts := func(comments []Comment) (kept []Comment) {
		for _, comment := range comments {
			if comment.Refused == "" {
				kept = append(kept, comment)
			} else {
				r.refused = append(r.refused, comment)
			}
		}
		return kept
	}
	r.Work.Comments = counts(r.Work.Comments)
	if r.Work.Pull != nil {
		pull := *r.Work.Pull
		pull.Summaries = counts(pull.Summaries)
		r.Work.Pull = &pull
	}
}

// noteRefused writes down, once, what was set aside and why. The position stays where
// it is: nothing was taken up.
func (r *run) noteRefused(ctx context.Context) error {
	signal := &SignalEntry{Signal: task.SignalComments}
	for _, comment := range r.refused {
		if !r.state.refused[comment.ID] {
			signal.Comments = append(signal.Comments, TakenComment{
				Position: comment.Position, ID: comment.ID, Author: comment.Author.Login, Change: comment.Change, Refused: comment.Refused,
			})
		}
	}
	if len(signal.Comments) == 0 {
		return nil
	}
	return r.append(ctx, task.SignalTaken, Entry{Step: r.step(), Signal: signal})
}

// judge says what becomes of each comment, and how the model is told of those
// that are taken up.
func judge(comments []Comment) (*SignalEntry, []string) {
	signal := &SignalEntry{Signal: task.SignalComments}
	var texts []string
	for _, comment := range comments {
		taken := TakenComment{Position: comment.Position, ID: comment.ID, Author: comment.Author.Login, Change: comment.Change,
			Refused: comment.Refused}
		signal.Comments = append(signal.Comments, taken)
		signal.Position = max(signal.Position, comment.Position)
		if taken.Refused == "" {
			texts = append(texts, describe(comment))
		}
	}
	return signal, texts
}

// describe is a comment as the model is told of it.
func describe(comment Comment) string {
	author := oneLine(comment.Author.Login)
	quoted := llm.Quote(llm.Origin{Source: "comment", Author: comment.Author.Login, Access: comment.Author.Access},
		tool.Shorten(tool.Printable(comment.Body), longestComment))
	switch comment.Change {
	case "edited":
		return fmt.Sprintf("%s has changed a comment of theirs (%s). It now says:\n%s", author, oneLine(comment.ID), quoted)
	case "deleted":
		return fmt.Sprintf("%s has withdrawn a comment (%s). What it said does not hold any more.", author, oneLine(comment.ID))
	}
	return fmt.Sprintf("%s says:\n%s", author, quoted)
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
