package phase

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/environment"
	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/task"
)

// A verdict is made in a sandbox of its own, with exactly the files of the commit that
// would be published. Nothing that the model did besides is there: no process, no file
// that is not committed, no state of its shell. The environment is the one that set-up
// has made, from its snapshot where there is one. What the work needs of packages comes
// there by the project's own manifests: if those changed, it is set up anew.
type ground struct {
	trial
	run     *run
	files   Export
	box     sandbox.Sandbox // nil if none could be started
	problem string          // why the environment is not ready
}

// newGround makes one for the files of a commit, with the environment of a receipt.
// Unavailable says that it could not be had, for a reason that is not the commit's.
func (r *run) newGround(ctx context.Context, commit string, receipt environment.Receipt) (*ground, error) {
	files, err := r.Repository.Export(ctx, commit)
	if err != nil {
		return nil, fmt.Errorf("export the files to verify: %w", err)
	}
	made := &ground{run: r, files: files}
	if err := made.prepare(ctx, receipt); err != nil {
		made.close(ctx)
		return nil, err
	}
	return made, nil
}

// outages are failures that say nothing about the files.
var outages = []environment.Kind{environment.Network, environment.Server, environment.Lock, environment.Container, environment.Resource}

func (g *ground) prepare(ctx context.Context, receipt environment.Receipt) error {
	if err := sandbox.Give(g.files.Dir()); err != nil {
		return fmt.Errorf("give the files to verify to the sandbox: %w", err)
	}
	setup := g.run.setupOf(ctx)
	setup.Repairer = nil // a model has no part in this
	outcome, err := setup.Run(ctx, g.run.setUpAgain(receipt, g.files.Dir()))
	if err != nil {
		return cause(ctx, err)
	}
	g.box = outcome.Sandbox
	if !outcome.Handover.EnvironmentReady {
		g.problem = lastFailure(outcome.Result)
		if errors := outcome.Result.Errors; g.box == nil || len(errors) > 0 && slices.Contains(outages, errors[len(errors)-1].Classification.Kind) {
			return task.Errorf(task.Unavailable, "there is no environment: %s", g.problem)
		}
	}
	restored, err := g.files.Restore(ctx)
	if err != nil {
		return fmt.Errorf("restore the files to verify: %w", err)
	}
	if len(restored) > 0 {
		if err := sandbox.Give(g.files.Dir()); err != nil {
			return fmt.Errorf("give the files to verify to the sandbox: %w", err)
		}
	}
	g.trial, err = trialIn(ctx, g.box, g.run.Setup.CommandTimeout)
	return cause(ctx, err)
}

// close ends the sandbox and removes the files. What is left of them goes with the
// workspace.
func (g *ground) close(ctx context.Context) {
	var err error
	if g.box != nil {
		err = g.box.Stop(context.WithoutCancel(ctx))
	}
	if err = errors.Join(err, g.files.Remove()); err != nil {
		g.run.Log.WarnContext(ctx, "what was made for a verdict cannot be removed", "error", err)
	}
}

// trial runs the project's own commands for a verdict: each in a fresh shell that has
// only the variables which set-up has left, in a folder that is known.
type trial struct {
	sandbox   sandbox.Sandbox
	timeout   time.Duration
	variables string    // as lines of a shell
	output    io.Writer // may be nil
}

// trialIn makes one in a sandbox in which the environment is set up.
func trialIn(ctx context.Context, box sandbox.Sandbox, timeout time.Duration) (trial, error) {
	ran, err := box.Run(ctx, sandbox.Command{Text: "env -0", Timeout: timeout})
	if err != nil {
		return trial{}, err
	}
	if ran.ExitCode != 0 || ran.Cut {
		return trial{}, task.Errorf(task.Unavailable, "the variables of the environment cannot be read: env ended with exit code %d", ran.ExitCode)
	}
	return trial{sandbox: box, timeout: timeout, variables: exports(string(ran.Stdout))}, nil
}

