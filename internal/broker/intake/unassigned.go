package intake

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// Fix-ups and tasks that labels ask for do not need the bot to be assigned anywhere. But
// where it is assigned, to the pull request or to the issue that it belongs to, taking it
// off is a wish to stop. So each such task has a list of the items on which the bot was seen
// since it was assigned.

// takenOff withdraws the tasks that were asked for by reviews and labels when the bot was
// taken off an item on which it was seen: those of the item itself, and of others that
// belong to it.
func (i *Intake) takenOff(ctx context.Context, item forge.Item, bot string, maxAge time.Duration) error {
	if i.options.KeepUnassigned {
		return nil
	}
	var failed []error
	if item.Key.Kind == task.Pull && item.State == forge.Open {
		for _, kind := range task.Types {
			t, err := i.options.Tasks.TaskOf(ctx, item.Key, kind)
			switch {
			case err == nil && t.State.Active() && !followsItem(t):
				failed = append(failed, i.stillOn(ctx, t, item, bot, maxAge))
			case err != nil && task.CodeOf(err) != task.NotFound:
				failed = append(failed, err)
			}
		}
	}
	if item.AssignedTo(bot) {
		return errors.Join(failed...)
	}
	others, err := i.options.Tasks.ListTasks(ctx, store.TaskFilter{
		Forge: item.Key.Forge, Repository: item.Key.Repository, SeenOn: true, States: []task.State{task.Queued, task.Running, task.Paused},
	})
	failed = append(failed, err)
	for _, t := range others {
		if t.Key != item.Key && t.AssignedOn.Contains(item.Key) {
			failed = append(failed, i.off(ctx, t, item.Key, bot))
		}
	}
	return errors.Join(failed...)
}

// followsItem reports whether a task is there because the bot is on its item, and for no
// other reason: see development.
func followsItem(t task.Task) bool {
	return t.Type == task.Development && !t.Cause.FixUp()
}

// stillOn looks at all items that a task belongs to: those on which the bot is are noted,
// and one on which it is not any more ends the task.
func (i *Intake) stillOn(ctx context.Context, t task.Task, item forge.Item, bot string, maxAge time.Duration) error {
	items, err := i.itemsOf(ctx, item, t.AssignedOn.List())
	if err != nil {
		return err
	}
	seen := t.AssignedOn.List()
	for _, key := range items {
		on, err := i.assignedTo(ctx, key, item, bot, maxAge)
		switch {
		case err != nil:
			return err
		case on == unassigned && slices.Contains(seen, key):
			return i.off(ctx, t, key, bot)
		case on == assigned && !slices.Contains(seen, key):
			seen = append(seen, key)
		}
	}
	if now := task.KeysOf(seen...); now != t.AssignedOn {
		return i.options.Tasks.SeenOn(ctx, t.ID, now)
	}
	return nil
}

// off withdraws a task when a second look says the same: the bot was taken off an item.
func (i *Intake) off(ctx context.Context, t task.Task, key task.Key, bot string) error {
	on, err := i.assignedTo(ctx, key, forge.Item{}, bot, 0)
	if err != nil {
		return fmt.Errorf("look again before a task is withdrawn: %w", err)
	}
	if on != unassigned {
		return nil
	}
	if key == t.Key {
		// The bot on the item is a new assignment from now on.
		if err := i.options.Tasks.Release(ctx, t.ID); err != nil {
			return err
		}
	}
	return i.withdraw(ctx, t, task.ReasonUnassigned)
}

// itemsOf lists the items that work on a pull request belongs to: itself, the issue of
// the task whose work it is, and others that are known.
func (i *Intake) itemsOf(ctx context.Context, pull forge.Item, known []task.Key) ([]task.Key, error) {
	items := []task.Key{pull.Key}
	origin, found, err := i.origin(ctx, pull)
	if err != nil {
		return nil, err
	}
	if found {
		known = append(known, origin.Key)
	}
	for _, key := range known {
		if !slices.Contains(items, key) {
			items = append(items, key)
		}
	}
	return items, nil
}

// assignedOn lists the items that a new task on a pull request belongs to and that the bot
// is on.
func (i *Intake) assignedOn(ctx context.Context, pull forge.Item, more ...task.Key) (task.Keys, error) {
	bot, err := i.options.Bot(ctx, pull.Key.Forge)
	if err != nil {
		return "", err
	}
	items, err := i.itemsOf(ctx, pull, more)
	if err != nil {
		return "", err
	}
	var on []task.Key
	for _, key := range items {
		is, err := i.assignedTo(ctx, key, pull, bot, issueAge)
		if err != nil {
			return "", err
		}
		if is == assigned {
			on = append(on, key)
		}
	}
	return task.KeysOf(on...), nil
}

// presence says whether the bot is on an item.
type presence int

const (
	unknown presence = iota // the item is gone, or not for us to see
	assigned
	unassigned
)

// assignedTo reads whether the bot is on an item, which may be the one that is known.
func (i *Intake) assignedTo(ctx context.Context, key task.Key, known forge.Item, bot string, maxAge time.Duration) (presence, error) {
	item := known
	if key != known.Key {
		snapshot, err := i.options.Snapshots.Get(ctx, key, min(maxAge, i.age(key)))
		if code := task.CodeOf(err); code == task.NotFound || code == task.Forbidden {
			return unknown, nil
		}
		if err != nil {
			return unknown, fmt.Errorf("read who is assigned to %s: %w", key, err)
		}
		item = snapshot.Item
	}
	if item.AssignedTo(bot) {
		return assigned, nil
	}
	return unassigned, nil
}
