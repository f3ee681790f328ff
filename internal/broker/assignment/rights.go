package assignment

import (
	"context"
	"fmt"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

// NoRightError says that our account lacks a right that the work on a task needs. Somebody may
// give it, so that it is asked again.
type NoRightError struct {
	Reason     task.Reason
	MayComment bool // so that it can be said on the item
	in         string
}

func (e *NoRightError) Error() string {
	return fmt.Sprintf("the account of the bot lacks a right in %s: %s", e.in, e.Reason)
}

// rights makes sure that what the run is to do at its end is allowed, before it begins. A review
// pushes nothing, and what it says does not depend on labels.
func (p *Preparer) rights(ctx context.Context, from forge.Forge, t task.Task) error {
	repository, err := from.Repository(ctx, t.Key.Repository)
	if err != nil {
		return fmt.Errorf("read what the bot may do: %w", err)
	}
	lacks := repository.Lacks
	if t.Key.Kind == task.Issue && lacks.Issues {
		lacks.Comment, lacks.Label = true, true
	}
	var reason task.Reason
	switch {
	case lacks.Push && t.Type != task.Review:
		reason = task.ReasonNoPushRight
	case lacks.Comment:
		reason = task.ReasonNoCommentRight
	case lacks.Label && t.Type != task.Review:
		reason = task.ReasonNoLabelRight
	default:
		return nil
	}
	return &NoRightError{Reason: reason, MayComment: !lacks.Comment, in: t.Key.Repository}
}
