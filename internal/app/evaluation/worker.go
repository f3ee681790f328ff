package evaluation

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/toryo-dev/toryo/internal/agent"
	"github.com/toryo-dev/toryo/internal/agent/contexts"
	"github.com/toryo-dev/toryo/internal/agent/local"
	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/environment"
	"github.com/toryo-dev/toryo/internal/eval"
	"github.com/toryo-dev/toryo/internal/eval/taskset"
	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// owner is who the sandboxes of evaluations belong to.
const owner = "toryo-eval"

// Worker does tasks with the built-in executor.
type Worker struct {
	Program  site.Program
	Configs  map[string]config.Config // by the name of the model
	Engine   sandbox.Engine
	Journals string // a folder for them
	Play     string // what a script plays in place of a model; empty for none
	Log      *slog.Logger
}

var _ eval.Worker = Worker{}

// Work implements eval.Worker.
func (w Worker) Work(ctx context.Context, job eval.Job) (eval.Worked, error) {
	// What a killed evaluation has left may be over only by now.
	if err := ReapOld(ctx, w.Engine, w.Program.Now()); err != nil {
		w.Log.WarnContext(ctx, "failed to remove the sandboxes of an earlier evaluation", "error", err)
	}
	c := w.Configs[job.Model]
	if w.Play != "" {
		played, remove, err := w.play(ctx, c, job)
		if err != nil {
			return eval.Worked{}, err
		}
		defer remove()
		c = played
	}
	c, engine := confined(c, job.Task), w.Engine
	if container := job.Task.Container; container != nil {
		c, engine = inImage(c, container), alsoAt{engine, container}
	}
	builtIn, err := site.NewBuiltIn(w.Program, c, engine, owner, new(llm.Outages), w.Log)
	if err != nil {
		return eval.Worked{}, err
	}
	work := workOf(job)
	journals := filepath.Join(w.Journals, eval.FileName(job.Model), job.Task.ID, strconv.Itoa(job.Number), strconv.Itoa(job.Try))
	if err := os.RemoveAll(journals); err != nil { // of an attempt that was cut off
		return eval.Worked{}, task.Wrap(task.DataDir, err, "the journal of an earlier attempt cannot be removed")
	}
	seen := &watched{job: job}
	result, id, err := local.Run(ctx, agent.Run{
		Work: work, Assignment: wire.Assignment{TaskID: string(work.Task), Generation: work.Generation},
		Forge: local.Forge{Out: io.Discard, Repository: job.Task.Repo}, Log: w.Log,
		Spending: local.Spending{Ledger: llm.NewMemoryLedger(site.LimitsOf(c.Budget), w.Program.Now), Task: work.Task},
	}, local.Options{
		Executor: func(context.Context) (agent.Executor, error) { return builtIn.Development(), nil }, Shown: seen, Contexts: journals, Dir: filepath.Dir(job.Repository.Dir),
		Journal: contexts.Options{Redactor: c.Redactor(), Log: w.Log, Now: w.Program.Now},
	})
	worked := seen.worked()
	worked.Outcome, worked.Reason, worked.Run = string(result.Outcome), result.Reason, id
	return worked, cause(err)
}

// confined is a configuration for tasks of others. MCP servers could show the real change, or the
// files of the set, and a statement comes from whoever wrote the set: it must not reach tools of
// the person who calls. Neither does a command of the model reach the network, and set-up reaches
// package registries at most; in a task folder, whose image has all that is needed, nothing.
func confined(c config.Config, t taskset.Task) config.Config {
	c.MCPServers = nil
	c.Sandbox.Network.Execution = string(sandbox.NoNetwork)
	switch {
	case t.Container != nil:
		c.Sandbox.Network.Setup = string(sandbox.NoNetwork)
	case c.Sandbox.Network.Setup == string(sandbox.OpenWorld):
		c.Sandbox.Network.Setup = string(sandbox.Registries)
	}
	return c
}

// cause is an error with a code that says whether it may pass: of a model that cannot be used
// the next attempt would say the same.
func cause(err error) error {
	if unable := agent.UnableOf(err); unable != nil && unable.Provider != "" {
		return task.Wrap(task.Unauthorized, err, "the model cannot be used")
	}
	return err
}

// workOf is the task as any other that is on no forge.
func workOf(job eval.Job) phase.Work {
	title, body, _ := strings.Cut(strings.TrimSpace(job.Task.Statement), "\n")
	return phase.Work{
		Task: task.ID(uuid.NewString()), Generation: 1, Type: task.Development, Folder: job.Repository.Dir, Project: eval.Project(job.Task),
		Title: strings.TrimSpace(title), Body: strings.TrimSpace(body), Branch: eval.Branch,
		Author: phase.Person{Login: "author", Access: "none"}, // whoever wrote the set
	}
}

// watched is a journal that counts what a run uses and looks at its commands.
type watched struct {
	job   eval.Job
	mu    sync.Mutex
	used  llm.Usage
	cost  llm.Money
	calls int
	look  eval.Watcher
}

var _ phase.Journal = (*watched)(nil)

// Append implements phase.Journal.
func (w *watched) Append(_ context.Context, _ task.EventKind, entry phase.Entry) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if entry.Call != nil && entry.Call.Name == "run" {
		var given struct {
			Command string `json:"command"`
		}
		if json.Unmarshal([]byte(entry.Call.Arguments), &given) == nil {
			w.look.Command(given.Command)
		}
	}
	if entry.Setup != nil {
		var commands []string
		for _, ran := range entry.Setup.Result.SetupResult.Commands {
			commands = append(commands, ran.Command)
		}
		w.look.Setup(slices.Concat(commands, commandsOf(entry.Setup.Receipt)), commandsOf(w.job.Receipt))
	}
	if entry.Usage != nil {
		w.used, w.cost, w.calls = w.used.Add(entry.Usage.Usage), w.cost+entry.Usage.Cost, w.calls+1
		return w.job.Spent(entry.Usage.Cost)
	}
	return nil
}

// commandsOf are the commands by which an environment is set up and checked.
func commandsOf(receipt environment.Receipt) []string {
	commands := slices.Clone(receipt.SetupCommands)
	for _, check := range receipt.Verification {
		commands = append(commands, check.Command)
	}
	for _, project := range receipt.Projects {
		commands = append(commands, project.SetupCommands...)
		for _, check := range project.Verification {
			commands = append(commands, check.Command)
		}
	}
	return commands
}

func (w *watched) worked() eval.Worked {
	w.mu.Lock()
	defer w.mu.Unlock()
	return eval.Worked{Usage: w.used, Cost: w.cost, Calls: w.calls, Flags: w.look.Flags()}
}

// ReapOld removes sandboxes that an evaluation left which was killed.
func ReapOld(ctx context.Context, engine sandbox.Engine, now time.Time) error {
	const startTime = 10 * time.Minute
	_, err := engine.Reap(ctx, owner, func(info sandbox.Info) bool {
		if info.Task == sandbox.ScoreTask {
			return now.Unix() < info.Generation
		}
		return info.Running || now.Sub(info.Started) < startTime
	})
	return err
}
