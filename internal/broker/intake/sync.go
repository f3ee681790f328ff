package intake

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// overlap is by how much the time between two syncs is looked at twice: clocks
// differ.
const overlap = 10 * time.Minute

// boardOverlap is the same for the board, whose clocks are those of the servers.
const boardOverlap = time.Minute

// Sync looks for what no webhook told of, on the forges that are named. It goes on
// when a repository or an item cannot be read, and returns all that went wrong.
// Since is when the last sync began; zero means that everything is looked at.
func (i *Intake) Sync(ctx context.Context, forges []task.Forge, since time.Time) error {
	var failed error
	listed := map[task.Forge][]forge.Repository{}
	for _, name := range forges {
		from, configured := i.options.Forges[name]
		if !configured {
			continue
		}
		repositories, err := from.Repositories(ctx)
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("list the repositories of %s: %w", name, err))
			continue
		}
		listed[name] = repositories
		ours := slices.DeleteFunc(slices.Clone(repositories), func(r forge.Repository) bool { return !i.options.Scope(name, r.Name) })
		failed = errors.Join(failed, i.trust(ctx, name, ours))
		i.forgetOutside(ctx, name, ours, len(repositories))
		errs := make([]error, len(ours))
		var group errgroup.Group
		group.SetLimit(lookers)
		for n, repository := range ours {
			group.Go(func() error {
				errs[n] = i.syncRepository(ctx, from, repository.Name, since)
				return nil
			})
		}
		_ = group.Wait() // each has put its error into its place
		failed = errors.Join(failed, errors.Join(errs...))
	}
	for _, name := range forges { // last: the work on all forges comes first
		if repositories, read := listed[name]; read {
			i.syncOutside(ctx, i.options.Forges[name], repositories)
		}
	}
	return failed
}

// trust says whose webhooks count.
func (i *Intake) trust(ctx context.Context, of task.Forge, repositories []forge.Repository) error {
	if i.options.Trust == nil {
		return nil
	}
	var names []string
	for _, repository := range repositories {
		names = append(names, repository.Name)
	}
	if err := i.options.Trust.SetRepositories(ctx, of, names); err != nil {
		return fmt.Errorf("keep which repositories of %s are worked on: %w", of, err)
	}
	return nil
}

// syncRepository looks at every item of a repository that there may be something to
// do about.
func (i *Intake) syncRepository(ctx context.Context, from forge.Forge, repository string, since time.Time) error {
	found, err := i.worthALook(ctx, from, repository, since)
	for _, key := range found.list() {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if failed := i.Look(ctx, key, i.age(key)); failed != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", key, failed))
		} else if at, listed := found.changed[key]; listed {
			i.noteLooked(key, at)
		}
	}
	here := task.Repository{Forge: from.Name(), Name: repository}
	i.lookAtEnded(ctx, from, here)
	return errors.Join(err, i.syncBases(ctx, here))
}

// age is how old the snapshot of an item may be. The board is at hand.
func (i *Intake) age(key task.Key) time.Duration {
	if key.Forge == task.Board {
		return 0
	}
	return i.options.Snapshots.MaxAge(key)
}

// worthALook lists the items that the bot is assigned to, that wait for review,
// pull requests of ours that have changed, and the items of tasks that go on or
// that the bot was not seen off yet. Each is read again before anything is done:
// the listing of a forge may be behind.
func (i *Intake) worthALook(ctx context.Context, from forge.Forge, repository string, since time.Time) (*keySet, error) {
	found, tasked := newKeySet(), map[task.Key]bool{}
	bot, err := i.options.Bot(ctx, from.Name())
	if err != nil {
		return found, fmt.Errorf("read who we are on %s: %w", from.Name(), err)
	}
	tasks, err := i.options.Tasks.ListTasks(ctx, store.TaskFilter{Forge: from.Name(), Repository: repository, Unreleased: true})
	if err != nil {
		return found, err
	}
	for _, t := range tasks {
		tasked[t.Key] = true
	}
	listed, failed := i.listItems(ctx, from, repository, bot, since, found, tasked)
	for _, t := range tasks {
		i.itemOf(t, listed, found)
		if at, on := listed[t.Key]; on && unchanged(t, at, since) {
			found.settle(t.Key)
		}
	}
	here := task.Repository{Forge: from.Name(), Name: repository}
	for _, key := range i.dueChecks(func(in task.Repository) bool { return in == here }) {
		found.need(key)
	}
	return found, failed
}

// looked is how a sync has found a pull request of the board, and when.
type looked struct{ changed, at time.Time }

// lookAgain is when a pull request of the board is looked at again to which nothing has happened.
// Not everything that counts happens to the pull request: somebody may have been given rights. It
// is less than overlap, so that a sync lists it once more.
const lookAgain = overlap / 2

// lookedAt reports whether a sync would find in a pull request what an earlier one has found. The
// board lists everything that happens to it, and tells of pushes.
func (i *Intake) lookedAt(item forge.Item) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	known, found := i.looked[item.Key]
	return found && known.changed.Equal(item.UpdatedAt) && i.options.Now().Sub(known.at) < lookAgain
}

