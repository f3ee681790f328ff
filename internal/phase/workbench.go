package phase

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"sync"
	"sync/atomic"

	"github.com/toryo-dev/toryo/internal/environment"
	"github.com/toryo-dev/toryo/internal/environment/trial"
	"github.com/toryo-dev/toryo/internal/phase/mcp"
	"github.com/toryo-dev/toryo/internal/phase/tool"
	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/workdir"
)

// workbench is where the work is done: the files, the sandbox that commands run in,
// and the MCP servers.
type workbench struct {
	run     *run
	files   *ownedFiles
	using   sync.Mutex // commands run one at a time
	box     sandbox.Sandbox
	lost    bool // the sandbox died
	servers *mcp.Connections
	// launched counts the programs that were started beside the commands.
	launched atomic.Int64
}

func newWorkbench(r *run) (*workbench, error) {
	files, err := openFiles(r.Repository.Workspace(), r.Setup.Engine.Capabilities().FileOwner)
	if err != nil {
		return nil, task.Wrap(task.DataDir, err, "the workspace cannot be opened")
	}
	return &workbench{run: r, files: files}, nil
}

func (b *workbench) workspace() tool.Workspace {
	return tool.Workspace{Files: b.files, Runner: b, Mount: b.mount()}
}

// mount is where the workspace is for programs in the sandbox.
func (b *workbench) mount() string {
	if b.run.Setup.Engine.Capabilities().HostPaths {
		return b.run.Repository.Workspace()
	}
	return sandbox.WorkspacePath
}

// lookers are the tools that change nothing and need no sandbox.
func (b *workbench) lookers() []tool.Tool { return lookers(b.workspace()) }

func lookers(w tool.Workspace) []tool.Tool {
	return []tool.Tool{tool.Read(w), tool.List(w), tool.Search(w)}
}

// Run implements [tool.Runner] in the sandbox.
func (b *workbench) Run(ctx context.Context, command tool.Command, output io.Writer) (tool.Exit, error) {
	b.using.Lock()
	defer b.using.Unlock()
	box, err := b.ready(ctx)
	if err != nil {
		return tool.Exit{}, err
	}
	ran, err := box.Run(ctx, sandbox.Command{Text: command.Line, Timeout: command.Timeout, Output: tee(output)})
	if err != nil {
		return tool.Exit{}, b.failed(ctx, err)
	}
	_, _ = io.WriteString(output, remarks(ran)) // a collector never fails
	return tool.Exit{Code: ran.ExitCode, TimedOut: ran.Exceeded == sandbox.TimeLimit}, nil
}

// remarks say of a command what its output and its exit code do not.
func remarks(ran sandbox.Result) string {
	const bySignal = 128
	text := ""
	switch {
	case ran.Exceeded == sandbox.NoLimit || ran.Exceeded == sandbox.TimeLimit:
	case ran.ExitCode > bySignal:
		text = fmt.Sprintf("\n[killed: it exceeded the limit of %s]\n", ran.Exceeded)
	default:
		text = fmt.Sprintf("\n[the limit of %s is exceeded]\n", ran.Exceeded)
	}
	if ran.Left > 0 {
		text += fmt.Sprintf("\n[%d paths of the workspace stay in the sandbox: there is no room for them outside, or they cannot be made there]\n", ran.Left)
	}
	return text
}

func tee(output io.Writer) func(sandbox.Stream, []byte) {
	return func(_ sandbox.Stream, data []byte) { _, _ = output.Write(data) } // a collector never fails
}

// failed decides what an error of the sandbox means: one that says that the
// command is wrong is the model's, and a sandbox that died is made anew before
// the next command.
func (b *workbench) failed(ctx context.Context, err error) error {
	switch code := task.CodeOf(err); {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case code == task.Invalid || code == task.TooLarge:
		return tool.Mistake("%v", err)
	case code == task.Unavailable && !b.lost:
		b.lost = true
		b.run.Log.WarnContext(ctx, "lost the sandbox", "error", err)
		return tool.Mistake("the sandbox was lost while this was going on (%v). A new one is made from the same files before the next command; what ran in the old one is gone.", err)
	}
	return err
}

