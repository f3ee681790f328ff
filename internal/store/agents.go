package store

import (
	"context"
	"time"

	"github.com/toryo-dev/toryo/internal/task"
)

// Enrolment is leave to enrol one agent, once. Only the hash of its token is
// kept.
type Enrolment struct {
	Hash      []byte
	CreatedAt time.Time
	ExpiresAt time.Time
}

// Agent is a program that takes tasks: whatever has a token with the role of an
// agent.
type Agent struct {
	Token      string // id of its token
	Name       string
	EnrolledAt time.Time
	SeenAt     time.Time // when it was heard of last; zero if never
	RevokedAt  time.Time // zero while its token is valid
	Condition
}

// SilentAfter is for how long an agent that is there may not be heard of: it asks for a task,
// or says that it is busy, every half minute, and when it was heard of is written down a
// little later.
const SilentAfter = 2 * time.Minute

// Silent reports whether the agent was not heard of for too long. One that is new will be.
func (a Agent) Silent(now time.Time) bool {
	heard := a.SeenAt
	if a.EnrolledAt.After(heard) {
		heard = a.EnrolledAt
	}
	return now.Sub(heard) > SilentAfter
}

// Condition is whether an agent can take tasks, as it says itself.
type Condition struct {
	Unable task.Reason // why it takes no tasks; empty if it does
	Detail string      // what exactly is missing, for people
}

// Agents keeps who may enrol as an agent, and when agents were heard of.
type Agents interface {
	// AddEnrolment stores leave to enrol; Conflict if the hash is there already.
	AddEnrolment(ctx context.Context, e Enrolment) error
	// MayEnrol says, as nil or Unauthorized, whether there is such leave at the
	// given moment.
	MayEnrol(ctx context.Context, hash []byte, at time.Time) error
	// Enrol uses leave up and stores the agent's own token: both, or neither. It
	// is Unauthorized if the leave is not known, was used or has run out at the
	// given moment, and Conflict if a valid agent has the name. Of any number of
	// callers with one leave, one succeeds.
	Enrol(ctx context.Context, hash []byte, agent Token, at time.Time) (Token, error)
	// AgentsSeen notes when the owners of tokens were heard of, by the ids of the
	// tokens. An older moment does not replace a newer one, and a token that is
	// not there is left out.
	AgentsSeen(ctx context.Context, seen map[string]time.Time) error
	// AgentIs notes the condition of the owner of a token, who is heard of at the
	// given moment.
	AgentIs(ctx context.Context, token string, condition Condition, at time.Time) error
	// ListAgents returns all agents, the revoked ones too, oldest first.
	ListAgents(ctx context.Context) ([]Agent, error)
}
