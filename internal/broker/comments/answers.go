package comments

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/items"
	"github.com/toryo-dev/toryo/internal/outbox"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// When comments are not taken up, the answer to a question of a run still is. What was said
// before the question is none.

// question is the comment by which people were asked.
type question struct {
	asked bool      // it is on the forge
	id    string    // of the comment
	at    time.Time // when it was asked, if the comment is not there any more
}

// questionOf finds the comment by which the run of a task that waits for an answer has
// asked: its own, or else the one which says that it waits.
func (k *Log) questionOf(ctx context.Context, t task.Task) (question, error) {
	if t.AwaitsApproval() {
		plan, err := ProposalOf(ctx, k.options.Store, t)
		return plan.question(t), err
	}
	asked, err := k.options.Store.RunActions(ctx, t.ID, t.Generation, t.Generation, outbox.Comment{}.Kind())
	if err != nil {
		return question{}, err
	}
	asked = slices.DeleteFunc(asked, func(a store.Action) bool { return !strings.Contains(a.IdempotencyKey, "-question-") })
	if len(asked) == 0 {
		waits := outbox.Write{Task: t.ID, Generation: t.Generation, What: outbox.AboutState + string(task.Paused)}
		action, err := k.options.Store.Action(ctx, waits.IdempotencyKey())
		if err != nil {
			if task.CodeOf(err) == task.NotFound {
				return question{}, nil
			}
			return question{}, err
		}
		asked = append(asked, action)
	}
	last := asked[len(asked)-1]
	if last.Status != store.Delivered {
		return question{}, nil
	}
	var written outbox.Written
	if err := json.Unmarshal(last.Result, &written); err != nil {
		return question{}, task.Wrap(task.Internal, err, "what the forge said of a comment cannot be read")
	}
	return question{asked: true, id: written.ID, at: t.UpdatedAt}, nil
}

// answeredBy reports whether a change came after the question.
func (q question) answeredBy(c change, seen items.Snapshot) bool {
	return c.kind != task.CommentDeleted && q.before(c.comment, seen)
}

// before reports whether a comment was written, or edited, after the question.
func (q question) before(c task.Comment, seen items.Snapshot) bool {
	if !q.asked {
		return false
	}
	place := func(id string) int {
		return slices.IndexFunc(seen.Comments, func(one task.Comment) bool { return one.ID == id })
	}
	asked, at := place(q.id), q.at
	if asked >= 0 {
		at = seen.Comments[asked].CreatedAt
	}
	when := c.CreatedAt
	if c.Edited() {
		when = c.UpdatedAt
	}
	// Forges keep seconds: of two comments in one second, their order tells.
	if when.Equal(at) && asked >= 0 && c.Kind == task.ItemComment && !c.Edited() {
		return place(c.ID) > asked
	}
	return !when.Before(at)
}
