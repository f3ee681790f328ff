package phase

import (
	"context"
	"slices"

	"github.com/toryo-dev/toryo/internal/environment"
	"github.com/toryo-dev/toryo/internal/phase/tool"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testfiles"
	"github.com/toryo-dev/toryo/internal/testreport"
)

// lookForTampering finds what the change did to the tests: which are not run any more,
// and which do not pass as they were before the change.
func (r *run) lookForTampering(ctx context.Context, verdict *Verdict, runs []tested) (changedTests, error) {
	for i := range runs {
		verdict.missing(&runs[i])
		verdict.unreported(&runs[i])
	}
	projects := make([]environment.ProjectSetup, len(runs))
	for i := range runs {
		projects[i] = runs[i].project
	}
	below := verdict.before
	kinds, err := r.kinds(ctx, below, projects)
	if err != nil {
		return changedTests{}, err
	}
	for i := range runs {
		verdict.rewritten(&runs[i], kinds)
	}
	changed, err := r.changedTests(ctx, kinds, below, verdict.Commit)
	if err != nil {
		return changedTests{}, err
	}
	if err := r.buildFiles(ctx, verdict, below); err != nil {
		return changedTests{}, err
	}
	verdict.TestFiles = changed.files[:min(len(changed.files), mostNamed)]
	if len(changed.back) == 0 {
		return changed, nil
	}
	mixed, err := r.asBase(ctx, below, verdict.Commit, changed)
	if err != nil {
		return changedTests{}, err
	}
	// Once more where something was found: a test that fails now and then proves nothing.
	found, err := r.testAsBefore(ctx, mixed, runs)
	if err == nil && slices.ContainsFunc(found, func(one asBefore) bool { return one.bad() }) {
		var again []asBefore
		again, err = r.testAsBefore(ctx, mixed, runs)
		for i := range again {
			found[i] = found[i].and(again[i])
		}
	}
	if err != nil {
		return changedTests{}, err
	}
	for i, one := range found {
		if one.bad() {
			verdict.finding(failsAsBefore, runs[i].outcome.Folder, one.note, one.names)
		}
	}
	return changed, nil
}

// missing finds the tests that were run before and are not run, or skipped, now.
func (v *Verdict) missing(run *tested) {
	before, now := resultsOf(run.project.Baseline), resultsOf(&run.ran)
	var gone, skipped []string
	for name, was := range before {
		if was == testreport.Skipped {
			continue
		}
		switch is, runs := now[name]; {
		case !runs && was == testreport.Passed: // one that failed may have stood for a file that could not be loaded
			gone = append(gone, name)
		case is == testreport.Skipped:
			skipped = append(skipped, name)
		}
	}
	note := ""
	if before != nil && now == nil {
		note = "the runner reports nothing any more"
	}
	if len(gone) > 0 {
		v.finding(testsNotRun, run.outcome.Folder, note, gone)
	}
	if len(skipped) > 0 {
		v.finding(testsSkipped, run.outcome.Folder, "", skipped)
	}
}

// unreported finds a runner that did not come to the end of its report. That no test was
// found is no work of the change if it was so before.
func (v *Verdict) unreported(run *tested) {
	if report := run.ran.Tests; report != nil && !report.Complete && report.Note != testreport.NoTests {
		v.finding(noReport, run.outcome.Folder, report.Note, nil)
		before := run.project.Baseline
		v.Findings[len(v.Findings)-1].Before = before != nil && before.Tests != nil && before.Tests.Note == report.Note
	}
}

// rewritten finds tests that were changed while they ran, which they were not before.
func (v *Verdict) rewritten(run *tested, kinds testfiles.Set) {
	names := slices.DeleteFunc(slices.Clone(run.ran.Changed), func(name string) bool {
		return kinds.Kind(name) == testfiles.Program || run.project.Baseline != nil && slices.Contains(run.project.Baseline.Changed, name)
	})
	if len(names) > 0 {
		v.finding(testsRewritten, run.outcome.Folder, "", names)
	}
}

