package phase

import (
	"context"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

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
	files    Export
	box      sandbox.Sandbox // nil if none could be started
	problem  string          // why the environment is not ready
	restored []string        // files of the commit that set-up had changed
}

// newGround makes one for the files of a commit.
func (r *run) newGround(ctx context.Context, commit string) (*ground, error) {
	files, err := r.Repository.Export(ctx, commit)
	if err != nil {
		return nil, fmt.Errorf("export the files to verify: %w", err)
	}
	made := &ground{files: files}
	if err := made.prepare(ctx, r); err != nil {
		return nil, errors.Join(err, made.close(ctx))
	}
	return made, nil
}

func (g *ground) prepare(ctx context.Context, r *run) error {
	if err := sandbox.Give(g.files.Dir()); err != nil {
		return fmt.Errorf("give the files to verify to the sandbox: %w", err)
	}
	setup := r.setupOf(ctx)
	setup.Repairer = nil // a model has no part in this
	outcome, err := setup.Run(ctx, r.setUpAgain(g.files.Dir()))
	if err != nil {
		return cause(ctx, err)
	}
	g.box = outcome.Sandbox
	if !outcome.Handover.EnvironmentReady {
		g.problem = lastFailure(outcome.Result)
	}
	if g.restored, err = g.files.Restore(ctx); err != nil {
		return fmt.Errorf("restore the files to verify: %w", err)
	}
	if len(g.restored) > 0 {
		if err := sandbox.Give(g.files.Dir()); err != nil {
			return fmt.Errorf("give the files to verify to the sandbox: %w", err)
		}
	}
	if g.box == nil {
		return nil
	}
	g.trial, err = r.trialIn(ctx, g.box, r.mountOf(g.files.Dir()))
	return err
}

func (g *ground) close(ctx context.Context) error {
	var err error
	if g.box != nil {
		err = g.box.Stop(context.WithoutCancel(ctx))
	}
	return errors.Join(err, g.files.Remove())
}

// trial runs the project's own commands for a verdict: each in a fresh shell that has
// only the variables which set-up has left, in a folder that is known.
type trial struct {
	run       *run
	sandbox   sandbox.Sandbox
	mount     string
	variables string // as lines of a shell
}

// trialIn makes one in a sandbox in which the environment is set up.
func (r *run) trialIn(ctx context.Context, box sandbox.Sandbox, mount string) (trial, error) {
	ran, err := box.Run(ctx, sandbox.Command{Text: "env -0", Timeout: r.Setup.CommandTimeout})
	if err != nil {
		return trial{}, cause(ctx, err)
	}
	return trial{run: r, sandbox: box, mount: mount, variables: exports(string(ran.Stdout))}, nil
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
	for _, one := range strings.Split(output, "\x00") {
		name, value, found := strings.Cut(one, "=")
		if !found || !variableName.MatchString(name) || slices.Contains(loaders, name) ||
			strings.HasPrefix(name, "LD_") || strings.HasPrefix(name, "DYLD_") || strings.HasPrefix(name, "npm_config_") ||
			slices.Contains([]string{"PWD", "OLDPWD", "SHLVL", "_"}, name) {
			continue
		}
		fmt.Fprintf(&lines, "export %s=%s\n", name, shellQuote(value))
	}
	return lines.String()
}

// try runs a command in a folder of the project and says how it ended.
func (t trial) try(ctx context.Context, folder, command string) (*environment.Baseline, error) {
	at := path.Join(t.mount, folder)
	text := t.variables + "cd " + shellQuote(at) + " || exit 1\n" + command
	ran, err := environment.RunTests(ctx, t.sandbox, sandbox.Command{Text: text, Timeout: t.run.Setup.CommandTimeout, Fresh: true})
	if err != nil {
		return nil, cause(ctx, err)
	}
	ran.Command = inFolder(folder, command)
	return &ran, nil
}

// inFolder is a command as people see it.
func inFolder(folder, command string) string {
	if folder == "" || folder == "." {
		return command
	}
	return "cd " + shellQuote(folder) + " && " + command
}

// runTests builds and tests what would be published, against the baseline. A sandbox that
// is lost on the way is no verdict on the work, so that it is then done once more.
func (r *run) runTests(ctx context.Context, verdict *Verdict) error {
	err := r.testOnce(ctx, verdict)
	if task.CodeOf(err) == task.Unavailable && ctx.Err() == nil {
		r.Log.WarnContext(ctx, "the sandbox of the verification was lost", "error", err)
		err = r.testOnce(ctx, verdict)
	}
	return err
}

func (r *run) testOnce(ctx context.Context, verdict *Verdict) (err error) {
	on, err := r.newGround(ctx, verdict.Commit)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, on.close(ctx)) }()
	ready := r.state.setup.Handover.EnvironmentReady
	switch {
	case on.problem != "" && ready:
		verdict.Setup = on.problem
		return nil
	case on.box == nil:
		verdict.Unrun = "there is no sandbox"
		return nil
	}
	if baseline := r.state.setup.Build; baseline != nil {
		ran, err := on.try(ctx, ".", baseline.Command)
		if err != nil {
			return err
		}
		verdict.Build = compare(baseline, *ran)
	}
	tests := r.tests()
	if tests.command == "" {
		verdict.Unrun = "it is not known how the project's tests are run"
		return nil
	}
	ran, err := on.try(ctx, ".", tests.command)
	if err != nil {
		return err
	}
	verdict.Tests = compare(tests.baseline, *ran)
	if verdict.Tests.Worse && !ready {
		// It cannot be told whether the work or the environment is to blame.
		verdict.Unrun = fmt.Sprintf("the environment is not ready, and %s ends with exit code %d in it", ran.Command, ran.ExitCode)
		verdict.Tests = nil
	}
	return nil
}
