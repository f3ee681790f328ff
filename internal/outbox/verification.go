package outbox

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// The commit statuses that we set. Those of others do not begin so.
const (
	ownStatuses = "toryo/"
	// VerificationStatus says what verification found about a commit that we have published.
	VerificationStatus = ownStatuses + "verification"
)

// OwnStatus reports whether a check is a commit status of ours.
func OwnStatus(name string) bool { return strings.HasPrefix(name, ownStatuses) }

// ChecksPassed names the comment that failed checks of a commit pass now.
func ChecksPassed(commit string) string { return "checks_passed/" + commit }

// PublishedCommit is what is known of a commit that we have published to a pull request.
type PublishedCommit struct {
	Base       string `json:"base,omitempty"` // the commit of the base branch that it stands on
	BaseBranch string `json:"base_branch,omitempty"`
	Draft      bool   `json:"draft,omitempty"` // the pull request was a draft then
	// At is when it was published.
	At time.Time `json:"at,omitzero"`
}

// NewVerification makes the action that sets [VerificationStatus] on a commit that was
// published to a pull request. There is one of each commit: that it is in the outbox says that
// the commit is ours, whatever became of the write; see [Verification].
func NewVerification(pull task.Key, status SetStatus) (store.Action, error) {
	status.Context = VerificationStatus
	action, err := NewAction(Write{Item: pull, What: VerificationStatus}, status)
	action.IdempotencyKey = VerificationKey(pull.Repo(), status.Commit)
	return action, err
}

// VerificationKey is the idempotency key of the action for a commit.
func VerificationKey(in task.Repository, commit string) string {
	return "server/" + in.String() + "/" + VerificationStatus + "/" + commit
}

// Verification reads what was published from the action for its commit.
func Verification(action store.Action) (PublishedCommit, error) {
	var status SetStatus
	if err := json.Unmarshal(action.Payload, &status); err != nil {
		return PublishedCommit{}, task.Wrap(task.Internal, err, "what was published cannot be read")
	}
	if status.Of == nil {
		return PublishedCommit{}, nil
	}
	return *status.Of, nil
}
