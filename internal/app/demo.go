package app

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/toryo-dev/toryo/internal/app/config"
)

type demo struct {
	program
	data string
}

func (p program) demoCommand() *cobra.Command {
	o := demo{program: p}
	c := &cobra.Command{
		Use:   "demo",
		Short: "See it work, with no account, no key and no Docker",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return o.run(c.Context()) },
	}
	c.Flags().StringVar(&o.data, "data", "", "keep everything in this `DIR` (default: a folder that goes afterwards)")
	return c
}

// missing is what the demo cannot show yet.
const missing = `
What you saw: a server on SQLite with its API and board, and an agent that signs in.
What you can try by itself: toryo board, toryo env, toryo llm try.
What is still missing before this is the whole job:
  - making tasks of issues, and handing them to agents
  - the phases of a run, from plan to pull request
docs/specification.md says of every rule whether it works.
`

func (o demo) run(ctx context.Context) (err error) {
	c := config.Default()
	c.Server.Addr = "127.0.0.1:0"
	c.Log.Level = "warn"
	c.DataDir = o.data
	if o.data == "" {
		if c.DataDir, err = os.MkdirTemp("", "toryo-demo-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(c.DataDir)) }()
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	return o.serve(ctx, c, "demo", func(ctx context.Context, running instance) error {
		me, err := o.checkInAgent(ctx, running)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(o.stdout, "the agent %q has checked in (server %s)\n%s", me.Name, me.Version, missing)
		stop() // this is all there is to show
		return err
	})
}
