package comments

import (
	"context"
	"time"

	"github.com/toryo-dev/toryo/internal/broker/assignment"
	"github.com/toryo-dev/toryo/internal/notice"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

// lastLookWait bounds the last look at an item: a forge that does not answer does not
// keep a run from ending.
const lastLookWait = 10 * time.Second

// pageOfLate is how many entries of the log are read at a time.
const pageOfLate = 200

// LookOnce looks at the item of a task whose run ends: without webhooks, what was written
// in the last half minute is not in the log yet.
func (k *Log) LookOnce(ctx context.Context, t task.Task) {
	ctx, cancel := context.WithTimeout(ctx, lastLookWait)
	defer cancel()
	seen, err := k.options.Snapshots.Get(ctx, t.Key, 0)
	if err == nil {
		err = k.Update(ctx, t, seen)
	}
	if err != nil {
		k.options.Log.WarnContext(ctx, "failed to look for the last comments", "task", t.ID, "error", err)
	}
}

// pendingComment is what became of a comment since a run was told of it.
type pendingComment struct {
	first task.CommentChange
	was   string            // what the run was told that it says; empty if it was not told of it
	last  task.CommentEntry // without the text
	same  bool              // it says again what it said then
	short string            // the text, if it is short
}

// change is what the changes of the comment come to, empty if there is nothing to tell.
func (c *pendingComment) change() task.CommentChange {
	net := task.Net(c.first, c.last.Change)
	if net == task.CommentEdited && c.same {
		return ""
	}
	return net
}

// Late returns what the run was not told of before its end, in the order in which it was
// written. It is named: nothing that people write is passed over in silence. What they
// have taken back meanwhile is not among it.
func Late(ctx context.Context, from Store, t task.Task) ([]notice.Late, error) {
	taken, err := assignment.TakenUpTo(ctx, from, t)
	if err != nil {
		return nil, err
	}
	start, err := from.CommentsStart(ctx, t.ID)
	if err != nil {
		return nil, err
	}
	pending, err := pendingComments(ctx, from, t.ID, max(taken, start))
	if err != nil {
		return nil, err
	}
	var late []notice.Late
	for _, one := range pending {
		change, comment := one.change(), one.last.Comment
		if change == "" {
			continue
		}
		late = append(late, notice.Late{Author: comment.Author, Kind: comment.Kind, About: comment.About, Change: change})
	}
	return late, nil
}

// newPending begins with the first change of a comment.
func newPending(entry task.CommentEntry) *pendingComment {
	one := &pendingComment{first: entry.Change, was: entry.Before}
	if entry.Change == task.CommentDeleted {
		one.was = textfmt.Cut(entry.Body, longestBefore)
	}
	return one
}

// take takes up a further change of the comment. Its text is not kept, unless it is short.
func (c *pendingComment) take(entry task.CommentEntry) {
	c.same = len(entry.Body) <= longestBefore && entry.Body == c.was
	if c.short = ""; len(entry.Body) <= longestApproval {
		c.short = entry.Body
	}
	entry.Body, entry.Before = "", ""
	c.last = entry
}

// pendingComments reads what became of each comment after a position, in the order of
// the first change. What is not taken up is left out.
func pendingComments(ctx context.Context, from Store, id task.ID, after int64) ([]*pendingComment, error) {
	var all []*pendingComment
	of := map[task.CommentRef]*pendingComment{}
	for {
		entries, err := from.CommentsAfter(ctx, id, after, pageOfLate)
		if err != nil || len(entries) == 0 {
			return all, err
		}
		after = entries[len(entries)-1].Position
		for _, entry := range entries {
			if entry.Change == task.CommentPresent || entry.Refused != "" {
				continue
			}
			one := of[entry.Ref()]
			if one == nil {
				one = newPending(entry)
				of[entry.Ref()] = one
				all = append(all, one)
			}
			one.take(entry)
		}
	}
}
