package command

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/toryo-dev/toryo/internal/app/cli"
	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/sandbox/egress"
	"github.com/toryo-dev/toryo/internal/task"
)

type egressOptions struct {
	site.Program
	settings   cli.Settings
	registries string
	open       string
}

// Egress is the command toryo egress.
func Egress(p site.Program) *cobra.Command {
	o := egressOptions{Program: p}
	c := &cobra.Command{
		Use:   "egress",
		Short: "Run only the filtering proxy of sandboxes",
		Long: `Run the proxy through which sandboxes reach the network, as a service of its own, until
it is interrupted. It is for pods in a cluster, see deploy/kubernetes/egress.yaml: which
of its two addresses a pod may reach is for the cluster to decide. On the first it lets
package registries and sandbox.network.hosts through, on the second every public host.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c.Context()) },
	}
	o.settings.Bind(c)
	c.Flags().StringVar(&o.registries, "registries", ":3128", "`ADDRESS` at which registries are let through")
	c.Flags().StringVar(&o.open, "open", ":3129", "`ADDRESS` at which every public host is let through; empty for none")
	return c
}

func (o egressOptions) run(ctx context.Context) (err error) {
	c, err := o.settings.Load(o.Program)
	if err != nil {
		return err
	}
	report, err := site.StartTelemetry(o.Program, c, "egress")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, site.StopTelemetry(ctx, report)) }()
	list, err := egress.Registries(c.Sandbox.Network.Hosts...)
	if err != nil {
		return err
	}
	serving, ctx := errgroup.WithContext(ctx)
	for policy, address := range map[sandbox.Policy]string{sandbox.Registries: o.registries, sandbox.OpenWorld: o.open} {
		if address == "" {
			continue
		}
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
		if err != nil {
			return task.Wrap(task.AddressInUse, err, "the proxy cannot listen on "+address)
		}
		if _, err := fmt.Fprintf(o.Stdout, "%s: listening on %s\n", policy, listener.Addr()); err != nil {
			return err
		}
		proxy := egress.New(list, policy, report.Log)
		serving.Go(func() error { return proxy.Listen(ctx, listener) })
	}
	return serving.Wait()
}
