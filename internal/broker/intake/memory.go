package intake

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/items"
	"github.com/toryo-dev/toryo/internal/memory"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// What reviewers ask for on a pull request of ours is learned when the pull request has ended: then it
// is known how that ended. A pull request is in the database from its opening until something was
// learned from it, so that its end is found without webhooks, and after a restart. A lesson is one
// transaction, and knows each comment by a hash: learning again changes nothing.
//
// What goes wrong is logged here and does not fail a look or a sync: the work on items goes on, and what
// is watched is tried again.

// Memory keeps what is learned; [store.Memory] says what the methods do.
type Memory interface {
	WatchPull(ctx context.Context, pull task.Key) error
	UnwatchPull(ctx context.Context, pull task.Key) error
	WatchedPulls(ctx context.Context, in task.Repository) ([]task.Key, error)
	ForgetWatched(ctx context.Context, of task.Forge, except []string) error
	Learn(ctx context.Context, lesson store.Lesson) error
	ListNotes(ctx context.Context, filter store.NoteFilter) ([]store.Note, error)
}

const (
	// endedEvery is how often the forge is asked which pull requests of a repository are open, if
	// something may be learned there. The board is at hand.
	endedEvery = 5 * time.Minute
	// longestLearning is after which time without success nothing is learned from a pull request any
	// more: what does not pass in a day does not pass.
	longestLearning = 24 * time.Hour
)

// lessons is what is known of pull requests from which something may be learned.
type lessons struct {
	listed  map[task.Repository]time.Time // when the forge was asked which are open
	failing map[task.Key]time.Time        // since when learning has failed
	begun   map[task.Forge]bool           // where watches outside of what is worked on were ended
}

// watch remembers an open pull request of ours.
func (i *Intake) watch(ctx context.Context, pull forge.Item) error {
	if i.options.Memory == nil {
		return nil
	}
	if watched, err := i.isWatched(ctx, pull.Key); err != nil || watched {
		return err
	}
	if _, ours, err := i.ours(ctx, pull); err != nil || !ours {
		return err
	}
	return i.options.Memory.WatchPull(ctx, pull.Key)
}

func (i *Intake) isWatched(ctx context.Context, pull task.Key) (bool, error) {
	pulls, err := i.options.Memory.WatchedPulls(ctx, pull.Repo())
	return slices.Contains(pulls, pull), err
}

// forgetOutside ends the watch of pull requests in repositories that are not worked on any more:
// nobody looks at them. That is done once after a start: a forge that leaves a repository out of its list
// for a moment later on does not end what is watched there. No repository at all is rather a lack of rights.
func (i *Intake) forgetOutside(ctx context.Context, of task.Forge, ours []forge.Repository, listed int) {
	i.mu.Lock()
	begun := i.lessons.begun[of]
	i.lessons.begun[of] = begun || listed > 0
	i.mu.Unlock()
	if i.options.Memory == nil || begun || listed == 0 {
		return
	}
	var names []string
	for _, repository := range ours {
		names = append(names, repository.Name)
	}
	if err := i.options.Memory.ForgetWatched(ctx, of, names); err != nil {
		i.options.Log.WarnContext(ctx, "failed to end the watch of pull requests outside of what is worked on; retrying at the next start", "forge", of, "error", err)
	}
}

// lookAtEnded looks at the pull requests of a repository that are watched and not open any more.
func (i *Intake) lookAtEnded(ctx context.Context, from forge.Forge, in task.Repository) {
	if i.options.Memory == nil || ctx.Err() != nil {
		return
	}
	ended, err := i.endedPulls(ctx, from, in)
	if err != nil {
		i.options.Log.WarnContext(ctx, "failed to find out which pull requests have ended; retrying with a later sync", "repository", in.String(), "error", err)
		return
	}
	for _, pull := range ended {
		if ctx.Err() != nil {
			return
		}
		i.options.Snapshots.Changed(pull)
		if err := i.Look(ctx, pull, lookAge); err != nil {
			i.failedToLearn(ctx, pull, err)
		}
	}
}

