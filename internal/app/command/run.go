package command

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/toryo-dev/toryo/internal/agent"
	"github.com/toryo-dev/toryo/internal/agent/contexts"
	"github.com/toryo-dev/toryo/internal/agent/local"
	"github.com/toryo-dev/toryo/internal/app/cli"
	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/journal"
	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/messages"
	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
	"github.com/toryo-dev/toryo/internal/wire"
)

type runOptions struct {
	site.Program
	settings cli.Settings
	repo     string
	issue    string
	branch   string
}

// Run is the command toryo run.
func Run(p site.Program) *cobra.Command {
	o := runOptions{Program: p}
	c := &cobra.Command{
		Use:   "run --repo PATH --issue FILE|TEXT",
		Short: "Run one task on a local repository; the result is a branch",
		Long: `Do one task on a repository of this machine with the configured model, without a server
or a forge. The work is done on a clone in a sandbox; what comes of it is left as a
branch in the repository. Its checked-out files and other branches are not touched.

The first line of the issue is its title.`,
		Example: `  toryo run --repo . --issue "Make the gate close by itself"
  toryo run --repo ~/code/app --issue issue.md --branch toryo/gate`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c.Context()) },
	}
	o.settings.Own()
	o.settings.Bind(c, cli.DataFlag)
	c.Flags().StringVar(&o.repo, "repo", ".", "`PATH` of the repository")
	c.Flags().StringVar(&o.issue, "issue", "", "what to do: a `FILE`, or the text itself")
	c.Flags().StringVar(&o.branch, "branch", "", "name of the `BRANCH` (default: made from the title)")
	return c
}

func (o runOptions) run(ctx context.Context) (err error) {
	c, err := o.settings.Load(o.Program)
	if err != nil {
		return err
	}
	work, err := o.work()
	if err != nil {
		return err
	}
	report, err := site.StartTelemetry(o.Program, c, "run")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, site.StopTelemetry(ctx, report)) }()
	result, id, err := local.Run(ctx, agent.Run{
		Work: work, Assignment: wire.Assignment{TaskID: string(work.Task), Generation: work.Generation},
		Forge: local.Forge{Out: o.Stdout, Repository: o.repo}, Log: report.Log,
		Spending: local.Spending{Ledger: llm.NewMemoryLedger(site.LimitsOf(c.Budget), o.Now), Task: work.Task},
	}, local.Options{
		Executor: func(ctx context.Context) (agent.Executor, error) { return o.executor(ctx, c, report.Log) }, Shown: printed{o.Program},
		Contexts: c.ContextsPath(), Journal: contexts.Options{Redactor: c.Redactor(), Log: report.Log, Now: o.Now},
	})
	if id == "" { // there is no result
		return err
	}
	return errors.Join(err, o.conclude(result, id))
}

// executor is what does the task.
func (o runOptions) executor(ctx context.Context, c config.Config, log *slog.Logger) (agent.Executor, error) {
	engines := site.EnginesOf(c, log)
	engines.AllowWeak = true // it is the user's own repository
	engine, warning, err := engines.Choose(ctx, c.Sandbox.Kind)
	if err != nil {
		return nil, err
	}
	if warning != "" {
		fmt.Fprintln(o.Stderr, warning)
	}
	builtIn, err := site.NewBuiltIn(o.Program, c, engine, localOwner, new(llm.Outages), log)
	if err != nil {
		return nil, err
	}
	return builtIn.Development(), nil
}

// localOwner is who sandboxes of this command belong to.
const localOwner = "run"

// longestBranch is how much of the title is in the name of a branch.
const longestBranch = 40

// work is the task that the flags describe.
func (o runOptions) work() (phase.Work, error) {
	text := o.issue
	if content, err := os.ReadFile(o.issue); err == nil {
		text = string(content)
	} else if o.issue != "" && !strings.ContainsAny(o.issue, " \n") {
		return phase.Work{}, task.Wrap(task.Usage, err, "the issue cannot be read").WithHint("give a file, or a text of several words")
	}
	title, body, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if title == "" {
		return phase.Work{}, task.Errorf(task.Usage, "there is nothing to do").WithHint("say what with --issue")
	}
	branch := o.branch
	if branch == "" {
		branch = "toryo/" + cmp.Or(strings.TrimRight(textfmt.Clip(textfmt.Slug(title, len(title)), longestBranch), "-"), "task")
	}
	folder, err := filepath.Abs(o.repo)
	if err != nil {
		return phase.Work{}, task.Wrap(task.NotFound, err, "the repository cannot be found").WithHint("name it with --repo")
	}
	return phase.Work{
		Task: task.ID(uuid.NewString()), Generation: 1, Type: task.Development, Folder: folder,
		Title: strings.TrimSpace(title), Body: strings.TrimSpace(body), Branch: branch,
		Author: phase.Person{Login: personHere(), Access: "admin"},
	}, nil
}

// conclude says how the run ended.
func (o runOptions) conclude(result wire.Result, id string) error {
	if result.Comment != "" {
		fmt.Fprintf(o.Stdout, "\n%s\n", textfmt.Plain(result.Comment))
	}
	fmt.Fprintf(o.Stdout, "\nthe journal of the run: toryo replay %s%s\n", id, o.settings.PlaceFlags())
	state := task.State(result.Outcome)
	if state.Succeeded() {
		return nil
	}
	return task.Errorf(task.Conflict, "the run ended as %s: %s", state, messages.Reason(task.English, task.Reason(result.Reason))).
		WithHint("toryo replay %s%s --full shows what it did", id, o.settings.PlaceFlags())
}

// printed shows entries of a journal on the terminal.
type printed struct{ site.Program }

// Append implements phase.Journal.
func (p printed) Append(_ context.Context, kind task.EventKind, entry phase.Entry) error {
	switch kind {
	case task.MessageSent, task.ModelUsed: // too much to read along
		return nil
	}
	data, err := json.Marshal(entry)
	if err != nil {
		return fmt.Errorf("print an entry: %w", err)
	}
	text := describe(journal.Read(task.Event{Kind: kind, Data: data}))
	_, err = fmt.Fprintf(p.Stdout, "%-8s %s\n", kind, strings.ReplaceAll(shortened(textfmt.Plain(text), "toryo replay --full has them"), "\n", "\n         "))
	return err
}
