package review

import (
	"context"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// mayRead reports whether somebody may read a review.
func (s *Service) mayRead(ctx context.Context, r store.Review, who string) (bool, error) {
	if mine(r, who) || ofPull(r) {
		return true, nil
	}
	if who == "" {
		return false, nil
	}
	return s.Store.MayRead(ctx, r.ID, who)
}

// Share lets a person read a review of the caller's own and talk about it, or everyone
// who can sign in ([store.Everyone]). Conversations stay with those who hold them.
func (s *Service) Share(ctx context.Context, who, id, with string) error {
	if _, err := s.own(ctx, who, id); err != nil {
		return err
	}
	if with != store.Everyone {
		user, err := s.Store.User(ctx, with)
		if task.CodeOf(err) == task.NotFound {
			return task.Errorf(task.Invalid, "there is no account %q to share the review with", with).WithHint("see toryo user list for the accounts")
		}
		if err != nil {
			return err
		}
		with = user.Login
	}
	return s.Store.ShareReview(ctx, id, with, s.Now())
}

// Unshare takes back what Share has allowed. Conversations that others have begun are
// kept, and out of their reach until the review is shared again.
func (s *Service) Unshare(ctx context.Context, who, id, with string) error {
	if _, err := s.own(ctx, who, id); err != nil {
		return err
	}
	return s.Store.UnshareReview(ctx, id, with)
}

// SharedWith says with whom a review of the caller's own is shared, [store.Everyone]
// first. Of a review of somebody else it says nothing.
func (s *Service) SharedWith(ctx context.Context, who, id string) ([]string, error) {
	found, err := s.Review(ctx, who, id)
	if err != nil || !mine(found, who) {
		return nil, err
	}
	return s.Store.SharesOf(ctx, id)
}

// Readable returns every review that the caller may read, those of pull requests among
// them, oldest first.
func (s *Service) Readable(ctx context.Context, who string) ([]store.Review, error) {
	if err := named(who); err != nil {
		return nil, err
	}
	return s.Store.ListReviews(ctx, store.ReviewFilter{Reader: who, Pulls: true})
}

// own returns a review of the caller's own.
func (s *Service) own(ctx context.Context, who, id string) (store.Review, error) {
	found, err := s.Review(ctx, who, id)
	switch {
	case err != nil:
		return store.Review{}, err
	case ofPull(found):
		return store.Review{}, task.Errorf(task.Forbidden, "a review of a pull request is everyone's, and stays as long as the forge has it")
	case !mine(found, who):
		return store.Review{}, task.Errorf(task.Forbidden, "only %s, who owns the review, may do this", found.Owner)
	}
	return found, nil
}
