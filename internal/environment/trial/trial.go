// Package trial runs a project's own commands where their results count: for a verdict and
// for the score of an evaluation. What runs is what the project's set-up has left and what
// the command says, and nothing that was put in between.
package trial

import (
	"context"
	"crypto/rand"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/environment"
	"github.com/toryo-dev/toryo/internal/lazyregexp"
	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testreport"
	"github.com/toryo-dev/toryo/internal/textfmt"
	"github.com/toryo-dev/toryo/internal/workdir"
)

// Folder is the folder of a workspace that is no part of the work: reports of test runners
// and pipes to programs in the sandbox lie there.
const Folder = ".toryo"

// Trial runs the projects' own commands for a verdict: each in a fresh shell that has
// only the variables which the project's set-up has left, in the project's folder.
type Trial struct {
	Sandbox sandbox.Sandbox
	Timeout time.Duration
	Output  func(sandbox.Stream, []byte) // may be nil
	Files   string                       // the workspace, on this machine

	variables map[string]string // by session, as lines of a shell
	at        string            // the workspace in the sandbox, when that is known
}

// variablesOf are those of a session in which a project was set up.
func (t *Trial) variablesOf(ctx context.Context, session string) (string, error) {
	if known, is := t.variables[session]; is {
		return known, nil
	}
	ran, err := t.Sandbox.Run(ctx, sandbox.Command{Text: "env -0", Session: session, Timeout: t.Timeout})
	if err != nil {
		return "", err
	}
	if ran.ExitCode != 0 || ran.Cut {
		return "", task.Errorf(task.Unavailable, "the variables of the environment cannot be read: env ended with exit code %d", ran.ExitCode)
	}
	variables := exports(string(ran.Stdout))
	if err := t.checkPrograms(ctx, variables); err != nil {
		return "", err
	}
	if t.variables == nil {
		t.variables = map[string]string{}
	}
	t.variables[session] = variables
	return variables, nil
}

// ownPrograms prints the shells and tools of the system that are found elsewhere than in
// its folders. Set-up commands are the plan's, and a plan could put others before them.
// Interpreters and compilers of a language do come from elsewhere, and git or make with
// them.
const ownPrograms = `for program in sh bash dash env test true false echo cat grep diff cmp; do
  at=$(command -v -- "$program") || continue
  case $at in /bin/*|/sbin/*|/usr/*|/opt/*|/nix/*|/run/current-system/*) ;; /*) printf '%s\n' "$at" ;; esac
done`

// checkPrograms makes sure that a shell is a shell.
func (t *Trial) checkPrograms(ctx context.Context, variables string) error {
	ran, err := t.Sandbox.Run(ctx, sandbox.Command{Text: variables + ownPrograms, Timeout: t.Timeout, Fresh: true})
	if err != nil {
		return err
	}
	if found := strings.Fields(string(ran.Stdout)); len(found) > 0 || ran.ExitCode != 0 {
		return task.Errorf(task.Unavailable, "set-up puts programs of its own in place of the system's: %s", textfmt.Shorten(textfmt.OneLine(textfmt.Plain(strings.Join(found, ", "))), 500))
	}
	return nil
}

// variableName is a name that a shell takes. Others are functions of bash, for example.
var variableName = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)

// loaders are variables by which a program runs code, or is told how to run, that nobody
// sees in its command line. Those that an environment needs are its own.
var loaders = []string{
	"BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS", "PS4", "PROMPT_COMMAND", "IFS", "CDPATH", "GLOBIGNORE",
	"PYTHONSTARTUP", "PYTHONHOME", "PYTHONINSPECT", "PYTHONOPTIMIZE", "PYTHONBREAKPOINT", "PYTEST_ADDOPTS", "PYTEST_PLUGINS",
	"NODE_OPTIONS", "NODE_TEST_CONTEXT", "RUBYOPT", "PERL5OPT", "PERL5DB", "GOFLAGS", "GOENV", "GODEBUG",
	"JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "MAVEN_ARGS", "MAVEN_OPTS", "GRADLE_OPTS", "RUSTC_WRAPPER", "RUSTFLAGS",
	"RUSTC", "RUSTC_WORKSPACE_WRAPPER", "RUSTDOC", "GOROOT", "GOTOOLDIR", "DOTNET_STARTUP_HOOKS", "PHPRC", "PHP_INI_SCAN_DIR", "PYTEST_DISABLE_PLUGIN_AUTOLOAD",
	"MAKEFLAGS", "MFLAGS", "GNUMAKEFLAGS", "GIT_CONFIG_COUNT", "GIT_CONFIG_PARAMETERS", "GIT_CONFIG_GLOBAL", "GIT_EXEC_PATH",
}

