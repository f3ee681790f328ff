package phase

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/toryo-dev/toryo/internal/environment"
	"github.com/toryo-dev/toryo/internal/testreport"
)

// reruns is how often a test that newly fails is run again, with the change and without.
const reruns = 3

// rerunTime is how long tests are run again at most, with the change and without.
const rerunTime = 10 * time.Minute

// settleFlaky runs tests again that newly fail. Each time is in a sandbox of its own: a
// test that passes because an earlier run has left something behind does not pass. A test
// that passes and fails with the same files is flaky, and does not count.
func (r *run) settleFlaky(ctx context.Context, verdict *Verdict, run *tested) error {
	if !run.outcome.Worse || run.outcome.TimedOut {
		return nil
	}
	var names []string // none if only the exit code is known
	if run.ran.Tests != nil {
		if names = slices.Clone(run.outcome.New); len(names) == 0 || !run.ran.Tests.Complete {
			return nil // it did not come to its end, and not for a test
		}
	}
	passed, err := r.seen(ctx, verdict.Commit, run.project, names, testreport.Passed)
	if err != nil {
		return err
	}
	failed := map[string]bool{}
	if before := run.project.Baseline; len(names) > 0 || passed[""] && before != nil && before.Passed() { // or it does not matter
		if failed, err = r.seen(ctx, verdict.before, run.project, names, testreport.Failed); err != nil {
			return err
		}
	}
	if len(names) == 0 {
		run.settle(verdict, []string{""}, passed, failed)
	} else {
		run.settle(verdict, names, passed, failed)
	}
	return nil
}

// settle takes out the tests that are flaky: they were seen to pass with the change, or to
// fail without it. The name "" is the command as a whole.
func (t *tested) settle(verdict *Verdict, names []string, passed, failed map[string]bool) {
	var flaky, fresh []string
	for _, name := range names {
		shown := cmp.Or(name, t.outcome.Command)
		if passed[name] || failed[name] {
			flaky = append(flaky, shown)
		}
		if passed[name] && !failed[name] {
			fresh = append(fresh, shown)
		}
	}
	if len(fresh) > 0 {
		verdict.finding(flakyWithWork, t.outcome.Folder, "", fresh)
	}
	if t.outcome.Flaky = flaky; len(flaky) == len(names) {
		t.outcome.New, t.outcome.Worse, t.outcome.Output = nil, false, ""
		return
	}
	t.outcome.New = slices.DeleteFunc(slices.Clone(t.outcome.New), func(name string) bool { return slices.Contains(flaky, name) })
}

// seen runs tests of a commit again until each was seen to end in a way, or as often as
// tests are run again. Without names it is about the command as a whole.
func (r *run) seen(ctx context.Context, commit string, project environment.ProjectSetup, names []string, want testreport.Status) (map[string]bool, error) {
	seen := map[string]bool{}
	left := slices.Clone(names)
	begun := time.Now()
	for range reruns {
		if time.Since(begun) > rerunTime {
			break // what takes so long is not worth more of it
		}
		ran, err := r.runAgain(ctx, commit, project, left)
		if err != nil {
			return nil, err
		}
		if len(names) == 0 {
			if seen[""] = ran != nil && ran.Passed() == (want == testreport.Passed); seen[""] {
				return seen, nil
			}
			continue
		}
		status := resultsOf(ran)
		left = slices.DeleteFunc(left, func(name string) bool {
			seen[name] = status[name] == want
			return seen[name]
		})
		if len(left) == 0 {
			break
		}
	}
	return seen, nil
}

// runAgain runs some tests of a project, or all where the runner cannot select, in a new
// sandbox. Nil means that there could be none.
func (r *run) runAgain(ctx context.Context, commit string, project environment.ProjectSetup, names []string) (*environment.Baseline, error) {
	on, err := r.newVerificationSandbox(ctx, commit, r.state.setup.Receipt)
	if err != nil {
		return nil, err
	}
	defer on.close(ctx)
	if on.problem != "" {
		return nil, nil //nolint:nilnil // that it cannot be set up is no result of a test
	}
	ran, err := on.Test(ctx, project.Command(project.TestCommand), names)
	if err != nil {
		return nil, cause(ctx, err)
	}
	return ran, nil
}
