package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/toryo-dev/toryo/internal/task"
)

// ActionStatus says what became of an action.
type ActionStatus string

// The statuses of an action.
const (
	Pending   ActionStatus = "pending"
	Delivered ActionStatus = "delivered"
	Refused   ActionStatus = "refused"
	Replaced  ActionStatus = "replaced" // a newer one took its place; see Action.Coalesce
)

// Action is one write to a forge. It is stored before it is tried.
type Action struct {
	ID   string
	Item task.Key // actions on one item are delivered in the order in which they were put; see Lane
	// Task and Generation are the run that the write belongs to. An action
	// without a task is the server's own and is never stale.
	Task       task.ID
	Generation int64
	// Lasting says that the write is made although the task is in a newer generation by
	// then. Putting it there is refused all the same.
	Lasting bool
	// IdempotencyKey is unique: putting an action again changes nothing.
	IdempotencyKey string
	// Coalesce names what the action overwrites, for example the progress
	// comment: while an earlier action on the item with the same name has not
	// been tried, the newer one takes its place: its number in the order, and its
	// due time if that is earlier. The earlier one is then Replaced. What waits so
	// is due no later than what is put behind it, which it would hold up. Empty
	// means never.
	Coalesce string
	// Lane names the actions on the item with which the order is kept in any case. With
	// others it is kept as long as nothing fails: an action that failed and is to be tried
	// again holds up those of its own lane only, and these hold up nobody else either.
	Lane    string
	Kind    string
	Payload json.RawMessage
	DueAt   time.Time

	Sequence int64 // of the item's actions
	Status   ActionStatus
	Attempts int
	// TakenOver says that a process had it that may not have ended: only its hold has, by the
	// clock of whoever took it. Take sets it.
	TakenOver bool
	// Restored says that the task was in a backup from which the database was restored: what
	// is written for it may have been written before, by a server that the database does not
	// know of. Take sets it.
	Restored  bool
	LastError string
	Reason    task.Reason     // why it was refused
	Result    json.RawMessage // what the forge answered, as far as it matters
}

// Outbox keeps forge writes until they are delivered or refused.
type Outbox interface {
	// Put stores an action. If its idempotency key is there already it returns
	// the action that has it, and put is false. An action of an older generation
	// than its task's is refused with StaleGeneration and not stored; NotFound if
	// there is no such task.
	Put(ctx context.Context, action Action) (stored Action, put bool, err error)
	// Take returns actions that are due, of each item only the first that is
	// still pending, but for what overwrites something and was never tried: while
	// that is not due, the next one comes first; and but for what has failed, which
	// holds up its own lane only. It holds them for the
	// caller until the given time: no other caller gets them before. Each Take counts as an attempt. An action
	// whose task is in a newer generation by now is not returned but refused with
	// ReasonStaleGeneration.
	Take(ctx context.Context, now, until time.Time, limit int) ([]Action, error)
	// HeldUntil is when the first hold on an action ends of those that last longer than the given time;
	// zero if there is none.
	HeldUntil(ctx context.Context, now time.Time) (time.Time, error)
	// KeepTaken extends the hold of whoever took the action at that attempt; Conflict if
	// it has ended or someone else has taken it since.
	KeepTaken(ctx context.Context, id string, attempt int, until time.Time) error
	// Deliver records that the forge has taken the action, with what it said,
	// even if the action was refused meanwhile. Delivering twice changes nothing.
	Deliver(ctx context.Context, id string, result json.RawMessage) error
	// Retry puts the action back that the caller took at that attempt, to be taken again at the
	// given time; Conflict if it has ended or someone else has taken it since.
	Retry(ctx context.Context, id string, attempt int, at time.Time, cause string) error
	// Refuse ends the action without delivery; Conflict if it was delivered.
	// Refusing twice changes nothing.
	Refuse(ctx context.Context, id string, reason task.Reason, cause string) error
	// Action returns one action by its idempotency key.
	Action(ctx context.Context, idempotencyKey string) (Action, error)
	// PendingActions returns what is still to be delivered for an item, in order.
	PendingActions(ctx context.Context, item task.Key) ([]Action, error)
}

// CachedAnswer is an answer of a forge kept for conditional requests.
type CachedAnswer struct {
	Key          string // forge and request, as the adapter chooses
	ETag         string
	LastModified string
	Status       int
	Header       json.RawMessage
	Body         []byte
	StoredAt     time.Time
}

// ForgeCache keeps answers of forges. Losing them costs requests, nothing else.
type ForgeCache interface {
	// CachedAnswer returns the answer under the key, or NotFound.
	CachedAnswer(ctx context.Context, key string) (CachedAnswer, error)
	// CacheAnswer stores an answer in place of what was under its key.
	CacheAnswer(ctx context.Context, answer CachedAnswer) error
}
