package wire

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/toryo-dev/toryo/internal/messages"
	"github.com/toryo-dev/toryo/internal/task"
)

// Me is who a token belongs to.
type Me struct {
	Name    string `json:"name" doc:"The name that the token was given"`
	Person  string `json:"person,omitempty" doc:"The login of the account that the token acts for, if there is one"`
	Role    string `json:"role" doc:"What the token may do" enum:"admin,operator,viewer,agent"`
	Version string `json:"version" doc:"The version of the server"`
}

// Task is a task as clients see it.
type Task struct {
	ID         string    `json:"id"`
	Item       string    `json:"item" doc:"The item, for example github:owner/name#12" example:"github:owner/name#12"`
	Type       string    `json:"type" enum:"development,review"`
	Role       string    `json:"required_role,omitempty" doc:"The role that the task asks for"`
	Title      string    `json:"title"`
	URL        string    `json:"url,omitempty"`
	State      string    `json:"state" enum:"queued,running,paused,stopped,done,failed"`
	Generation int64     `json:"generation" doc:"Counts the runs of the task"`
	Phase      string    `json:"phase,omitempty"`
	Reason     string    `json:"reason,omitempty" doc:"Why the task is in this state, as a stable code"`
	ReasonText string    `json:"reason_text,omitempty" doc:"The same in words"`
	Detail     string    `json:"detail,omitempty" doc:"What the forge, a tool or the run said about it, such as why it failed, or what it asks"`
	Fix        string    `json:"fix,omitempty" doc:"What a person can do about it"`
	Waits      *Waiting  `json:"waits,omitempty" doc:"Why a queued task waits"`
	Agent      string    `json:"agent,omitempty" doc:"Who is working on it"`
	LastAgent  string    `json:"last_agent,omitempty" doc:"Who worked on it last"`
	Branch     string    `json:"branch,omitempty" doc:"The branch that the work goes to"`
	Priority   int       `json:"priority" doc:"By its labels; larger is sooner"`
	Attempts   int       `json:"attempts" doc:"Runs that were begun since it was assigned or resumed"`
	Cause      string    `json:"cause" doc:"Why it was assigned"`
	BlockedBy  []string  `json:"blocked_by,omitempty" doc:"Open items that have to be closed first"`
	AssignedAt time.Time `json:"assigned_at"`
	CreatedAt  time.Time `json:"created_at"`
	UpdatedAt  time.Time `json:"updated_at"`
}

// TaskOf is the task as clients see it.
func TaskOf(t task.Task) Task {
	shown := Task{
		ID:         string(t.ID),
		Item:       t.Key.String(),
		Type:       string(t.Type),
		Role:       string(t.Role),
		Title:      t.Title,
		URL:        t.URL,
		State:      string(t.State),
		Generation: t.Generation,
		Phase:      string(t.Phase),
		Reason:     string(t.Reason),
		ReasonText: messages.Reason(task.English, t.Reason),
		Detail:     t.Detail,
		Fix:        fixOf(t),
		Agent:      t.Lease.Agent,
		LastAgent:  t.LastAgent,
		Branch:     t.Branch,
		Priority:   t.Priority,
		Attempts:   t.Attempts,
		Cause:      string(t.Cause),
		AssignedAt: t.AssignedAt,
		CreatedAt:  t.CreatedAt,
		UpdatedAt:  t.UpdatedAt,
	}
	for _, key := range t.BlockedBy.List() {
		shown.BlockedBy = append(shown.BlockedBy, key.String())
	}
	return shown
}

// fixOf is what a person can do about the state of a task; nothing while it is worked on, or
// done.
func fixOf(t task.Task) string {
	if t.State == task.Running || t.State == task.Done {
		return ""
	}
	return cmp.Or(t.Hint, messages.Fix(task.English, t.Reason))
}

// Waiting says why a queued task waits.
type Waiting struct {
	Place  int        `json:"place,omitempty" doc:"In the order in which tasks are handed out, from 1"`
	Reason string     `json:"reason" doc:"Why, as a stable code"`
	Text   string     `json:"text" doc:"The same in words"`
	By     string     `json:"by,omitempty" doc:"Who paused everything, or the agent that it is about"`
	Detail string     `json:"detail,omitempty" doc:"What that agent says is missing, or what was said when the task was handed back"`
	Fix    string     `json:"fix,omitempty" doc:"What a person can do about it"`
	Until  *time.Time `json:"until,omitempty" doc:"When that may change by itself"`
}

// Tasks is a listing of tasks.
type Tasks struct {
	Tasks []Task `json:"tasks"`
}

// Event is an entry of a task's journal as clients see it.
type Event struct {
	Position   int64           `json:"position" doc:"Counts the entries of the task from 1"`
	Generation int64           `json:"generation"`
	Source     string          `json:"source" doc:"Who wrote it" enum:"server,agent"`
	Kind       string          `json:"kind"`
	At         time.Time       `json:"at"`
	Data       json.RawMessage `json:"data,omitempty"`
}

// Events is a part of a journal.
type Events struct {
	Events []Event `json:"events"`
}

// EventOf is the event as clients see it.
func EventOf(e task.Event) Event {
	return Event{Position: e.Position, Generation: e.Generation, Source: string(e.Source), Kind: string(e.Kind), At: e.At, Data: e.Data}
}

// Problem is an error as it travels (RFC 9457).
type Problem struct {
	Type   string `json:"type,omitempty"`
	Title  string `json:"title" doc:"What kind of problem it is"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty" doc:"What happened"`
	Code   string `json:"code" doc:"A stable code for programs" example:"not_found"`
	Hint   string `json:"hint,omitempty" doc:"What can be done about it"`
}

// ProblemType is the media type of a [Problem].
const ProblemType = "application/problem+json"

// ProblemOf is the error as the outside may see it: the message that was
// written for people, never its cause.
func ProblemOf(err error) Problem {
	info := task.CodeOf(err).Info()
	problem := Problem{Title: info.Meaning, Status: info.Status, Code: string(info.Code)}
	coded, isCoded := task.AsError(err)
	switch {
	case info.Code == task.IllegalMove:
		problem.Detail, problem.Hint = task.IllegalMoveText(err)
	case isCoded && info.Code != task.Internal:
		problem.Detail = coded.Message
		problem.Hint = coded.Hint
	}
	return problem
}

// Err is the problem as the error that it was on the other side.
func (p Problem) Err() error {
	message := p.Detail
	if message == "" {
		message = p.Title
	}
	return &task.Error{Code: task.Code(p.Code).OfServer(), Message: message, Hint: p.Hint}
}
