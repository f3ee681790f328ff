package server

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/toryo-dev/toryo/internal/metrics"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

const (
	// countEvery is how old numbers from the database may be: metrics are open to everybody,
	// and who asks often is not to cost the database more.
	countEvery = 5 * time.Second
	// countWithin bounds how long the metrics wait for the database.
	countWithin = 2 * time.Second
	// ableAgents is the label of agents that take tasks, silentAgents that of those that were
	// not heard of for too long, and otherAgents that of those with a reason that this server
	// does not know: they are of another version.
	ableAgents   = "none"
	silentAgents = task.ReasonAgentsSilent
	otherAgents  = "other"
)

// counted is numbers from the database, read anew when they are too old. If they cannot be
// read, the last ones stay.
type counted[T any] struct {
	what string
	read func(context.Context) (T, error)
	log  *slog.Logger

	mu     sync.Mutex
	readAt time.Time
	last   T
}

func (c *counted[T]) get() T {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.readAt.IsZero() && time.Since(c.readAt) <= countEvery {
		return c.last
	}
	ctx, cancel := context.WithTimeout(context.Background(), countWithin)
	defer cancel()
	c.readAt = time.Now()
	found, err := c.read(ctx)
	if err != nil {
		c.log.WarnContext(ctx, "failed to count for the metrics", "what", c.what, "error", err)
		return c.last
	}
	c.last = found
	return c.last
}

// addGauges adds what is counted in the database.
func (s *Server) addGauges(registry *metrics.Registry) {
	agents := &counted[map[task.Reason]float64]{what: "agents", read: s.agentsByReason, log: s.log}
	for _, reason := range append([]task.Reason{ableAgents, silentAgents, otherAgents}, task.UnableReasons...) {
		registry.Gauge("toryo_agents", "Agents with a valid token, by the reason for which they do not accept tasks; none if they do, other if the server does not know it.",
			func() float64 { return agents.get()[reason] }, metrics.Label{Name: "unable", Value: string(reason)})
	}
	backlog := &counted[store.Backlog]{what: "tasks", log: s.log, read: func(ctx context.Context) (store.Backlog, error) {
		return s.store.Backlog(ctx, s.now())
	}}
	for _, state := range []task.State{task.Queued, task.Running, task.Paused} {
		registry.Gauge("toryo_tasks", "Tasks that have not ended, by state. Every server on the database counts all of them.",
			func() float64 { return float64(backlog.get().Tasks[state]) }, metrics.Label{Name: "state", Value: string(state)})
	}
	registry.Gauge("toryo_longest_wait_seconds", "For how long the task waits that has waited longest of those that could be handed out; 0 if there is none.", func() float64 {
		since := backlog.get().QueuedSince
		if since.IsZero() {
			return 0
		}
		return max(0, s.now().Sub(since).Seconds())
	})
	for name, count := range map[string]func() int64{
		"no":  func() int64 { return backlog.get().Writes },
		"yes": func() int64 { return backlog.get().Retried },
	} {
		registry.Gauge("toryo_forge_writes_pending", "Writes to forges that are to be delivered, by whether they have failed before.",
			func() float64 { return float64(count()) }, metrics.Label{Name: "failed", Value: name})
	}
}

// agentsByReason counts agents with a valid token by the reason for which they take no tasks.
func (s *Server) agentsByReason(ctx context.Context) (map[task.Reason]float64, error) {
	agents, err := s.store.ListAgents(ctx)
	if err != nil {
		return nil, err
	}
	numbers := map[task.Reason]float64{}
	for _, agent := range agents {
		switch {
		case !agent.RevokedAt.IsZero():
		case agent.Silent(s.now()):
			numbers[silentAgents]++
		case agent.Unable == "":
			numbers[ableAgents]++
		case !slices.Contains(task.UnableReasons, agent.Unable):
			numbers[otherAgents]++
		default:
			numbers[agent.Unable]++
		}
	}
	return numbers, nil
}
