package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/toryo-dev/toryo/internal/app/config"
	demostory "github.com/toryo-dev/toryo/internal/app/demo"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

type demo struct {
	program
	data     string
	json     bool
	stay     bool
	provider string
	model    string
}

func (p program) demoCommand() *cobra.Command {
	o := demo{program: p}
	c := &cobra.Command{
		Use:   "demo",
		Short: "See it work, with no account, no key and no Docker",
		Long: `See one task from issue to reviewed pull request. A sample repository with a failing
test lies on the built-in board; an issue about it is assigned to the bot, which plans,
builds an environment in a sandbox, mends the code, takes up a comment on the way, runs
the tests, opens a pull request and reviews it.

The model follows a script, so that no account is needed. With --provider and --model a
real one does the work; its key is in TORYO_LLM_API_KEY or in the variable of the
provider: ANTHROPIC_API_KEY, OPENAI_API_KEY, or GOOGLE_API_KEY or GEMINI_API_KEY.`,
		Example: `  toryo demo
  toryo demo --data ./demo --stay
  toryo demo --provider anthropic --model NAME`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c.Context()) },
	}
	c.Flags().StringVar(&o.data, "data", "", "keep everything in this `DIR` (default: a folder that goes afterwards)")
	c.Flags().BoolVar(&o.json, "json", false, "print events as JSON, one to a line")
	c.Flags().BoolVar(&o.stay, "stay", false, "keep the pages open at the end, until Ctrl-C")
	c.Flags().StringVar(&o.provider, "provider", "", "let a real model do the work: anthropic, openai or gemini")
	c.Flags().StringVar(&o.model, "model", "", "name of that model")
	return c
}

// hanako is who writes the issue and the comment.
const hanako = "hanako"

func (o demo) run(ctx context.Context) (err error) {
	c, err := o.config()
	if err != nil {
		return err
	}
	if o.data == "" {
		defer func() { err = errors.Join(err, os.RemoveAll(c.DataDir)) }()
	}
	begun := o.now()
	if err := o.introduce(c); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	quiet := o.program
	quiet.stdout = o.stderr // what the server says is not part of the story
	return quiet.serve(ctx, c, "demo", func(ctx context.Context, running instance) error {
		defer stop() // when the story is over, so is the server
		return o.play(ctx, running, begun)
	})
}

// config is that of an embedded server whose reviews are due at once.
func (o demo) config() (config.Config, error) {
	c := config.Default()
	c.Server.Addr = "127.0.0.1:0"
	c.Log.Level = "warn"
	c.Review.Delay = 0
	c.SyncInterval = time.Second
	if o.provider != "" {
		if err := o.useModel(&c.LLM); err != nil {
			return c, err
		}
	}
	c.DataDir = o.data
	if o.data == "" {
		made, err := os.MkdirTemp("", "toryo-demo-")
		if err != nil {
			return c, err
		}
		c.DataDir = made
	}
	if err := makeDataDir(c.DataDir); err != nil {
		return c, err
	}
	if o.provider != "" {
		return c, nil
	}
	file, err := demostory.WriteScript(c.DataDir)
	c.LLM.Provider, c.LLM.Script = "script", file
	return c, err
}

// useModel sets the model that the flags name.
func (o demo) useModel(llm *config.LLM) error {
	llm.Provider, llm.Model = o.provider, o.model
	llm.APIKey = llm.FindKey(o.environ)
	if lacks := llm.Lacking(); lacks != "" {
		return task.Errorf(task.BadConfig, "the model cannot be asked: %s", lacks).
			WithMend("name it with --model, and set its key in %s", strings.Join(llm.KeyVariables(), " or "))
	}
	_, err := connect(*llm)
	return err
}

func (o demo) introduce(c config.Config) error {
	if o.json {
		return nil
	}
	model := "The model is scripted: what it says was written beforehand. Everything else is real.\nFor a real one: toryo demo --provider anthropic --model NAME, with ANTHROPIC_API_KEY set."
	if c.LLM.Provider != "script" {
		model = fmt.Sprintf("The model is %s of %s.", c.LLM.Model, c.LLM.Provider)
	}
	_, err := fmt.Fprintln(o.stdout, model+"\n")
	return err
}

// play runs the agent beside the story, and ends with the latter.
func (o demo) play(ctx context.Context, running instance, begun time.Time) error {
	if err := running.board.AddUser(ctx, hanako, forge.AdminAccess); err != nil {
		return err
	}
	story := demostory.Story{
		Person: running.board.As(hanako), Journal: running.store, Bot: boardBot, ReviewLabel: running.config.Review.Label,
		Tell: func(scene demostory.Scene) error { return o.tell(scene, o.now().Sub(begun)) },
	}
	quiet := serve{program: o.program}
	quiet.stdout = o.stderr
	working, stop := context.WithCancel(ctx)
	group, working := errgroup.WithContext(working)
	group.Go(func() error { return quiet.runAgent(working, running) })
	group.Go(func() error {
		defer stop()
		if err := story.Play(working); err != nil {
			return err
		}
		return o.finish(working, running, o.now().Sub(begun))
	})
	return group.Wait()
}

// finish says where everything lies, and stays if that was asked for.
func (o demo) finish(ctx context.Context, running instance, took time.Duration) error {
	if o.json {
		if err := o.tell(demostory.Scene{Kind: "end", Text: "done"}, took); err != nil {
			return err
		}
	} else if _, err := fmt.Fprintf(o.stdout, "\nDone in %.1f s: issue, plan, environment, comment, tests, pull request, review.\n", took.Seconds()); err != nil {
		return err
	}
	if o.data != "" && !o.json {
		if _, err := fmt.Fprintf(o.stdout, `Everything is in %s:
  %[1]s/contexts/completed   the journal of the run; see it with toryo replay --data %[1]s
  %[1]s/board                the repository, to clone and look at
  %[1]s/toryo.db             tasks, events, the board
`, o.data); err != nil {
			return err
		}
	}
	if !o.stay {
		return nil
	}
	if err := (serve{program: o.program}).invite(ctx, running); err != nil {
		return err
	}
	_, err := fmt.Fprintln(o.stdout, "The pages stay open until Ctrl-C.")
	<-ctx.Done()
	return err
}

func (o demo) tell(scene demostory.Scene, at time.Duration) error {
	if !o.json {
		_, err := fmt.Fprintf(o.stdout, "%s\n", scene.Text)
		return err
	}
	return json.NewEncoder(o.stdout).Encode(struct {
		Milliseconds int64 `json:"ms"`
		demostory.Scene
	}{at.Milliseconds(), scene})
}
