package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/toryo-dev/toryo/internal/agent"
	"github.com/toryo-dev/toryo/internal/agent/contexts"
	"github.com/toryo-dev/toryo/internal/agent/workspace"
	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

type runCommand struct {
	program
	settings settings
	repo     string
	issue    string
	branch   string
}

func (p commands) runCommand() *cobra.Command {
	o := runCommand{program: p.program}
	c := &cobra.Command{
		Use:   "run --repo PATH --issue FILE|TEXT",
		Short: "Do one task on a local repository, and leave a branch",
		Long: `Do one task on a repository of this machine with the configured model, without a server
or a forge. The work is done on a clone in a sandbox; what comes of it is left as a
branch in the repository. Its checked-out files and other branches are not touched.

The first line of the issue is its title.`,
		Example: `  toryo run --repo . --issue "Make the gate close by itself"
  toryo run --repo ~/code/app --issue issue.md --branch toryo/gate`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c.Context()) },
	}
	o.settings.bind(c, dataFlag)
	c.Flags().StringVar(&o.repo, "repo", ".", "`PATH` of the repository")
	c.Flags().StringVar(&o.issue, "issue", "", "what is to be done: a `FILE`, or the text itself")
	c.Flags().StringVar(&o.branch, "branch", "", "name of the `BRANCH` (default: made from the title)")
	return c
}

func (o runCommand) run(ctx context.Context) (err error) {
	c, err := o.settings.load(o.program)
	if err != nil {
		return err
	}
	work, err := o.work()
	if err != nil {
		return err
	}
	report, err := o.startTelemetry(c, "run")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stopTelemetry(ctx, report)) }()
	engines := enginesOf(c, report.Log)
	engines.AllowWeak = true // it is the user's own repository
	engine, warning, err := engines.Choose(ctx, c.Sandbox.Kind)
	if err != nil {
		return err
	}
	if warning != "" {
		fmt.Fprintln(o.stderr, warning)
	}
	builtIn, err := o.newBuiltIn(c, engine, localOwner, report.Log)
	if err != nil {
		return err
	}
	return o.carryOut(ctx, c, builtIn, agent.Run{
		Work: work, Assignment: wire.Assignment{TaskID: string(work.Task), Generation: work.Generation},
		Desk: localDesk{o.program, o.repo}, Log: report.Log,
		Spending: localSpending{llm.NewMemoryLedger(limitsOf(c.Budget), o.now), work.Task},
	})
}

// localOwner is who sandboxes of this command belong to.
const localOwner = "run"

// work is the task that the flags describe.
func (o runCommand) work() (phase.Work, error) {
	text := o.issue
	if content, err := os.ReadFile(o.issue); err == nil {
		text = string(content)
	} else if o.issue != "" && !strings.ContainsAny(o.issue, " \n") {
		return phase.Work{}, task.Wrap(task.Usage, err, "the issue cannot be read").WithMend("give a file, or a text of several words")
	}
	title, body, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if title == "" {
		return phase.Work{}, task.Errorf(task.Usage, "there is nothing to do").WithMend("say what with --issue")
	}
	branch := o.branch
	if branch == "" {
		branch = "toryo/" + slug(title)
	}
	folder, err := filepath.Abs(o.repo)
	if err != nil {
		return phase.Work{}, task.Wrap(task.NotFound, err, "the repository cannot be found")
	}
	return phase.Work{
		Task: task.ID(uuid.NewString()), Generation: 1, Type: task.Development, Folder: folder,
		Title: strings.TrimSpace(title), Body: strings.TrimSpace(body), Branch: branch,
		Author: phase.Person{Login: personHere(), Access: "admin"},
	}, nil
}

