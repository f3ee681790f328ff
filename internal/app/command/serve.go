package command

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/app/cli"
	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/task"
)

type serveOptions struct {
	site.Program
	settings cli.Settings
}

// Serve is the command toryo serve.
func Serve(p site.Program) *cobra.Command {
	o := serveOptions{Program: p}
	c := &cobra.Command{
		Use:   "serve",
		Short: "Run the server",
		Long:  "Run the server until it is interrupted. With database.driver: postgres, any number of\nservers can share the work.",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return o.run(c.Context(), "server", nil) },
	}
	o.settings.Bind(c, cli.DataFlag, cli.AddrFlag)
	return c
}

// Up is the command toryo up.
func Up(p site.Program) *cobra.Command {
	o := serveOptions{Program: p}
	c := &cobra.Command{
		Use:   "up",
		Short: "Run server and agent in one process",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return o.run(c.Context(), "up", o.runUp) },
	}
	o.settings.Bind(c, cli.DataFlag, cli.AddrFlag, parallelFlag)
	return c
}

// run reads the configuration and serves until the context ends.
func (o serveOptions) run(ctx context.Context, name string, ready site.WhenReady) error {
	loaded, err := o.settings.Load(o.Program)
	if err != nil {
		return err
	}
	if o.Started, err = startedBy(&o.settings, name, isService(o.Program)); err != nil {
		return err
	}
	return site.Serve(ctx, o.Program, loaded, name, func(ctx context.Context, running site.Instance) error {
		o.settings.Warn(ctx, running.Report.Log)
		if ready == nil {
			return nil
		}
		return ready(ctx, running)
	})
}

// startedBy says how a server is started again, by what it was told of its configuration.
func startedBy(settings *cli.Settings, name string, service bool) (site.Started, error) {
	given := settings.FileOrDefault()
	full, err := filepath.Abs(cmp.Or(given, cli.DefaultFile))
	if err != nil {
		return site.Started{}, task.Wrap(task.BadConfig, err, "the configuration cannot be found")
	}
	return startedWith(site.Started{File: full, Given: given, Overrides: settings.Given()}, name, service), nil
}

// isService reports whether systemd has started this process itself, by the variable that it sets for that.
func isService(p site.Program) bool {
	return p.Variable("SYSTEMD_EXEC_PID") == strconv.Itoa(os.Getpid())
}

// startedWith adds the command to what it was told of its configuration.
func startedWith(started site.Started, name string, service bool) site.Started {
	started.Command, started.OwnAgent = "toryo serve", name == "up"
	if started.OwnAgent {
		started.Command = "toryo up"
	}
	if config.HasServices(started.File) && service {
		started.Service = map[bool]string{true: "toryo-up", false: "toryo"}[started.OwnAgent]
	}
	started.Command += " --config " + site.Quoted(started.File)
	for _, flag := range []cli.Flag{cli.DataFlag, cli.AddrFlag, parallelFlag} {
		if value := started.Overrides[flag.Key]; value != "" {
			started.Command += " --" + flag.Name + " " + site.Quoted(value)
		}
	}
	return started
}

// runUp invites to the pages, works, and says what tasks wait for.
func (o serveOptions) runUp(ctx context.Context, running site.Instance) error {
	if err := invite(ctx, o.Stdout, running); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return site.RunAgent(ctx, o.Program, running, nil) })
	group.Go(func() error { return printWaits(ctx, o.Stdout, running) })
	return group.Wait()
}

// invite prints a link by which whoever started the program enters its pages. It
// is for this machine alone: a server that others reach asks for a password.
func invite(ctx context.Context, out io.Writer, running site.Instance) error {
	address, err := url.Parse(running.URL)
	if err != nil {
		return err
	}
	if ip := net.ParseIP(address.Hostname()); ip == nil || !ip.IsLoopback() {
		_, err := fmt.Fprintln(out, "pages: sign in with an account created with toryo user create")
		return err
	}
	person, err := access.People{Store: running.Store}.Here(ctx, personHere())
	if task.CodeOf(err) == task.Conflict {
		_, err := fmt.Fprintf(out, "pages: there is no link to open: %v\n", err)
		return err
	}
	if err != nil {
		return err
	}
	path, err := running.Pages.Invite(ctx, person.Login, access.Admin)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "pages: open %s%s (works once)\n", running.URL, path)
	return err
}

// personHere is the name of whoever started the program, or one that will do.
func personHere() string { return cmp.Or(cli.MachineUser(), "admin") }
