package intake

import (
	"context"
	"slices"
	"time"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/items"
	"github.com/toryo-dev/toryo/internal/memory"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// What reviewers ask for on a pull request of ours is learned when the pull request has ended: then it
// is known how that ended. A pull request that was seen open is in the database until something was
// learned from it, so that its end is found without webhooks, and after a restart. A lesson is one
// transaction, and knows each comment by a hash: learning again changes nothing.

// Memory keeps what is learned; [store.Memory] says what the methods do.
type Memory interface {
	WatchPull(ctx context.Context, pull task.Key) error
	WatchedPulls(ctx context.Context, in task.Repository) ([]task.Key, error)
	Learn(ctx context.Context, lesson store.Lesson) error
	ListNotes(ctx context.Context, filter store.NoteFilter) ([]store.Note, error)
}

// endedEvery is how often the forge is asked whether a pull request has ended of which nothing else is
// heard. The board is at hand.
const endedEvery = 5 * time.Minute

// watched is what is known of a pull request that is watched.
type watched struct {
	kept bool      // the database has it
	at   time.Time // when the forge was asked whether it has ended
}

// watch remembers an open pull request of ours.
func (i *Intake) watch(ctx context.Context, pull forge.Item) error {
	if i.options.Memory == nil || i.known(pull.Key).kept {
		return nil
	}
	if _, ours, err := i.ours(ctx, pull); err != nil || !ours {
		return err
	}
	if err := i.options.Memory.WatchPull(ctx, pull.Key); err != nil {
		return err
	}
	i.know(pull.Key, watched{kept: true, at: i.options.Now()})
	return nil
}

func (i *Intake) known(pull task.Key) watched {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.watched[pull]
}

func (i *Intake) know(pull task.Key, is watched) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.watched) >= mostRemembered {
		clear(i.watched) // costs some requests
	}
	i.watched[pull] = is
}

// endedPulls lists the pull requests of a repository that were seen open and are not open any more.
// Those that are looked at anyway are left out.
func (i *Intake) endedPulls(ctx context.Context, from forge.Forge, in task.Repository, looked func(task.Key) bool) ([]task.Key, error) {
	if i.options.Memory == nil {
		return nil, nil
	}
	pulls, err := i.options.Memory.WatchedPulls(ctx, in)
	if err != nil {
		return nil, err
	}
	var ended []task.Key
	for _, pull := range pulls {
		if looked(pull) || in.Forge != task.Board && i.options.Now().Sub(i.known(pull).at) < endedEvery {
			continue
		}
		item, err := from.Item(ctx, pull)
		if err != nil && task.CodeOf(err) != task.NotFound {
			return ended, err
		}
		if err == nil && item.State == forge.Open {
			i.know(pull, watched{kept: true, at: i.options.Now()})
			continue
		}
		i.options.Snapshots.Changed(pull)
		ended = append(ended, pull)
	}
	return ended, nil
}

// learn keeps what reviewers asked for on a pull request of ours that has ended.
func (i *Intake) learn(ctx context.Context, pull forge.Item) error {
	if i.options.Memory == nil || pull.Key.Kind != task.Pull {
		return nil
	}
	pulls, err := i.options.Memory.WatchedPulls(ctx, pull.Key.Repo())
	if err != nil {
		return err
	}
	// After the end its branch may have no name any more.
	if !slices.Contains(pulls, pull.Key) {
		if _, ours, err := i.ours(ctx, pull); err != nil || !ours {
			return err
		}
	}
	ended, err := i.endOf(ctx, pull)
	if err != nil {
		return err
	}
	known, err := i.options.Memory.ListNotes(ctx, store.NoteFilter{Forge: pull.Key.Forge, Repository: pull.Key.Repository})
	if err != nil {
		return err
	}
	lesson := memory.Learn(ended, known, i.options.Mask, i.options.Now())
	if err := i.options.Memory.Learn(ctx, lesson); err != nil {
		return err
	}
	i.mu.Lock()
	delete(i.watched, pull.Key)
	i.mu.Unlock()
	if len(lesson.Learned) > 0 {
		i.options.Log.InfoContext(ctx, "kept what reviewers asked for", "item", pull.Key.String(), "requests", len(lesson.Learned))
	}
	return nil
}

