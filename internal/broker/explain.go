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
func Explain(ctx context.Context, from queueReader, limits Limits, now time.Time, agent string) ([]Verdict, error) {
	if agent == "" {
		agent = anyAgent
	}
	situation, err := readSituation(ctx, from, limits, now, now.Add(always), agent)
	if err != nil {
		return nil, err
	}
	return Order(situation), nil
}

// queueReader reads what is queued and what is running.
type queueReader interface {
	Queue(ctx context.Context, at time.Time, perRepository int) (store.Queue, error)
}

// readSituation reads what [Order] decides on if the agents ask now. Tasks whose time comes
// by the moment ready are in it.
func readSituation(ctx context.Context, from queueReader, limits Limits, now, ready time.Time, agents ...string) (Situation, error) {
	queue, err := from.Queue(ctx, ready, 0)
	if err != nil {
		return Situation{}, err
	}
	return Situation{Now: now, Queued: queue.Ready, Running: queue.Running, Agents: agents, Limits: limits}, nil
}
