package wire

import (
	"context"
	"net/http"
	"time"
)

// Enrol asks for an agent's own token. The request is made with a one-time token.
type Enrol struct {
	Name string `json:"name" doc:"What the agent is to be called" minLength:"1" maxLength:"200"`
}

// Enrolled is an agent's own token. It can be seen only here.
type Enrolled struct {
	Token string `json:"token"`
	Name  string `json:"name"`
}

// Agent is an agent as clients see it.
type Agent struct {
	ID         string      `json:"id"`
	Name       string      `json:"name"`
	EnrolledAt time.Time   `json:"enrolled_at"`
	SeenAt     *time.Time  `json:"seen_at,omitempty" doc:"When it was heard of last"`
	RevokedAt  *time.Time  `json:"revoked_at,omitempty"`
	Tasks      []AgentTask `json:"tasks" doc:"What it is working on"`
	Condition
	UnableText string `json:"unable_text,omitempty" doc:"Why it does not accept tasks, in words"`
	Fix        string `json:"fix,omitempty" doc:"What can be done about that"`
}

// AgentTask is a task in an agent's hands.
type AgentTask struct {
	Task string `json:"task"`
	Item string `json:"item" example:"github:owner/name#12"`
	Role string `json:"required_role,omitempty" doc:"What the agent is for this task"`
}

// Agents is a listing of agents.
type Agents struct {
	Agents []Agent `json:"agents"`
}

// Condition is whether an agent can take tasks.
type Condition struct {
	Unable string `json:"unable,omitempty" doc:"Why it does not accept tasks, as a stable code; empty if it does" maxLength:"100"`
	Detail string `json:"detail,omitempty" doc:"What exactly is missing, for people" maxLength:"2000"`
}

// Report says whether this agent can take tasks.
func (c *Client) Report(ctx context.Context, condition Condition) error {
	_, err := c.send(ctx, http.MethodPut, "/v1/agents/me", condition, nil)
	return err
}

// Enrol exchanges the one-time token that the client has for one of the agent's
// own. It is not safe to repeat: if the answer is lost, so is the token.
func (c *Client) Enrol(ctx context.Context, name string) (Enrolled, error) {
	var enrolled Enrolled
	_, err := c.send(ctx, http.MethodPost, "/v1/agents/enrol", Enrol{Name: name}, &enrolled)
	return enrolled, err
}

// Restarted says that an agent was started again: the processes that it was before
// have ended for certain.
type Restarted struct {
	Ended []string `json:"ended" doc:"The names that these processes have given when they asked for tasks" maxItems:"1000"`
}

// Restarted says which earlier processes of this agent have ended, so that their tasks
// go on at once. It is safe to repeat.
func (c *Client) Restarted(ctx context.Context, ended []string) error {
	_, err := c.send(ctx, http.MethodPost, "/v1/agents/me/restarted", Restarted{Ended: ended}, nil)
	return err
}

// ResumeOwn asks for tasks to go on that this agent has paused because of a file on
// its machine, which is gone. Those that are not paused for that reason any more are
// left as they are. It is safe to repeat.
func (c *Client) ResumeOwn(ctx context.Context, tasks []string) error {
	_, err := c.send(ctx, http.MethodPost, "/v1/agents/me/resume", OwnTasks{Tasks: tasks}, nil)
	return err
}

// OwnTasks names tasks that an agent has paused itself.
type OwnTasks struct {
	Tasks []string `json:"tasks" maxItems:"1000"`
}
