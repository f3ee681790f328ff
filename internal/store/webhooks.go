package store

import (
	"context"
	"time"

	"github.com/toryo-dev/toryo/internal/task"
)

// Webhooks keeps which repositories deliver which events. There is one row for each
// repository that is worked on and each event that it has delivered: deliveries of
// other repositories leave nothing behind.
type Webhooks interface {
	// SetWebhookRepositories says which repositories of a forge are worked on. What is
	// known of others is forgotten.
	SetWebhookRepositories(ctx context.Context, forge task.Forge, repositories []string) error
	// AddDelivered counts deliveries. An event whose last delivery was at the given time
	// or before has to earn its trust anew. Deliveries before an event was last missed are no
	// reason to trust it. Repositories that are not worked on are left out.
	AddDelivered(ctx context.Context, all []DeliveredCount, lapsed time.Time) error
	// SetMissed says that a change to an item was found that no delivery of the event
	// told of: it is not trusted any more.
	SetMissed(ctx context.Context, forge task.Forge, repository, event, item string, at time.Time) error
	// ListWebhookEvents returns what is known of each event of each repository that is
	// worked on, in order. A repository without any is there once, with an empty Event.
	ListWebhookEvents(ctx context.Context) ([]WebhookEvent, error)
}

// DeliveredCount is how often a repository has delivered an event.
type DeliveredCount struct {
	Forge      task.Forge
	Repository string
	Event      string
	Count      int64
	LastAt     time.Time
}

// WebhookEvent is what is known of one event of a repository.
type WebhookEvent struct {
	Forge      task.Forge
	Repository string
	Event      string
	Delivered  int64 // how often
	Trusted    int64 // how often since the trust in it began
	LastAt     time.Time
	MissedAt   time.Time // when a change was last found that it should have told of
	Missed     string    // the item with that change
}
