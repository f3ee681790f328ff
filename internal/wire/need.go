package wire

import (
	"context"
	"time"

	"github.com/toryo-dev/toryo/internal/messages"
	"github.com/toryo-dev/toryo/internal/task"
)

// Need is something that waits for a person.
type Need struct {
	Key     string     `json:"key" doc:"The same as long as the same thing waits"`
	Kind    string     `json:"kind" enum:"server,pause,tasks,answer,approval,failure,agent,budget"`
	What    string     `json:"what" doc:"What waits, in words"`
	Reason  string     `json:"reason,omitempty" doc:"Why, as a stable code"`
	Why     string     `json:"why,omitempty" doc:"The same in words"`
	Detail  string     `json:"detail,omitempty" doc:"What the run asks, what the forge or a tool said, or what the agent lacks"`
	Fix     string     `json:"fix,omitempty" doc:"What can be done about it"`
	Since   *time.Time `json:"since,omitempty"`
	Task    *Task      `json:"task,omitempty" doc:"The task that it is about"`
	Tasks   int        `json:"tasks,omitempty" doc:"How many tasks wait for it"`
	Subject string     `json:"subject,omitempty" doc:"The agent, or who paused everything"`
}

// Needs is what waits for a person.
type Needs struct {
	Needs []Need `json:"needs"`
}

// NeedsOf is what waits for a person as clients see it.
func NeedsOf(found []task.Need) Needs {
	shown := Needs{Needs: make([]Need, 0, len(found))}
	for _, need := range found {
		said := messages.Need(task.English, need)
		one := Need{
			Key: need.Key, Kind: string(need.Kind), What: said.What, Reason: string(need.Reason), Why: said.Why, Detail: need.Detail, Fix: said.Fix,
			Tasks: need.Tasks, Subject: need.Subject,
		}
		if !need.Since.IsZero() {
			one.Since = &need.Since
		}
		if need.Task != nil {
			of := TaskOf(*need.Task)
			one.Task = &of
		}
		shown.Needs = append(shown.Needs, one)
	}
	return shown
}

// Needs asks for what waits for a person.
func (c *Client) Needs(ctx context.Context) (Needs, error) {
	var needs Needs
	err := c.get(ctx, "/v1/needs", &needs)
	return needs, err
}