// endedPulls lists the pull requests that are watched and that the forge does not list as open.
func (i *Intake) endedPulls(ctx context.Context, from forge.Forge, in task.Repository) ([]task.Key, error) {
	now := i.options.Now()
	i.mu.Lock()
	recently := in.Forge != task.Board && now.Sub(i.lessons.listed[in]) < endedEvery
	i.mu.Unlock()
	if recently {
		return nil, nil
	}
	watched, err := i.options.Memory.WatchedPulls(ctx, in)
	if err != nil || len(watched) == 0 {
		return nil, err
	}
	open, err := from.List(ctx, forge.Query{Repository: in.Name, Kind: task.Pull})
	if err != nil {
		return nil, err
	}
	ended := slices.DeleteFunc(watched, func(pull task.Key) bool {
		return slices.ContainsFunc(open, func(item forge.Item) bool { return item.Key == pull })
	})
	i.mu.Lock()
	i.lessons.listed[in] = now
	// One that is open again, or not watched any more, has not failed since then.
	maps.DeleteFunc(i.lessons.failing, func(pull task.Key, _ time.Time) bool { return pull.Repo() == in && !slices.Contains(ended, pull) })
	i.mu.Unlock()
	return ended, nil
}

// learnFrom keeps what reviewers asked for on a pull request of ours that has ended.
func (i *Intake) learnFrom(ctx context.Context, pull forge.Item) {
	if i.options.Memory == nil || pull.Key.Kind != task.Pull {
		return
	}
	if err := i.learn(ctx, pull); err != nil {
		i.failedToLearn(ctx, pull.Key, err)
		return
	}
	i.mu.Lock()
	delete(i.lessons.failing, pull.Key)
	i.mu.Unlock()
}

// failedToLearn says that a pull request could not be learned from. It stays watched for a while.
func (i *Intake) failedToLearn(ctx context.Context, pull task.Key, failed error) {
	if ctx.Err() != nil {
		return
	}
	now := i.options.Now()
	i.mu.Lock()
	since, known := i.lessons.failing[pull]
	if !known {
		since = now
		if len(i.lessons.failing) < mostRemembered { // else its time begins when there is room
			i.lessons.failing[pull] = now
		}
	}
	over := now.Sub(since) >= longestLearning
	if over {
		delete(i.lessons.failing, pull)
	}
	i.mu.Unlock()
	if !over {
		i.options.Log.WarnContext(ctx, "failed to learn from the reviews of a pull request; retrying with a later sync", "item", pull.String(), "error", failed)
		return
	}
	i.options.Log.ErrorContext(ctx, "nothing is learned from the reviews of a pull request: it has failed for a day", "item", pull.String(), "error", failed)
	if err := i.options.Memory.UnwatchPull(ctx, pull); err != nil {
		i.options.Log.WarnContext(ctx, "failed to end the watch of a pull request", "item", pull.String(), "error", err)
	}
}

// learn makes the lesson of a pull request that is watched, or has notes that follow its comments. Of
// others nothing is learned: they ended before, or while it was off.
func (i *Intake) learn(ctx context.Context, pull forge.Item) error {
	of := store.NoteFilter{Forge: pull.Key.Forge, Repository: pull.Key.Repository, Pull: pull.Key.Number}
	watched, err := i.isWatched(ctx, pull.Key)
	if err != nil {
		return err
	}
	if !watched {
		if followed, err := i.options.Memory.ListNotes(ctx, of); err != nil || len(followed) == 0 {
			return err
		}
	}
	snapshot, err := i.options.Snapshots.Get(ctx, pull.Key, lookAge)
	if task.CodeOf(err) == task.NotFound { // deleted, or hidden from us: what was learned stays
		return i.options.Memory.UnwatchPull(ctx, pull.Key)
	}
	if err != nil {
		return err
	}
	ended, err := i.endOf(ctx, snapshot)
	if err != nil {
		return err
	}
	of.Pull = 0
	known, err := i.options.Memory.ListNotes(ctx, of)
	if err != nil {
		return err
	}
	lesson := memory.Learn(ended, known, i.options.Mask, i.options.Now())
	if err := i.options.Memory.Learn(ctx, lesson); err != nil {
		return err
	}
	if len(lesson.Learned) > 0 {
		i.options.Log.InfoContext(ctx, "kept what reviewers asked for", "item", pull.Key.String(), "requests", len(lesson.Learned))
	}
	return nil
}

