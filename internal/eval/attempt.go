package eval

import (
	"context"
	"time"

	"github.com/toryo-dev/toryo/internal/environment"
	"github.com/toryo-dev/toryo/internal/eval/source"
	"github.com/toryo-dev/toryo/internal/eval/taskset"
	"github.com/toryo-dev/toryo/internal/llm"
)

// Status is how an attempt ended.
type Status string

// The statuses. An error is one of the machine, the model's provider or the set: it says
// nothing about the model, and is left out of the scores.
const (
	Resolved   Status = "resolved"
	Unresolved Status = "unresolved"
	Failed     Status = "error"
)

// Attempt is one attempt at a task.
type Attempt struct {
	Task   string `json:"instance_id"`
	Model  string `json:"model"`
	Number int    `json:"attempt"`
	Status Status `json:"status"`
	Error  string `json:"error,omitempty"`
	Tries  int    `json:"tries"` // more than one if some ended in errors
	Patch  string `json:"model_patch,omitempty"`
	// Basis identifies what the score was held against: the tests and the environment.
	Basis string `json:"basis"`
	// PutBack are the first files of the patch that were scored as they are in the base, in
	// whole or in part: tests, and what says how they are run.
	PutBack []string `json:"put_back,omitempty"`
	Worked
	Score   Score     `json:"score"`
	Seconds float64   `json:"seconds"` // of the run itself
	Ended   time.Time `json:"ended"`
}

// Worked is what a run has come to.
type Worked struct {
	// Outcome and Reason are the program's own: done means that it would have asked for a
	// merge.
	Outcome string `json:"outcome,omitempty"`
	Reason  string `json:"reason,omitempty"`
	// Run is the id of the run in its journal.
	Run   string    `json:"run,omitempty"`
	Usage llm.Usage `json:"usage"`
	Cost  llm.Money `json:"cost"` // in millionths of the currency
	Calls int       `json:"calls"`
	// Flags are what people should look at: see [Flags].
	Flags []string `json:"flags,omitempty"`
}

// addUse adds what another try has used, and what there is to look at in it.
func (a *Attempt) addUse(other Attempt) {
	a.Usage, a.Cost, a.Calls = a.Usage.Add(other.Usage), a.Cost+other.Cost, a.Calls+other.Calls
	a.Seconds += other.Seconds
	a.Flags = merged(a.Flags, other.Flags)
}

// redact leaves keys out of the texts.
func (a *Attempt) redact(redact func(string) string) {
	for _, text := range []*string{&a.Error, &a.Reason, &a.Patch, &a.Score.Note, &a.Score.Output} {
		*text = redact(*text)
	}
}

// Branch is the branch that a worker leaves.
const Branch = "toryo/eval"

// Job is what a worker is to do.
type Job struct {
	Task       taskset.Task
	Repository *source.Repository
	Model      string
	Number     int
	Try        int                 // which one of this attempt
	Receipt    environment.Receipt // of the environment of the base
	// Spent is to be called with what each call of a model has cost. It ends the context
	// when there is no more money.
	Spent func(cost llm.Money) error
}

// Worker does a task as the program does any other, and leaves what comes of it as a branch
// of the repository. An error says that it could not be done for a reason that is neither the
// task's nor the model's; what was used is returned all the same.
type Worker interface {
	Work(ctx context.Context, job Job) (Worked, error)
}
