package command

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/toryo-dev/toryo/internal/app/cli"
	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/llm/script"
	"github.com/toryo-dev/toryo/internal/server"
	"github.com/toryo-dev/toryo/internal/task"
)

// Script is the command toryo script.
func Script(p site.Program) *cobra.Command {
	return cli.Group("script", "Check and serve scripts for the scripted model", scriptCheckCommand(p), scriptServeCommand(p))
}

func scriptCheckCommand(p site.Program) *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE",
		Short: "Check a script and report its problems by line",
		Args:  cobra.ExactArgs(1),
		RunE:  func(_ *cobra.Command, args []string) error { return checkScript(p, args[0]) },
	}
}

func checkScript(p site.Program, file string) error {
	loaded, err := script.Load(file)
	if wrong, ok := errors.AsType[*script.ProblemsError](err); ok {
		for _, problem := range wrong.List {
			if _, err := fmt.Fprintln(p.Stdout, problem); err != nil {
				return err
			}
		}
		return task.Wrap(task.BadConfig, cli.ErrReported, fmt.Sprintf("%d problems", len(wrong.List)))
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.Stdout, "%s: ok (model %s, rules: %d)\n", file, loaded.Model, len(loaded.Rules))
	return err
}

type scriptServe struct {
	site.Program
	addr string
}

func scriptServeCommand(p site.Program) *cobra.Command {
	o := scriptServe{Program: p}
	c := &cobra.Command{
		Use:   "serve FILE",
		Short: "Serve a script over HTTP with the APIs of model providers",
		Long: `Serve a script until interrupted, in the wire formats of Anthropic (Messages), OpenAI
(Chat Completions and Responses) and Gemini. Set llm.base_url to the address that is
printed; for openai, with /v1 at its end. Any key is taken.`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return o.run(c.Context(), args[0]) },
	}
	c.Flags().StringVar(&o.addr, "addr", "127.0.0.1:8751", "address to listen on (`HOST:PORT`)")
	return c
}

func (o scriptServe) run(ctx context.Context, file string) error {
	loaded, err := script.Load(file)
	if err != nil {
		return err
	}
	listener, err := server.Listen(ctx, o.addr)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(o.Stdout, "listening on http://%s\n", listener.Addr()); err != nil {
		return errors.Join(err, listener.Close())
	}
	return script.Serve(ctx, loaded, listener)
}
