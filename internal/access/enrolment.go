package access

import (
	"context"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// enrolPrefix tells enrolment tokens from others: they open nothing but the way
// to a token of one's own.
const enrolPrefix = "enrol_"

// longestAgentName is how long the name of an agent may be.
const longestAgentName = 200

// EnrolmentStore is what enrolment needs of the database.
type EnrolmentStore interface {
	AddEnrolment(ctx context.Context, e store.Enrolment) error
	MayEnrol(ctx context.Context, hash []byte, at time.Time) error
	Enrol(ctx context.Context, hash []byte, agent store.Token, at time.Time) (store.Token, error)
}

// Enrolment lets agents in: each with a one-time token that it exchanges for a
// token of its own.
type Enrolment struct {
	Store EnrolmentStore
	Now   func() time.Time
}

// Create makes a one-time token that is good for a while and returns it in the
// clear, which is the only time that it can be seen.
func (e Enrolment) Create(ctx context.Context, lasts time.Duration) (string, error) {
	secret := enrolPrefix + strings.TrimPrefix(NewSecret(), tokenPrefix)
	now := e.Now()
	err := e.Store.AddEnrolment(ctx, store.Enrolment{Hash: Hash(secret), CreatedAt: now, ExpiresAt: now.Add(lasts)})
	if err != nil {
		return "", err
	}
	return secret, nil
}

// Check says, as nil or Unauthorized, whether the one-time token is good.
func (e Enrolment) Check(ctx context.Context, oneTime string) error {
	if !strings.HasPrefix(oneTime, enrolPrefix) {
		return errUnauthorized()
	}
	err := e.Store.MayEnrol(ctx, Hash(oneTime), e.Now())
	if err == nil {
		prove(ctx)
	}
	return err
}

// Enrol exchanges a one-time token for the token of a new agent. It is
// Unauthorized for a token that is unknown, used or too old.
func (e Enrolment) Enrol(ctx context.Context, oneTime, name string) (string, error) {
	if name == "" || len(name) > longestAgentName || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == '/' }) {
		return "", task.Errorf(task.Invalid, "the name of an agent has 1 to %d characters in one line, without /", longestAgentName)
	}
	secret := NewSecret()
	if _, err := e.Store.Enrol(ctx, Hash(oneTime), store.Token{Name: name, Hash: Hash(secret)}, e.Now()); err != nil {
		return "", err
	}
	return secret, nil
}
