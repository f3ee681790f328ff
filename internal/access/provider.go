package access

import (
	"context"
	"net/url"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// ElsewhereLength is how long someone stays signed in whom a provider let in: it
// is asked again before long, since it may no longer know the person.
const ElsewhereLength = 24 * time.Hour

// Provider is a place elsewhere that knows who people are, so that they need no
// password here. Its methods may be called by any number of goroutines.
type Provider interface {
	// Name is what people call the place.
	Name() string
	// Begin starts a sign-in. Unavailable if the provider cannot be reached.
	Begin(ctx context.Context) (Attempt, error)
	// Finish checks what a browser came back with. Unauthorized if that is no
	// answer to the attempt, or one that cannot be trusted; Forbidden if the person
	// is not allowed in here; Unavailable if the provider cannot be reached.
	Finish(ctx context.Context, attempt Attempt, answer url.Values) (Identity, error)
}

// Attempt is a sign-in that has begun. The browser keeps it until it comes back:
// it is of use to nobody else.
type Attempt struct {
	URL      string `json:"-"` // where the browser goes
	State    string `json:"s"`
	Nonce    string `json:"n"`
	Verifier string `json:"v"`
}

// Identity is who a provider says that someone is.
type Identity struct {
	ID    string // of the person at the provider; it never changes
	Login string
	Role  Role
}

// Admit signs in someone whom a provider has let in, and returns the secret of the
// session. An account is made when the person comes for the first time; the role
// is what the provider says now. Conflict if somebody else has the login, or if tokens,
// reviews, conversations, questions or an account on the board have it for their name: they
// would be the person's.
func (a Accounts) Admit(ctx context.Context, who Identity) (login, secret string, err error) {
	if err := CheckPersonRole(who.Role); err != nil {
		return "", "", err
	}
	user, err := a.Store.UserOf(ctx, who.ID)
	switch {
	case task.CodeOf(err) == task.NotFound:
		user, err = a.welcome(ctx, who)
	case err == nil && user.Role != string(who.Role):
		err = a.Store.SetUserRole(ctx, user.Login, string(who.Role))
	}
	if err != nil {
		return "", "", err
	}
	secret, err = a.open(ctx, user.Login, ElsewhereLength)
	return user.Login, secret, err
}

// welcome makes the account of someone who comes for the first time.
func (a Accounts) welcome(ctx context.Context, who Identity) (store.User, error) {
	if err := checkLogin(who.Login); err != nil {
		return store.User{}, err
	}
	if err := a.checkFree(ctx, who); err != nil {
		return store.User{}, err
	}
	user, err := a.Store.AddUser(ctx, store.User{Login: who.Login, Role: string(who.Role), Identity: who.ID, CreatedAt: a.Now()})
	if task.CodeOf(err) != task.Conflict {
		return user, err
	}
	// Whoever comes twice at the same moment is there now.
	if user, err := a.Store.UserOf(ctx, who.ID); task.CodeOf(err) != task.NotFound {
		return user, err
	}
	return store.User{}, task.Errorf(task.Conflict, "there is another account %q here, which is not yours", who.Login).
		WithHint("ask an admin to remove it with toryo user remove")
}

// checkFree refuses a login that nobody has an account of and that something belongs to,
// unless the person is expected: whoever was here before, or for whom an admin has said so.
func (a Accounts) checkFree(ctx context.Context, who Identity) error {
	_, taken, err := store.Optional(a.Store.User(ctx, who.Login))
	if err != nil || taken {
		return err // that it is taken is said by whoever makes the account
	}
	had, err := a.Store.BelongingsOf(ctx, who.Login)
	if err != nil || !had.Any() || had.Expected == who.ID || had.Expected == store.AnyIdentity {
		return err
	}
	return task.Errorf(task.Conflict, "things here belong to the name %q already, and are not yours", who.Login).
		WithHint("ask an admin: toryo user expect %s lets you have them, with the account on the board", who.Login)
}
