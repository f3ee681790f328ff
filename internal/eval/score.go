package eval

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/agent/workspace"
	"github.com/toryo-dev/toryo/internal/environment"
	"github.com/toryo-dev/toryo/internal/environment/trial"
	"github.com/toryo-dev/toryo/internal/eval/source"
	"github.com/toryo-dev/toryo/internal/eval/taskset"
	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testreport"
	"github.com/toryo-dev/toryo/internal/textfmt"
	"github.com/toryo-dev/toryo/internal/workdir"
)

// Scorer runs the hidden tests over what a run has left, each time in a sandbox of its own.
type Scorer struct {
	Setup   environment.Setup // without a model that could repair it
	Spec    sandbox.Spec      // without a workspace
	Timeout time.Duration     // of one run of the tests
	Dir     string            // for folders that go again
}

// Score is what the hidden tests have said.
type Score struct {
	Resolved bool `json:"resolved"`
	// Reward is what the tests of a task folder have left; nil if they left none, and for rows.
	Reward *float64 `json:"reward,omitempty"`
	// Failed are the first tests that had to pass and did not, and Missing those of them
	// that the report does not have.
	Failed  []string `json:"failed,omitempty"`
	Missing int      `json:"missing,omitempty"`
	// Note says why the tests could not decide, such as that they did not end in time.
	Note        string      `json:"note,omitempty"`
	Command     string      `json:"command,omitempty"`
	Seconds     float64     `json:"seconds"`
	Environment Environment `json:"environment"`
	Output      string      `json:"output,omitempty"` // the end of it, if it is not resolved

	statuses map[string]testreport.Status
}

// Environment is what identifies the environment of a score, as receipts have it.
type Environment struct {
	Name     string `json:"name,omitempty"`
	Sandbox  string `json:"sandbox,omitempty"`
	Image    string `json:"image,omitempty"`
	Identity string `json:"identity,omitempty"` // digest of the image or the toolchains
	Snapshot string `json:"snapshot,omitempty"` // key
}

// Expected are the tests that have to pass, and how they are run: the environment as it was
// set up for the base.
type Expected struct {
	FailToPass []string `json:"fail_to_pass"`
	PassToPass []string `json:"pass_to_pass,omitempty"`
	// Allowed are files that say how tests are run and that the change of people needs too:
	// they are scored as the work has them.
	Allowed []string `json:"allowed,omitempty"`
	// Patch is what the solution of a task folder changes; empty for rows.
	Patch   string              `json:"patch,omitempty"`
	Receipt environment.Receipt `json:"receipt"`
}

// subject is a commit that is scored.
type subject struct {
	task    taskset.Task
	from    *source.Repository
	commit  string
	receipt environment.Receipt // of the base
}

// Project names what is kept of the environment of a task. Attempts begin with what the check
// has kept of the base, without hidden tests. Tasks with another base have their own: what was
// installed or compiled there may come from a later commit.
func Project(t taskset.Task) string { return "eval " + t.Base }

// prepare sets the environment of the base up, which is kept for all that comes, and says how.
// An error is about the machine or about the task.
func (s Scorer) prepare(ctx context.Context, t taskset.Task, from *source.Repository) (receipt environment.Receipt, err error) {
	folder, err := os.MkdirTemp(s.Dir, "base-")
	if err != nil {
		return receipt, task.Wrap(task.DataDir, err, "no folder for the base can be made")
	}
	defer func() { err = errors.Join(err, workdir.Remove(folder)) }()
	files, closeFiles, err := checkOut(ctx, filepath.Join(folder, "work"), subject{from: from, commit: from.Base})
	if err != nil {
		return receipt, err
	}
	defer closeFiles()
	plan, err := s.detect(files.Dir())
	if err != nil {
		return receipt, err
	}
	outcome, err := s.setUp(ctx, files.Dir(), environment.Request{Plan: plan, Source: environment.Source{Project: Project(t)}})
	if err != nil {
		return receipt, err
	}
	if outcome.Sandbox != nil {
		if err := outcome.Sandbox.Stop(context.WithoutCancel(ctx)); err != nil {
			return receipt, err
		}
	}
	if !outcome.Handover.EnvironmentReady {
		return receipt, task.Errorf(task.Unavailable, "the environment of the base cannot be set up: %s", lastFailure(outcome))
	}
	return outcome.Receipt, nil
}

// detect is the plan that the files themselves propose.
func (s Scorer) detect(folder string) (environment.Selection, error) {
	files, err := workdir.Open(folder)
	if err != nil {
		return environment.Selection{}, err
	}
	defer func() { _ = files.Close() }() // it was only read
	found, err := s.Setup.Table.Detect(files.FS(), "")
	return found.Selection(), err
}

func lastFailure(outcome environment.Outcome) string {
	if failures := outcome.Result.Errors; len(failures) > 0 {
		return textfmt.Shorten(textfmt.OneLine(failures[len(failures)-1].Message), longestNote)
	}
	return "nothing is known"
}