// noteLooked notes that a sync has looked at an item as it was changed at that time.
func (i *Intake) noteLooked(key task.Key, changed time.Time) {
	if key.Forge != task.Board || key.Kind != task.Pull { // an issue may wait for the review of another item
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.looked) >= mostRemembered {
		clear(i.looked)
	}
	i.looked[key] = looked{changed, i.options.Now()}
}

// itemOf adds the item of a task, if it is worth a look. Listed are the items that the bot is
// assigned to, with their last change; nil if the forge does not say.
func (i *Intake) itemOf(t task.Task, listed map[task.Key]time.Time, found *keySet) {
	_, on := listed[t.Key]
	if t.State.Active() || t.Type == task.Development && !on {
		found.add(t.Key)
	}
	if t.State.Active() && t.Type == task.Review {
		found.addLabeled(t)
	}
	if listed != nil && !on {
		i.seenOff(t)
	}
	// Done, and the bot still there: nothing to do.
	if t.Type == task.Development && !t.State.Active() && on {
		found.settle(t.Key)
	}
}

// unchanged reports whether a look at the issue of a task would find what the sync before
// found: the bot is on it, nothing has happened to it since, and it waits for no other item.
// That is known of the board, which lists everything that happens. At is when something
// happened last, and since when that sync began.
func unchanged(t task.Task, at, since time.Time) bool {
	return t.Key.Forge == task.Board && t.Key.Kind == task.Issue && t.State.Active() && followsItem(t) && t.BlockedBy == "" &&
		!since.IsZero() && at.Before(since.Add(-boardOverlap))
}

// seenOff has the item of a task read again that goes on although the forge does not list
// the item as assigned to the bot.
func (i *Intake) seenOff(t task.Task) {
	if t.State.Active() && followsItem(t) && !i.options.KeepUnassigned {
		i.options.Snapshots.Changed(t.Key)
	}
}

// listItems adds what the forge lists, and returns the items that the bot is
// assigned to, with their last change, nil if the forge does not say. Those without a task that were not there at the last sync are what a
// webhook should have told of.
func (i *Intake) listItems(ctx context.Context, from forge.Forge, repository, bot string, since time.Time, worth *keySet, tasked map[task.Key]bool) (map[task.Key]time.Time, error) {
	last := since
	isNew := func(item forge.Item, change forge.ItemChange) {
		if !last.IsZero() && !tasked[item.Key] {
			i.options.Snapshots.ListedNew(item, change, last)
		}
	}
	if !since.IsZero() {
		since = since.Add(-overlap)
	}
	listed := map[task.Key]time.Time{}
	assigned, failed := from.List(ctx, forge.Query{Repository: repository, Assignee: bot})
	whole := failed == nil
	all := assigned
	for _, item := range assigned {
		listed[item.Key] = item.UpdatedAt
		isNew(item, forge.AssigneesChanged)
		worth.add(item.Key)
	}
	for _, query := range []forge.Query{
		{Repository: repository, Labels: []string{i.options.Rules.ReviewLabel}},
		{Repository: repository, Kind: task.Pull, UpdatedSince: since},
	} {
		found, err := from.List(ctx, query)
		failed = errors.Join(failed, err)
		all = slices.Concat(all, found)
		for _, item := range found {
			if len(query.Labels) > 0 {
				isNew(item, forge.LabelsChanged)
			}
			if last.IsZero() || !i.lookedAt(item) {
				worth.need(item.Key)
				worth.changed[item.Key] = item.UpdatedAt
			}
		}
	}
	i.options.Changes.Listed(task.Repository{Forge: from.Name(), Name: repository}, all)
	if failed != nil {
		failed = fmt.Errorf("list the items of %s:%s: %w", from.Name(), repository, failed)
	}
	if !whole {
		listed = nil
	}
	return listed, failed
}

// keySet is a list of keys without repetitions. What is settled is not in it,
// unless it is needed for another reason.
type keySet struct {
	keys            []task.Key
	has             map[task.Key]bool
	needed, settled map[task.Key]bool
	changed         map[task.Key]time.Time // of items that were listed
}

func newKeySet() *keySet {
	return &keySet{has: map[task.Key]bool{}, needed: map[task.Key]bool{}, settled: map[task.Key]bool{}, changed: map[task.Key]time.Time{}}
}

func (s *keySet) add(key task.Key) {
	if !s.has[key] {
		s.has[key] = true
		s.keys = append(s.keys, key)
	}
}

// addLabeled adds the item whose label asked for a review: it may not be there any more.
func (s *keySet) addLabeled(t task.Task) {
	if key, err := task.ParseKey(occasionIn(t).on); err == nil {
		s.need(key)
	}
}

func (s *keySet) need(key task.Key) {
	s.needed[key] = true
	s.add(key)
}

func (s *keySet) settle(key task.Key) { s.settled[key] = true }

func (s *keySet) list() []task.Key {
	return slices.DeleteFunc(s.keys, func(key task.Key) bool { return s.settled[key] && !s.needed[key] })
}