// ready is the sandbox. One that was lost, with an earlier run or in this one, is
// made again.
func (b *workbench) ready(ctx context.Context) (sandbox.Sandbox, error) {
	if b.lost {
		if err := b.rebuild(ctx); err != nil {
			return nil, err
		}
	}
	if b.box == nil {
		return nil, tool.Mistake("there is no sandbox, so commands cannot be run; the files can be read and changed")
	}
	return b.box, nil
}

// tests runs a command and says how its tests went.
func (b *workbench) tests(ctx context.Context, command sandbox.Command, output io.Writer) (environment.Baseline, error) {
	b.using.Lock()
	defer b.using.Unlock()
	box, err := b.ready(ctx)
	if err != nil {
		return environment.Baseline{}, err
	}
	if err := b.run.Repository.Exclude(ctx, []string{trial.Folder}); err != nil {
		return environment.Baseline{}, err
	}
	at := trial.Trial{Sandbox: box, Timeout: b.run.Setup.CommandTimeout, Output: tee(output), Files: b.run.Repository.Workspace()}
	ran, err := at.Test(ctx, command, nil)
	if err != nil {
		return environment.Baseline{}, b.failed(ctx, err)
	}
	return *ran, nil
}

// close ends everything that the run started.
func (b *workbench) close(ctx context.Context) error {
	var failures []error
	if b.servers != nil {
		failures = append(failures, b.servers.Close())
	}
	if b.box != nil {
		failures = append(failures, b.box.Stop(ctx))
	}
	return errors.Join(append(failures, b.files.Close())...)
}

// projectTests are the project's tests as a tool.
type projectTests struct {
	workbench *workbench
	command   sandbox.Command // without a text if it is not known how tests are run
	baseline  *environment.Baseline
}

// Run implements [tool.Tests].
func (p projectTests) Run(ctx context.Context, output io.Writer) (tool.TestRun, error) {
	if p.command.Text == "" {
		return tool.TestRun{}, tool.Mistake("it is not known how the project's tests are run; use run")
	}
	ran, err := p.workbench.tests(ctx, p.command, output)
	return testRun(ran), err
}

// Baseline implements [tool.Tests].
func (p projectTests) Baseline() (tool.TestRun, bool) {
	if p.baseline == nil {
		return tool.TestRun{}, false
	}
	return testRun(*p.baseline), true
}

func testRun(ran environment.Baseline) tool.TestRun {
	return tool.TestRun{Command: ran.Line(), Failing: ran.Failing,
		Exit: tool.Exit{Code: ran.ExitCode, TimedOut: ran.Exceeded == sandbox.TimeLimit}}
}

// ownedFiles are the files of the workspace. What is written belongs to the
// sandbox's user, so that commands can change it too.
type ownedFiles struct {
	*tool.Directory
	in    *workdir.Dir
	owner int // 0 when nothing has to be given away
}

func openFiles(dir string, owner int) (*ownedFiles, error) {
	opened, err := tool.OpenDirectory(dir)
	if err != nil {
		return nil, err
	}
	in, err := workdir.Open(dir)
	if err != nil {
		return nil, errors.Join(err, opened.Close())
	}
	return &ownedFiles{opened, in, owner}, nil
}

// WriteFile implements [tool.Files].
func (o *ownedFiles) WriteFile(name string, data []byte) error {
	if err := o.Directory.WriteFile(name, data); err != nil {
		return err
	}
	for ; o.owner != 0 && name != "."; name = path.Dir(name) {
		if err := o.in.Lchown(name, o.owner); err != nil {
			return err
		}
	}
	return nil
}

// giveToSandbox makes the user of the sandbox the owner of a folder and everything in
// it, where that is another one than this program's.
func (r *run) giveToSandbox(dir string) error {
	return workdir.Own(dir, r.Setup.Engine.Capabilities().FileOwner)
}

// Close closes the directory.
func (o *ownedFiles) Close() error { return errors.Join(o.Directory.Close(), o.in.Close()) }
