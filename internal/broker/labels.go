package broker

import (
	"slices"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// Labels gives the texts of the state labels on a forge.
type Labels func(of task.Forge) task.LabelNames

// Effects shows the state that a move leads to as the item's one state label.
// Reviews have none: the state labels of a pull request are those of the work on
// it.
func (l Labels) Effects(_, after task.Task) []store.Action {
	if after.Type == task.Review {
		return nil
	}
	names := l(after.Key.Forge)
	wanted := names[after.State.Label()]
	label := StateLabel{Label: wanted}
	for _, state := range task.States {
		if other := names[state.Label()]; other != wanted && !slices.Contains(label.Others, other) {
			label.Others = append(label.Others, other)
		}
	}
	return writesOf(after, named{"label/" + string(after.State), label})
}

// named is a write with the name that tells it from the others of its generation.
type named struct {
	what    string
	payload Payload
}

// writesOf makes the writes of one move of a task. A payload that cannot be
// written down is a fault in the program: each is plain text.
func writesOf(t task.Task, writes ...named) []store.Action {
	var all []store.Action
	for _, one := range writes {
		action, err := NewAction(Write{Item: t.Key, Task: t.ID, Generation: t.Generation, What: one.what}, one.payload)
		if err != nil {
			panic(err)
		}
		all = append(all, action)
	}
	return all
}
