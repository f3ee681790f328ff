package broker

import (
	"container/list"
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toryo-dev/toryo/internal/broker/assignment"
	"github.com/toryo-dev/toryo/internal/lifecycle"
	"github.com/toryo-dev/toryo/internal/outbox"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// HandOutOptions is what handing out needs. All but Log and OutboxChanged have to be set.
type HandOutOptions struct {
	Leases  store.Leases
	Known   WaitStore // is asked why nobody takes tasks
	Tasks   store.Tasks
	Notices store.Notices
	Limits  Limits
	Lease   time.Duration // how long a lease lasts unless it is renewed
	Renew   time.Duration // how often it is to be renewed
	// MaxAttempts is how often in a row a task is handed out whose commit is missing, and
	// Events is where that is counted.
	MaxAttempts int
	Events      Events
	Labels      outbox.Labels
	Outbox      store.Outbox // is asked what is about to be written
	// Token makes the token of a lease, and Hash that by which it is known.
	Token func(id task.ID, generation int64) string
	Hash  func(token string) []byte
	// Language is that of what people are told about a task; nil means by its title.
	Language func(ctx context.Context, t task.Task) task.Language
	// Prepare makes what the agent is told, and its repository.
	Prepare func(ctx context.Context, given assignment.Assignment) (assignment.Assignment, error)
	// Able tests whether this server can prepare tasks. While it fails, others hand them out. Nil
	// means that it always can.
	Able func() error
	// Ended puts tasks back whose agent's process has ended; see [Expiry.Restarted].
	// Nil means that this is left to whoever looks for leases that have run out.
	Ended         func(ctx context.Context, held []task.Task) error
	Now           func() time.Time // the database's; see Clock
	OutboxChanged func()           // is called when there is something in the outbox
	Log           *slog.Logger
}

const (
	// windowPerRepository is how many tasks of one repository are looked at each
	// time: enough that some of them can be handed out.
	windowPerRepository = 64
	// moreAgents is how many more agents are looked at than there are tasks, for
	// those that may not have each of them.
	moreAgents = 64
	// emptyFor is for how long a queue that was seen empty is believed to be so when
	// agents come and nothing was heard of: a notice may be late, as on SQLite those of
	// other processes are.
	emptyFor = 5 * time.Second
	// ableFor is for how long the answer of Able holds.
	ableFor = time.Second
	// ableWithin is how long Able may take.
	ableWithin = 2 * time.Second
	// longestDispatch bounds one look into the database.
	longestDispatch = 30 * time.Second
)

// Events has the journals of tasks.
type Events interface {
	EventsOf(ctx context.Context, id task.ID, kinds ...task.EventKind) ([]task.Event, error)
	LastFrom(ctx context.Context, id task.ID, source task.EventSource) (task.Event, error)
}

// HandOut hands tasks to the agents that wait for one. One goroutine does it for
// all of them: it looks into the database when an agent comes, unless the queue was
// just seen to be empty, when something has happened to a task, anywhere, and when
// the time of a task comes; and never else.
type HandOut struct {
	options HandOutOptions
	wake    chan struct{} // has room for one
	made    time.Time
	emptyAt atomic.Int64 // when the queue was seen to be empty, since made; 0 if it may not be
	waits   knownWaits

	mu      sync.Mutex
	waiting *list.List // of *waiter, longest waiting first
	served  map[task.Repository]time.Time

	// What follows is the goroutine's alone.
	tested  time.Time  // when Able was last asked
	unable  error      // what it said then
	testing chan error // what Able says that has not come back yet; nil if it has

	drained    chan struct{} // closed when nobody is to wait any more
	drain      sync.Once
	background lifecycle.Group
}

// Asker is who asks for a task.
type Asker struct {
	Agent string
	// Process names the process of the agent and no other one; empty if it is not known.
	Process string
}

// waiter is an agent that waits for a task.
type waiter struct {
	Asker
	given chan *assignment.Assignment // has room for one
	at    *list.Element
	gone  bool
}

// NewHandOut makes a hand-out. It does nothing until it is started.
func NewHandOut(options HandOutOptions) *HandOut {
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	if options.OutboxChanged == nil {
		options.OutboxChanged = func() {}
	}
	return &HandOut{
		options: options, wake: make(chan struct{}, 1), made: time.Now(),
		drained: make(chan struct{}), waiting: list.New(), served: map[task.Repository]time.Time{},
	}
}

// Start begins to hand out. It does not end with the context, whose values are kept, but
// with Stop. It is called once.
func (h *HandOut) Start(ctx context.Context) {
	stop := h.options.Notices.Listen(func(notice store.Notice) {
		h.waits.hear(notice)
		if notice.Topic == store.TasksChanged || notice.Topic == store.Anything {
			h.emptyAt.Store(0)
			lifecycle.Signal(h.wake)
		}
	})
	h.background.Start(ctx, func(ctx context.Context) {
		defer stop()
		h.run(ctx)
	})
}

// Stop ends handing out and waits until that has ended. Agents that wait get
// nothing more; their requests end with their own contexts.
func (h *HandOut) Stop() { h.background.Stop() }

// Drain ends all waiting, for good.
func (h *HandOut) Drain() { h.drain.Do(func() { close(h.drained) }) }

// Renew is how often an agent has to be heard of.
func (h *HandOut) Renew() time.Duration { return h.options.Renew }

// Explain says of everything that is queued why it is or is not next; see the
// function of that name.
func (h *HandOut) Explain(ctx context.Context, agent string) ([]Verdict, error) {
	return Explain(ctx, h.options.Leases, h.options.Limits, h.options.Now(), agent)
}

// Waits says why nobody takes tasks; see the function of that name.
func (h *HandOut) Waits(ctx context.Context) ([]Wait, error) {
	return h.waits.read(ctx, h.options.Known, h.options.Limits, h.options.Now())
}

// Restarted takes the tasks from processes of agents that have ended, and puts them
// back into the queue in a new generation, without waiting until their leases have run
// out. It may be called again.
func (h *HandOut) Restarted(ctx context.Context, processes []string) error {
	h.leave(processes)
	held, err := h.options.Leases.EndLeases(ctx, processes)
	if err != nil || h.options.Ended == nil {
		return err
	}
	return h.options.Ended(ctx, held)
}

// leave lets what waits for processes that have ended wait no longer: a connection may
// outlast them, through a proxy.
func (h *HandOut) leave(processes []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for at := h.waiting.Front(); at != nil; {
		w, _ := at.Value.(*waiter) // there is nothing else in the list
		at = at.Next()
		if w.Process != "" && slices.Contains(processes, w.Process) {
			w.gone = true
			h.waiting.Remove(w.at)
		}
	}
}

// Waiting returns how many agents wait.
func (h *HandOut) Waiting() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.waiting.Len()
}