// exports are the lines that set variables, from the output of env -0.
func exports(output string) string {
	var lines strings.Builder
	for one := range strings.SplitSeq(output, "\x00") {
		name, value, found := strings.Cut(one, "=")
		if !found || !variableName.MatchString(name) || slices.Contains(loaders, name) ||
			strings.HasPrefix(name, "LD_") || strings.HasPrefix(strings.ToLower(name), "npm_config_") || strings.HasPrefix(name, "CARGO_BUILD_") || strings.HasPrefix(name, "CARGO_TARGET_") ||
			slices.Contains([]string{"PWD", "OLDPWD", "SHLVL", "_"}, name) {
			continue
		}
		fmt.Fprintf(&lines, "export %s=%s\n", name, sandbox.Quote(value))
	}
	return lines.String()
}

// ownSettings leaves out what programs are told in files of the home folder.
const ownSettings = "export GOENV=off NPM_CONFIG_USERCONFIG=/dev/null\n"

// Try runs a command of a project and says how it ended.
func (t *Trial) Try(ctx context.Context, command sandbox.Command) (*environment.Baseline, error) {
	return t.run(ctx, command, command.Text, nil)
}

// run runs a command, which people know by another text.
func (t *Trial) run(ctx context.Context, command sandbox.Command, shown string, read func([]byte, int) testreport.Report) (*environment.Baseline, error) {
	variables, err := t.variablesOf(ctx, command.Session)
	if err != nil {
		return nil, err
	}
	command.Text, command.Timeout, command.Fresh = variables+ownSettings+command.Text, t.Timeout, true
	if t.Output != nil {
		command.Output = t.Output
	}
	ran, err := environment.RunTests(ctx, t.Sandbox, command, read)
	if err != nil {
		return nil, err
	}
	ran.Command = shown
	return &ran, nil
}

// Test runs some tests of a project, or all of them without names and where the runner
// cannot select. Where the runner is known, it reports to a folder that is this run's
// alone.
func (t *Trial) Test(ctx context.Context, command sandbox.Command, names []string) (*environment.Baseline, error) {
	workspace, err := workdir.Open(t.Files)
	if err != nil {
		return nil, fmt.Errorf("open the files to test: %w", err)
	}
	defer func() { _ = workspace.Close() }() // it was only read
	runner, known := t.runner(command, workspace)
	if !known {
		return t.Try(ctx, command)
	}
	if t.at == "" {
		ran, err := t.Sandbox.Run(ctx, sandbox.Command{Text: "pwd -P", Timeout: t.Timeout, Fresh: true})
		if err != nil {
			return nil, err
		}
		t.at = strings.TrimSuffix(string(ran.Stdout), "\n")
	}
	name := path.Join(Folder, "report-"+rand.Text())
	defer func() { _ = workspace.RemoveAll(name) }() // what is left goes with the workspace
	shown := command.Text
	at := path.Join(t.at, name)
	selected, can := runner.Only(at, names)
	if command.Text = selected; !can {
		command.Text = runner.Command(at)
	}
	return t.run(ctx, command, shown, func(output []byte, exit int) testreport.Report {
		reports, err := workspace.Sub(name)
		if err != nil {
			return runner.Read(output, exit, workdir.Files{}) // there are none
		}
		defer func() { _ = reports.Close() }() // it was only read
		return runner.Read(output, exit, reports.FS())
	})
}

// runner is the one that a command starts, if that can be told.
func (t *Trial) runner(command sandbox.Command, workspace *workdir.Dir) (testreport.Runner, bool) {
	project := workspace
	if folder := path.Clean(command.Folder); folder != "." {
		var err error
		if project, err = workspace.Sub(folder); err != nil {
			return testreport.Runner{}, false
		}
		defer func() { _ = project.Close() }() // it was only read
	}
	return testreport.Find(command.Text, project.FS())
}
