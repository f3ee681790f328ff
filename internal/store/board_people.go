package store

import (
	"context"
	"time"
)

// BoardAccess is what a user of the board may do.
type BoardAccess string

// The levels of access.
const (
	BoardNone  BoardAccess = "none"
	BoardRead  BoardAccess = "read"
	BoardWrite BoardAccess = "write"
	BoardAdmin BoardAccess = "admin"
)

// BoardUser is a user of the board. Logins are compared without regard to case.
type BoardUser struct {
	Login     string
	Access    BoardAccess
	CreatedAt time.Time
	RemovedAt time.Time // zero while the account is there
}

// BoardUsers keeps the users of the board. A login is never given to someone else:
// what its user wrote stays on the board.
type BoardUsers interface {
	// AddBoardUser stores a user; Conflict if the login is or was taken.
	AddBoardUser(ctx context.Context, u BoardUser) (BoardUser, error)
	// BoardUser returns one user, removed or not.
	BoardUser(ctx context.Context, login string) (BoardUser, error)
	// ListBoardUsers returns all users, removed ones too.
	ListBoardUsers(ctx context.Context) ([]BoardUser, error)
	// SetBoardAccess changes what a user may do.
	SetBoardAccess(ctx context.Context, login string, access BoardAccess) error
	// RemoveBoardUser marks an account as removed. Doing so twice changes nothing.
	RemoveBoardUser(ctx context.Context, login string, at time.Time) error
}

// BoardReaction is someone's reaction to an item or to a comment on it.
type BoardReaction struct {
	Repository string
	Number     int64
	Comment    string // id; empty for the item itself
	Login      string
	Reaction   string
}

// BoardReactions keeps reactions.
type BoardReactions interface {
	// SetBoardReaction adds a reaction or takes it away; NotFound if there is no
	// such item, or no such comment on it.
	SetBoardReaction(ctx context.Context, r BoardReaction, on bool) error
	// BoardReactions returns the reactions to an item, or to a comment on it.
	BoardReactions(ctx context.Context, repository string, number int64, comment string) ([]BoardReaction, error)
}

// BoardStatus is the state of a commit under a context.
type BoardStatus struct {
	Repository  string
	Commit      string
	Context     string
	State       string
	Description string
	URL         string
	UpdatedAt   time.Time
}

// BoardStatuses keeps the states of commits.
type BoardStatuses interface {
	// SetBoardStatus stores a status in place of what was under its context;
	// NotFound if the repository does not exist.
	SetBoardStatus(ctx context.Context, s BoardStatus) error
	// BoardStatuses returns the statuses of a commit, by context.
	BoardStatuses(ctx context.Context, repository, commit string) ([]BoardStatus, error)
}