// slug makes part of a branch's name from a title.
func slug(title string) string {
	words := strings.FieldsFunc(strings.ToLower(title), func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	text := strings.Join(words, "-")
	if text == "" {
		text = "task"
	}
	return strings.Trim(text[:min(len(text), 40)], "-")
}

// carryOut runs the phases on a clone, with the journal shown as it is written.
func (o runCommand) carryOut(ctx context.Context, c config.Config, builtIn *builtIn, run agent.Run) (err error) {
	folder, err := os.MkdirTemp("", "toryo-run-")
	if err != nil {
		return task.Wrap(task.DataDir, err, "no folder for the work can be made")
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	source, err := filepath.Abs(o.repo)
	if err != nil {
		return task.Wrap(task.Usage, err, "the repository cannot be found")
	}
	space, err := workspace.Local(ctx, workspace.Options{Dir: folder, URL: source, Branch: run.Work.Branch, Log: run.Log})
	if err != nil {
		return err
	}
	run.Repository = space
	files, err := contexts.Open(c.ContextsPath(), contexts.Options{Redactor: c.Redactor(), Log: run.Log, Now: o.now})
	if err != nil {
		return err
	}
	journal, err := files.Begin(ctx, run.Work, 0, printed{o.program})
	if err != nil {
		return err
	}
	run.Journal = journal
	result, err := builtIn.development().Execute(ctx, run)
	if err != nil {
		return errors.Join(err, journal.End(task.Failed, task.ReasonRunFailed))
	}
	state := task.State(result.Outcome)
	if state == task.Paused {
		err = journal.Pause(task.Reason(result.Reason))
	} else {
		err = journal.End(state, task.Reason(result.Reason))
	}
	return errors.Join(err, o.conclude(state, result, journal.ID()))
}

// conclude says how the run ended.
func (o runCommand) conclude(state task.State, result wire.Result, id string) error {
	if result.Comment != "" {
		fmt.Fprintf(o.stdout, "\n%s\n", plainText(result.Comment))
	}
	fmt.Fprintf(o.stdout, "\nthe journal of the run: toryo replay %s\n", id)
	if state.Succeeded() {
		return nil
	}
	return task.Errorf(task.Conflict, "the run ended as %s: %s", state, task.Reason(result.Reason).Text())
}

// printed shows entries of a journal on the terminal.
type printed struct{ program }

// Append implements phase.Journal.
func (p printed) Append(_ context.Context, kind task.EventKind, entry phase.Entry) error {
	switch kind {
	case task.MessageSent, task.ModelUsed: // too much to read along
		return nil
	}
	_, err := fmt.Fprintf(p.stdout, "%-8s %s\n", kind, strings.ReplaceAll(shortened(plainText(describe(kind, entry))), "\n", "\n         "))
	return err
}

// localDesk is a desk without a forge: what is said to people goes to the terminal.
type localDesk struct {
	program
	repo string
}

var _ phase.Desk = localDesk{}

// Comments implements phase.Desk.
func (localDesk) Comments(context.Context, int64) ([]phase.Comment, error) { return nil, nil }

// References implements phase.Desk: there are no other items.
func (localDesk) References(context.Context) ([]phase.Reference, error) { return nil, nil }

// Progress implements phase.Desk. The journal is shown already.
func (localDesk) Progress(context.Context, string) error { return nil }

// Say implements phase.Desk.
func (d localDesk) Say(_ context.Context, _, text string) error {
	_, err := fmt.Fprintf(d.stdout, "\n%s\n\n", plainText(text))
	return err
}

// Reply implements phase.Desk.
func (d localDesk) Reply(ctx context.Context, name, _, text string) error {
	return d.Say(ctx, name, text)
}

// OpenPull implements phase.Desk: the branch is all that there is.
func (d localDesk) OpenPull(_ context.Context, open phase.OpenPull) (phase.Pulled, error) {
	_, err := fmt.Fprintf(d.stdout, "\n%s\n\n%s\n\nbranch %s of %s is at %s\n", plainText(open.Title), plainText(open.Body), open.Branch, d.repo, open.Commit)
	return phase.Pulled{URL: "branch " + open.Branch, Opened: true}, err
}

// localSpending keeps the budget of one run.
type localSpending struct {
	ledger *llm.MemoryLedger
	task   task.ID
}

// Reserve implements agent.Spending.
func (s localSpending) Reserve(ctx context.Context, spend wire.Spend) (wire.Reservation, error) {
	reserved, err := s.ledger.Reserve(ctx, llm.Account{Task: s.task}, llm.Amount{Tokens: spend.Tokens, Money: llm.Money(spend.Money)})
	if err != nil {
		return wire.Reservation{}, task.Wrap(task.OverBudget, err, "the budget is used up").WithMend("raise budget in the configuration")
	}
	return wire.Reservation{ID: string(reserved)}, nil
}

// Settle implements agent.Spending.
func (s localSpending) Settle(ctx context.Context, settlement wire.Settlement) error {
	return s.ledger.Settle(ctx, llm.Reservation(settlement.Reservation), llm.Amount{Tokens: settlement.Tokens, Money: llm.Money(settlement.Money)})
}
