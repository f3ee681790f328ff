package outbox

import (
	"slices"

	"github.com/toryo-dev/toryo/internal/notice"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// Labels gives the texts of the state labels on a forge.
type Labels func(of task.Forge) task.LabelNames

// Effects shows the state that a move leads to as the item's one state label, and in the
// progress comment of a task that stops to be worked on. Reviews have no label: the state
// labels of a pull request are those of the work on it.
func (l Labels) Effects(before, after task.Task) []store.Action {
	if after.Type == task.Review {
		return progressState(before, after)
	}
	names := l(after.Key.Forge)
	wanted := names[after.State.Label()]
	label := StateLabel{Label: wanted}
	for _, state := range task.States {
		if other := names[state.Label()]; other != wanted && !slices.Contains(label.Others, other) {
			label.Others = append(label.Others, other)
		}
	}
	return append([]store.Action{TaskAction(after, "label/"+string(after.State), label)}, progressState(before, after)...)
}

// progressState is for a task that is stopped, paused or given up. The run usually says so
// itself in its last text. It cannot if its agent is gone, and does not know if the server
// decides otherwise at the end.
func progressState(before, after task.Task) []store.Action {
	if _, shown := notice.Heading(after.State, task.English); !shown || before.LastAgent == "" {
		return nil
	}
	action := TaskAction(after, "progress/"+string(after.State), ProgressState{Name: ProgressName(after), State: after.State})
	action.Lasting = after.State.Terminal() // a task that is assigned again has another comment
	return []store.Action{action}
}

// CommentAction is a comment about a move of a task. It is true whatever becomes of the
// task, and so it is written even if the task has moved on before it could be: a
// pause that was soon lifted is told all the same.
func CommentAction(t task.Task, what, text string) store.Action {
	action := TaskAction(t, what, Comment{Text: text, About: t.ID})
	action.Task, action.Generation = "", 0
	return action
}

// TaskAction makes an action of what goes with a move. A payload that cannot be
// written down is a fault in the program: each is plain text.
func TaskAction(t task.Task, what string, payload Payload) store.Action {
	action, err := NewAction(Write{Item: t.Key, Task: t.ID, Generation: t.Generation, What: what}, payload)
	if err != nil {
		panic(err)
	}
	return action
}

// AboutState begins the names of comments about the state of a task.
const AboutState = "said/"

// ByRun begins the names of comments that a run has written.
const ByRun = "say/"
