package web

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"sync"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// tasksNow is how the tasks are that are under way, and what waits for people. It is the same for
// all readers, who share it: nobody changes it.
type tasksNow struct {
	active []task.Task
	needs  []task.Need
	agents []store.Agent // with a valid token
	// revision changes with every task that is under way or was lately, and with what waits for
	// people.
	revision string
	turns    []Turn      // of the tasks that wait; only pages have it
	rows     *queueLists // made of this reading; nil if nobody shares them
}

// queueLists are the rows of lists of tasks, each made once for all readers who look at the same
// list in the same language. Nobody changes them. They are kept for as long as the reading.
type queueLists struct {
	mutex sync.Mutex
	made  map[string]func() []queueRow
}

// get returns the rows that are known by the key, which the first who asks makes. The others wait.
func (l *queueLists) get(key string, rows func() []queueRow) []queueRow {
	if l == nil {
		return rows()
	}
	l.mutex.Lock()
	once := l.made[key]
	if once == nil {
		once = sync.OnceValue(rows)
		l.made[key] = once
	}
	l.mutex.Unlock()
	return once()
}

// The states of tasks that are under way, and of the others.
var (
	activeStates = []task.State{task.Queued, task.Running, task.Paused}
	endedStates  = []task.State{task.Done, task.Failed, task.Stopped}
)

func (p *Pages) readTasks(ctx context.Context) (now tasksNow, err error) {
	if now.active, err = p.Store.ListTasks(ctx, store.TaskFilter{States: activeStates}); err != nil {
		return now, err
	}
	lately, err := p.Store.ListTasks(ctx, store.TaskFilter{States: endedStates, UpdatedSince: p.Now().Add(-time.Minute)})
	if err != nil {
		return now, err
	}
	sum := fnv.New64a()
	for _, one := range slices.Concat(now.active, lately) {
		_, _ = fmt.Fprint(sum, one.ID, one.Generation, one.State, one.Phase, one.Reason, one.Lease.Agent, one.Title, ";") // a hash takes everything
	}
	if now.needs, err = p.needs(ctx); err != nil {
		return now, err
	}
	for _, one := range now.needs {
		detail := one.Detail
		if one.Kind == task.NeedServer {
			detail = "" // it may differ with each try
		}
		_, _ = fmt.Fprint(sum, one.Key, one.Reason, one.Tasks, one.Percent, detail, ";")
	}
	if now.agents, err = p.Store.ListAgents(ctx); err != nil {
		return now, err
	}
	now.agents = slices.DeleteFunc(now.agents, func(a store.Agent) bool { return !a.RevokedAt.IsZero() })
	for _, one := range now.agents {
		_, _ = fmt.Fprint(sum, one.Name, one.Unable, one.Detail, one.Silent(p.Now()), ";")
	}
	now.revision = fmt.Sprintf("%x", sum.Sum64())
	return now, nil
}

// tasksRevision is the revision of all tasks, and of what waits for people.
func (p *Pages) tasksRevision(ctx context.Context) (string, error) {
	now, err := p.readTasks(ctx)
	return now.revision, err
}

// tasksForPage is how the tasks are, with their turns. The overview and
// the list of tasks, when they are asked for at the same time, share one reading: all open ones ask
// again when something happens.
func (p *Pages) tasksForPage(ctx context.Context) (tasksNow, error) {
	return p.tasks.read(ctx, func(ctx context.Context) (tasksNow, error) {
		now, err := p.readTasks(ctx)
		if err == nil {
			now.rows = &queueLists{made: map[string]func() []queueRow{}}
			now.turns, err = p.turns(ctx, now.active)
		}
		return now, err
	})
}

// shared reads a value once for all who ask while they wait for it. Who asks never gets a value
// whose reading began before: a page shows what its reader has just done. The zero value is ready
// to use.
type shared[T any] struct {
	mutex sync.Mutex
	last  <-chan struct{} // closed when the reading has ended that began last; nil before the first
	next  *reading[T]     // has not begun; nil if nobody waits
}

type reading[T any] struct {
	done  chan struct{} // closed when the rest is there
	value T
	err   error
}

var errNotRead = errors.New("reading ended in a panic")

// longestReading bounds a reading, as of a database that does not answer: all others wait for it.
const longestReading = 30 * time.Second

// read returns what the next call of get that begins returns. One of those who wait calls it.
func (s *shared[T]) read(ctx context.Context, get func(context.Context) (T, error)) (T, error) {
	s.mutex.Lock()
	mine, before := s.next, s.last
	if mine != nil {
		s.mutex.Unlock()
		select {
		case <-mine.done:
			return mine.value, mine.err
		case <-ctx.Done():
			var none T
			return none, ctx.Err() //nolint:wrapcheck // the reader is gone
		}
	}
	mine = &reading[T]{done: make(chan struct{}), err: errNotRead}
	s.next = mine
	s.mutex.Unlock()
	defer close(mine.done) // also if get panics
	if before != nil {
		<-before
	}
	s.mutex.Lock()
	s.last, s.next = mine.done, nil
	s.mutex.Unlock()
	// Others wait for it even if this reader goes away.
	ctx, end := context.WithTimeout(context.WithoutCancel(ctx), longestReading)
	defer end()
	mine.value, mine.err = get(ctx)
	return mine.value, mine.err
}