// tested is a run of the hidden tests.
type tested struct {
	receipt environment.Receipt
	runs    []*environment.Baseline
	problem string // why there are none: of the files, not of the machine
	took    time.Duration
}

// run sets the environment up and runs the tests. An error is about the machine.
func (s Scorer) run(ctx context.Context, of subject) (result tested, err error) {
	began := time.Now()
	folder, err := os.MkdirTemp(s.Dir, "score-")
	if err != nil {
		return tested{}, task.Wrap(task.DataDir, err, "no folder for the tests can be made")
	}
	defer func() { err = errors.Join(err, workdir.Remove(folder)) }()
	files, closeFiles, err := checkOut(ctx, filepath.Join(folder, "work"), of)
	if err != nil {
		return tested{}, err
	}
	defer closeFiles()
	outcome, err := s.setUp(ctx, files.Dir(), environment.Request{
		Plan: of.receipt.Selection(), Source: environment.Source{Project: Project(of.task), Change: "work"}, Again: true,
	})
	if err != nil {
		return tested{}, err
	}
	defer func() {
		if outcome.Sandbox != nil {
			err = errors.Join(err, outcome.Sandbox.Stop(context.WithoutCancel(ctx)))
		}
	}()
	result = tested{receipt: outcome.Receipt}
	if !outcome.Handover.EnvironmentReady {
		return notReady(outcome)
	}
	if _, err := files.Restore(ctx); err != nil {
		return tested{}, err
	}
	if err := workdir.Own(files.Dir(), s.Setup.Engine.Capabilities().FileOwner); err != nil {
		return tested{}, err
	}
	result.runs, err = s.test(ctx, of, outcome, files.Dir())
	result.took = time.Since(began)
	return result, err
}

// notReady tells a machine without an environment from files that cannot be set up.
func notReady(outcome environment.Outcome) (tested, error) {
	failures := outcome.Result.Errors
	if outcome.Sandbox == nil || len(failures) > 0 && slices.Contains(outages, failures[len(failures)-1].Classification.Kind) {
		return tested{}, task.Errorf(task.Unavailable, "the environment for the tests cannot be set up: %s", lastFailure(outcome))
	}
	return tested{receipt: outcome.Receipt, problem: "the environment cannot be set up with these files: " + lastFailure(outcome)}, nil
}

// outages are failures that say nothing about the files.
var outages = []environment.Kind{environment.Network, environment.Server, environment.Lock, environment.Container, environment.Resource}

// longestNote bounds what is kept of texts from elsewhere.
const longestNote = 500

// exported are the files of a commit.
type exported interface {
	Dir() string
	Restore(ctx context.Context) ([]string, error)
	Remove() error
}

// checkOut writes the files of a commit to a folder, without filters and hooks.
func checkOut(ctx context.Context, dir string, of subject) (exported, func(), error) {
	made, err := workspace.Local(ctx, workspace.Options{Dir: dir, URL: of.from.Dir, Branch: "score", StartCommit: of.commit})
	if err != nil {
		return nil, nil, err
	}
	files, err := made.Export(ctx, of.commit)
	if err != nil {
		return nil, nil, errors.Join(err, made.Remove())
	}
	return files, func() { _ = errors.Join(files.Remove(), made.Remove()) }, nil // the folder goes anyway
}

// setUp sets the environment up for the files in a folder.
func (s Scorer) setUp(ctx context.Context, folder string, request environment.Request) (environment.Outcome, error) {
	if err := workdir.Own(folder, s.Setup.Engine.Capabilities().FileOwner); err != nil {
		return environment.Outcome{}, err
	}
	request.Spec = s.Spec
	request.Spec.Workspace = folder
	setup := s.Setup
	return setup.Run(ctx, request)
}

// test runs the command of the task, or those of the projects.
func (s Scorer) test(ctx context.Context, of subject, outcome environment.Outcome, folder string) ([]*environment.Baseline, error) {
	at := &trial.Trial{Sandbox: outcome.Sandbox, Timeout: s.Timeout, Files: folder}
	var commands []sandbox.Command
	if of.task.TestCommand != "" {
		commands = []sandbox.Command{{Text: of.task.TestCommand, Folder: "."}}
	} else {
		for _, project := range testable(outcome.Receipt) {
			commands = append(commands, project.Command(project.TestCommand))
		}
	}
	if len(commands) == 0 {
		return nil, task.Errorf(task.Unsupported, "it is not known how the tests are run").WithHint("give the task a test_cmd")
	}
	var runs []*environment.Baseline
	for _, command := range commands {
		ran, err := at.Test(ctx, command, nil)
		if err != nil {
			return nil, err
		}
		runs = append(runs, ran)
	}
	return runs, nil
}

