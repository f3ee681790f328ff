package intake

import (
	"context"
	"time"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

// Items of repositories that are not worked on are left alone. But whoever assigns the bot there
// waits for something that does not come, so that the log names these items, each once. What that
// costs the forge is bounded.
const (
	// outsideEvery is how often syncs look for such items, and outsideRepositories in how many
	// repositories of a forge.
	outsideEvery        = 10 * time.Minute
	outsideRepositories = 20
	// outsideReads is how many items are read in outsideEvery because a webhook names them.
	outsideReads = 20
)

// outside is what is known of items that are not worked on.
type outside struct {
	logged map[task.Key]bool
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
	snapshot, err := i.options.Snapshots.Get(ctx, key, lookAge)
	if err == nil && snapshot.Item.State == forge.Open && snapshot.Item.AssignedTo(bot) {
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
	if i.outside.logged[key] || i.outside.reads >= outsideReads {
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
	bot, err := i.options.Bot(ctx, from.Name())
	if err != nil {
		return // as above
	}
	looked := 0
	for _, repository := range repositories {
		if i.options.Scope(from.Name(), repository.Name) {
			continue
		}
		if looked++; looked > outsideRepositories || ctx.Err() != nil {
			return
		}
		assigned, err := from.List(ctx, forge.Query{Repository: repository.Name, Assignee: bot})
		if err != nil {
			i.options.Log.DebugContext(ctx, "failed to look for items that are not worked on", "repository", repository.Name, "error", err)
			continue
		}
		for _, item := range assigned {
			i.ignore(ctx, item.Key)
		}
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

// ignore logs, once, that nothing is done about an item, and why.
func (i *Intake) ignore(ctx context.Context, key task.Key) {
	i.mu.Lock()
	known := i.outside.logged[key]
	if len(i.outside.logged) >= mostRemembered || i.outside.logged == nil {
		i.outside.logged = map[task.Key]bool{}
	}
	i.outside.logged[key] = true
	i.mu.Unlock()
	if known {
		return
	}
	why, hint := i.options.Outside(key.Forge, key.Repository)
	i.options.Log.InfoContext(ctx, "the bot is assigned to an item, which is ignored: its repository is not worked on",
		"item", key.String(), "reason", why, "hint", hint)
}
