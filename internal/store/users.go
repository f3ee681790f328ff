package store

import (
	"context"
	"time"
)

// User is someone who can sign in to the pages. Logins are compared without
// regard to case.
type User struct {
	Login     string
	Role      string // of package access
	Password  string // as package access encodes it; empty if there is none
	Identity  string // who the user is at a provider elsewhere; empty if nobody there
	CreatedAt time.Time
}

// Users keeps the accounts of the pages.
type Users interface {
	// AddUser stores a user; Conflict if the login or the identity is taken. What belongs to
	// the login, however it was written, belongs to the user.
	AddUser(ctx context.Context, u User) (User, error)
	// User returns one user.
	User(ctx context.Context, login string) (User, error)
	// UserOf returns the user with an identity, or NotFound.
	UserOf(ctx context.Context, identity string) (User, error)
	// ListUsers returns all users.
	ListUsers(ctx context.Context) ([]User, error)
	// SetUserPassword replaces the password of a user and ends all sessions of
	// the user.
	SetUserPassword(ctx context.Context, login, password string) error
	// SetUserRole changes what a user may do. Sessions go on with the new role.
	SetUserRole(ctx context.Context, login, role string) error
	// RemoveUser removes a user with all sessions, revokes the tokens that act for the user,
	// those that only have the login for their name among them, and ends what is shared with
	// the user by name. One who came from a provider may come again.
	RemoveUser(ctx context.Context, login string) error
}

// Session is a browser that is signed in. Only the hash of its secret is kept.
type Session struct {
	Hash      []byte
	Login     string
	CreatedAt time.Time
	ExpiresAt time.Time
}

// Sessions keeps who is signed in.
type Sessions interface {
	// AddSession stores a session; NotFound if there is no such user, Conflict if
	// the hash is there already.
	AddSession(ctx context.Context, s Session) error
	// SessionUser returns the user whose session has the hash and has not expired
	// at the given moment, or NotFound.
	SessionUser(ctx context.Context, hash []byte, now time.Time) (User, error)
	// EndSession removes a session. One that is not there is no error.
	EndSession(ctx context.Context, hash []byte) error
}

// AuditEntry says who did what. It is written before the action, so that none is
// missing; how it ended is added afterwards and is empty if that is not known.
type AuditEntry struct {
	ID      string
	At      time.Time
	Actor   string // a user, or a token by its name
	Action  string // a stable word, such as "task.stop"
	Subject string // what it was done to
	Outcome string // "done" or the code of an error
}

// Audit keeps what people have done. Entries are never changed but for their
// outcome, and removed only by their age; see [Retention].
type Audit interface {
	// AddAudit stores an entry and returns it with its id.
	AddAudit(ctx context.Context, e AuditEntry) (AuditEntry, error)
	// EndAudit says how it ended; NotFound if there is no such entry.
	EndAudit(ctx context.Context, id, outcome string) error
	// ListAudit returns the newest entries, newest first, that are older than the
	// entry with the given id; with "" it begins at the newest.
	ListAudit(ctx context.Context, before string, limit int) ([]AuditEntry, error)
}
