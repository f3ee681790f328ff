package phase

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/environment"
	"github.com/toryo-dev/toryo/internal/lazyregexp"
	"github.com/toryo-dev/toryo/internal/phase/tool"
	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testreport"
	"github.com/toryo-dev/toryo/internal/workdir"
)

// A verdict is made in a sandbox of its own, with exactly the files of the commit that
// would be published. Nothing that the model did besides is there: no process, no file
// that is not committed, no state of its shell. The environment is the one that set-up
// has made, from its snapshot where there is one. What the work needs of packages comes
// there by the project's own manifests: if those changed, it is set up anew.
type verificationSandbox struct {
	trial
	of      *run
	files   Export
	box     sandbox.Sandbox // nil if none could be started
	problem string          // why the environment is not ready
}

// newVerificationSandbox makes one for the files of a commit, with the environment of a receipt.
// Unavailable says that it could not be had, for a reason that is not the commit's.
func (r *run) newVerificationSandbox(ctx context.Context, commit string, receipt environment.Receipt) (*verificationSandbox, error) {
	files, err := r.Repository.Export(ctx, commit)
	if err != nil {
		return nil, fmt.Errorf("export the files to verify: %w", err)
	}
	made := &verificationSandbox{of: r, files: files}
	if err := made.prepare(ctx, receipt); err != nil {
		made.close(ctx)
		return nil, err
	}
	return made, nil
}

// outages are failures that say nothing about the files.
var outages = []environment.Kind{environment.Network, environment.Server, environment.Lock, environment.Container, environment.Resource}

func (g *verificationSandbox) prepare(ctx context.Context, receipt environment.Receipt) error {
	if err := g.of.giveToSandbox(g.files.Dir()); err != nil {
		return fmt.Errorf("give the files to verify to the sandbox: %w", err)
	}
	setup := g.of.setupOf(ctx)
	setup.Repairer = nil // a model has no part in this
	outcome, err := setup.Run(ctx, g.of.setUpAgain(receipt, g.files.Dir()))
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
	if _, err := g.restore(ctx); err != nil {
		return err
	}
	g.trial = trial{sandbox: g.box, timeout: g.of.Setup.CommandTimeout, files: g.files.Dir()}
	return nil
}

// restore makes the files those of the commit again, whatever was run there, and names
// those that were not.
func (g *verificationSandbox) restore(ctx context.Context) ([]string, error) {
	restored, err := g.files.Restore(ctx)
	if err != nil {
		return nil, fmt.Errorf("restore the files to verify: %w", err)
	}
	if len(restored) > 0 {
		if err := g.of.giveToSandbox(g.files.Dir()); err != nil {
			return nil, fmt.Errorf("give the files to verify to the sandbox: %w", err)
		}
	}
	return restored, nil
}

// build runs the command that builds a project. The files are the commit's afterwards.
func (g *verificationSandbox) build(ctx context.Context, command sandbox.Command) (*environment.Baseline, error) {
	ran, err := g.try(ctx, command)
	if err == nil {
		_, err = g.restore(ctx)
	}
	return ran, cause(ctx, err)
}

// test runs the tests of a project, and says which files they have changed.
func (g *verificationSandbox) test(ctx context.Context, command sandbox.Command) (*environment.Baseline, error) {
	ran, err := g.testOnly(ctx, command, nil)
	if err != nil {
		return nil, cause(ctx, err)
	}
	ran.Changed, err = g.restore(ctx)
	return ran, err
}

// close ends the sandbox and removes the files. What is left of them goes with the
// workspace.
func (g *verificationSandbox) close(ctx context.Context) {
	var err error
	if g.box != nil {
		err = g.box.Stop(context.WithoutCancel(ctx))
	}
	if err = errors.Join(err, g.files.Remove()); err != nil {
		g.of.Log.WarnContext(ctx, "failed to remove the sandbox of a verdict", "error", err)
	}
}

// trial runs the projects' own commands for a verdict: each in a fresh shell that has
// only the variables which the project's set-up has left, in the project's folder.
type trial struct {
	sandbox   sandbox.Sandbox
	timeout   time.Duration
	output    io.Writer         // may be nil
	variables map[string]string // by session, as lines of a shell
	files     string            // the workspace, on this machine
	at        string            // and in the sandbox, when that is known
}