// endOf reads how a pull request ended and what was asked for on it. Nothing is kept of one that not
// everybody can read who can read the repository.
func (i *Intake) endOf(ctx context.Context, pull forge.Item) (memory.Ended, error) {
	ended := memory.Ended{Pull: pull.Key, URL: pull.URL, Merged: pull.State == forge.Merged}
	snapshot, err := i.options.Snapshots.Get(ctx, pull.Key, lookAge)
	if task.CodeOf(err) == task.NotFound || err == nil && snapshot.Item.Confidential {
		return ended, nil
	}
	if err != nil {
		return ended, err
	}
	for _, comment := range slices.Concat(snapshot.ReviewComments, snapshot.Comments) {
		ended.Present = append(ended.Present, comment.Ref())
	}
	asked, err := i.askedFor(ctx, snapshot)
	if err != nil {
		return ended, err
	}
	slices.SortStableFunc(asked, func(a, b memory.Request) int { return a.Comment.CreatedAt.Compare(b.Comment.CreatedAt) })
	ended.Requests, err = i.ofWriters(ctx, snapshot.Item, asked)
	return ended, err
}

// askedFor returns what people asked for in reviews, and in comments that count as reviews by the
// configuration. What we or other programs said is left out, and so are threads that others began:
// that we found something, or that a stranger did, does not say that the team wants it.
func (i *Intake) askedFor(ctx context.Context, snapshot items.Snapshot) ([]memory.Request, error) {
	key := snapshot.Item.Key
	self, err := i.options.Forges[key.Forge].Self(ctx)
	if err != nil {
		return nil, err
	}
	bot, err := i.options.Bot(ctx, key.Forge)
	if err != nil {
		return nil, err
	}
	changed, err := i.changedAt(ctx, key)
	if err != nil {
		return nil, err
	}
	var asked []memory.Request
	add := func(comment task.Comment, path string, done bool) {
		if !comment.By(self) && !comment.By(bot) && !forge.Automated(comment.Author) {
			asked = append(asked, memory.Request{Comment: comment, Path: path, Done: done})
		}
	}
	for _, thread := range slices.DeleteFunc(slices.Clone(snapshot.Threads), takenBack) {
		first := thread.Comments[0]
		add(first, thread.Anchor.Path, thread.Resolved || thread.Outdated && changed.After(first.CreatedAt))
	}
	for _, comment := range snapshot.ReviewComments {
		requests := comment.About == string(forge.RequestChanges) || comment.About == string(forge.Remark) && i.options.Rules.fixUpOn(OnReviewComments)
		if comment.Kind == task.SummaryComment && requests {
			add(comment, "", changed.After(comment.CreatedAt))
		}
	}
	for _, comment := range snapshot.Comments {
		if i.options.Rules.fixUpOn(OnMentions) && forge.Mentions(comment.Body, bot, self) {
			add(comment, "", changed.After(comment.CreatedAt))
		}
	}
	return asked, nil
}

// takenBack reports whether who began a thread has said later that it does not matter.
func takenBack(thread forge.ReviewThread) bool {
	return slices.ContainsFunc(thread.Comments[1:], func(c task.Comment) bool { return c.By(thread.Comments[0].Author) && memory.Withdraws(c.Body) })
}

// changedAt is when a task has last changed a pull request because somebody asked for it.
func (i *Intake) changedAt(ctx context.Context, pull task.Key) (at time.Time, err error) {
	t, found, err := store.Optional(i.options.Tasks.TaskOf(ctx, pull, task.Development))
	if err != nil || !found {
		return at, err
	}
	changes, err := i.changesOf(ctx, t)
	for _, change := range changes {
		if change.Trigger == task.Finished {
			at = change.at
		}
	}
	return at, err
}

// ofWriters returns the requests of people who may write to the repository, whoever else may steer a
// task by the configuration: what is kept works on later tasks too, which others have assigned.
func (i *Intake) ofWriters(ctx context.Context, pull forge.Item, asked []memory.Request) ([]memory.Request, error) {
	writes := map[string]bool{}
	var kept []memory.Request
	for _, one := range asked {
		author := task.FoldLogin(one.Comment.Author)
		may, known := writes[author]
		if !known {
			if len(writes) == maxRequesters {
				continue
			}
			standing, err := i.options.Steering.Of(ctx, pull, one.Comment.Author, nil)
			if err != nil {
				return nil, err
			}
			may = standing.Writes
			writes[author] = may
		}
		if may {
			kept = append(kept, one)
		}
	}
	return kept, nil
}
