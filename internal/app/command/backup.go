package command

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toryo-dev/toryo/internal/app/cli"
	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/backup"
	"github.com/toryo-dev/toryo/internal/owner"
	"github.com/toryo-dev/toryo/internal/store"
)

type backupOptions struct {
	site.Program
	settings cli.Settings
}

// Backup is the command toryo backup.
func Backup(p site.Program) *cobra.Command {
	o := backupOptions{Program: p}
	c := &cobra.Command{
		Use:   "backup FILE",
		Short: "Write a backup, also while a server runs",
		Long: `Write a backup of the data directory to a file that is not there yet. Servers and agents
may run meanwhile.

In it are: the SQLite database, the repositories of the board, what tasks have pushed, and
the token of an agent with this data directory. They are secrets: the file is readable for
you only, and is not encrypted.
Not in it are: the configuration and the secrets in it, sandboxes, snapshots, workspaces and
the context files of agents.

A PostgreSQL database is not in it either. The command first says how to dump it. Dump it
before, then write the backup.`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return o.backup(c.Context(), args[0]) },
	}
	o.settings.Bind(c, cli.DataFlag)
	return c
}

// Restore is the command toryo restore.
func Restore(p site.Program) *cobra.Command {
	o := backupOptions{Program: p}
	c := &cobra.Command{
		Use:   "restore FILE",
		Short: "Restore a backup, and end all runs",
		Long: `Restore a backup that toryo backup wrote into a data directory without a database.

No server and no agent may use the data directory. Tasks that were running when the backup
was made are queued again. Agents that work on a task since then can write nothing any more.
Everybody has to sign in again. Tokens that were revoked since are valid again: revoke them
again.

With PostgreSQL stop all servers, restore the dump into an empty database, and then run this:
  pg_restore --exit-on-error --single-transaction --no-owner --dbname=NAME toryo.dump
  toryo restore FILE`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return o.restore(c.Context(), args[0]) },
	}
	o.settings.Bind(c, cli.DataFlag)
	return c
}

// report says on standard error what is being done.
func (o *backupOptions) report(what string) {
	_, _ = fmt.Fprintln(o.Stderr, what) // whoever cannot see it can still wait
}

func (o *backupOptions) backup(ctx context.Context, file string) error {
	return cli.WithData(ctx, o.Program, &o.settings, cli.Fail, func(loaded config.Config, database store.Store) error {
		missing := "The configuration and its secrets are not in it."
		if loaded.Database.Driver == "postgres" {
			missing = "The database, the configuration and its secrets are not in it."
			if err := o.printDump(loaded); err != nil {
				return err
			}
		}
		var made backup.Manifest
		err := cli.Audited(ctx, o.Program, database, "data.backup", file, func() (err error) {
			made, err = site.Backup{Config: loaded, Store: database, Report: o.report}.Write(ctx, file)
			return err
		})
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(o.Stdout, "%s has %s in %d files, as of %s\n%s\n",
			file, cli.Size(made.Bytes()), len(made.Entries), made.CreatedAt.Format(cli.Minutes), missing)
		return err
	})
}

// printDump says how the PostgreSQL database is dumped, which has to be done before.
func (o *backupOptions) printDump(loaded config.Config) error {
	dump, err := site.DumpCommand(loaded)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(o.Stdout, "The database is dumped by another command, and that has to be done before this one:\n  %s\nIf it was not, dump it now, and then write another backup.\n", dump)
	return err
}

func (o *backupOptions) restore(ctx context.Context, file string) error {
	loaded, err := o.settings.LoadData(o.Program)
	if err != nil {
		return err
	}
	if err := o.settings.CheckDatabase(); err != nil {
		return err
	}
	if err := o.settings.CheckNamed(loaded); err != nil {
		return err
	}
	done, err := site.Restore{
		Config: loaded, Report: o.report, Now: o.Now, Log: slog.New(slog.NewTextHandler(o.Stderr, nil)),
	}.Run(ctx, file)
	if err != nil {
		return err
	}
	if err := owner.GiveTree(loaded.DataDir, "."); err != nil {
		return err
	}
	lines := []string{
		fmt.Sprintf("restored the backup of %s into %s", done.Manifest.CreatedAt.Format(cli.Minutes), loaded.DataDir),
		fmt.Sprintf("%d tasks have not ended; %d were running, and are queued", done.Fenced.Active, done.Fenced.Requeued),
	}
	for _, path := range done.Left {
		lines = append(lines, path+" was there already, and is left as it is")
	}
	lines = append(lines, "Tokens that were revoked since then are valid again: see toryo token list and toryo agent list.")
	_, err = fmt.Fprintln(o.Stdout, strings.Join(lines, "\n"))
	return err
}
