package broker

import (
	"context"

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
	state, description := verification(wish, r.options.Status.language(ctx, held.Task))
	status := outbox.SetStatus{
		Commit: published.Commit, State: state, Description: description,
		Of: &outbox.PublishedCommit{Base: published.Base, BaseBranch: base, Draft: wish.Draft},
	}
	if r.options.Receipts != nil && r.options.Receipts.URL != "" {
		status.URL = r.options.Receipts.URL + "/tasks/" + string(held.ID)
	}
	if held.Key.Kind == task.Pull { // it stays what it is
		snapshot, err := r.options.Snapshots.Get(ctx, held.Key, items.ParticipantsAge)
		if err != nil {
			r.options.Log.WarnContext(ctx, "whether the pull request is a draft is not known", "task", held.ID, "error", err)
		}
		status.Of.Draft = snapshot.Item.Draft || wish.unasked
	}
	action, err := outbox.NewVerification(pull, status)
	if err != nil {
		return err
	}
	_, err = r.options.Sender.Put(ctx, action)
	return err
}

// verification is what a commit status says about a verdict, in one line. It is a success
// when tests were run and none fails that passed before. Commit statuses know no third state
// besides success and failure that does not look as if something were still going on: so work
// that could not be tested fails, and the description says that it was not tested.
func verification(wish PullWish, in task.Language) (state forge.StatusState, description string) {
	failed := func(key string, args ...any) (forge.StatusState, string) {
		return forge.StatusFailure, messages.Text(in, key, args...)
	}
	verdict := wish.Verdict
	if verdict == nil {
		return failed("verification.none")
	}
	var tested bool
	var counts receipt.Counts
	worse, before := 0, 0
	for _, project := range verdict.Projects {
		for _, run := range project.Runs {
			tested = tested || run.Kind == receipt.TestRun
			worse, before = worse+len(run.Failed), before+len(run.FailedBefore)
			if run.Counts != nil {
				counts.Passed += run.Counts.Passed
			}
		}
	}
	switch {
	case !verdict.Passed && worse > 0:
		return failed("verification.worse", worse)
	case !verdict.Passed:
		return failed("verification.failed")
	case verdict.NotRun != "":
		return failed("verification.untested_because", verdict.NotRun)
	case !tested || !verdict.Environment.Ready:
		return failed("verification.untested")
	case wish.unasked:
		return failed("verification.unasked")
	case before > 0:
		return forge.StatusSuccess, messages.Text(in, "verification.passed_before", counts.Passed, before)
	case counts.Passed > 0:
		return forge.StatusSuccess, messages.Text(in, "verification.passed_count", counts.Passed)
	default:
		return forge.StatusSuccess, messages.Text(in, "verification.passed")
	}
}
