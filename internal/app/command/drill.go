package command

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"time"

	"github.com/spf13/cobra"

	"github.com/toryo-dev/toryo/internal/app/drill"
	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/store/postgres"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/workdir"
)

type drillRun struct {
	site.Program
	minutes  float64
	work     drill.Drill
	postgres string
	restart  string
	keep     string
}

// Drill is the command toryo drill.
func Drill(p site.Program) *cobra.Command {
	o := drillRun{Program: p}
	c := &cobra.Command{
		Use:   "drill",
		Short: "Test failure recovery: break an installation on temporary data and check the result",
		Long: `Start servers and agents of this program on throw-away data, give them tasks, and kill
them, stop them and cut them off from each other at random moments for a while. Then look
whether every task has ended exactly once, with one pull request, whether labels say what
is so, and whether nothing was written by a run that was over. It prints the counts, and
its exit code is not 0 if something did not come out right.

Without --postgres there is one server, on SQLite. With it, several share a database that
is made for the drill and dropped afterwards. Its clock is ten minutes off, and all
connections to it are cut now and then. With --restart-database its server is restarted
too, once, by the command that you name.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c.Context()) },
	}
	c.Flags().Float64Var(&o.minutes, "minutes", 1, "how long to break things")
	c.Flags().IntVar(&o.work.Tasks, "tasks", 30, "how many tasks to give")
	c.Flags().IntVar(&o.work.Agents, "agents", 3, "how many agents to run")
	c.Flags().IntVar(&o.work.Servers, "servers", 2, "how many servers to run on PostgreSQL")
	c.Flags().StringVar(&o.postgres, "postgres", "", "`URL` of a PostgreSQL server on which databases can be made")
	c.Flags().StringVar(&o.restart, "restart-database", "", "`COMMAND` for the shell that restarts the PostgreSQL server")
	c.Flags().StringVar(&o.work.Sandbox, "sandbox", "auto", "`KIND` of sandbox: auto, docker, bubblewrap or landlock")
	c.Flags().StringVar(&o.keep, "keep", "", "keep what the processes said and wrote in this `DIR`")
	return c
}

func (o drillRun) run(ctx context.Context) (err error) {
	if o.minutes <= 0 || o.work.Tasks < 1 || o.work.Agents < 1 || o.work.Servers < 1 {
		return task.Errorf(task.Usage, "--minutes, --tasks, --agents and --servers must be more than 0")
	}
	if o.work.Program, err = os.Executable(); err != nil {
		return err
	}
	if o.work.Dir = o.keep; o.keep == "" {
		if o.work.Dir, err = os.MkdirTemp("", "toryo-drill-"); err != nil {
			return err
		}
		dir := o.work.Dir
		defer func() { err = errors.Join(err, workdir.Remove(dir)) }()
	} else if err := site.MakeDataDir(o.keep); err != nil {
		return err
	}
	if o.postgres != "" {
		work, drop, err := o.makeDatabase(ctx)
		if err != nil {
			return err
		}
		o.work = work
		defer func() { err = errors.Join(err, drop(context.WithoutCancel(ctx))) }()
	}
	o.work.Environ, o.work.Out = drill.WithoutSettings(o.Environ), o.Stdout
	o.work.Lasts = time.Duration(o.minutes * float64(time.Minute))
	o.work.Settle = drill.SettleWithin
	return o.work.Run(ctx)
}

// clockOff is by how much the clock of the database differs from those of the
// servers and agents: by more than any lease and any hold on a write lasts.
const clockOff = 10 * time.Minute

// makeDatabase makes a database that does not have the time of this machine. It
// returns the work with it, and how to drop it.
func (o drillRun) makeDatabase(ctx context.Context) (work drill.Drill, drop func(context.Context) error, err error) {
	database, drop, err := postgres.Scratch(ctx, o.postgres)
	if err != nil {
		return o.work, nil, err
	}
	off := clockOff
	if rand.IntN(2) == 0 { //nolint:gosec // not for secrets
		off = -off
	}
	if err := postgres.SetClock(ctx, database, off); err != nil {
		return o.work, nil, errors.Join(err, drop(context.WithoutCancel(ctx)))
	}
	o.work.Database = database
	o.work.CutDatabase = func(ctx context.Context) error { return postgres.CutConnections(ctx, database) }
	if o.restart != "" {
		o.work.RestartDatabase = o.restartDatabase
	}
	return o.work, drop, nil
}

// restartDatabase runs the command that was named for it.
func (o drillRun) restartDatabase(ctx context.Context) error {
	command := exec.CommandContext(ctx, "/bin/sh", "-c", o.restart)
	command.Env = drill.WithoutSettings(o.Environ)
	said, err := command.CombinedOutput()
	if err != nil {
		return task.Wrap(task.NotReady, fmt.Errorf("%w: %s", err, said), "the database is not restarted")
	}
	return nil
}
