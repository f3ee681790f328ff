package intake

import (
	"context"
	"time"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

// Items of repositories that are not worked on are left alone. But whoever assigns the bot there
// waits for something that does not come, so that the log names these items, each once. What that
// costs the forge is bounded, and so is what it adds to the log.
const (
	// outsideEvery is how often syncs look for such items, and outsideRepositories in how many
	// repositories of a forge.
	outsideEvery        = 10 * time.Minute
	outsideRepositories = 20
	// outsideWithin is how long such a look may take on a forge: the next sync waits for it.
	outsideWithin = 30 * time.Second
	// outsideNamed is how many items such a look names; the next one names others.
	outsideNamed = 30
	// outsideReads is how many items are read in outsideEvery because a webhook names them.
	outsideReads = 20
)

// outside is what is known of items that are not worked on.
type outside struct {
	logged map[task.Key]bool
	more   map[task.Forge]int       // how many the last look found besides those that it named
	synced map[task.Forge]time.Time // when a sync has looked for them
	since  time.Time                // from when reads are counted
	reads  int
}

// lookOutside looks at an item of a repository that is not worked on, of which a webhook has told.
func (i *Intake) lookOutside(ctx context.Context, key task.Key) {
	if i.options.Outside == nil || !i.mayReadOutside(key) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, longestLook)
	defer cancel()
	bot, err := i.options.Bot(ctx, key.Forge)
	if err != nil {
		return // what is worked on is read with the same account, and says what is wrong
	}
	item, err := i.options.Forges[key.Forge].Item(ctx, key) // a snapshot would have the whole conversation
	if err == nil && item.State == forge.Open && item.AssignedTo(bot) {
		i.ignore(ctx, key)
	}
}

// mayReadOutside reports whether an item may be read that is not worked on, and counts it.
func (i *Intake) mayReadOutside(key task.Key) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	now := i.options.Now()
	if now.Sub(i.outside.since) >= outsideEvery {
		i.outside.since, i.outside.reads = now, 0
	}
	if i.outside.logged[key] || len(i.outside.logged) >= mostRemembered || i.outside.reads >= outsideReads {
		return false
	}
	i.outside.reads++
	return true
}

// syncOutside looks for items of repositories that are not worked on, and that the bot is
// assigned to.
func (i *Intake) syncOutside(ctx context.Context, from forge.Forge, repositories []forge.Repository) {
	if i.options.Outside == nil || !i.outsideDue(from.Name()) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, outsideWithin)
	defer cancel()
	bot, err := i.options.Bot(ctx, from.Name())
	if err != nil {
		return // as above
	}
	more := 0
	for n, key := range i.listOutside(ctx, from, repositories, bot) {
		if n >= outsideNamed || !i.ignore(ctx, key) {
			more++
		}
	}
	i.noteMore(ctx, from.Name(), more)
}

// listOutside lists items that the bot is assigned to, that are not worked on, and that were not
// named yet.
func (i *Intake) listOutside(ctx context.Context, from forge.Forge, repositories []forge.Repository, bot string) (found []task.Key) {
	looked := 0
	for _, repository := range repositories {
		if i.options.Scope(from.Name(), repository.Name) {
			continue
		}
		if looked++; looked > outsideRepositories || ctx.Err() != nil {
			break
		}
		assigned, err := from.List(ctx, forge.Query{Repository: repository.Name, Assignee: bot})
		if err != nil {
			i.options.Log.DebugContext(ctx, "failed to look for items that are not worked on", "repository", repository.Name, "error", err)
			continue
		}
		for _, item := range assigned {
			if !i.isIgnored(item.Key) {
				found = append(found, item.Key)
			}
		}
	}
	return found
}

// isIgnored reports whether an item was named.
func (i *Intake) isIgnored(key task.Key) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.outside.logged[key]
}

// noteMore logs how many items there are besides those that were named, when that has changed.
func (i *Intake) noteMore(ctx context.Context, on task.Forge, more int) {
	i.mu.Lock()
	before := i.outside.more[on]
	if i.outside.more == nil {
		i.outside.more = map[task.Forge]int{}
	}
	i.outside.more[on] = more
	i.mu.Unlock()
	if more > 0 && more != before {
		i.options.Log.InfoContext(ctx, "the bot is assigned to more items, which are ignored too", "forge", on, "more", more)
	}
}

// outsideDue reports whether it is time to look on a forge, and notes that it was done.
func (i *Intake) outsideDue(name task.Forge) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	now := i.options.Now()
	if last, looked := i.outside.synced[name]; looked && now.Sub(last) < outsideEvery {
		return false
	}
	if i.outside.synced == nil {
		i.outside.synced = map[task.Forge]time.Time{}
	}
	i.outside.synced[name] = now
	return true
}

// ignore logs, once, that nothing is done about an item, and why. It is false if that was logged
// before, or if no more items can be remembered: then they would be logged again and again.
func (i *Intake) ignore(ctx context.Context, key task.Key) bool {
	i.mu.Lock()
	isNew := !i.outside.logged[key] && len(i.outside.logged) < mostRemembered
	if isNew {
		if i.outside.logged == nil {
			i.outside.logged = map[task.Key]bool{}
		}
		i.outside.logged[key] = true
	}
	i.mu.Unlock()
	if !isNew {
		return false
	}
	why, hint := i.options.Outside(key.Forge, key.Repository)
	i.options.Log.InfoContext(ctx, "the bot is assigned to an item, which is ignored: its repository is not worked on",
		"item", key.String(), "reason", why, "hint", hint)
	return true
}