// buildFiles finds lines of build files that decide about tests. They serve the program
// too, so that they are not put back.
func (r *run) buildFiles(ctx context.Context, verdict *Verdict, below string) error {
	changes, err := r.Repository.Changes(ctx, below, verdict.Commit)
	if err != nil {
		return err
	}
	var found []string
	for _, change := range changes {
		if !testfiles.IsBuildFile(change.Name) {
			continue
		}
		var versions [2][]byte
		for i, commit := range []string{below, verdict.Commit} {
			data, err := r.Repository.File(ctx, commit, change.Name)
			if code := task.CodeOf(err); err != nil && code != task.NotFound && code != task.TooLarge {
				return err
			}
			versions[i] = data
		}
		for _, line := range testfiles.ChangedBuildLines(change.Name, versions[0], versions[1]) {
			found = append(found, plainName(change.Name)+": "+tool.Shorten(tool.Printable(line), 200))
		}
	}
	if len(found) > 0 {
		verdict.finding(buildFileLines, "", "", found)
	}
	return nil
}

// asBefore is what does not pass of a project with the tests as they were.
type asBefore struct {
	names []string
	note  string // what is wrong without a test of a name
}

func (a asBefore) bad() bool { return len(a.names) > 0 || a.note != "" }

// and is what is wrong both times.
func (a asBefore) and(b asBefore) asBefore {
	both := asBefore{names: slices.DeleteFunc(slices.Clone(a.names), func(name string) bool { return !slices.Contains(b.names, name) })}
	if a.note != "" && b.note != "" {
		both.note = b.note
	}
	if a.bad() && b.bad() && !both.bad() {
		both.note = "different tests fail each time"
	}
	return both
}

// testAsBefore runs the tests on a commit that has them, and their configuration, as they
// were before the change.
func (r *run) testAsBefore(ctx context.Context, mixed string, runs []tested) ([]asBefore, error) {
	found := make([]asBefore, len(runs))
	on, err := r.newVerificationSandbox(ctx, mixed, r.state.setup.Receipt)
	if err != nil {
		return nil, err
	}
	defer on.close(ctx)
	for i := range runs {
		if on.problem != "" {
			found[i].note = on.problem
			continue
		}
		ran, err := on.test(ctx, runs[i].project.Command(runs[i].project.TestCommand))
		if err != nil {
			return nil, err
		}
		found[i] = runs[i].against(ran)
	}
	return found, nil
}

// against compares with a run of the tests as they were before the change.
func (t *tested) against(ran *environment.Baseline) asBefore {
	before, now, theirs := resultsOf(t.project.Baseline), resultsOf(&t.ran), resultsOf(ran)
	var wrong asBefore
	for name, status := range theirs {
		if status == testreport.Failed && now[name] != testreport.Failed && !slices.Contains(t.outcome.Flaky, name) {
			wrong.names = append(wrong.names, name)
		}
	}
	for name, status := range before {
		if is, runs := theirs[name]; status == testreport.Passed && (!runs || is == testreport.Skipped) {
			wrong.names = append(wrong.names, name)
		}
	}
	if !wrong.bad() && t.ran.Passed() && !ran.Passed() {
		wrong.note = whyWorse(ran)
	}
	return wrong
}

// whyWorse says in which way tests do not pass of which none has failed.
func whyWorse(ran *environment.Baseline) string {
	switch {
	case ran.Tests == nil:
		return ran.Line() + " fails"
	case ran.Tests.Note != "":
		return ran.Tests.Note
	}
	return ran.Line() + " does not pass"
}

// baselines are those of the commit that the work is on top of now: the base may have
// changed since the run began.
func (r *run) baselines(ctx context.Context, below string) (*SetupEntry, error) {
	setup := r.state.setup
	if setup.Base == "" || setup.Base == below {
		return setup, nil
	}
	if r.rebased != nil && r.rebased.Base == below {
		return r.rebased, nil
	}
	entry := *setup
	entry.Base, entry.Receipt.Projects = below, slices.Clone(setup.Receipt.Projects)
	on, err := r.newVerificationSandbox(ctx, below, setup.Receipt)
	if err != nil {
		return nil, err
	}
	defer on.close(ctx)
	if on.problem != "" {
		return nil, task.Errorf(task.Unavailable, "the environment cannot be set up with what the base has now: %s", on.problem)
	}
	if err := r.runBaseline(ctx, on, &entry); err != nil {
		return nil, cause(ctx, err)
	}
	r.rebased = &entry
	return r.rebased, nil
}
