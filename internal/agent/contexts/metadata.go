package contexts

import (
	"time"

	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/task"
)

// StateLeft marks a run that this machine has not heard of any more.
const StateLeft = "left"

// Metadata says which run a folder is of, and how it stands.
type Metadata struct {
	UUID       string      `json:"uuid"`
	Task       task.ID     `json:"task"`
	Item       string      `json:"item"`
	Type       task.Type   `json:"type"`
	Role       task.Role   `json:"role,omitempty"`
	URL        string      `json:"url,omitempty"`
	Title      string      `json:"title"`
	Branch     string      `json:"branch,omitempty"`
	Base       string      `json:"base,omitempty"`
	First      int64       `json:"first_generation"` // in which the run began
	Generation int64       `json:"generation"`
	State      string      `json:"state"` // of the task: running, paused, done, failed, stopped; or left
	Reason     task.Reason `json:"reason,omitempty"`
	BeganAt    time.Time   `json:"began_at"`
	EndedAt    time.Time   `json:"ended_at,omitzero"`
}

func metadataOf(id string, first int64, work phase.Work) Metadata {
	return Metadata{
		UUID: id, Task: work.Task, Item: work.ItemName(), Type: work.Type, Role: work.Role, URL: work.URL, Title: work.Title,
		Branch: work.Branch, Base: work.Base, First: first, Generation: work.Generation, State: string(task.Running),
	}
}

// TaskState is where a run is, as task_state.json has it.
type TaskState struct {
	Entries  int                   `json:"entries"` // that it is made from
	Step     int64                 `json:"step"`
	Phase    task.Phase            `json:"phase,omitempty"`
	Phases   map[task.Phase]string `json:"phases,omitempty"` // status of each that was begun
	Plan     *phase.Plan           `json:"plan,omitempty"`
	Commit   string                `json:"commit,omitempty"` // of the work in progress
	Branch   string                `json:"branch,omitempty"` // commit of the finished work
	Tokens   int64                 `json:"tokens"`
	Cost     string                `json:"cost"`
	Scripted bool                  `json:"scripted,omitempty"`
}

// CommentState is which comments a run has taken up, as
// comment_detection_state.json has it.
type CommentState struct {
	Position int64    `json:"position"` // of the last comment
	IDs      []string `json:"last_comment_ids"`
	Refused  []string `json:"refused,omitempty"`
}
