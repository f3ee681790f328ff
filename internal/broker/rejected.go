package broker

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/notice"
	"github.com/toryo-dev/toryo/internal/outbox"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// longestSaid is how many characters an agent is told of what a forge said.
const longestSaid = 500

// selfWait is how long it is waited for the name of our account, which most forges' adapters know.
const selfWait = 3 * time.Second

// rejection is what is known of a write without which the work of a run is not handed over, and
// that the forge itself did not accept.
type rejection struct {
	store.Action

	branch  string
	account string // "" if it is not known
}

// rejected returns the last write that a run needs to hand over its work, if the forge did not
// accept it, and nil otherwise: what went wrong here, as in the mirror, was not said by the forge
// and is not for its pages. It is looked for when a run has failed.
func (r *Runs) rejected(ctx context.Context, held Lease, outcome task.Outcome) (*rejection, error) {
	if outcome != task.OutcomeFailed {
		return nil, nil //nolint:nilnil // nil means that there is none
	}
	var last store.Action
	for _, kind := range []string{outbox.PublishBranch{}.Kind(), outbox.OpenPull{}.Kind()} {
		actions, err := r.options.Store.RunActions(ctx, held.ID, held.Generation, held.Generation, kind)
		if err != nil {
			return nil, err
		}
		for _, action := range actions {
			if action.Sequence >= last.Sequence {
				last = action
			}
		}
	}
	if last.Status != store.Refused || last.Reason != task.ReasonRejectedByForge {
		return nil, nil //nolint:nilnil // as above
	}
	return &rejection{Action: last, branch: branchOf(last), account: r.account(ctx, held.Key.Forge)}, nil
}

// account is our login on a forge, or "".
func (r *Runs) account(ctx context.Context, name task.Forge) string {
	on, connected := r.options.Forges[name]
	if !connected {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, selfWait)
	defer cancel()
	self, err := on.Self(ctx)
	if err != nil {
		return ""
	}
	return self
}

// message is what people are told about it.
func (j *rejection) message(n notice.Notice, in task.Language) string {
	n.Reason, n.Detail, n.Account, n.Repository, n.Pushed = j.Reason, j.forgeSaid(), j.account, j.Item.Repo().String(), j.branch
	return n.Rejected(in, j.Kind == outbox.OpenPull{}.Kind())
}

// forgeSaid is what the forge said, without what we have put before it: of a push that, and how git
// ended.
func (j *rejection) forgeSaid() string {
	text := strings.TrimPrefix(j.LastError, j.Kind+": ")
	if _, pushed, found := strings.Cut(text, "git push: "); found && j.Kind == (outbox.PublishBranch{}).Kind() {
		if _, said, ended := strings.Cut(pushed, ": "); ended {
			text = said
		}
	}
	return strings.TrimPrefix(text, "remote: ")
}

// branchOf is the branch that a write is about.
func branchOf(action store.Action) string {
	var payload struct {
		Branch string `json:"branch"` // of [outbox.PublishBranch]
		Head   string `json:"head"`   // of [outbox.OpenPull]
	}
	if json.Unmarshal(action.Payload, &payload) != nil {
		return "" // it was written by us, and is refused for other reasons
	}
	return payload.Branch + payload.Head
}

// written says what a write is, for the log of an agent.
func written(action store.Action) string {
	switch action.Kind {
	case outbox.PublishBranch{}.Kind():
		return fmt.Sprintf("the branch %q in %s", branchOf(action), action.Item.Repo())
	case outbox.OpenPull{}.Kind():
		return fmt.Sprintf("a pull request from the branch %q in %s", branchOf(action), action.Item.Repo())
	default:
		return "the write " + action.Kind
	}
}

// noteOf is an entry of the journal for people to read.
func (r *Runs) noteOf(held Lease, text string) (task.Event, error) {
	data, err := json.Marshal(map[string]string{"text": text})
	if err != nil {
		return task.Event{}, task.Wrap(task.Invalid, err, "the note cannot be written down")
	}
	return task.Event{Task: held.ID, Generation: held.Generation, Source: task.FromServer, Kind: task.NoteTaken, At: r.options.Now(), Data: data}, nil
}
