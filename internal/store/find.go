package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/toryo-dev/toryo/internal/task"
)

// Listing lists tasks.
type Listing interface {
	ListTasks(ctx context.Context, filter TaskFilter) ([]task.Task, error)
}

const (
	// mostNamed is how many tasks are looked at that one name can mean.
	mostNamed = 1000
	// mostCandidates is how many of them an error names.
	mostCandidates = 10
)

// FindTask finds the task that somebody names, in one of the ways that [task.ParseName]
// reads. An item can have a task of each type: the one that was assigned last is meant. It
// fails with Usage if the text is no name, with NotFound if there is no such task, and with
// Invalid if there are several, which it lists.
func FindTask(ctx context.Context, tasks Listing, text string) (task.Task, error) {
	name, err := task.ParseName(text)
	if err != nil {
		return task.Task{}, err
	}
	found, err := tasks.ListTasks(ctx, TaskFilter{
		IDStart: name.ID, Forge: name.Forge, Repositories: name.Repositories(), Number: name.Number, Newest: true, Limit: mostNamed,
	})
	if err != nil {
		return task.Task{}, err
	}
	found = slices.DeleteFunc(found, func(t task.Task) bool { return !name.Matches(t) })
	if len(found) == 0 {
		return task.Task{}, task.Errorf(task.NotFound, "there is no task %q", text).
			WithHint("toryo tasks list has all; a task is made when an item is assigned to the bot")
	}
	if candidates := candidatesOf(name, found); len(candidates) > 1 {
		return task.Task{}, severalTasks(text, name, candidates)
	}
	return slices.MaxFunc(found, func(a, b task.Task) int {
		return cmp.Or(a.AssignedAt.Compare(b.AssignedAt), strings.Compare(string(a.ID), string(b.ID)))
	}), nil
}

// candidatesOf are the different things that a name can mean: tasks if it is an id, else
// items.
func candidatesOf(name task.Name, found []task.Task) []string {
	var all []string
	for _, t := range found {
		text := t.Key.String()
		if name.ID != "" {
			text = string(t.ID) + " (" + text + ")"
		}
		if !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return all
}

func severalTasks(text string, name task.Name, candidates []string) error {
	hint := "give the repository too"
	switch {
	case name.ID != "":
		hint = "give more of the id"
	case name.Repository != "":
		hint = "give the forge too"
	}
	listed := strings.Join(candidates[:min(len(candidates), mostCandidates)], ", ")
	if more := len(candidates) - mostCandidates; more > 0 {
		listed += fmt.Sprintf(" and %d more", more)
	}
	return task.Errorf(task.Invalid, "%q can mean several tasks: %s", text, listed).WithHint("%s, or name one of these", hint)
}
