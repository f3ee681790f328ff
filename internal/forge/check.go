package forge

import (
	"context"
	"time"

	"github.com/toryo-dev/toryo/internal/task"
)

// Check is what continuous integration says about a commit: a commit status, a check run, a
// job of a pipeline or of a workflow.
type Check struct {
	// ID is how CheckLog finds what it printed; empty if the forge has no log of it.
	ID    string
	Name  string // such as "toryo/verification" or "CI / test"
	State StatusState
	// Canceled says that it was ended before it could say anything about the commit. Its state
	// is StatusError then, as that of a commit status whose check could not be run; unlike that
	// one it is no reason to change the commit: it is only reported.
	Canceled bool
	// Description is one line of the check's own; it is untrusted.
	Description string
	URL         string    // for people; may be empty
	At          time.Time // when it came to its state; zero if the forge does not say
}

// Failed reports whether the check has ended badly.
func (c Check) Failed() bool { return c.State == StatusFailure || c.State == StatusError }

// MaxChecks is how many checks of one commit are read. What is beyond is left
// out: there are as many in the list then, or it has [Unread].
const MaxChecks = 200

// Checks reads what continuous integration says.
type Checks interface {
	// Checks returns the newest result of each check of a commit, by name: at most
	// [MaxChecks]. Checks that were skipped, or that say neither yes nor no, have succeeded;
	// those that wait for a person are pending, and canceled ones in StatusError. A commit that
	// the forge does not have has none, or is NotFound or Invalid. Forbidden if the account may
	// not read them; those that it may read are returned all the same.
	Checks(ctx context.Context, repository, commit string) ([]Check, error)
	// CheckLog returns the end of what a check printed, at most maxBytes of it, without
	// escape sequences of terminals. NotFound if the forge has no log of it (any more).
	CheckLog(ctx context.Context, repository string, check Check, maxBytes int) (string, error)
}

// Merger merges pull requests.
type Merger interface {
	// MergePull merges a pull request whose head commit is the given one, by the method that
	// the repository prefers of those it allows, and only if its protection rules are met:
	// rights of an administrator are never used to pass them. One that is merged already is
	// no error. Conflict if the head is another one, if it cannot be merged or if a rule
	// forbids it; Unavailable if the forge does not know yet; Forbidden if the account may
	// not merge there.
	MergePull(ctx context.Context, key task.Key, head string) error
}

// Mergeable refuses, with Conflict, to merge a pull request that is not open and ready at the
// head. It says nothing about one that is merged already.
func Mergeable(pull Item, head string) error {
	switch {
	case pull.State != Open:
		return task.Errorf(task.Conflict, "%s is %s", pull.Key, pull.State)
	case pull.Draft:
		return task.Errorf(task.Conflict, "%s is a draft", pull.Key)
	case head == "" || pull.HeadCommit != head:
		return task.Errorf(task.Conflict, "the head of %s is %s, not %s", pull.Key, pull.HeadCommit, head)
	}
	return nil
}
