package store

import (
	"context"
	"time"
)

// Token is an API token. The token itself is shown once, when it is made; only
// its hash is kept.
type Token struct {
	ID        string
	Name      string
	Person    string // the login of the account that it acts for; empty if it acts for its name
	Role      string // of package access
	Hash      []byte
	CreatedAt time.Time
	RevokedAt time.Time // zero while it is valid
}

// Tokens keeps API tokens.
type Tokens interface {
	// AddToken stores a token and returns it with its id; Conflict if the hash
	// is there already.
	AddToken(ctx context.Context, t Token) (Token, error)
	// TokenByHash returns the token with the hash, revoked or not.
	TokenByHash(ctx context.Context, hash []byte) (Token, error)
	// ListTokens returns all tokens.
	ListTokens(ctx context.Context) ([]Token, error)
	// RevokeToken ends a token; one that was revoked before stays as it is. The
	// leases of agents with its name end too: what they hold is lost from then on.
	RevokeToken(ctx context.Context, id string, at time.Time) error
}
