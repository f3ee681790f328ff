package store

import (
	"context"
	"time"
)

// MachineUser says which person a user of a machine is.
type MachineUser struct {
	Name  string // as the machine has it
	Login string // of the account
}

// Belongings is what belongs to a name, whether or not there is an account of that name.
// Names are compared without regard to case.
type Belongings struct {
	Reviews   int64
	Threads   int64
	Questions int64
	Tokens    int64 // that were made for nobody, act for their name and are not revoked
	Board     bool  // there is or was an account on the board that whoever has the name acts as
	// Expected is the identity at a provider of whoever may have an account of the name all
	// the same, or [AnyIdentity]; empty if nobody may.
	Expected string
}

// Any reports whether anything belongs to the name.
func (b Belongings) Any() bool {
	return b.Reviews+b.Threads+b.Questions+b.Tokens > 0 || b.Board
}

// AnyIdentity is whoever comes first.
const AnyIdentity = "*"

// People keeps by which other names people are known, and what belongs to them.
type People interface {
	// BelongingsOf returns what belongs to a name.
	BelongingsOf(ctx context.Context, name string) (Belongings, error)
	// ExpectUser says that whoever comes first may have an account of a name that things
	// belong to. Conflict if there is one.
	ExpectUser(ctx context.Context, login string) error
	// LinkMachineUser says that a user of a machine is a person, in place of whoever it
	// was before. Reviews, conversations and questions that belong to the name of the
	// machine's user belong to the person from then on, unless somebody else has an account
	// of that name. It returns how many reviews that are. NotFound if there is no such account.
	LinkMachineUser(ctx context.Context, name, login string) (moved int64, err error)
	// UnlinkMachineUser forgets it; NotFound if nothing is known of the machine's user.
	UnlinkMachineUser(ctx context.Context, name string) error
	// PersonHere returns the account that a user of a machine is linked with, or NotFound.
	PersonHere(ctx context.Context, name string) (User, error)
	// ListMachineUsers returns all that are linked, by name.
	ListMachineUsers(ctx context.Context) ([]MachineUser, error)
}

// Everyone is with whom a review is shared that all who can sign in may read.
const Everyone = ""

// Shares keeps who may read a review besides its owner.
type Shares interface {
	// ShareReview lets a person read a review, or everyone. To share it twice is no error;
	// NotFound if there is no such review.
	ShareReview(ctx context.Context, id, login string, at time.Time) error
	// UnshareReview takes it back. What was not shared is no error.
	UnshareReview(ctx context.Context, id, login string) error
	// SetShares lets these people read a review, and nobody else.
	SetShares(ctx context.Context, id string, logins []string, at time.Time) error
	// SharesOf returns with whom a review is shared, by name: [Everyone] first.
	SharesOf(ctx context.Context, id string) ([]string, error)
	// MayRead reports whether a review is shared with a person, or with everyone.
	MayRead(ctx context.Context, id, login string) (bool, error)
}
