package broker

import (
	"context"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
)

// always is later than anything that is queued may have to wait.
const always = 100 * 365 * 24 * time.Hour

// anyAgent stands for an agent that holds nothing.
const anyAgent = "an agent that holds nothing"

// Explain says of everything that is queued whether it would be handed out if the
// agent asked now, and if not why, in the order in which it is decided. Without an
// agent it is one that holds nothing. It changes nothing. Which repository was
// served last is known to the servers alone, so that among repositories that run
// equally many tasks the oldest task stands first here.
func Explain(ctx context.Context, from store.Leases, limits Limits, now time.Time, agent string) ([]Verdict, error) {
	queue, err := from.Queue(ctx, now.Add(always), 0)
	if err != nil {
		return nil, err
	}
	if agent == "" {
		agent = anyAgent
	}
	return Order(Situation{Now: now, Queued: queue.Ready, Running: queue.Running, Agents: []string{agent}, Limits: limits}), nil
}
