package intake

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/toryo-dev/toryo/internal/broker/assignment"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/items"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// openAge is how old the knowledge may be of whether an item that blocks another is open: one
// look at the forge reads it once, for all that it blocks, and the next one anew.
const openAge = 2 * time.Second

// issueAge is how old the knowledge may be of the issue that a pull request is for. Those that
// we hear of are read anew.
const issueAge = time.Minute

// development does what the assignees of an item ask for.
//
// The bot on an open item is a task. As long as it stays there it is the same
// task, done or not: only when the bot was seen off the item, or the item closed,
// it being there is a new assignment.
func (i *Intake) development(ctx context.Context, item forge.Item, bot string) error {
	t, err := i.options.Tasks.TaskOf(ctx, item.Key, task.Development)
	wanted := item.State == forge.Open && item.AssignedTo(bot)
	switch {
	case task.CodeOf(err) == task.NotFound:
		if !wanted {
			return nil
		}
		return i.begin(ctx, item, bot)
	case err != nil:
		return err
	case !t.State.Active():
		return i.again(ctx, item, t, wanted, bot)
	case wanted || item.State == forge.Open && (i.options.KeepUnassigned || t.Cause.FixUp()):
		// A fix-up is carried out whether or not the bot was ever assigned; see takenOff.
		return i.describe(ctx, item, t)
	default:
		return i.unwanted(ctx, item, t, bot)
	}
}

// begin makes the task of an item that the bot is assigned to, if whoever did that was
// entitled to it.
func (i *Intake) begin(ctx context.Context, item forge.Item, bot string) error {
	if entitled, err := i.assignedByRight(ctx, item, bot); err != nil || !entitled {
		return err
	}
	otherwise, err := i.unlabeledRole(ctx, item)
	if err != nil {
		return err
	}
	as, err := i.description(ctx, item, otherwise, "")
	if err != nil {
		return err
	}
	occasion, err := i.occasionOfAssignment(ctx, item)
	if err != nil {
		return err
	}
	return i.assign(ctx, store.NewTask{
		Key: item.Key, Type: task.Development, Role: as.Role, Title: as.Title, URL: as.URL, Priority: as.Priority,
		BlockedBy: as.BlockedBy, Branch: assignment.BranchOf(item), Reason: task.ReasonAssigned, Occasion: occasion,
	})
}

// assignedByRight reports whether who assigned the bot was entitled to it.
func (i *Intake) assignedByRight(ctx context.Context, item forge.Item, bot string) (bool, error) {
	from := i.options.Forges[item.Key.Forge]
	triage, open := from.(forge.Triage)
	if !open {
		return true, nil
	}
	by, err := triage.AssignedBy(ctx, item.Key, bot)
	if err != nil {
		return false, fmt.Errorf("read who assigned the bot: %w", err)
	}
	return i.asked(ctx, item.Key, by, "assigned")
}

// asked reports whether who did something to an item was entitled to it.
func (i *Intake) asked(ctx context.Context, item task.Key, actor, what string) (bool, error) {
	from := i.options.Forges[item.Forge]
	self, err := from.Self(ctx)
	if err != nil {
		return false, err
	}
	entitled, err := i.options.Steering.Entitled(ctx, from, item, actor, self)
	if err == nil && !entitled {
		i.options.Log.InfoContext(ctx, "ignored an action of a person who may not label and assign there",
			"item", item.String(), "login", actor, "what", what)
	}
	return entitled, err
}

// again decides about an item whose task has ended.
func (i *Intake) again(ctx context.Context, item forge.Item, t task.Task, wanted bool, bot string) error {
	released := t.Released || t.State == task.Stopped &&
		(t.Reason == task.ReasonUnassigned && !t.Cause.FixUp() || t.Reason == task.ReasonItemClosed)
	switch {
	case wanted && released:
		return i.begin(ctx, item, bot)
	case !wanted && !t.Released:
		return i.options.Tasks.Release(ctx, t.ID)
	default:
		return nil
	}
}

