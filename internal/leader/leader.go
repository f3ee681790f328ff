// Package leader elects one of the servers on a database as the leader, which does the
// background work, and has the clock on which they agree.
//
// The election is a row in the database with the name of the leader and the time until
// which it leads, by the database's clock. Servers a and b, for example: a writes "a, until
// 12:00:05" and renews that every second. b tries the same and is refused while the row
// names a and the time is not over. When a dies, b succeeds at 12:00:06 at the latest. When a
// lives but cannot reach the database, it stops by itself 4 seconds after the last renewal
// that it knows of, by its own clock, counted from when it asked: before b can begin.
package leader

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/toryo-dev/toryo/internal/lifecycle"
	"github.com/toryo-dev/toryo/internal/store"
)

// Job is something that the leader does again and again. It may be cut off at any moment,
// and for a moment two servers may do it: it has to bear both.
type Job struct {
	Name  string
	Every time.Duration
	Do    func(ctx context.Context) error
}

const (
	// background is the election for the server that does the background work.
	background = "background"
	// lasting is how long a server that is not heard of stays the leader, and renewEvery
	// how often it renews that. So another one takes over within their sum.
	lasting    = 5 * time.Second
	renewEvery = time.Second
	// ownLasting is how long a server that hears nothing believes that it is the leader.
	// It is shorter, so that it has stopped when another begins.
	ownLasting = lasting - renewEvery
)

// Election takes part in the election and does the jobs while this server is the leader.
type Election struct {
	Elections store.Elections
	Server    string // names this server, and no other
	Log       *slog.Logger
	Jobs      []Job

	running lifecycle.Group
}

// Take makes somebody who is no server the leader for a few seconds, so that no server is, and reports
// whether it did: it does not while a server leads, or one has ended a few seconds ago without a word.
func Take(ctx context.Context, elections store.Elections, who string) (bool, error) {
	return elections.Lead(ctx, background, who, lasting)
}

// Start begins to take part. It does not end with the context, whose values are kept, but
// with Stop.
func (e *Election) Start(ctx context.Context) { e.running.Start(ctx, e.run) }

// Stop ends the jobs, waits until they have ended, and gives up the leadership, so that
// another server has it at once.
func (e *Election) Stop(ctx context.Context) {
	e.running.Stop()
	if err := e.Elections.Resign(ctx, background, e.Server); err != nil {
		e.Log.WarnContext(ctx, "failed to resign as leader; another server takes over in some seconds", "error", err)
	}
}

// run leads for as long as it can, and tries again after that.
func (e *Election) run(ctx context.Context) {
	var current *term
	defer func() { current.end() }()
	lifecycle.Every(ctx, renewEvery, func(ctx context.Context) {
		asked := time.Now()
		leads, err := e.lead(ctx)
		switch {
		case err != nil && ctx.Err() == nil:
			e.Log.WarnContext(ctx, "failed to find out which server is the leader", "error", err)
		case leads && current.renew(asked.Add(ownLasting)):
		case leads:
			current.end()
			e.Log.InfoContext(ctx, "this server is the leader now", "server", e.Server)
			current = e.begin(ctx, asked.Add(ownLasting))
		case err == nil && current != nil:
			e.Log.WarnContext(ctx, "another server is the leader now", "server", e.Server)
			current.end()
			current = nil
		}
	})
}

// lead asks whether this server leads. A database that does not answer is asked again.
func (e *Election) lead(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, ownLasting)
	defer cancel()
	return e.Elections.Lead(ctx, background, e.Server, lasting)
}

// term is a time in which this server leads: the jobs are done until it is over, which they
// notice also while the database keeps us waiting.
type term struct {
	cancel  context.CancelFunc
	over    *time.Timer
	working sync.WaitGroup
}

// begin does each job in a goroutine of its own.
func (e *Election) begin(ctx context.Context, until time.Time) *term {
	ctx, cancel := context.WithCancel(ctx)
	t := &term{cancel: cancel, over: time.AfterFunc(time.Until(until), func() {
		e.Log.WarnContext(ctx, "this server is no longer the leader: it could not renew its term", "server", e.Server)
		cancel()
	})}
	for _, job := range e.Jobs {
		t.working.Go(func() { lifecycle.Every(ctx, job.Every, func(ctx context.Context) { e.do(ctx, job) }) })
	}
	return t
}

// renew reports whether the term goes on. One that was over stays so.
func (t *term) renew(until time.Time) bool {
	if t == nil || !t.over.Stop() {
		return false
	}
	t.over.Reset(time.Until(until))
	return true
}

// end ends the jobs and waits for them.
func (t *term) end() {
	if t == nil {
		return
	}
	t.over.Stop()
	t.cancel()
	t.working.Wait()
}

func (e *Election) do(ctx context.Context, job Job) {
	if err := job.Do(ctx); err != nil && ctx.Err() == nil {
		e.Log.WarnContext(ctx, "background job failed; retrying", "what", job.Name, "error", err, "again", job.Every)
	}
}
