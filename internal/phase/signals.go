package phase

import (
	"context"

	"github.com/toryo-dev/toryo/internal/phase/turn"
	"github.com/toryo-dev/toryo/internal/task"
)

// CommentChecks say how comments are looked for during a run.
type CommentChecks struct {
	Disabled bool // only the answer to a question of the run is taken up
	Every    int  // loops of the model; 0 means 1
}

// checkpoint looks for signals: stop and pause first, which end the context, then
// comments.
func (t *chat) checkpoint(ctx context.Context, point turn.Point) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if point == turn.BeforeTurn {
		t.loops++
	}
	t.takeComments(ctx, (t.loops-1)%max(t.run.Comments.Every, 1) == 0)
	if point == turn.AfterResults && t.afterResults != nil {
		return t.afterResults(ctx)
	}
	return nil
}

// setAside takes what people said before the run began and that does not count out of
// what the model is told. It is kept for the record.
func (r *run) setAside() {
	counts := func(comments []task.CommentEntry) (kept []task.CommentEntry) {
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
			signal.Comments = append(signal.Comments, takenOf(comment))
		}
	}
	if len(signal.Comments) == 0 {
		return nil
	}
	return r.append(ctx, task.SignalTaken, Entry{Step: r.step(), Signal: signal})
}