// unwanted withdraws a task when a second look at its item says the same: a forge
// may show an item in two states for a while.
func (i *Intake) unwanted(ctx context.Context, item forge.Item, t task.Task, bot string) error {
	again, err := i.read(ctx, item.Key, 0)
	if err != nil {
		return fmt.Errorf("look again before a task is withdrawn: %w", err)
	}
	switch {
	case again.State != forge.Open:
		return i.withdraw(ctx, t, task.ReasonItemClosed)
	case !again.AssignedTo(bot) && !i.options.KeepUnassigned:
		return i.withdraw(ctx, t, task.ReasonUnassigned)
	default:
		return nil
	}
}

// describe brings a task up to date with its item, if that says something new.
func (i *Intake) describe(ctx context.Context, item forge.Item, t task.Task) error {
	if t.State == task.Running {
		return nil // it was told
	}
	otherwise := t.Role
	if !t.Cause.FixUp() {
		var err error
		if otherwise, err = i.unlabeledRole(ctx, item); err != nil {
			return err
		}
	}
	as, err := i.description(ctx, item, otherwise, t.BlockedBy)
	if err != nil {
		return err
	}
	if as == (store.Description{Role: t.Role, Title: t.Title, URL: t.URL, Priority: t.Priority, BlockedBy: t.BlockedBy}) {
		return nil
	}
	return i.options.Tasks.Describe(ctx, t.ID, as)
}

// description is what an item says of its task. Blocked is what is known to block
// it.
func (i *Intake) description(ctx context.Context, item forge.Item, otherwise task.Role, blocked task.Keys) (store.Description, error) {
	role := i.role(ctx, item, otherwise)
	blockers, err := i.blockers(ctx, item, blocked)
	return store.Description{
		Role: role, Title: item.Title, URL: item.URL, Priority: i.options.Rules.priority(item), BlockedBy: blockers,
	}, err
}

// blockers returns the open items that the item says it waits for. One that cannot
// be read blocks, until it can.
func (i *Intake) blockers(ctx context.Context, item forge.Item, known task.Keys) (task.Keys, error) {
	wanted, err := i.dependencies(ctx, item)
	if err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		i.options.Log.WarnContext(ctx, "failed to read what blocks an item; keeping what was known",
			"item", item.Key.String(), "known", known, "error", err)
		wanted = withOthers(wanted, known.List())
	}
	var open []task.Key
	for _, key := range wanted {
		is, err := i.isOpen(ctx, key)
		if err != nil {
			if ctx.Err() != nil {
				return "", ctx.Err()
			}
			i.options.Log.WarnContext(ctx, "failed to read an item that blocks another; it still blocks",
				"item", item.Key.String(), "for", key.String(), "known", known.Contains(key), "error", err)
			is = true
		}
		if is {
			open = append(open, key)
		}
	}
	return task.KeysOf(open...), nil
}

// dependencies returns what the item waits for: as its text says, and as people have
// linked it on forges where that is something apart. What the text says comes with
// an error too.
func (i *Intake) dependencies(ctx context.Context, item forge.Item) ([]task.Key, error) {
	keys := items.Mentioned(item, items.BlockingWords)
	links, can := i.options.Forges[item.Key.Forge].(forge.Dependent)
	if !can {
		return keys, nil
	}
	linked, err := links.Dependencies(ctx, item.Key)
	return withOthers(keys, linked), err
}

// withOthers adds keys that are not there, whatever kind of item they say it is.
func withOthers(keys, more []task.Key) []task.Key {
	for _, key := range more {
		if !slices.ContainsFunc(keys, func(k task.Key) bool { return k.Repository == key.Repository && k.Number == key.Number }) {
			keys = append(keys, key)
		}
	}
	return keys
}

// isOpen reports whether an item is open. Forges that count issues and pull
// requests together let "#12" mean either.
func (i *Intake) isOpen(ctx context.Context, key task.Key) (bool, error) {
	for _, kind := range []task.ItemKind{task.Issue, task.Pull} {
		key.Kind = kind
		snapshot, err := i.options.Snapshots.Get(ctx, key, openAge)
		if task.CodeOf(err) == task.NotFound {
			continue
		}
		return snapshot.Item.State == forge.Open, err
	}
	return false, nil
}
