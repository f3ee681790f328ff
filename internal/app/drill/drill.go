package drill

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/toryo-dev/toryo/internal/task"
)

// Drill is one drill. Program, Dir and Out have to be set.
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
	// CutDatabase ends all connections to the database; nil means that nobody does.
	CutDatabase func(context.Context) error
	// RestartDatabase restarts the database's server, in the middle of the drill;
	// nil means that nobody does.
	RestartDatabase func(context.Context) error
	Servers         int
	Agents          int
	Tasks           int
	Lasts           time.Duration // of the breaking
	Settle          time.Duration // for what is under way to end afterwards
	Sandbox         string        // its kind
}

// counts is what was done to the installation.
type counts struct {
	AgentsKilled, AgentsStopped, ServersKilled, ServersStopped, Cuts int
	DatabaseCuts, DatabaseRestarts                                   int
}

// Run makes the installation, breaks it for a while, and checks it. An error of
// the code Conflict means that something did not come out right.
func (d Drill) Run(ctx context.Context) (err error) {
	site, err := d.build(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, site.close()) }()
	begun := time.Now()
	done, err := d.breakThings(ctx, site)
	if err != nil {
		return err
	}
	d.printf("healed after %s; waiting for what is under way", time.Since(begun).Round(time.Second))
	if err := site.heal(ctx); err != nil {
		return err
	}
	found, err := site.settle(ctx, d.Tasks, d.Settle)
	if err != nil {
		return err
	}
	wrong := found.check(d.Tasks)
	d.report(done, site.faults(), found, wrong)
	if len(wrong) > 0 {
		return task.Errorf(task.Conflict, "the drill found %d things that are not right", len(wrong))
	}
	return nil
}

func (d Drill) printf(format string, args ...any) { _, _ = fmt.Fprintf(d.Out, format+"\n", args...) }

// breakThings gives out tasks and breaks something every now and then.
func (d Drill) breakThings(ctx context.Context, s *site) (done counts, err error) {
	over, middle := time.NewTimer(d.Lasts), time.NewTimer(d.Lasts/2)
	defer over.Stop()
	defer middle.Stop()
	given := 0
	issues := time.NewTicker(max(d.Lasts/time.Duration(2*d.Tasks), 50*time.Millisecond))
	defer issues.Stop()
	for {
		trouble := time.NewTimer(time.Duration(200+rand.IntN(1800)) * time.Millisecond) //nolint:gosec // not for secrets
		select {
		case <-ctx.Done():
			err = context.Cause(ctx)
		case <-over.C:
			for ; given < d.Tasks && err == nil; given++ {
				err = d.giveTask(ctx, s, given)
			}
			trouble.Stop()
			return done, err
		case <-issues.C:
			if given < d.Tasks {
				err = d.giveTask(ctx, s, given)
				given++
			}
		case <-middle.C:
			if d.RestartDatabase != nil {
				done.DatabaseRestarts++
				err = d.RestartDatabase(ctx)
			}
		case <-trouble.C:
			err = d.breakOne(ctx, s, &done)
		}
		trouble.Stop()
		if err != nil {
			return done, err
		}
	}
}

// giveTask gives one task.
func (d Drill) giveTask(ctx context.Context, s *site, number int) error {
	return s.drill.Place.Give(ctx, fmt.Sprintf("Do thing %d", number+1))
}

// breakOne breaks one thing.
func (d Drill) breakOne(ctx context.Context, s *site, done *counts) error {
	agent, server := rand.IntN(len(s.agents)), rand.IntN(len(s.servers)) //nolint:gosec // not for secrets
	switch rand.IntN(10) {                                               //nolint:gosec // not for secrets
	case 0, 1, 2:
		done.AgentsKilled++
		return s.agents[agent].restart(ctx, os.Kill)
	case 3, 4:
		done.AgentsStopped++
		return s.agents[agent].restart(ctx, os.Interrupt)
	case 5, 6:
		done.ServersKilled++
		return s.servers[server].restart(ctx, os.Kill)
	case 7:
		done.ServersStopped++
		return s.servers[server].restart(ctx, os.Interrupt)
	case 8:
		if d.CutDatabase != nil {
			done.DatabaseCuts++
			return d.CutDatabase(ctx)
		}
		fallthrough
	default:
		done.Cuts++
		s.lines[agent].cutFor(time.Duration(500+rand.IntN(7000)) * time.Millisecond) //nolint:gosec // not for secrets
		return nil
	}
}

func (d Drill) report(done counts, faults faults, found findings, wrong []string) {
	d.printf("broken: %d agents killed, %d asked to end; %d servers killed, %d asked to end; %d cuts of the network",
		done.AgentsKilled, done.AgentsStopped, done.ServersKilled, done.ServersStopped, done.Cuts)
	if d.Database != "" {
		d.printf("the database: restarted %d times, %d times all connections cut", done.DatabaseRestarts, done.DatabaseCuts)
	}
	d.printf("on the way: %d requests; %d refused, %d answers lost, %d delayed, %d sent twice",
		faults.requests, faults.refused, faults.lost, faults.delayed, faults.doubled)
	d.printf("tasks: %d, %d done; %d runs, %d of them lost, %d handed back; %d pull requests; %d journal entries",
		len(found.tasks), found.inState(task.Done), found.runs(), found.moved(task.Lost), found.moved(task.Returned), len(found.pulls), found.entries())
	for _, one := range wrong {
		d.printf("WRONG: %s", one)
	}
	if len(wrong) == 0 {
		d.printf("everything came out right")
	} else {
		d.printf("what the processes said is in %s", filepath.Join(d.Dir, "*.log"))
	}
}
