package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/toryo-dev/toryo/internal/app/cli"
	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// Data is the command toryo data.
func Data(p site.Program) *cobra.Command {
	return cli.Group("data", "See what takes space, and remove what was kept for long enough",
		dataUsageCommand(p), dataPruneCommand(p))
}

// onData is what both commands have.
type onData struct {
	site.Program
	settings cli.Settings
	json     bool
}

func (o *onData) bind(c *cobra.Command) {
	o.settings.Bind(c, cli.DataFlag)
	c.Flags().BoolVar(&o.json, "json", false, "print JSON")
}

func (o *onData) withData(ctx context.Context, do func(config.Config, store.Store) error) error {
	return cli.WithData(ctx, o.Program, &o.settings, cli.Fail, do)
}

func dataUsageCommand(p site.Program) *cobra.Command {
	o := onData{Program: p}
	c := &cobra.Command{
		Use:   "usage",
		Short: "Show what takes space: tables, mirrors, contexts, snapshots",
		Long:  "Show what takes space: the tables of the database with their indexes, and the folders of\nthe data directory on this machine. Nothing is changed. Servers and agents may run.",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return o.usage(c.Context()) },
	}
	o.bind(c)
	return c
}

func (o *onData) usage(ctx context.Context) error {
	return o.withData(ctx, func(loaded config.Config, database store.Store) error {
		all, err := site.DataUsage(ctx, loaded, database)
		if err != nil {
			return err
		}
		if o.json {
			return cli.PrintJSON(o.Stdout, map[string]any{"usage": all})
		}
		table := tabwriter.NewWriter(o.Stdout, 0, 0, 2, ' ', 0)
		_, _ = fmt.Fprintln(table, "WHAT\tCOUNT\tSIZE\tWHERE") // Flush reports what went wrong
		for _, one := range all {
			_, _ = fmt.Fprintf(table, "%s\t%d\t%s\t%s\n", one.What, one.Count, cli.Size(one.Bytes), one.Where)
		}
		return table.Flush()
	})
}

func dataPruneCommand(p site.Program) *cobra.Command {
	o := onData{Program: p}
	var how pruneFlags
	c := &cobra.Command{
		Use:   "prune [--dry-run | --yes]",
		Short: "Remove data that is older than the retention section allows",
		Long:  "Remove data that is older than the retention section of the configuration allows. Servers\nand agents do so automatically every hour; what is in their folders is left to them while\nthey run. Nothing of a task goes that has not ended. The periods are printed first, and on a\nterminal you are asked.",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return o.prune(c.Context(), how) },
	}
	o.bind(c)
	c.Flags().BoolVar(&how.dry, "dry-run", false, "only show what would be removed")
	c.Flags().BoolVar(&how.yes, "yes", false, "do not ask")
	return c
}

type pruneFlags struct{ dry, yes bool }

func (o *onData) prune(ctx context.Context, how pruneFlags) error {
	return o.withData(ctx, func(loaded config.Config, database store.Store) error {
		dry, periods := how.dry, loaded.Retention.Summary()
		_, _ = fmt.Fprintln(o.Stderr, "days for which what is kept (0 is for ever): "+periods) // they are in the audit too
		if !how.dry && !how.yes {
			if err := o.confirm(); err != nil {
				return err
			}
		}
		var all []site.Removal
		prune := func() (err error) {
			log := slog.New(slog.NewTextHandler(o.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
			all, err = site.Pruning{Config: loaded, Store: database, DryRun: dry, Log: log}.Run(ctx)
			return err
		}
		if !dry {
			once := prune
			prune = func() error { return cli.Audited(ctx, o.Program, database, "data.prune", "retention "+periods, once) }
		}
		failed := prune() // what went is printed all the same
		if failed != nil && len(all) == 0 {
			return failed
		}
		return errors.Join(failed, o.printRemovals(all, dry))
	})
}

// confirm asks whoever sits at a terminal. Without one nobody can answer.
func (o *onData) confirm() error {
	file, is := o.Stdin.(*os.File)
	if !is || !term.IsTerminal(int(file.Fd())) {
		return task.Errorf(task.Usage, "there is no terminal to ask at; nothing was removed").WithHint("give --yes, or --dry-run to see what would go")
	}
	_, _ = fmt.Fprint(o.Stderr, "Remove what is older? [y/N] ") // who cannot see it can still answer
	answer, err := bufio.NewReader(file).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return task.Wrap(task.Usage, err, "the answer cannot be read")
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return task.Errorf(task.Usage, "nothing was removed").WithHint("answer y, or give --yes")
}

func (o *onData) printRemovals(all []site.Removal, dry bool) error {
	if o.json {
		return cli.PrintJSON(o.Stdout, map[string]any{"dry_run": dry, "removed": all})
	}
	heading := "REMOVED"
	if dry {
		heading = "WOULD GO"
	}
	table := tabwriter.NewWriter(o.Stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, heading+"\tCOUNT\tSIZE\tNOTE") // Flush reports what went wrong
	for _, one := range all {
		_, _ = fmt.Fprintf(table, "%s\t%d\t%s\t%s\n", one.What, one.Count, cli.Size(one.Bytes), cli.OrDash(one.Note))
	}
	return table.Flush()
}
