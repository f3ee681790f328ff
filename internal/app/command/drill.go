package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
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
	report   string
}

// Drill is the command toryo drill.
func Drill(p site.Program) *cobra.Command {
	o := &drillRun{Program: p}
	c := &cobra.Command{
		Use:   "drill",
		Short: "Test failure recovery: break an installation on temporary data and check the result",
		Long: `Start servers and agents of this program on throw-away data, give them tasks, and break
things for a while, several at once: processes are killed, asked to end and frozen, agents are
cut off, and their requests are lost, late, overtaken or sent twice. Then look whether
every task has ended exactly once, with one pull request, whether labels say what is so,
whether each pull request was reviewed, whether nothing was written by a run that was over,
and whether nothing is left over. It prints the counts, and its exit code is not 0 if something did not come out right.

Without --postgres there is one server, on SQLite. With it, several share a database that
is made for the drill and dropped afterwards. Its clock is ten minutes off and is set again
now and then, and all connections to it are cut. If it is behind, it is set right after
the last fault, for reviews are due by the time of the forge. With --restart-database its server is
restarted too, by the command that you name.

As root on Linux each process gets a small file system of its own in memory, which fills up
now and then.

The last server and the last agent of three or more are not killed, so that it can be seen
whether they grow. In a drill of ten minutes or more that counts as wrong. --report writes
an HTML file with plots of it. The same --seed with the same numbers breaks the same things
at the same moments.

An hour with everything:

  toryo drill --minutes 60 --tasks 2540 --servers 3 --agents 6 --every 3s --report drill.html \
    --postgres postgres://user:password@host/postgres --restart-database 'systemctl restart postgresql'`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c.Context()) },
	}
	c.Flags().Float64Var(&o.minutes, "minutes", 1, "how long to break things")
	c.Flags().IntVar(&o.work.Tasks, "tasks", 30, "how many issues to give; the review of each pull request, a minute later, is a task too")
	c.Flags().IntVar(&o.work.Agents, "agents", 3, "how many agents to run")
	c.Flags().IntVar(&o.work.Parallel, "parallel", 2, "how many tasks an agent does at a time")
	c.Flags().IntVar(&o.work.Servers, "servers", 2, "how many servers to run on PostgreSQL")
	c.Flags().StringVar(&o.postgres, "postgres", "", "`URL` of a PostgreSQL server on which databases can be made")
	c.Flags().StringVar(&o.restart, "restart-database", "", "`COMMAND` for the shell that restarts the PostgreSQL server")
	c.Flags().StringVar(&o.work.Sandbox, "sandbox", "auto", "`KIND` of sandbox: auto, docker, bubblewrap or landlock")
	c.Flags().DurationVar(&o.work.Every, "every", time.Second, "how long from one fault to the next, on average")
	c.Flags().Uint64Var(&o.work.Seed, "seed", 0, "which faults happen when; 0 means any")
	c.Flags().BoolVar(&o.work.SmallDisks, "small-disks", true, "let disks fill up, where this user may mount file systems: as root on Linux")
	c.Flags().StringVar(&o.report, "report", "", "write an HTML report with plots to this `FILE`")
	c.Flags().StringVar(&o.keep, "keep", "", "keep what the processes said and wrote in this `DIR`")
	return c
}

// check refuses numbers with which there is nothing to do, and fills in what was not said.
func (o *drillRun) check() (err error) {
	if err := drill.Supported(); err != nil {
		return err
	}
	if o.minutes <= 0 || o.work.Tasks < 1 || o.work.Agents < 1 || o.work.Parallel < 1 || o.work.Servers < 1 || o.work.Every <= 0 {
		return task.Errorf(task.Usage, "--minutes, --tasks, --agents, --parallel, --servers and --every must be more than 0")
	}
	if o.work.Seed == 0 {
		o.work.Seed = uint64(rand.Uint32()) //nolint:gosec // not for secrets
	}
	o.work.SmallDisks = o.work.SmallDisks && drill.CanMount()
	o.work.Keep = o.keep != ""
	if o.work.Keep { // the processes run in another folder
		if o.keep, err = filepath.Abs(o.keep); err != nil {
			return err
		}
	}
	o.work.Program, err = os.Executable()
	return err
}

func (o *drillRun) run(ctx context.Context) (err error) {
	if err := o.check(); err != nil {
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
	result, err := o.work.Run(ctx)
	if o.report == "" || result == nil {
		return err
	}
	return errors.Join(err, o.writeReport(result))
}

func (o *drillRun) writeReport(of *drill.Result) error {
	var page bytes.Buffer
	if err := of.WriteHTML(&page); err != nil {
		return err
	}
	if err := os.WriteFile(o.report, page.Bytes(), 0o600); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(o.Stdout, "the report is in %s\n", o.report)
	return nil
}

// makeDatabase makes a database that does not have the time of this machine. It
// returns the work with it, and how to drop it.
func (o *drillRun) makeDatabase(ctx context.Context) (work drill.Drill, drop func(context.Context) error, err error) {
	database, drop, err := postgres.Scratch(ctx, o.postgres)
	if err != nil {
		return o.work, nil, err
	}
	if err := postgres.SetClock(ctx, database, drill.ClockOff(o.work.Seed)); err != nil {
		return o.work, nil, errors.Join(err, drop(context.WithoutCancel(ctx)))
	}
	o.work.Database = database
	o.work.CutDatabase = func(ctx context.Context) error { return postgres.CutConnections(ctx, database) }
	o.work.SetClock = func(ctx context.Context, ahead time.Duration) error { return postgres.SetClock(ctx, database, ahead) }
	o.work.DatabaseSize = func(ctx context.Context) (int64, error) { return postgres.Size(ctx, database) }
	if o.restart != "" {
		o.work.RestartDatabase = o.restartDatabase
	}
	return o.work, drop, nil
}

// restartDatabase runs the command that was named for it.
func (o *drillRun) restartDatabase(ctx context.Context) error {
	command := exec.CommandContext(ctx, "/bin/sh", "-c", o.restart)
	command.Env = drill.WithoutSettings(o.Environ)
	said, err := command.CombinedOutput()
	if err != nil {
		return task.Wrap(task.NotReady, fmt.Errorf("%w: %s", err, said), "the database is not restarted")
	}
	return nil
}
