package app

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/sandbox/egress"
	"github.com/toryo-dev/toryo/internal/task"
)

type egressCommand struct {
	program
	settings   settings
	registries string
	open       string
}

func (p commands) egressCommand() *cobra.Command {
	o := egressCommand{program: p.program}
	c := &cobra.Command{
		Use:   "egress",
		Short: "Run the filtering proxy of sandboxes by itself",
		Long: `Run the proxy through which sandboxes reach the network, as a service of its own, until
it is interrupted. It is for pods in a cluster, see deploy/kubernetes/egress.yaml: which
of its two addresses a pod may reach is for the cluster to decide. On the first it lets
package registries and sandbox.network.hosts through, on the second every public host.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c.Context()) },
	}
	o.settings.bind(c)
	c.Flags().StringVar(&o.registries, "registries", ":3128", "`ADDRESS` at which registries are let through")
	c.Flags().StringVar(&o.open, "open", ":3129", "`ADDRESS` at which every public host is let through; empty for none")
	return c
}

func (o egressCommand) run(ctx context.Context) (err error) {
	c, err := o.settings.load(o.program)
	if err != nil {
		return err
	}
	report, err := o.startTelemetry(c, "egress")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stopTelemetry(ctx, report)) }()
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
		if _, err := fmt.Fprintf(o.stdout, "%s: listening on %s\n", policy, listener.Addr()); err != nil {
			return err
		}
		proxy := egress.New(list, policy, report.Log)
		serving.Go(func() error { return proxy.Listen(ctx, listener) })
	}
	return serving.Wait()
}
