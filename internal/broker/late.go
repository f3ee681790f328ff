package broker

import (
	"context"
	"time"

	"github.com/toryo-dev/toryo/internal/notice"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// lastLookWait bounds the last look at an item: a forge that does not answer does not
// keep a run from ending.
const lastLookWait = 10 * time.Second

// lookOnce looks at the item of a run that ends: without webhooks, what was written in
// the last half minute is not in the log yet.
func (r *Runs) lookOnce(ctx context.Context, held Held) {
	if r.options.Talk == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, lastLookWait)
	defer cancel()
	seen, err := r.options.Snapshots.Get(ctx, held.Key, 0)
	if err == nil {
		err = r.options.Talk.Hear(ctx, held.Task, seen)
	}
	if err != nil {
		r.options.Log.WarnContext(ctx, "the last comments could not be looked for", "task", held.ID, "error", err)
	}
}

// pendingComment is what became of a comment since a run was told of it.
type pendingComment struct {
	first task.CommentChange
	was   string             // what the run was told that it says; empty if it was not told of it
	last  store.CommentEntry // without the text
	same  bool               // it says again what it said then
}

// late returns what the run was not told of before its end, in the order in which it was
// written. It is named: nothing that people write is passed over in silence. What they
// have taken back meanwhile is not among it.
func (r *Runs) late(ctx context.Context, held Held) ([]notice.Late, error) {
	taken, err := takenUpTo(ctx, r.options.Store, held.Task)
	if err != nil {
		return nil, err
	}
	start, err := r.options.Store.CommentsStart(ctx, held.ID)
	if err != nil {
		return nil, err
	}
	pending, err := r.pendingComments(ctx, held.ID, max(taken, start))
	if err != nil {
		return nil, err
	}
	var late []notice.Late
	for _, one := range pending {
		change, comment := task.Net(one.first, one.last.Change), one.last.Comment
		if change == "" || change == task.CommentEdited && one.same {
			continue
		}
		late = append(late, notice.Late{Author: comment.Author, Kind: comment.Kind, About: comment.About, Change: change})
	}
	return late, nil
}

// pendingComments reads what became of each comment after a position, in the order of
// the first change. What is not taken up is left out.
func (r *Runs) pendingComments(ctx context.Context, id task.ID, after int64) ([]*pendingComment, error) {
	var all []*pendingComment
	of := map[commentID]*pendingComment{}
	for {
		entries, err := r.options.Store.CommentsAfter(ctx, id, after, maxComments)
		if err != nil || len(entries) == 0 {
			return all, err
		}
		after = entries[len(entries)-1].Position
		for _, entry := range entries {
			if entry.Change == store.CommentPresent || entry.Refused != "" {
				continue
			}
			key := commentID{entry.Comment.Kind, entry.Comment.ID}
			one := of[key]
			if one == nil {
				one = &pendingComment{first: entry.Change, was: entry.Before}
				if entry.Change == store.CommentDeleted {
					one.was = cutText(entry.Comment.Body, longestBefore)
				}
				of[key] = one
				all = append(all, one)
			}
			one.same = len(entry.Comment.Body) <= longestBefore && entry.Comment.Body == one.was
			entry.Comment.Body, entry.Before = "", ""
			one.last = entry
		}
	}
}
