package forge

import (
	"context"

	"github.com/toryo-dev/toryo/internal/task"
)

// Triage is implemented by adapters of forges on which somebody without any access to the
// repository can put assignees and labels on an item. GitLab is one: everyone may do so on an
// issue that they open. The other forges themselves refuse that to everyone who may not
// label and assign in the repository, so that there is nothing to ask. Ask by a type
// assertion.
type Triage interface {
	// AssignedBy returns who put the login among the assignees of the item last, or
	// [Ghost] if that account is gone.
	AssignedBy(ctx context.Context, key task.Key, login string) (string, error)
	// MayTriage reports whether a login may put assignees and labels on the items
	// of others.
	MayTriage(ctx context.Context, repository, login string) (bool, error)
}
