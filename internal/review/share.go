package review

import (
	"context"
	"slices"
	"strings"

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

// Readers are those with whom a review is shared.
type Readers struct {
	Everyone bool     // all who can sign in
	People   []string // logins
}

// Count is how many they are, with everyone as one.
func (r Readers) Count() int {
	if r.Everyone {
		return len(r.People) + 1
	}
	return len(r.People)
}

// checkNames refuses a name that is empty: it would be a mistake of whoever gives it.
func (r Readers) checkNames() error {
	if slices.ContainsFunc(r.People, func(login string) bool { return strings.TrimSpace(login) == "" }) {
		return task.Errorf(task.Invalid, "the name of a person is empty").WithHint("name the people by their logins")
	}
	return nil
}

// names are the readers as the database has them.
func (r Readers) names() []string {
	if r.Everyone {
		return append([]string{store.Everyone}, r.People...)
	}
	return r.People
}

// Share lets people read a review of the caller's own and talk about it. Conversations stay
// with those who hold them. Nothing is shared if one of them has no account.
func (s *Service) Share(ctx context.Context, who, id string, with Readers) error {
	with, err := s.readers(ctx, who, id, with)
	if err != nil {
		return err
	}
	for _, name := range with.names() {
		if err := s.Store.ShareReview(ctx, id, name, s.Now()); err != nil {
			return err
		}
	}
	return nil
}

// SetReaders shares a review of the caller's own with these people and with nobody else.
func (s *Service) SetReaders(ctx context.Context, who, id string, only Readers) error {
	only, err := s.readers(ctx, who, id, only)
	if err != nil {
		return err
	}
	return s.Store.SetShares(ctx, id, only.names(), s.Now())
}

// readers checks that the review is the caller's own and that all have accounts. It names
// each once, as the account does.
func (s *Service) readers(ctx context.Context, who, id string, with Readers) (Readers, error) {
	if _, err := s.own(ctx, who, id); err != nil {
		return Readers{}, err
	}
	if err := with.checkNames(); err != nil {
		return Readers{}, err
	}
	found := Readers{Everyone: with.Everyone}
	for _, login := range with.People {
		if slices.ContainsFunc(found.People, func(other string) bool { return task.SameLogin(other, login) }) {
			continue
		}
		user, err := s.Store.User(ctx, login)
		if task.CodeOf(err) == task.NotFound {
			return Readers{}, task.Errorf(task.Invalid, "there is no account %q to share the review with", login).WithHint("see toryo user list for the accounts")
		}
		if err != nil {
			return Readers{}, err
		}
		found.People = append(found.People, user.Login)
	}
	return found, nil
}

// Unshare takes back what Share has allowed. Conversations that others have begun are
// kept, and out of their reach until the review is shared again.
func (s *Service) Unshare(ctx context.Context, who, id string, with Readers) error {
	if _, err := s.own(ctx, who, id); err != nil {
		return err
	}
	if err := with.checkNames(); err != nil {
		return err
	}
	for _, name := range with.names() {
		if err := s.Store.UnshareReview(ctx, id, name); err != nil {
			return err
		}
	}
	return nil
}

// SharedWith says with whom a review of the caller's own is shared. Of a review of somebody
// else it says nothing.
func (s *Service) SharedWith(ctx context.Context, who, id string) (Readers, error) {
	found, err := s.Review(ctx, who, id)
	if err != nil || !mine(found, who) {
		return Readers{}, err
	}
	names, err := s.Store.SharesOf(ctx, id)
	readers := Readers{Everyone: slices.Contains(names, store.Everyone)}
	readers.People = slices.DeleteFunc(names, func(name string) bool { return name == store.Everyone })
	return readers, err
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