// endOf reads how a pull request ended and what was asked for on it. Nothing is kept of one that not
// everybody can read who can read the repository. The reviews are read here: the snapshot is without
// them if comment_detection.review_comments is off.
func (i *Intake) endOf(ctx context.Context, snapshot items.Snapshot) (memory.Ended, error) {
	pull := snapshot.Item
	ended := memory.Ended{Pull: pull.Key, URL: pull.URL, Merged: pull.State == forge.Merged}
	if pull.Confidential {
		return ended, nil
	}
	said := said{comments: snapshot.Comments}
	reviews, err := i.options.Forges[pull.Key.Forge].Reviews(ctx, pull.Key)
	if err != nil {
		return ended, fmt.Errorf("read the reviews: %w", err)
	}
	said.reviews = forge.ReviewTexts(reviews)
	if said.threads, err = i.options.Forges[pull.Key.Forge].ReviewThreads(ctx, pull.Key); err != nil {
		return ended, fmt.Errorf("read the review comments: %w", err)
	}
	said.threads = slices.DeleteFunc(slices.Clone(said.threads), func(t forge.ReviewThread) bool { return len(t.Comments) == 0 || takenBack(t) })
	self, err := i.options.Forges[pull.Key.Forge].Self(ctx)
	if err != nil {
		return ended, err
	}
	bot, err := i.options.Bot(ctx, pull.Key.Forge)
	if err != nil {
		return ended, err
	}
	ended.Names = []string{self, bot}
	if ended.Requests, err = i.askedFor(ctx, pull.Key, said, ended.Names); err != nil {
		return ended, err
	}
	err = i.markWriters(ctx, pull, ended.Requests)
	slices.SortStableFunc(ended.Requests, func(a, b memory.Request) int { return a.Comment.CreatedAt.Compare(b.Comment.CreatedAt) })
	return ended, err
}

// said is what was said on a pull request, without what was taken back.
type said struct {
	comments, reviews []task.Comment
	threads           []forge.ReviewThread
}

func (s said) all() []task.Comment {
	return slices.Concat(s.reviews, forge.ReviewComments(s.threads), s.comments)
}

// askedFor returns what people asked for in reviews, and in comments that count as reviews by the
// configuration. What we or other programs said is left out, and so are threads that others began:
// that we found something, or that a stranger did, does not say that the team wants it.
func (i *Intake) askedFor(ctx context.Context, key task.Key, said said, own []string) ([]memory.Request, error) {
	changed, err := i.changedAt(ctx, key)
	if err != nil {
		return nil, err
	}
	var asked []memory.Request
	add := func(request memory.Request) { asked = append(asked, request) }
	for _, thread := range said.threads {
		first := thread.Comments[0]
		add(memory.Request{Comment: first, Path: thread.Anchor.Path, Resolved: thread.Resolved, Changed: thread.Outdated && changed.After(first.CreatedAt)})
	}
	for _, comment := range said.reviews {
		if comment.About == string(forge.RequestChanges) || comment.About == string(forge.Remark) && i.options.Rules.fixUpOn(OnReviewComments) {
			add(memory.Request{Comment: comment})
		}
	}
	for _, comment := range said.comments {
		if i.options.Rules.fixUpOn(OnMentions) && forge.Mentions(comment.Body, own...) {
			add(memory.Request{Comment: comment})
		}
	}
	return ofPeople(asked, forge.Programs(said.all()), own), nil
}

// ofPeople returns the requests that no program has made, and none of our accounts.
func ofPeople(asked []memory.Request, programs map[string]bool, own []string) []memory.Request {
	return slices.DeleteFunc(asked, func(request memory.Request) bool {
		comment := request.Comment
		return slices.ContainsFunc(own, comment.By) || forge.Automated(comment.Author) || programs[task.FoldLogin(comment.Author)]
	})
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

// markWriters marks the requests of people who may write to the repository, whoever else may steer a
// task by the configuration: what is kept works on later tasks too, which others have assigned. The
// newest authors are asked about first, until too many of them are strangers. It fails when it is not
// known what somebody may do.
func (i *Intake) markWriters(ctx context.Context, pull forge.Item, asked []memory.Request) error {
	slices.SortStableFunc(asked, func(a, b memory.Request) int { return b.Comment.CreatedAt.Compare(a.Comment.CreatedAt) })
	writes, strangers := map[string]bool{}, 0
	for at := range asked {
		login := asked[at].Comment.Author
		author := task.FoldLogin(login)
		may, known := writes[author]
		if !known {
			if strangers == maxRequesters {
				continue
			}
			var err error
			if may, err = i.options.Steering.Writes(ctx, pull.Key, login); err != nil {
				return fmt.Errorf("read what %s may do: %w", login, err)
			}
			if writes[author] = may; !may {
				strangers++
			}
		}
		asked[at].Writer = may
	}
	return nil
}