// variablesOf are those of a session in which a project was set up.
func (t *trial) variablesOf(ctx context.Context, session string) (string, error) {
	if known, is := t.variables[session]; is {
		return known, nil
	}
	ran, err := t.sandbox.Run(ctx, sandbox.Command{Text: "env -0", Session: session, Timeout: t.timeout})
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
func (t *trial) checkPrograms(ctx context.Context, variables string) error {
	ran, err := t.sandbox.Run(ctx, sandbox.Command{Text: variables + ownPrograms, Timeout: t.timeout, Fresh: true})
	if err != nil {
		return err
	}
	if found := strings.Fields(string(ran.Stdout)); len(found) > 0 || ran.ExitCode != 0 {
		return task.Errorf(task.Unavailable, "set-up puts programs of its own in place of the system's: %s", tool.Shorten(tool.Printable(strings.Join(found, ", ")), 500))
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
		fmt.Fprintf(&lines, "export %s=%s\n", name, shellQuote(value))
	}
	return lines.String()
}

// ownSettings leaves out what programs are told in files of the home folder.
const ownSettings = "export GOENV=off NPM_CONFIG_USERCONFIG=/dev/null\n"

// try runs a command of a project and says how it ended.
func (t *trial) try(ctx context.Context, command sandbox.Command) (*environment.Baseline, error) {
	return t.run(ctx, command, command.Text, nil)
}

// run runs a command, which people know by another text.
func (t *trial) run(ctx context.Context, command sandbox.Command, shown string, read func([]byte, int) testreport.Report) (*environment.Baseline, error) {
	variables, err := t.variablesOf(ctx, command.Session)
	if err != nil {
		return nil, err
	}
	command.Text, command.Timeout, command.Fresh = variables+ownSettings+command.Text, t.timeout, true
	if t.output != nil {
		command.Output = tee(t.output)
	}
	ran, err := environment.RunTests(ctx, t.sandbox, command, read)
	if err != nil {
		return nil, err
	}
	ran.Command = shown
	return &ran, nil
}

// testOnly runs some tests of a project, or all of them without names and where the runner
// cannot select. Where the runner is known, it reports to a folder that is this run's
// alone.
func (t *trial) testOnly(ctx context.Context, command sandbox.Command, names []string) (*environment.Baseline, error) {
	workspace, err := workdir.Open(t.files)
	if err != nil {
		return nil, fmt.Errorf("open the files to test: %w", err)
	}
	defer func() { _ = workspace.Close() }() // it was only read
	runner, known := t.runner(command, workspace)
	if !known {
		return t.try(ctx, command)
	}
	if t.at == "" {
		ran, err := t.sandbox.Run(ctx, sandbox.Command{Text: "pwd -P", Timeout: t.timeout, Fresh: true})
		if err != nil {
			return nil, err
		}
		t.at = strings.TrimSuffix(string(ran.Stdout), "\n")
	}
	name := path.Join(pipesFolder, "report-"+rand.Text())
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
func (t *trial) runner(command sandbox.Command, workspace *workdir.Dir) (testreport.Runner, bool) {
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

// runTests builds and tests what would be published, against the baseline. A sandbox that
// is lost on the way is no verdict on the work, so that it is then done once more. If it
// is lost again there is none, and the work has not passed.
func (r *run) runTests(ctx context.Context, verdict *Verdict) error {
	err := r.testOnce(ctx, verdict)
	if task.CodeOf(err) == task.Unavailable && ctx.Err() == nil {
		r.Log.WarnContext(ctx, "lost the sandbox of the verification", "error", err)
		err = r.testOnce(ctx, verdict)
	}
	if task.CodeOf(err) == task.Unavailable && ctx.Err() == nil {
		verdict.Build, verdict.Tests, verdict.Findings, verdict.Proof = nil, nil, nil, ProofOutcome{}
		verdict.Untested, verdict.Unrun = true, err.Error()
		return nil
	}
	return err
}

func (r *run) testOnce(ctx context.Context, verdict *Verdict) error {
	verdict.Tests, verdict.Findings, verdict.Proof = nil, nil, ProofOutcome{}
	if setup := r.state.setup; setup.Unrepeatable != "" || !setup.Handover.EnvironmentReady {
		verdict.Unrun = "the environment is not ready"
		if setup.Unrepeatable != "" {
			verdict.Untested = true
			verdict.Unrun = "the environment could not be set up a second time, before any change: " + setup.Unrepeatable
		}
		return nil
	}
	var err error
	if verdict.before, err = r.before(ctx); err != nil {
		return err
	}
	setup, err := r.baselines(ctx, verdict.before)
	if err != nil {
		return err
	}
	projects := testable(setup.Receipt)
	if verdict.Unrun, err = r.unready(ctx, verdict, setup.Receipt, len(projects) == 0); err != nil {
		return err
	}
	if len(projects) == 0 && verdict.Unrun == "" {
		verdict.Unrun, verdict.NoTests = "it is not known how the project's tests are run", true
	}
	if len(projects) == 0 && setup.Build == nil {
		return nil
	}
	runs, err := r.testCommit(ctx, setup, projects, verdict)
	if err != nil || verdict.Setup != "" {
		return err
	}
	err = r.examine(ctx, verdict, runs)
	for _, run := range runs {
		verdict.Tests = append(verdict.Tests, run.outcome.cut())
	}
	return err
}

// examine finds out what the results are worth.
func (r *run) examine(ctx context.Context, verdict *Verdict, runs []tested) error {
	for i := range runs {
		if err := r.settleFlaky(ctx, verdict, &runs[i]); err != nil {
			return err
		}
	}
	if slices.ContainsFunc(runs, func(t tested) bool { return t.outcome.Worse }) {
		return nil
	}
	changed, err := r.lookForTampering(ctx, verdict, runs)
	if err != nil {
		return err
	}
	return r.prove(ctx, verdict, runs, changed.written)
}

// testCommit builds and tests what would be published, in a sandbox of its own.
func (r *run) testCommit(ctx context.Context, setup *SetupEntry, projects []environment.ProjectSetup, verdict *Verdict) ([]tested, error) {
	on, err := r.newVerificationSandbox(ctx, verdict.Commit, setup.Receipt)
	if err != nil {
		return nil, err
	}
	defer on.close(ctx)
	if on.problem != "" {
		verdict.Setup = on.problem
		return nil, nil
	}
	if baseline := setup.Build; baseline != nil {
		ran, err := on.build(ctx, setup.Receipt.Main().Command(baseline.Command))
		if err != nil {
			return nil, err
		}
		verdict.Build = compare(baseline, *ran)
	}
	return r.testProjects(ctx, on, projects, verdict)
}

// testProjects runs the tests of the projects that the change touches, and if those are
// good, of the others.
func (r *run) testProjects(ctx context.Context, on *verificationSandbox, projects []environment.ProjectSetup, verdict *Verdict) ([]tested, error) {
	diff, err := r.Repository.Diff(ctx, verdict.Commit)
	if err != nil {
		return nil, err
	}
	all := make([]environment.Project, len(projects))
	for i, project := range projects {
		all[i] = project.Project
	}
	touched := environment.Touched(all, diff.Files)
	isTouched := func(p environment.ProjectSetup) bool {
		return slices.ContainsFunc(touched, func(one environment.Project) bool {
			return one.Directory == p.Directory && one.EnvironmentType == p.EnvironmentType
		})
	}
	var runs []tested
	for _, round := range []bool{true, false} {
		for _, project := range projects {
			if isTouched(project) != round {
				continue
			}
			ran, err := on.test(ctx, project.Command(project.TestCommand))
			if err != nil {
				return nil, err
			}
			runs = append(runs, tested{project: project, ran: *ran, outcome: compare(project.Baseline, *ran)})
		}
		if slices.ContainsFunc(runs, func(t tested) bool { return t.outcome.Worse }) {
			break
		}
	}
	return runs, nil
}

// unready says which projects have tests that cannot be run. One that needs another image than
// that of the run counts if the work changes something in it, or if there are no other tests.
func (r *run) unready(ctx context.Context, verdict *Verdict, receipt environment.Receipt, alone bool) (string, error) {
	var folders []string
	for _, project := range receipt.Projects {
		if !project.Ready && project.TestCommand != "" {
			folders = append(folders, project.Directory)
		}
	}
	without := receipt.LeftOut
	if len(without) > 0 && !alone {
		changes, err := r.Repository.Changes(ctx, verdict.before, verdict.Commit)
		if err != nil {
			return "", err
		}
		without = touchedOf(receipt, changes)
	}
	for _, project := range without {
		folders = append(folders, project.Directory)
	}
	if len(folders) == 0 {
		return "", nil
	}
	for i, folder := range folders {
		folders[i] = plainName(cmp.Or(folder, "."))
	}
	slices.Sort(folders)
	return "the environment is not ready for the projects in " + strings.Join(slices.Compact(folders), ", "), nil
}

// touchedOf are those of the left out projects whose tests the changes touch.
func touchedOf(receipt environment.Receipt, changes []Change) []environment.Project {
	all := slices.Clone(receipt.LeftOut)
	for _, project := range receipt.Projects {
		all = append(all, project.Project)
	}
	var names []string
	for _, change := range changes {
		// A file of no project, such as a changelog, is no reason to say that a project was not
		// tested: it may be of use to all, and that is tested in those that are ready.
		if slices.ContainsFunc(all, func(p environment.Project) bool { return p.Holds(change.Name) }) {
			names = append(names, change.Name)
		}
	}
	touched := environment.Touched(all, names)
	return slices.DeleteFunc(slices.Clone(receipt.LeftOut), func(p environment.Project) bool {
		return !slices.ContainsFunc(touched, func(one environment.Project) bool {
			return one.Directory == p.Directory && one.EnvironmentType == p.EnvironmentType
		})
	})
}

// testable are the projects whose tests are run: those that are ready, without those that
// the root of their workspace tests too.
func testable(receipt environment.Receipt) []environment.ProjectSetup {
	projects := receipt.Projects
	if len(projects) == 0 {
		projects = []environment.ProjectSetup{receipt.Main()}
		projects[0].Ready = true
	}
	plain := make([]environment.Project, len(projects))
	for i, project := range projects {
		plain[i] = project.Project
	}
	needed := environment.WithoutCovered(plain)
	return slices.DeleteFunc(slices.Clone(projects), func(p environment.ProjectSetup) bool {
		return !p.Ready || p.TestCommand == "" || !slices.ContainsFunc(needed, func(one environment.Project) bool {
			return one.Directory == p.Directory && one.EnvironmentType == p.EnvironmentType
		})
	})
}
