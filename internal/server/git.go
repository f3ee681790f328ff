package server

import (
	"context"
	"net/http"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/mirror"
	"github.com/toryo-dev/toryo/internal/task"
)

// GitStore is what serving repositories needs of the database.
type GitStore interface {
	access.LeaseStore
	access.TokenReader
}

// Git serves the mirrors to whoever holds the lease of a task. People may fetch what
// the task has made, with a token that lets them see it.
func Git(mirrors *mirror.Mirrors, known GitStore) http.Handler {
	leases := access.Leases{Store: known}
	return mirrors.Handler(func(ctx context.Context, id task.ID, token string) (mirror.Holder, error) {
		_, _, isLease := access.ParseLeaseToken(token)
		held, err := leases.Check(ctx, token)
		if !isLease {
			held, err = taskForViewer(ctx, known, id, token)
		}
		if err != nil {
			return mirror.Holder{}, err
		}
		return mirror.Holder{
			Task: held.ID, Generation: held.Generation, ReadOnly: !isLease,
			Repository: held.Key.Repo(),
		}, nil
	})
}

// taskForViewer is the task, if the token has a role that may see it.
func taskForViewer(ctx context.Context, known GitStore, id task.ID, token string) (task.Task, error) {
	person, err := access.CheckToken(ctx, known, token)
	if err != nil {
		return task.Task{}, err
	}
	if !access.Role(person.Role).Includes(access.Viewer) {
		return task.Task{}, task.Errorf(task.Forbidden, "a token with the role %s does not allow this", person.Role).WithHint("use a token with the role viewer or more, made with toryo token create")
	}
	return known.Task(ctx, id)
}
