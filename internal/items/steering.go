package items

import (
	"context"
	"log/slog"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

// Accept says who may steer the work on an item, besides ourselves.
type Accept string

// Who may steer: everyone; those who take part in the item (its author and assignees,
// those who had commented before the task began, and who may write to the repository);
// those who may write to the repository and the author of the item; only those who may
// write to the repository.
const (
	FromAll              Accept = "all"
	FromParticipants     Accept = "participants"
	FromWritersAndAuthor Accept = "write_or_author"
	FromWriters          Accept = "write"
)

// Steering decides who may steer the work on an item: whose comments, reviews and
// comments on lines a run is given as what to do, whose review begins a task or makes
// one of ours unnecessary, whose answer lets a paused task go on, whose reply under a
// review is answered, and whose label or assignment makes a task. Nothing else decides
// that. Its methods may be called by any
// number of goroutines.
//
// Whoever did not open the item and may not write to the repository is somebody whom
// nobody has given a right: everyone can comment on a public repository, and on most
// forges everyone can review there.
type Steering struct {
	Accept Accept // empty means FromWritersAndAuthor
	// Access tells what a login may do in the repository of an item; see [Rights].
	Access func(ctx context.Context, item task.Key, login string) (forge.Access, error)
	Log    *slog.Logger
}

// Standing is what somebody counts for on an item.
type Standing struct {
	Access  string      // what they may do in the repository; empty if it is not known
	Writes  bool        // whether they may write to it, as far as that is known
	Refused task.Reason // why what they say is not taken up; empty if it is
}

// MaySteer reports whether what they say is taken up.
func (s Standing) MaySteer() bool { return s.Refused == "" }

// Of says what a login counts for on an item. Earlier reports whether they had commented
// before the task began; nil means that they had not. When it is not known what they
// may do it fails, and the caller has to ask again: better late than wrong.
func (s *Steering) Of(ctx context.Context, item forge.Item, login string, earlier func() (bool, error)) (Standing, error) {
	access, err := s.access(ctx, item.Key, login)
	if err != nil && s.Accept == FromAll {
		s.Log.WarnContext(ctx, "failed to read a person's access to a repository", "item", item.Key.String(), "login", login, "error", err)
		return Standing{}, nil
	}
	if err != nil && !forge.Temporary(err) {
		// Asking again will not help, and the work of others may not wait for it.
		s.Log.WarnContext(ctx, "a person's access to a repository cannot be read", "item", item.Key.String(), "login", login, "error", err)
		return Standing{Refused: task.ReasonNoWriteAccess}, nil
	}
	if err != nil {
		return Standing{}, err
	}
	standing := Standing{Access: access.String(), Writes: access.CanWrite()}
	switch {
	case s.Accept == FromAll, access.CanWrite():
	case access < forge.ReadAccess, s.Accept == FromWriters:
		standing.Refused = task.ReasonNoWriteAccess
	case task.SameLogin(item.Author, login):
	case s.Accept != FromParticipants:
		standing.Refused = task.ReasonNoWriteAccess
	case item.AssignedTo(login):
	default:
		was := false
		if earlier != nil {
			was, err = earlier()
		}
		if !was {
			standing.Refused = task.ReasonNotParticipant
		}
	}
	return standing, err
}

// Writes reports whether a login may write to the repository of an item, whoever else may steer. Unlike Of
// it fails whenever that is not known.
func (s *Steering) Writes(ctx context.Context, item task.Key, login string) (bool, error) {
	access, err := s.access(ctx, item, login)
	return access.CanWrite(), err
}

// access is what a login may do. An account that is gone may do nothing, and its name
// is not one to ask a forge about.
func (s *Steering) access(ctx context.Context, item task.Key, login string) (forge.Access, error) {
	if login == "" || task.SameLogin(login, forge.Ghost) {
		return forge.NoAccess, nil
	}
	return s.Access(ctx, item, login)
}

// Entitled reports whether who put a label or the bot on an item was entitled to it. Most
// forges see to that themselves; see [forge.Triage]. Self is the account that we write as.
func (s *Steering) Entitled(ctx context.Context, on forge.Reader, item task.Key, actor, self string) (bool, error) {
	triage, open := on.(forge.Triage)
	if !open || s.Accept == FromAll || task.SameLogin(actor, self) {
		return true, nil
	}
	if actor == "" || task.SameLogin(actor, forge.Ghost) {
		return false, nil
	}
	return triage.MayTriage(ctx, item.Repository, actor)
}

// Accepted returns those of the reviews whose authors may steer, or are us. Self is the
// account that we write as.
func (s *Steering) Accepted(ctx context.Context, pull forge.Item, reviews []forge.Review, self string) ([]forge.Review, error) {
	var accepted []forge.Review
	for _, review := range reviews {
		if !task.SameLogin(review.Author, self) {
			standing, err := s.Of(ctx, pull, review.Author, nil)
			if err != nil {
				return nil, err
			}
			if !standing.MaySteer() {
				continue
			}
		}
		accepted = append(accepted, review)
	}
	return accepted, nil
}