// variableName is a name that a shell takes. Others are functions of bash, for example.
var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// loaders are variables by which a program runs code, or is told how to run, that nobody
// sees in its command line. Those that an environment needs are its own.
var loaders = []string{
	"BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS", "PS4", "PROMPT_COMMAND", "IFS", "CDPATH", "GLOBIGNORE",
	"PYTHONSTARTUP", "PYTHONHOME", "PYTHONINSPECT", "PYTHONOPTIMIZE", "PYTHONBREAKPOINT", "PYTEST_ADDOPTS", "PYTEST_PLUGINS",
	"NODE_OPTIONS", "NODE_TEST_CONTEXT", "RUBYOPT", "PERL5OPT", "PERL5DB", "GOFLAGS", "GOENV", "GODEBUG",
	"JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "MAVEN_ARGS", "MAVEN_OPTS", "GRADLE_OPTS", "RUSTC_WRAPPER", "RUSTFLAGS",
	"MAKEFLAGS", "MFLAGS", "GNUMAKEFLAGS", "GIT_CONFIG_COUNT", "GIT_CONFIG_PARAMETERS", "GIT_CONFIG_GLOBAL", "GIT_EXEC_PATH",
}

// exports are the lines that set variables, from the output of env -0.
func exports(output string) string {
	var lines strings.Builder
	for one := range strings.SplitSeq(output, "\x00") {
		name, value, found := strings.Cut(one, "=")
		if !found || !variableName.MatchString(name) || slices.Contains(loaders, name) ||
			strings.HasPrefix(name, "LD_") || strings.HasPrefix(name, "npm_config_") ||
			slices.Contains([]string{"PWD", "OLDPWD", "SHLVL", "_"}, name) {
			continue
		}
		fmt.Fprintf(&lines, "export %s=%s\n", name, shellQuote(value))
	}
	return lines.String()
}

// exitNoFolder is how a command ends whose folder is not there.
const exitNoFolder = 125

// try runs a command in a folder of the project and says how it ended. A fresh shell
// begins in the workspace.
func (t trial) try(ctx context.Context, folder, command string) (*environment.Baseline, error) {
	text := fmt.Sprintf("%scd ./%s || exit %d\n%s", t.variables, shellQuote(path.Clean(folder)), exitNoFolder, command)
	run := sandbox.Command{Text: text, Timeout: t.timeout, Fresh: true}
	if t.output != nil {
		run.Output = tee(t.output)
	}
	ran, err := environment.RunTests(ctx, t.sandbox, run)
	if err != nil {
		return nil, err
	}
	ran.Command = inFolder(folder, command)
	return &ran, nil
}

// inFolder is a command as people see it.
func inFolder(folder, command string) string {
	if folder == "" || folder == "." {
		return command
	}
	return "cd " + shellQuote("./"+folder) + " && " + command
}

// runTests builds and tests what would be published, against the baseline. A sandbox that
// is lost on the way is no verdict on the work, so that it is then done once more. If it
// is lost again there is none, and the work has not passed.
func (r *run) runTests(ctx context.Context, verdict *Verdict) error {
	err := r.testOnce(ctx, verdict)
	if task.CodeOf(err) == task.Unavailable && ctx.Err() == nil {
		r.Log.WarnContext(ctx, "the sandbox of the verification was lost", "error", err)
		err = r.testOnce(ctx, verdict)
	}
	if task.CodeOf(err) == task.Unavailable && ctx.Err() == nil {
		verdict.Build, verdict.Tests = nil, nil
		verdict.Untested, verdict.Unrun = true, err.Error()
		return nil
	}
	return err
}

func (r *run) testOnce(ctx context.Context, verdict *Verdict) error {
	setup := r.state.setup
	if setup.Unrepeatable != "" || !setup.Handover.EnvironmentReady {
		verdict.Unrun = "the environment is not ready"
		if setup.Unrepeatable != "" {
			verdict.Unrun = "the environment could not be set up a second time, before any change: " + setup.Unrepeatable
		}
		return nil
	}
	tests := r.tests()
	if tests.command == "" && setup.Build == nil {
		verdict.Unrun = "it is not known how the project's tests are run"
		return nil
	}
	on, err := r.newGround(ctx, verdict.Commit, setup.Receipt)
	if err != nil {
		return err
	}
	defer on.close(ctx)
	if on.problem != "" {
		verdict.Setup = on.problem
		return nil
	}
	if baseline := setup.Build; baseline != nil {
		ran, err := on.try(ctx, ".", baseline.Command)
		if err != nil {
			return cause(ctx, err)
		}
		verdict.Build = compare(baseline, *ran)
	}
	if tests.command == "" {
		verdict.Unrun = "it is not known how the project's tests are run"
		return nil
	}
	ran, err := on.try(ctx, ".", tests.command)
	if err != nil {
		return cause(ctx, err)
	}
	verdict.Tests = compare(tests.baseline, *ran)
	return nil
}
