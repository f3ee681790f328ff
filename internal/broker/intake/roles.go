package intake

import (
	"context"
	"fmt"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

// mostRemembered is how many items something is remembered of that can be found out again.
const mostRemembered = 10000

// role is the role that an item asks for, and otherwise the given one. What is unclear
// about its labels is logged once, until they are others.
func (i *Intake) role(ctx context.Context, item forge.Item, otherwise task.Role) task.Role {
	role, wrong := i.options.Rules.role(item, otherwise)
	labels := ""
	if wrong != "" {
		labels = fmt.Sprint(i.options.Rules.roleLabels(item))
	}
	i.mu.Lock()
	known := i.unclear[item.Key]
	if labels == "" {
		delete(i.unclear, item.Key)
	} else {
		if len(i.unclear) >= mostRemembered {
			clear(i.unclear) // they are logged once more
		}
		i.unclear[item.Key] = labels
	}
	i.mu.Unlock()
	if labels != known && labels != "" {
		i.options.Log.WarnContext(ctx, "the role of an item is ambiguous", "why", wrong, "item", item.Key.String(), "labels", labels, "role", role)
	}
	return role
}

// unlabeledRole is the role for work on an item that has no role label: for a pull request
// with the work of an issue it is that of the issue.
func (i *Intake) unlabeledRole(ctx context.Context, item forge.Item) (task.Role, error) {
	issue, found, err := i.issueTask(ctx, item)
	if err != nil || found {
		return issue.Role, err
	}
	return i.options.Rules.DefaultRole, nil
}

// reviewRole is the role for a review: by the label of the pull request, else by that of the
// item whose label asks for the review, else by the issue whose work it is, if somebody gave
// that a role.
func (i *Intake) reviewRole(ctx context.Context, item, pull forge.Item) (task.Role, error) {
	issue, found, err := i.issueTask(ctx, pull)
	if err != nil {
		return "", err
	}
	otherwise := task.DefaultReviewRole
	if found && issue.Role != i.options.Rules.DefaultRole {
		otherwise = issue.Role
	}
	if item.Key != pull.Key {
		otherwise = i.role(ctx, item, otherwise)
	}
	return i.role(ctx, pull, otherwise), nil
}

// issueTask is the task of the issue that a pull request has the work of. What a fork calls
// its branch does not count.
func (i *Intake) issueTask(ctx context.Context, item forge.Item) (issue task.Task, found bool, err error) {
	if item.Key.Kind != task.Pull || item.Fork {
		return task.Task{}, false, nil
	}
	issue, found, err = i.origin(ctx, item)
	return issue, found && issue.Key.Kind == task.Issue && issue.Role != "", err
}
