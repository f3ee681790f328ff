package access

import (
	"context"
	"strconv"
	"strings"

	"github.com/toryo-dev/toryo/internal/task"
)

// leasePrefix tells the tokens of leases from those of the API: neither opens
// what the other does.
const leasePrefix = "lease."

// LeaseStore is what checking a lease needs of the database.
type LeaseStore interface {
	Task(ctx context.Context, id task.ID) (task.Task, error)
	Holds(ctx context.Context, id task.ID, generation int64, tokenHash []byte) error
}

// Leases checks the tokens of leases. Such a token names the run that it is for,
// and is good for as long as the run's lease is.
type Leases struct {
	Store LeaseStore
}

// NewLeaseToken makes a token for a run. Whoever claims the run stores its hash.
func NewLeaseToken(id task.ID, generation int64) string {
	return leasePrefix + string(id) + "." + strconv.FormatInt(generation, 10) + "." + NewSecret()
}

// Check returns the task that the token holds the lease of, or LeaseLost.
func (l Leases) Check(ctx context.Context, token string) (task.Task, error) {
	id, generation, found := ParseLeaseToken(token)
	if !found {
		return task.Task{}, task.Errorf(task.LeaseLost, "this is not the token of a lease")
	}
	if err := l.Store.Holds(ctx, id, generation, Hash(token)); err != nil {
		return task.Task{}, err
	}
	prove(ctx)
	return l.Store.Task(ctx, id)
}

// ParseLeaseToken reads the run that the token of a lease names. Whether the
// token is good is another question.
func ParseLeaseToken(token string) (id task.ID, generation int64, found bool) {
	rest, isLease := strings.CutPrefix(token, leasePrefix)
	parts := strings.Split(rest, ".")
	if !isLease || len(parts) != 3 {
		return "", 0, false
	}
	generation, err := strconv.ParseInt(parts[1], 10, 64)
	return task.ID(parts[0]), generation, err == nil
}
