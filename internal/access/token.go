package access

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// tokenPrefix makes tokens easy to find for programs that look for secrets in
// places where they should not be.
const tokenPrefix = "toryo_"

const tokenBytes = 32

// TokenStore is what making tokens needs of the database.
type TokenStore interface {
	AddToken(ctx context.Context, t store.Token) (store.Token, error)
	ListTokens(ctx context.Context) ([]store.Token, error)
	RevokeToken(ctx context.Context, id string, at time.Time) error
}

// TokenReader is what checking a token needs of the database.
type TokenReader interface {
	TokenByHash(ctx context.Context, hash []byte) (store.Token, error)
}

// Tokens makes API tokens, and revokes those that it replaces.
type Tokens struct {
	Store TokenStore
	Now   func() time.Time
}

// Create makes a token and returns it in the clear, which is the only time that
// it can be seen.
func (t Tokens) Create(ctx context.Context, role Role, name string) (string, error) {
	return t.create(ctx, role, name, "")
}

// CreateFor makes a token that acts for a person. It is known by the person's login unless
// it has a name.
func (t Tokens) CreateFor(ctx context.Context, role Role, name string, person store.User) (string, error) {
	if err := CheckTokenFor(role, person); err != nil {
		return "", err
	}
	return t.create(ctx, role, cmp.Or(name, person.Login), person.Login)
}

func (t Tokens) create(ctx context.Context, role Role, name, person string) (string, error) {
	if _, err := ParseRole(string(role)); err != nil {
		return "", err
	}
	secret := NewSecret()
	_, err := t.Store.AddToken(ctx, store.Token{
		Name:      name,
		Person:    person,
		Role:      string(role),
		Hash:      Hash(secret),
		CreatedAt: t.Now(),
	})
	if err != nil {
		return "", err
	}
	return secret, nil
}

// Replace makes a token and revokes those of the same name: for a program that
// makes itself a new one at every start.
func (t Tokens) Replace(ctx context.Context, role Role, name string) (string, error) {
	old, err := t.Store.ListTokens(ctx)
	if err != nil {
		return "", err
	}
	for _, token := range old {
		if token.Name == name && token.Role == string(role) && token.RevokedAt.IsZero() {
			if err := t.Store.RevokeToken(ctx, token.ID, t.Now()); err != nil {
				return "", err
			}
		}
	}
	return t.Create(ctx, role, name)
}

// CheckToken returns the token that the secret is, or Unauthorized. It does not tell
// an unknown token from a revoked one.
func CheckToken(ctx context.Context, from TokenReader, secret string) (store.Token, error) {
	if !strings.HasPrefix(secret, tokenPrefix) {
		return store.Token{}, errUnauthorized()
	}
	token, err := from.TokenByHash(ctx, Hash(secret))
	if task.CodeOf(err) == task.NotFound {
		return store.Token{}, errUnauthorized()
	}
	if err != nil {
		return store.Token{}, err
	}
	if !token.RevokedAt.IsZero() {
		return store.Token{}, errUnauthorized()
	}
	prove(ctx)
	return token, nil
}

// ownToken knows one more token than the database.
type ownToken struct {
	TokenReader
	token store.Token
}

// OwnTokenID is the id of the token that a server has made for itself.
const OwnTokenID = "command-line"

// WithOwnToken also knows a token that a server has made for itself, for commands on its machine.
// It steers tasks as an operator does. It is in no database, and ends with the process.
func WithOwnToken(known TokenReader, secret string) TokenReader {
	return ownToken{known, store.Token{ID: OwnTokenID, Name: "command line", Role: string(Operator), Hash: Hash(secret)}}
}

// TokenByHash implements [TokenReader].
func (o ownToken) TokenByHash(ctx context.Context, hash []byte) (store.Token, error) {
	if bytes.Equal(hash, o.token.Hash) { // of hashes, which tell nothing however long it takes
		return o.token, nil
	}
	return o.TokenReader.TokenByHash(ctx, hash)
}

func errUnauthorized() error {
	return task.Errorf(task.Unauthorized, "no valid token was given").
		WithHint("make one with toryo token create and send it as Authorization: Bearer TOKEN")
}

// NewSecret makes a random token.
func NewSecret() string {
	random := make([]byte, tokenBytes)
	_, _ = rand.Read(random) // never fails: it ends the program instead
	return tokenPrefix + base64.RawURLEncoding.EncodeToString(random)
}

// Hash is what is stored of a token. Looking a token up by its hash tells
// nothing about other tokens however long it takes.
func Hash(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}

// AgentName is the name by which an agent is known: the name that it gives itself,
// below the name of its token. So no agent can use the name of one with another
// token. An agent that gives itself its token's name is known by that alone.
func AgentName(token store.Token, id string) string {
	if id == token.Name {
		return id
	}
	return token.Name + "/" + id
}
