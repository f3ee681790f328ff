package broker

import (
	"context"
	"fmt"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/items"
	"github.com/toryo-dev/toryo/internal/messages"
	"github.com/toryo-dev/toryo/internal/outbox"
	"github.com/toryo-dev/toryo/internal/receipt"
	"github.com/toryo-dev/toryo/internal/task"
)

// putVerification has the verdict shown as a commit status on what was published to a pull
// request, with a link to the task. A commit of somebody else, such as the base, gets none.
// The status is the server's own write: it stands whatever becomes of the run.
func (r *Runs) putVerification(ctx context.Context, held Lease, wish PullWish, base string, published outbox.Published, pull task.Key) error {
	if !published.Own {
		return nil
	}
	state, description := verification(wish, r.options.Status.LanguageOf(ctx, held.Task))
	status := outbox.SetStatus{
		Commit: published.Commit, State: state, Description: description,
		Of: &outbox.PublishedCommit{Base: published.Base, BaseBranch: base, Draft: wish.Draft, At: r.options.Now()},
	}
	if r.options.Receipts != nil && r.options.Receipts.URL != "" {
		status.URL = r.options.Receipts.URL + "/tasks/" + string(held.ID)
	}
	if held.Key.Kind == task.Pull { // it stays what it is
		snapshot, err := r.options.Snapshots.Get(ctx, held.Key, items.ParticipantsAge)
		if err != nil {
			return fmt.Errorf("read whether the pull request is a draft: %w", err)
		}
		status.Of.Draft = snapshot.Item.Draft || wish.unasked
	}
	action, err := outbox.NewVerification(pull, status)
	if err != nil {
		return err
	}
	if _, err = r.options.Sender.Put(ctx, action); err == nil && r.options.Changes != nil {
		r.options.Changes.Publish(items.Change{Repository: pull.Repo(), Checked: published.Commit})
	}
	return err
}

// verification is what a commit status says about a verdict, in one line. It is a success
// when tests were run and none fails that passed before. Commit statuses know no third state
// besides success and failure that does not look as if something were still going on: so work
// that could not be tested fails, and the description says that it was not tested. A repository
// without tests is another matter: see withoutTests.
func verification(wish PullWish, in task.Language) (state forge.StatusState, description string) {
	failed := func(key string, args ...any) (forge.StatusState, string) {
		return forge.StatusFailure, messages.Text(in, key, args...)
	}
	verdict := wish.Verdict
	if verdict == nil {
		return failed("verification.none")
	}
	tests := testsOf(*verdict)
	worse, before := tests.worse, tests.before
	switch {
	case !verdict.Passed && worse > 0:
		return failed("verification.worse", worse)
	case !verdict.Passed:
		return failed("verification.failed")
	case verdict.NoTests && verdict.Environment.Ready:
		return withoutTests(*verdict, wish.unasked, in)
	case verdict.NotRun != "":
		return failed("verification.untested_because", verdict.NotRun)
	case !tests.run || !verdict.Environment.Ready:
		return failed("verification.untested")
	case tests.unnamed:
		return failed("verification.unnamed")
	case wish.unasked:
		return failed("verification.unasked")
	case before > 0:
		return forge.StatusSuccess, messages.Text(in, "verification.passed_before", tests.passed, before)
	case tests.passed > 0:
		return forge.StatusSuccess, messages.Text(in, "verification.passed_count", tests.passed)
	default:
		return forge.StatusSuccess, messages.Text(in, "verification.passed")
	}
}

// withoutTests is what a commit status says about a repository that has no tests. A build that
// passed is a success that says what it is. If there is nothing to build either, such as where
// there are only texts, nothing is said: a failure on every pull request would be noise, and a
// success a proof that there is not.
func withoutTests(verdict receipt.Verdict, unasked bool, in task.Language) (state forge.StatusState, description string) {
	built := false
	for _, project := range verdict.Projects {
		for _, run := range project.Runs {
			built = true
			if run.ExitCode != 0 || run.TimedOut {
				return forge.StatusFailure, messages.Text(in, "verification.build_failed")
			}
		}
	}
	switch {
	case unasked:
		return forge.StatusFailure, messages.Text(in, "verification.unasked_untested")
	case built:
		return forge.StatusSuccess, messages.Text(in, "verification.built")
	}
	return "", ""
}

// tests is what the test runs of a verdict say together.
type tests struct {
	run                   bool // there are some
	unnamed               bool // a command failed and named no test that did
	passed, worse, before int
}

func testsOf(verdict receipt.Verdict) (all tests) {
	for _, project := range verdict.Projects {
		for _, run := range project.Runs {
			if run.Kind != receipt.TestRun {
				continue
			}
			all.run = true
			all.worse, all.before = all.worse+len(run.Failed), all.before+len(run.FailedBefore)
			if run.Counts != nil {
				all.passed += run.Counts.Passed
			}
			named := len(run.Failed)+len(run.FailedBefore)+len(run.Flaky) > 0
			all.unnamed = all.unnamed || !named && (run.ExitCode != 0 || run.TimedOut)
		}
	}
	return all
}
