package drill

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/toryo-dev/toryo/internal/lifecycle"
	"github.com/toryo-dev/toryo/internal/task"
)

// Drill is one drill. Program, Dir and Out have to be set, and all numbers.
type Drill struct {
	Program string // toryo itself
	Dir     string // an empty folder that may be filled
	Out     io.Writer
	// Environ is the environment of every process.
	Environ []string
	// Place is the forge that the tasks are on; nil means the built-in board.
	Place Place
	// Database is the URL of an empty PostgreSQL database; empty means SQLite, and
	// then there is one server.
	Database string
	// CutDatabase ends all connections to the database, RestartDatabase restarts its server,
	// and SetClock sets its clock ahead of that of its machine. Nil means that nobody does.
	CutDatabase     func(context.Context) error
	RestartDatabase func(context.Context) error
	SetClock        func(context.Context, time.Duration) error
	// DatabaseSize is how many bytes the database has; nil means that nobody knows.
	DatabaseSize func(context.Context) (int64, error)
	Servers      int
	Agents       int
	Parallel     int // tasks of an agent at a time
	Tasks        int
	Lasts        time.Duration // of the breaking
	Every        time.Duration // from one fault to the next, on average
	Settle       time.Duration // how long nothing may get done afterwards before we give up
	Sandbox      string        // its kind
	// Keep copies what is on the file systems of SmallDisks to folders beside them in the end.
	Keep bool
	// SmallDisks gives each process a file system of its own, which fills up now and then.
	SmallDisks bool
	// Seed decides what is broken when.
	Seed uint64
}

// Result is what came of a drill.
type Result struct {
	Wrong []string // what did not come out right
	// Checked says that it was looked at all of it: a drill that was cut short has shown nothing.
	Checked bool
	drill   Drill
	tally   *tally
	lines   []*line
	failed  int64 // starts of processes
	found   findings
	usage   *usage
	took    time.Duration
}

// Run makes the installation, breaks it for a while, and checks it. An error of
// the code Conflict means that something did not come out right. There is a result also then.
func (d Drill) Run(ctx context.Context) (r *Result, err error) {
	d.Out = &inTurn{to: d.Out}
	d.printf("seed %d", d.Seed)
	s, err := d.build(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	d = s.drill
	begun := time.Now()
	measured := newUsage(s, begun)
	stop := measured.start(ctx)
	defer stop()
	r = &Result{drill: d, tally: &s.tally, lines: s.lines, usage: measured}
	if err := s.giveAndBreak(ctx, begun); err != nil {
		return r, err
	}
	s.endFaults()
	if d.SetClock != nil && ClockOff(d.Seed) < 0 {
		// Reviews are due by the times that the forge says. A database whose clock is behind
		// would let the last of them wait for as long as it is.
		if err := s.correctClock(ctx); err != nil {
			return r, err
		}
		d.printf("the clock of the database is right from now on")
	}
	d.printf("no more faults after %s; waiting for what is under way", time.Since(begun).Round(time.Second))
	if r.found, err = s.settle(ctx); err != nil {
		return r, err
	}
	stop()
	r.took = time.Since(begun)
	r.Wrong, r.Checked = append(r.found.check(s.issues), measured.growth(d)...), true
	if err := s.close(); err != nil {
		r.Wrong = append(r.Wrong, err.Error())
	}
	r.Wrong = append(r.Wrong, s.leftOver(ctx)...)
	for _, p := range slices.Concat(s.servers, s.agents) {
		r.failed += p.failed.Load()
		for _, how := range p.died {
			r.Wrong = append(r.Wrong, fmt.Sprintf("%s ended although nobody had ended it: %s", p.name, how))
		}
	}
	r.print(d)
	if len(r.Wrong) > 0 {
		return r, task.Errorf(task.Conflict, "the drill found %d things that are not right", len(r.Wrong))
	}
	return r, nil
}

func (d Drill) printf(format string, args ...any) { _, _ = fmt.Fprintf(d.Out, format+"\n", args...) }

// inTurn is a writer for several goroutines.
type inTurn struct {
	mu sync.Mutex
	to io.Writer
}

func (w *inTurn) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.to.Write(p)
}

// giveAndBreak gives out all tasks while things break.
func (s *site) giveAndBreak(ctx context.Context, begun time.Time) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.breakThings(ctx) })
	group.Go(func() error {
		// The last are given when nine tenths of the time are over.
		pause := s.drill.Lasts * 9 / 10 / time.Duration(s.drill.Tasks)
		for i := range s.drill.Tasks {
			if err := lifecycle.Sleep(ctx, time.Until(begun.Add(time.Duration(i)*pause))); err != nil {
				return err
			}
			issue, err := s.give(ctx, fmt.Sprintf("Do thing %d", i+1))
			if err != nil {
				return err
			}
			s.issues = append(s.issues, issue)
			s.given.Add(1)
		}
		return nil
	})
	return group.Wait()
}

// giveWithin is how long it may take to give a task while things break.
const giveWithin = 5 * time.Minute

// give gives one task, and tries again until the forge has taken it. It returns the
// issue.
func (s *site) give(ctx context.Context, title string) (Item, error) {
	deadline := time.Now().Add(giveWithin)
	for {
		issue, err := s.drill.Place.Give(ctx, title)
		if err == nil || ctx.Err() != nil || time.Now().After(deadline) {
			return issue, err
		}
		if err := lifecycle.Sleep(ctx, time.Second); err != nil {
			return Item{}, err
		}
	}
}

// print says in a few lines what happened.
func (r *Result) print(d Drill) {
	for _, line := range r.summary() {
		d.printf("%s", line)
	}
	for _, one := range r.Wrong {
		d.printf("WRONG: %s", one)
	}
	if len(r.Wrong) == 0 {
		d.printf("everything came out right")
		return
	}
	d.printf("what the processes said is in %s", filepath.Join(d.Dir, "*.log"))
}