// testable are the projects that have tests and are ready.
func testable(receipt environment.Receipt) []environment.ProjectSetup {
	plain := make([]environment.Project, len(receipt.Projects))
	for i, project := range receipt.Projects {
		plain[i] = project.Project
	}
	needed := environment.WithoutCovered(plain)
	return slices.DeleteFunc(slices.Clone(receipt.Projects), func(p environment.ProjectSetup) bool {
		return !p.Ready || p.TestCommand == "" || !slices.ContainsFunc(needed, func(one environment.Project) bool {
			return one.Directory == p.Directory && one.EnvironmentType == p.EnvironmentType
		})
	})
}

// score holds what the tests have said against what is expected.
func (t tested) score(want Expected) Score {
	score := Score{Seconds: t.took.Seconds(), Note: t.problem, Environment: environmentOf(t.receipt), statuses: t.statuses()}
	var commands, outputs []string
	for _, ran := range t.runs {
		commands, outputs = append(commands, ran.Line()), append(outputs, ran.Output)
		if note := noteOf(ran); note != "" && score.Note == "" && t.matters(ran, want) {
			score.Note = note
		}
	}
	score.Command = strings.Join(commands, "; ")
	for _, name := range slices.Concat(want.FailToPass, want.PassToPass) {
		status, found := score.statuses[name]
		if status == testreport.Passed {
			continue
		}
		if !found {
			score.Missing++
		}
		if len(score.Failed) < mostNamed {
			score.Failed = append(score.Failed, name)
		}
	}
	score.Resolved = score.Note == "" && len(score.Failed) == 0 && len(want.FailToPass) > 0
	if !score.Resolved {
		score.Output = strings.Join(outputs, "\n")
	}
	return score
}

// matters reports whether what is wrong with a run can touch the tests that have to pass. It
// cannot if none of them is in that run, and all of them passed in others.
func (t tested) matters(ran *environment.Baseline, want Expected) bool {
	others := tested{runs: slices.DeleteFunc(slices.Clone(t.runs), func(one *environment.Baseline) bool { return one == ran })}.statuses()
	own := tested{runs: []*environment.Baseline{ran}}.statuses()
	return slices.ContainsFunc(slices.Concat(want.FailToPass, want.PassToPass), func(name string) bool {
		_, is := own[name]
		return is || others[name] != testreport.Passed
	})
}

// cut says why nothing can be said of the tests, if that is so: there was no environment for
// them, or they came to a limit.
func (t tested) cut() string {
	for _, ran := range t.runs {
		if t.problem == "" && ran.Exceeded != sandbox.NoLimit {
			return noteOf(ran)
		}
	}
	return t.problem
}

// notLoaded reports whether tests that have to pass are missing, and none of them has failed:
// they could not be built or loaded.
func (t tested) notLoaded(want Expected) bool {
	missing, all := false, t.statuses()
	for _, name := range slices.Concat(want.FailToPass, want.PassToPass) {
		status, found := all[name]
		if found && status != testreport.Passed {
			return false
		}
		missing = missing || !found
	}
	return missing && t.cut() == ""
}

// finished reports whether the runners have said all that there is.
func (t tested) finished() bool {
	return t.problem == "" && !slices.ContainsFunc(t.runs, func(ran *environment.Baseline) bool { return noteOf(ran) != "" })
}

// mostNamed bounds how many tests or files are named.
const mostNamed = 100

// noteOf says why a run of the tests decides nothing.
func noteOf(ran *environment.Baseline) string {
	switch {
	case ran.Exceeded != sandbox.NoLimit:
		return fmt.Sprintf("the tests exceeded the limit of %s", ran.Exceeded)
	case ran.Tests == nil:
		return "the runner of the tests is not known, so that it cannot be asked for a report: " + textfmt.Shorten(ran.Line(), longestNote)
	case !ran.Tests.Complete && ran.Tests.Note != testreport.NoTests:
		return "the runner did not finish its report: " + ran.Tests.Note
	}
	return ""
}

// statuses are the results of all tests by name.
func (t tested) statuses() map[string]testreport.Status {
	all := map[string]testreport.Status{}
	for _, ran := range t.runs {
		if ran.Tests == nil {
			continue
		}
		for _, one := range ran.Tests.Cases {
			if was, is := all[one.Name]; !is || was == testreport.Passed { // one failure is a failure
				all[one.Name] = one.Status
			}
		}
	}
	return all
}

func environmentOf(receipt environment.Receipt) Environment {
	return Environment{Name: receipt.Environment, Sandbox: receipt.Sandbox, Image: receipt.Image, Identity: receipt.Identity, Snapshot: receipt.SnapshotKey}
}

// expectedOf are the tests of a task that has none named: what the change makes pass, and what
// passes with it and without.
func expectedOf(before, after map[string]testreport.Status) (failToPass, passToPass []string) {
	for _, name := range slices.Sorted(maps.Keys(after)) {
		switch {
		case after[name] != testreport.Passed:
		case before[name] == testreport.Passed:
			passToPass = append(passToPass, name)
		default:
			failToPass = append(failToPass, name)
		}
	}
	return failToPass, passToPass
}
