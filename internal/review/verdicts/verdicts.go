// Package verdicts reads what reviews of pull requests decided.
package verdicts

import (
	"context"
	"fmt"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/outbox"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// Submission is the write that submits our review of a commit. Its key is hidden in the
// review on the forge, which is how the review is found again.
func Submission(pull task.Key, commit string) outbox.Write {
	return outbox.Write{Item: pull, What: "review/" + commit}
}

// Store has what we decided.
type Store interface {
	// Verdicts returns our verdicts on a pull request, by head commit.
	Verdicts(ctx context.Context, pull task.Key) (map[string]string, error)
	// Action returns the write with an idempotency key.
	Action(ctx context.Context, idempotencyKey string) (store.Action, error)
}

// Source has the reviews of pull requests as a forge shows them; every [forge.Forge] is one.
type Source interface {
	Self(ctx context.Context) (string, error)
	Reviews(ctx context.Context, pull task.Key) ([]forge.Review, error)
}

// Reader reads the reviews of pull requests: what others decided as the forge shows it, and
// what we decided as we decided it.
//
// Forges take no verdict on a pull request of one's own. A review of ours that requests
// changes is a remark there, with the verdict in its text. For example, Toryo opens pull
// request 7 and then reviews it as request_changes: GitHub has a review of the kind COMMENTED
// by the bot, the database has the verdict, and Of returns the review with the verdict
// request_changes. What people have deleted on the forge is not returned: it does not stand
// any more. Neither is what the forge does not have yet.
type Reader struct{ Own Store }

// Of returns the reviews of a pull request in the order of the forge.
func (r Reader) Of(ctx context.Context, from Source, pull task.Key) ([]forge.Review, error) {
	reviews, err := from.Reviews(ctx, pull)
	if err != nil {
		return nil, fmt.Errorf("read the reviews: %w", err)
	}
	self, err := from.Self(ctx)
	if err != nil {
		return nil, err
	}
	var own map[string]string // read when there is one on the forge
	for i := range reviews {
		if !task.SameLogin(reviews[i].Author, self) {
			continue
		}
		if own == nil {
			if own, err = r.Own.Verdicts(ctx, pull); err != nil {
				return nil, fmt.Errorf("read what we decided: %w", err)
			}
		}
		decide(&reviews[i], pull, own)
	}
	return reviews, nil
}

// decide gives a review of ours on the forge the verdict and the commit that we gave it. One
// that we have no record of stays as the forge shows it.
func decide(review *forge.Review, pull task.Key, own map[string]string) {
	for commit, verdict := range own {
		if forge.MarkerOf(Submission(pull, commit).IdempotencyKey()).In(review.Body) {
			review.Verdict, review.Commit = forge.Verdict(verdict), commit
			return
		}
	}
}

// Reviewed reports whether we have reviewed a commit of a pull request, whether or not the
// forge has the review yet, or any more. A review that the forge has refused for good was not
// made.
func (r Reader) Reviewed(ctx context.Context, pull task.Key, commit string) (bool, error) {
	own, err := r.Own.Verdicts(ctx, pull)
	if err != nil {
		return false, fmt.Errorf("read what we decided: %w", err)
	}
	if own[commit] == "" {
		return false, nil
	}
	submission, found, err := store.Optional(r.Own.Action(ctx, Submission(pull, commit).IdempotencyKey()))
	return err == nil && (!found || submission.Status != store.Refused), err
}

// Open returns the reviews that ask for changes and still stand, oldest first. Of ours only
// the last one counts, whatever it decided: each is of all that there is. Self is the account
// that we write as.
func Open(reviews []forge.Review, self string) []forge.Review {
	last := -1
	for i, review := range reviews {
		if task.SameLogin(review.Author, self) && (last < 0 || !review.At.Before(reviews[last].At)) {
			last = i
		}
	}
	var standing []forge.Review
	for i, review := range reviews {
		if i == last || !task.SameLogin(review.Author, self) {
			standing = append(standing, review)
		}
	}
	return forge.OpenRequests(standing)
}
