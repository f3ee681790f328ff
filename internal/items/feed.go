package items

import (
	"slices"
	"strings"
	"sync"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// Change is something that happened on a forge. It says where to look and not what to
// do: the same change may be published twice, and what follows from it follows from what
// the forge says then.
type Change struct {
	Repository task.Repository
	Items      []task.Key // that changed
	All        bool       // any other item of the repository may have changed too
	Pushed     bool       // commits were pushed to the repository
	Listed     bool       // it was found by listing items, which intake does, and looks at them itself
	Checked    string     // commit of which continuous integration says something else than before
}

// Feed is where everything ends that tells of changes on forges: webhooks, the board, and
// the listings that are made every so often. It marks what is known of the items as out
// of date, and then tells the subscribers: intake, running tasks, reviews and mirrors.
//
// For example, a comment on board:team/app#3 is written to the database; the notice of
// that arrives at [Feed.Follow] of every server; the feed marks the snapshot of #3; the
// watcher of running tasks puts #3 into its [Queue] and reads it, once for all who ask.
type Feed struct {
	snapshots *Snapshots

	mu          sync.Mutex
	subscribers []*func(Change)
}

// NewFeed returns a feed that keeps the snapshots true.
func NewFeed(snapshots *Snapshots) *Feed { return &Feed{snapshots: snapshots} }

// Subscribe has a function called with every change until stop is called. It must not
// block, and may be called by several goroutines at once.
func (f *Feed) Subscribe(do func(Change)) (stop func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.subscribers = append(f.subscribers, &do)
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.subscribers = slices.DeleteFunc(slices.Clone(f.subscribers), func(one *func(Change)) bool { return one == &do })
	}
}

// Publish tells of a change. It does not wait for anything.
func (f *Feed) Publish(change Change) {
	for _, key := range change.Items {
		f.snapshots.Changed(key)
	}
	if change.All {
		f.snapshots.ChangedAll(change.Repository.Forge, change.Repository.Name)
	}
	f.mu.Lock()
	subscribers := f.subscribers
	f.mu.Unlock()
	for _, do := range subscribers {
		(*do)(change)
	}
}

// Follow publishes what happens on the board, on any server, until stop is called.
func (f *Feed) Follow(notices store.Notices) (stop func()) {
	return notices.Listen(func(notice store.Notice) {
		switch notice.Topic {
		case store.BoardChanged:
			if key, err := task.ParseKey(notice.Subject); err == nil {
				f.Publish(Change{Repository: key.Repo(), Items: []task.Key{key}})
			}
		case store.BoardChecked:
			if repository, commit, found := strings.Cut(notice.Subject, " "); found {
				f.Publish(Change{Repository: task.Repository{Forge: task.Board, Name: repository}, Checked: commit})
			}
		}
	})
}

// Listed publishes those of the items that the forge lists as newer than what is known of
// them, if that was read longer ago than it may be: our own progress comments make items
// newer too, and are not worth a reading each. Items that nobody has read are left out:
// nobody follows them.
func (f *Feed) Listed(in task.Repository, items []forge.Item) {
	var newer []task.Key
	for _, item := range items {
		if f.snapshots.olderThan(item) {
			newer = append(newer, item.Key)
		}
	}
	if len(newer) > 0 {
		f.Publish(Change{Repository: in, Items: newer, Listed: true})
	}
}
