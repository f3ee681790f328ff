package forge

import (
	"context"

	"github.com/toryo-dev/toryo/internal/task"
)

// Forge is everything that an adapter implements.
type Forge interface {
	Reader
	Commenter
	Labeler
	Assigner
	Pulls
	Reviewer
	Reactor
	Statuses
	Checks
	Merger
	Git

	// Name says which forge this is: the one in the keys of its items. A key of
	// another forge is Invalid in every method.
	Name() task.Forge
}

// Reader reads what is there.
type Reader interface {
	// Self returns the login of the account that we write as.
	Self(ctx context.Context) (string, error)
	// Repositories returns the repositories that the credential reaches, without
	// archived ones.
	Repositories(ctx context.Context) ([]Repository, error)
	// Repository returns one repository, with what our account may not do in it. If the
	// forge has renamed it, that is NotFound.
	Repository(ctx context.Context, name string) (Repository, error)
	// Access says what a login may do in a repository, however it was
	// given the right. A login that does not exist has NoAccess and is no error.
	Access(ctx context.Context, repository, login string) (Access, error)
	// List returns the open items that pass the query, by creation and then by
	// number. Of pull requests, what a forge's listing does not have may be
	// missing: Head, HeadCommit, Base and Fork.
	List(ctx context.Context, query Query) ([]Item, error)
	// Item returns one item, at the price of one request where the forge allows
	// it. If the number belongs to an item of the other kind, that is NotFound.
	Item(ctx context.Context, key task.Key) (Item, error)
	// LinkedPulls returns the pull requests, open, closed or merged, that are
	// about the issue: by a closing keyword, a reference in their text, or the
	// forge's own link. Of pull requests it returns none.
	LinkedPulls(ctx context.Context, key task.Key) ([]LinkedPull, error)
	// Comments returns the comments in the item's conversation: what people and
	// bots wrote, not what the forge notes by itself, nor comments on lines. What
	// not everyone can read who can read the item, such as GitLab's internal notes,
	// is in no comments and in no review threads: what comes of it could be read by
	// everyone.
	Comments(ctx context.Context, key task.Key) ([]task.Comment, error)
	// LabelEvents returns when labels were put on the item and taken off it;
	// [LabeledAt] finds one label in it.
	LabelEvents(ctx context.Context, key task.Key) ([]LabelEvent, error)
}

// Commenter writes in an item's conversation. Locked conversations are a
// Conflict or Forbidden, as the forge chooses.
type Commenter interface {
	// CreateComment writes a comment and returns it with its id. See [Post].
	CreateComment(ctx context.Context, key task.Key, post Post) (task.Comment, error)
	// EditComment replaces the text of a comment of ours, marker included. The
	// post's Repeat is ignored: an edit can be repeated. A comment that is
	// gone is NotFound; one that is not ours is Forbidden where the forge says so.
	EditComment(ctx context.Context, key task.Key, id string, post Post) (task.Comment, error)
	// FindComment returns the oldest comment that we wrote on the item with the
	// marker, or found is false.
	FindComment(ctx context.Context, key task.Key, marker Marker) (comment task.Comment, found bool, err error)
}

// Labeler changes labels one by one. It never replaces the set: a label that a
// person puts on at the same moment stays. (A forge may itself take off another
// label of the same exclusive scope, such as "priority::low".)
type Labeler interface {
	// AddLabel puts a label on the item, and creates it if it is missing. A name
	// that the forge cannot hold, such as one with a comma on GitLab, is Invalid.
	AddLabel(ctx context.Context, key task.Key, name string) error
	// RemoveLabel takes a label off the item. One that is not on it, or does not
	// exist at all, is no error.
	RemoveLabel(ctx context.Context, key task.Key, name string) error
}

// Assigner adds assignees. On forges that can only replace the set, the adapter
// reads and writes it, and keeps everyone else as it read them.
type Assigner interface {
	// Assign adds a login to the assignees; Invalid if the forge does not let it
	// be assigned there.
	Assign(ctx context.Context, key task.Key, login string) error
}

// Pulls opens pull (merge) requests between branches of one repository.
type Pulls interface {
	// OpenPull opens a pull request and returns it. If one is open already from
	// the same head to the same base it is returned as it is, opened is false and
	// nothing changes, so that the call can always be repeated. A branch that
	// does not exist is Invalid or NotFound; a head with nothing to merge is
	// Invalid or Conflict, on forges that refuse it.
	OpenPull(ctx context.Context, repository string, post PullPost) (item Item, opened bool, err error)
	// FindPull returns the open pull request from head to base, or found is
	// false. With an empty base, any base will do; the oldest one is returned.
	FindPull(ctx context.Context, repository, head, base string) (item Item, found bool, err error)
	// EditPull changes the fields of a pull request that are not nil and returns
	// it as it is then.
	EditPull(ctx context.Context, key task.Key, edit PullEdit) (Item, error)
}

// Reviewer reads and writes reviews of pull requests. For the key of an issue
// every method is Invalid.
type Reviewer interface {
	// Diff returns what the pull request changes against the point where it left
	// its base. A diff that the forge will not give for its size is TooLarge;
	// the git mirror still has it.
	Diff(ctx context.Context, key task.Key) (Diff, error)
	// Reviews returns the submitted reviews. On forges that keep only what each
	// reviewer last decided, that is one per reviewer.
	Reviews(ctx context.Context, key task.Key) ([]Review, error)
	// ReviewThreads returns the conversations on lines, resolved ones too, by
	// their first comment. [ReviewComments] gives all comments in one list.
	ReviewThreads(ctx context.Context, key task.Key) ([]ReviewThread, error)
	// SubmitReview submits a review with its comments on lines and returns it.
	// Where the forge can, it appears whole or not at all; an adapter that has to
	// build it from several calls takes the verdict last and, when repeated, does
	// not write again what is there. A verdict on a pull request of our own is
	// refused by most forges (Invalid or Forbidden). A comment on a line that the
	// diff does not have is Invalid or shown as outdated, as the forge chooses:
	// see [Diff.Anchors].
	SubmitReview(ctx context.Context, key task.Key, post ReviewPost) (Review, error)
	// Reply writes a comment into a review thread, by the id that ReviewThreads
	// gave. See [Post].
	Reply(ctx context.Context, key task.Key, thread string, post Post) (task.Comment, error)
	// ResolveThread marks a review thread as resolved, by the id that ReviewThreads gave.
	// One that is resolved already is no error. Unsupported on forges that have no such call,
	// Forbidden if the account may not.
	ResolveThread(ctx context.Context, key task.Key, thread string) error
}

// Reactor reads and writes reactions to an item or to a comment in its
// conversation.
type Reactor interface {
	// React adds a reaction of ours.
	React(ctx context.Context, target Target, reaction Reaction) error
	// Unreact takes a reaction of ours away.
	Unreact(ctx context.Context, target Target, reaction Reaction) error
	// Reactions returns everyone's reactions, without kinds that [ReactionKinds]
	// does not list.
	Reactions(ctx context.Context, target Target) ([]ReactionBy, error)
}

// Statuses writes the state of commits, as pull requests show it. [Checks] reads it.
type Statuses interface {
	// SetStatus sets the state under its context on a commit, in place of what
	// was there. A commit that the forge does not have is NotFound or Invalid.
	SetStatus(ctx context.Context, repository string, status CommitStatus) error
}

// Git is about how the git program reaches a repository.
type Git interface {
	// Remote returns where git fetches and pushes, with a credential that is good
	// for some minutes at least. Ask again for each use; never store it.
	Remote(ctx context.Context, repository string) (Remote, error)
}
