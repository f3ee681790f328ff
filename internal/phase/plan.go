package phase

import (
	"slices"

	"github.com/toryo-dev/toryo/internal/environment"
)

// Plan is what the planning phase makes. Revision counts from 1; a reflection may
// make a new one.
type Plan struct {
	Revision            int                   `json:"revision,omitempty"`
	GoalUnderstanding   Goal                  `json:"goal_understanding"`
	TaskDecomposition   Decomposition         `json:"task_decomposition"`
	ActionPlan          Actions               `json:"action_plan"`
	Proof               Proof                 `json:"proof,omitzero"`
	SelectedEnvironment environment.Selection `json:"selected_environment"`
}

// Proof names the tests that will show that the request is fulfilled: they fail without
// the change and pass with it. Where no test can show it, it says why.
type Proof struct {
	Tests       []string `json:"tests,omitempty"`
	NoneBecause string   `json:"none_because,omitempty"`
}

// Goal is the request as the model understands it.
type Goal struct {
	Goal         string      `json:"goal"`
	Deliverables []string    `json:"deliverables,omitempty"`
	Constraints  []string    `json:"constraints,omitempty"`
	Scope        string      `json:"scope,omitempty"`
	Ambiguities  []Ambiguity `json:"ambiguities,omitempty"`
}

// Ambiguity is something that the request leaves open, how the model reads it,
// and how sure it is of that, from 0 to 1.
type Ambiguity struct {
	Question   string  `json:"question"`
	Assumption string  `json:"assumption"`
	Confidence float64 `json:"confidence"`
}

// Decomposition is the work in parts.
type Decomposition struct {
	Subtasks []Subtask `json:"subtasks"`
}

// Subtask is one part of the work.
type Subtask struct {
	ID          string   `json:"id"`
	Description string   `json:"description"`
	DependsOn   []string `json:"depends_on,omitempty"`
}

// Actions are the steps of the work, in order.
type Actions struct {
	Actions []Action `json:"actions"`
}

// Action is one step. Done is ours to keep, not the model's to say.
type Action struct {
	ID      string `json:"id"`
	Subtask string `json:"subtask,omitempty"`
	What    string `json:"what"`
	Done    bool   `json:"done,omitempty"`
}

// Begun reports whether any action is done.
func (p *Plan) Begun() bool {
	return slices.ContainsFunc(p.ActionPlan.Actions, func(action Action) bool { return action.Done })
}
