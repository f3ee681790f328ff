package store

import (
	"context"
	"time"

	"github.com/toryo-dev/toryo/internal/task"
)

// Deliveries remembers which webhooks were dealt with, so that a replay of one is
// known as such.
type Deliveries interface {
	// DeliverySeen reports whether the delivery was recorded.
	DeliverySeen(ctx context.Context, forge task.Forge, id string) (bool, error)
	// RecordDelivery records a delivery; first is false if it was recorded
	// before, and then nothing changes.
	RecordDelivery(ctx context.Context, d Delivery) (first bool, err error)
	// DeliveredAbout returns the events of the deliveries about the subject that were
	// recorded at the given time or later, each once. It knows no more than what was not
	// pruned.
	DeliveredAbout(ctx context.Context, subject string, since time.Time) ([]string, error)
	// AddReceived notes a webhook that came in, and forgets all but the newest of
	// its forge: as many as given of those that were taken, and as many of the
	// others, so that these cannot drive out those.
	AddReceived(ctx context.Context, r Received, keep int) error
	// ListReceived returns what is known of the webhooks of a forge, newest first.
	ListReceived(ctx context.Context, forge task.Forge) ([]Received, error)
}

// Delivery is a webhook that was dealt with.
type Delivery struct {
	Forge task.Forge
	ID    string
	At    time.Time
	// Subject is the [task.Key] of the item that it was about, or the [task.Repository],
	// as a text; empty if it was about nothing.
	Subject string
	Event   string // for which the webhook is enabled; may be empty
}

// Received is a webhook that came in, and what became of it.
type Received struct {
	Forge      task.Forge
	At         time.Time
	Event      string // empty if it could not be read
	Repository string
	Status     int
	Problem    string // empty if it was taken
}
