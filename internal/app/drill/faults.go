package drill

import (
	"context"
	"os"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/toryo-dev/toryo/internal/lifecycle"
	"github.com/toryo-dev/toryo/internal/task"
)

// tally counts what was done to the installation.
type tally struct {
	mu       sync.Mutex
	happened []fault
	skipped  int // faults whose target was already broken
}

func (t *tally) add(f fault) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.happened = append(t.happened, f)
}

func (t *tally) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.happened)
}

func (t *tally) skip() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.skipped++
}

// breakThings does to the installation what the schedule says, several things at once, and
// returns when all of it has ended.
func (s *site) breakThings(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	begun := time.Now()
	group.Go(func() error {
		for _, f := range s.drill.schedule() {
			if err := lifecycle.Sleep(ctx, time.Until(begun.Add(f.at))); err != nil {
				return err
			}
			group.Go(func() error { return s.breakOne(ctx, f) })
		}
		return lifecycle.Sleep(ctx, time.Until(begun.Add(s.drill.Lasts)))
	})
	return group.Wait()
}

// breakOne breaks one thing and repairs it.
func (s *site) breakOne(ctx context.Context, f fault) error {
	switch f.kind {
	case agentKilled, agentEnded, agentFrozen:
		return s.breakProcess(ctx, s.agents[f.target], f)
	case serverKilled, serverEnded, serverFrozen:
		return s.breakProcess(ctx, s.servers[f.target], f)
	case agentDisk:
		return s.fill(ctx, s.agents[f.target].name, f)
	case serverDisk:
		return s.fill(ctx, s.servers[f.target].name, f)
	}
	if f.kind == agentCut {
		s.tally.add(f)
		s.lines[f.target].cutFor(f.lasts)
		return nil
	}
	return s.breakDatabase(ctx, f)
}

// breakDatabase does something to the database, unless something is just done to it.
func (s *site) breakDatabase(ctx context.Context, f fault) error {
	if !s.database.TryLock() {
		s.tally.skip()
		return nil
	}
	defer s.database.Unlock()
	s.tally.add(f)
	switch f.kind {
	case databaseCut:
		return ignoreDown(s.drill.CutDatabase(ctx))
	case databaseRestart:
		return s.drill.RestartDatabase(ctx)
	default:
		return ignoreDown(s.drill.SetClock(ctx, f.clock))
	}
}

// correctClock sets the clock of the database right. A database that was restarted last may not
// take connections yet.
func (s *site) correctClock(ctx context.Context) error {
	for begun := time.Now(); ; {
		err := s.drill.SetClock(ctx, 0)
		if task.CodeOf(err) != task.DatabaseDown || time.Since(begun) > startWithin {
			return err
		}
		if err := lifecycle.Sleep(ctx, time.Second); err != nil {
			return err
		}
	}
}

// ignoreDown is the error unless the database is down: it may be just restarting.
func ignoreDown(err error) error {
	if task.CodeOf(err) == task.DatabaseDown {
		return nil
	}
	return err
}

// breakProcess kills a process, asks it to end, or freezes it. One that is being started again
// is left alone.
func (s *site) breakProcess(ctx context.Context, p *process, f fault) error {
	if !p.busy.TryLock() {
		s.tally.skip()
		return nil
	}
	defer p.busy.Unlock()
	s.tally.add(f)
	switch f.kind {
	case agentKilled, serverKilled:
		return p.restart(ctx, os.Kill)
	case agentEnded, serverEnded:
		return p.restart(ctx, os.Interrupt)
	default:
		freeze(p.command.Process)
		defer thaw(p.command.Process)
		return lifecycle.Sleep(ctx, f.lasts)
	}
}

// fill fills the disk of a process for a while.
func (s *site) fill(ctx context.Context, of string, f fault) (err error) {
	disk := s.disks[of]
	if !disk.busy.TryLock() {
		s.tally.skip()
		return nil
	}
	defer disk.busy.Unlock()
	s.tally.add(f)
	if err := disk.fill(); err != nil {
		return err
	}
	defer func() { err = disk.free() }()
	return lifecycle.Sleep(ctx, f.lasts)
}