// next waits until there is a task for the agent, or over is closed or the context ends; then
// found is false. A task that it returns is the agent's.
func (h *HandOut) next(ctx context.Context, over <-chan struct{}, asker Asker) (given *assignment.Assignment, found bool) {
	w := &waiter{Asker: asker, given: make(chan *assignment.Assignment, 1)}
	h.mu.Lock()
	w.at = h.waiting.PushBack(w)
	h.mu.Unlock()
	if !h.knownEmpty() {
		lifecycle.Signal(h.wake)
	}
	select {
	case given = <-w.given:
		return given, true
	case <-ctx.Done():
	case <-over:
	case <-h.drained:
	}
	h.mu.Lock()
	w.gone = true
	h.waiting.Remove(w.at)
	h.mu.Unlock()
	select {
	case given = <-w.given: // it was chosen at the last moment
		return given, true
	default:
		return nil, false
	}
}

// knownEmpty reports whether there is nothing that an agent who comes now could be
// given. A look that is under way, or about to be, sees the agent.
func (h *HandOut) knownEmpty() bool {
	at := h.emptyAt.Load()
	return at > 0 && time.Since(h.made)-time.Duration(at) < emptyFor
}

// run dispatches whenever there may be something to hand out.
func (h *HandOut) run(ctx context.Context) {
	trouble := lifecycle.NewBackoff(longestDispatch)
	for {
		next, err := h.dispatch(ctx)
		pause := time.Duration(-1)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			pause = min(trouble.NextBackOff(), longestDispatch)
			h.options.Log.ErrorContext(ctx, "failed to hand out tasks", "error", err, "again", pause)
		default:
			trouble.Reset()
			if !next.IsZero() {
				pause = max(0, next.Sub(h.options.Now()))
			}
		}
		if !h.rest(ctx, pause) {
			return
		}
	}
}

// rest waits to be woken, or for the pause if there is one. It is false when the
// context has ended.
func (h *HandOut) rest(ctx context.Context, pause time.Duration) bool {
	var after <-chan time.Time
	if pause >= 0 {
		timer := time.NewTimer(pause)
		defer timer.Stop()
		after = timer.C
	}
	select {
	case <-ctx.Done():
		return false
	case <-h.wake:
	case <-after:
	}
	return true
}

// dispatch hands out all that can be, and returns when more can be, if that is
// known.
func (h *HandOut) dispatch(ctx context.Context) (next time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, longestDispatch)
	defer cancel()
	for {
		if h.Waiting() == 0 {
			h.emptyAt.Store(0)
			return time.Time{}, nil // who comes next wakes us
		}
		if !h.able(ctx) {
			return h.options.Now().Add(ableFor), nil
		}
		var round round
		held, err := h.options.Leases.HandOut(ctx, h.options.Now(), windowPerRepository, func(queue store.Queue) []store.Claim {
			round = h.choose(queue)
			return round.claims
		}, nil) // the label follows when the task is prepared
		if err != nil {
			return time.Time{}, err
		}
		if round.empty {
			h.emptyAt.Store(int64(time.Since(h.made)))
		} else {
			h.emptyAt.Store(0) // there may be more than those who wait were given
		}
		h.give(ctx, round, held)
		if len(round.claims) == 0 || !round.more {
			return round.next, nil
		}
	}
}

