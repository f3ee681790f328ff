package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/toryo-dev/toryo/internal/app/cli"
	"github.com/toryo-dev/toryo/internal/app/config"
	demostory "github.com/toryo-dev/toryo/internal/app/demo"
	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/git"
	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/task"
)

type demo struct {
	site.Program
	data     string
	json     bool
	stay     bool
	provider string
	model    string
}

// Demo is the command toryo demo.
func Demo(p site.Program) *cobra.Command {
	o := demo{Program: p}
	c := &cobra.Command{
		Use:   "demo",
		Short: "Try Toryo without an account, a model key or Docker",
		Long: `See one task from issue to reviewed pull request. A sample repository with a failing
test lies on the built-in board; an issue about it is assigned to the bot, which plans,
builds an environment in a sandbox, fixes the code, takes up a comment on the way, runs
the tests, opens a pull request and reviews it.

It needs git, and Docker or, on Linux, Go. On Linux without Docker and bubblewrap the
sandbox is Landlock, which the kernel brings.

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
	cli.CompleteFlag(c, "provider", "anthropic", "openai", "gemini")
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
	begun := o.Now()
	engine, note, err := o.needs(ctx, c)
	if err != nil {
		return err
	}
	if err := o.introduce(c, note); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	quiet := o.Program
	quiet.Stdout = io.Discard // what the server says is not part of the story
	return site.Serve(ctx, quiet, c, "demo", func(ctx context.Context, running site.Instance) error {
		defer stop() // when the story is over, so is the server
		return o.play(ctx, running, engine, begun)
	})
}

// config is that of an embedded server whose reviews are due at once. Of the
// environment only what is about sandboxes counts: a demo has nothing to do with
// forges and databases that are configured.
func (o demo) config() (config.Config, error) {
	c := config.Default()
	var about []string
	for _, variable := range o.Environ {
		if strings.HasPrefix(variable, "TORYO_SANDBOX_") {
			about = append(about, variable)
		}
	}
	loaded, report := config.Load("", about, nil)
	if err := report.Err(); err != nil {
		return c, err
	}
	c.Sandbox = loaded.Sandbox
	c.Server.Addr = "127.0.0.1:0"
	c.Log.Level = "warn"
	c.Review.Delay = 0
	c.SyncInterval = time.Second
	if o.provider != "" {
		if err := o.useModel(&c.LLM); err != nil {
			return c, err
		}
	}
	if c.DataDir = o.data; o.data == "" {
		made, err := os.MkdirTemp("", "toryo-demo-")
		if err != nil {
			return c, task.Wrap(task.DataDir, err, "no folder for the demo can be made")
		}
		c.DataDir = made
	}
	if err := o.fillDataDir(&c); err != nil {
		if o.data == "" {
			_ = os.RemoveAll(c.DataDir)
		}
		return c, err
	}
	return c, nil
}

// fillDataDir makes what the demo needs in its folder.
func (o demo) fillDataDir(c *config.Config) error {
	if err := site.MakeDataDir(c.DataDir); err != nil || o.provider != "" {
		return err
	}
	file, err := demostory.WriteScript(c.DataDir)
	c.LLM.Provider, c.LLM.Script = "script", file
	return err
}

// useModel sets the model that the flags name.
func (o demo) useModel(llm *config.LLM) error {
	llm.Provider, llm.Model = o.provider, o.model
	llm.APIKey = llm.FindKey(o.Environ)
	if lacks := llm.Lacking(); lacks != "" {
		return task.Errorf(task.BadConfig, "the model cannot be asked: %s", lacks).
			WithHint("name it with --model, and set its key in %s", strings.Join(llm.KeyVariables(), " or "))
	}
	_, err := site.Connect(*llm)
	return err
}

// needs makes sure that what the demo needs is there, and chooses the sandbox. The
// repository is our own, so that a weak one will do; the note says so then. It fails
// with NotReady if something is missing.
func (o demo) needs(ctx context.Context, c config.Config) (engine sandbox.Engine, note string, err error) {
	if _, err := git.Find(); err != nil {
		return nil, "", err
	}
	engines := site.EnginesOf(c, slog.New(slog.DiscardHandler))
	engines.AllowWeak = true
	toolchain, missing := goToolchain(ctx)
	if missing == nil {
		engines.Toolchains = []string{toolchain}
	}
	engine, note, err = engines.Choose(ctx, c.Sandbox.Kind)
	if err != nil {
		return nil, "", err
	}
	if engine.Capabilities().Images {
		return engine, note, nil // the image has the toolchain
	}
	if missing != nil {
		return nil, "", task.Wrap(task.NotReady, missing, "the demo's project is in Go, and a sandbox of "+engine.Name()+" has the programs of this machine").
			WithHint("install Go, see https://go.dev/doc/install; or start a Docker Engine")
	}
	return engine, note, nil
}

// goToolchain is where Go is on this machine. A sandbox sees the usual folders
// only, and Go is often in none of them.
func goToolchain(ctx context.Context) (string, error) {
	said, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	return strings.TrimSpace(string(said)), err
}

func (o demo) introduce(c config.Config, note string) error {
	if o.json {
		return nil
	}
	model := "The answers come from a script, not from a model. Everything else is real.\nFor a real one: toryo demo --provider anthropic --model NAME, with ANTHROPIC_API_KEY set."
	if c.LLM.Provider != "script" {
		model = fmt.Sprintf("The model is %s of %s.", c.LLM.Model, c.LLM.Provider)
	}
	if note != "" {
		note = "The sandbox is a weak one: " + note + ".\n"
	}
	_, err := fmt.Fprintf(o.Stdout, "%s\n%s\n", model, note)
	return err
}

// play runs the agent beside the story, and ends with the latter.
func (o demo) play(ctx context.Context, running site.Instance, engine sandbox.Engine, begun time.Time) error {
	if err := running.Board.AddUser(ctx, hanako, forge.AdminAccess); err != nil {
		return err
	}
	story := demostory.Story{
		Person: running.Board.As(hanako), Journal: running.Store, Bot: site.BoardBot, ReviewLabel: running.Config.Review.Label,
		Print: func(scene demostory.Scene) error { return o.show(scene, o.Now().Sub(begun)) }, Now: o.Now,
		Waits: func(ctx context.Context) (string, error) { return waitsText(ctx, running) },
	}
	quiet := o.Program
	quiet.Stdout = io.Discard
	working, stop := context.WithCancel(ctx)
	group, working := errgroup.WithContext(working)
	group.Go(func() error { return site.RunAgent(working, quiet, running, engine) })
	group.Go(func() error {
		defer stop()
		if err := story.Play(working); err != nil {
			return err
		}
		return o.finish(working, running, o.Now().Sub(begun))
	})
	return group.Wait()
}

// finish says where everything lies, and stays if that was asked for.
func (o demo) finish(ctx context.Context, running site.Instance, took time.Duration) error {
	if o.json {
		if err := o.show(demostory.Scene{Kind: "end", Text: "done"}, took); err != nil {
			return err
		}
	} else if _, err := fmt.Fprintf(o.Stdout, "\nDone in %.1f s: issue, plan, environment, comment, tests, pull request, review.\n", took.Seconds()); err != nil {
		return err
	}
	if o.data != "" && !o.json {
		if _, err := fmt.Fprintf(o.Stdout, `Everything is in %s:
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
	if err := invite(ctx, o.Stdout, running); err != nil {
		return err
	}
	_, err := fmt.Fprintln(o.Stdout, "The pages stay open until Ctrl-C.")
	<-ctx.Done()
	return err
}

func (o demo) show(scene demostory.Scene, at time.Duration) error {
	if !o.json {
		_, err := fmt.Fprintf(o.Stdout, "%s\n", scene.Text)
		return err
	}
	return json.NewEncoder(o.Stdout).Encode(struct {
		Milliseconds int64 `json:"ms"`
		demostory.Scene
	}{at.Milliseconds(), scene})
}