// able reports whether this server can prepare tasks, as of a moment ago. A task that it took and
// could not prepare would have to wait.
func (h *HandOut) able(ctx context.Context) bool {
	if h.options.Able == nil || time.Since(h.tested) < ableFor {
		return h.unable == nil
	}
	before := h.unable
	h.unable, h.tested = h.test(ctx), time.Now()
	switch {
	case before == nil && h.unable != nil:
		h.options.Log.WarnContext(ctx, "this server hands out no tasks until it can write", "error", h.unable)
	case before != nil && h.unable == nil:
		h.options.Log.InfoContext(ctx, "this server hands out tasks again")
	}
	return h.unable == nil
}

// test asks Able. One that does not come back in time, such as a write to a disk that hangs, has
// failed, and is not asked again before it has come back.
func (h *HandOut) test(ctx context.Context) error {
	select {
	case <-h.testing: // what was asked long ago
		h.testing = nil
	default:
	}
	if h.testing == nil {
		said := make(chan error, 1)
		h.testing = said
		go func() { said <- h.options.Able() }()
	}
	ctx, cancel := context.WithTimeoutCause(ctx, ableWithin, task.Errorf(task.Unavailable, "it did not answer in %s", ableWithin))
	defer cancel()
	select {
	case err := <-h.testing:
		h.testing = nil
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// round is one decision about everything that waits.
type round struct {
	claims []store.Claim
	given  map[task.ID]promise
	next   time.Time
	more   bool // there may be more tasks than were looked at
	empty  bool // there was none
}

// promise is a task that its waiter gets if the claim succeeds.
type promise struct {
	to    *waiter
	token string
	was   task.Reason
}

func (h *HandOut) choose(queue store.Queue) round {
	waiters := h.candidates(queue)
	situation := Situation{Now: h.options.Now(), Queued: queue.Ready, Running: queue.Running, Limits: h.options.Limits, Served: h.lastServed()}
	for _, w := range waiters {
		situation.Agents = append(situation.Agents, w.Agent)
	}
	decided := round{next: queue.NextReady, given: map[task.ID]promise{}, more: windowFull(queue), empty: len(queue.Ready) == 0}
	for _, verdict := range Order(situation) {
		t := verdict.Task
		if verdict.Reason != task.ReasonNext {
			if !verdict.Until.IsZero() && (decided.next.IsZero() || verdict.Until.Before(decided.next)) {
				decided.next = verdict.Until
			}
			continue
		}
		token := h.options.Token(t.ID, t.Generation)
		decided.claims = append(decided.claims, store.Claim{
			Task: t.ID, Generation: t.Generation, Agent: waiters[verdict.Agent].Agent, TokenHash: h.options.Hash(token),
			Process: waiters[verdict.Agent].Process, ExpiresAt: situation.Now.Add(h.options.Lease),
		})
		decided.given[t.ID] = promise{waiters[verdict.Agent], token, t.Reason}
	}
	return decided
}

// windowFull reports whether some repository has more tasks than were looked at.
func windowFull(queue store.Queue) bool {
	count := map[task.Repository]int{}
	for _, t := range queue.Ready {
		in := t.Key.Repo()
		if count[in]++; count[in] == windowPerRepository {
			return true
		}
	}
	return false
}

// candidates returns agents that wait and may hold another task, as many as there
// can be a task for.
func (h *HandOut) candidates(queue store.Queue) []*waiter {
	held := map[string]int{}
	for _, t := range queue.Running {
		held[t.Lease.Agent]++
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	var waiters []*waiter
	for at := h.waiting.Front(); at != nil && len(waiters) < len(queue.Ready)+moreAgents; at = at.Next() {
		w, _ := at.Value.(*waiter) // there is nothing else in the list
		if limit := h.options.Limits.PerAgent; limit == 0 || held[w.Agent] < limit {
			waiters = append(waiters, w)
		}
	}
	return waiters
}

// give hands the tasks that were claimed to those who wait for them. What is for
// one who has left meanwhile goes back into the queue.
func (h *HandOut) give(ctx context.Context, decided round, held []task.Task) {
	var left []task.Task
	for i, t := range held {
		promised := decided.given[t.ID]
		h.serve(t.Key.Repo(), h.options.Now().Add(time.Duration(i))) // in the order of the decision
		if !promised.to.accept(h, assignment.Assignment{Task: t, Token: promised.token, Was: promised.was}) {
			left = append(left, t)
			continue
		}
		h.options.Log.InfoContext(ctx, "task handed out", "task", t.ID, "item", t.Key.String(), "agent", t.Lease.Agent,
			"type", t.Type, "role", t.Role, "generation", t.Generation)
	}
	for _, t := range left {
		h.putBack(ctx, t, returning{reason: task.ReasonAgentGone})
	}
}

// serve notes that a task of a repository is handed out.
func (h *HandOut) serve(in task.Repository, at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.served[in] = at
}

// accept gives the waiter a task, unless it has left.
func (w *waiter) accept(h *HandOut, given assignment.Assignment) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if w.gone {
		return false
	}
	h.waiting.Remove(w.at)
	w.given <- &given
	return true
}
