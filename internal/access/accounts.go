package access

import (
	"context"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// SessionLength is how long someone stays signed in.
const SessionLength = 14 * 24 * time.Hour

// sessionPrefix tells the secrets of sessions from API tokens: neither opens what
// the other does.
const sessionPrefix = "session."

// maxLogin is how many characters a login may have.
const maxLogin = 60

// PersonRoles are the roles that a person can have.
var PersonRoles = []Role{Viewer, Operator, Admin}

// AccountStore is what accounts need of the database.
type AccountStore interface {
	store.Users
	BelongingsOf(ctx context.Context, name string) (store.Belongings, error)
	AddSession(ctx context.Context, s store.Session) error
	SessionUser(ctx context.Context, hash []byte, now time.Time) (store.User, error)
	EndSession(ctx context.Context, hash []byte) error
}

// Accounts makes accounts and signs people in.
type Accounts struct {
	Store AccountStore
	Now   func() time.Time
	// Logins and Addresses bound failed sign-ins. Many people may share an
	// address, so that it should have more tries.
	Logins, Addresses *Limiter
}

// CheckPersonRole refuses what is not a role for a person.
func CheckPersonRole(role Role) error {
	if slices.Contains(PersonRoles, role) {
		return nil
	}
	return task.Errorf(task.Usage, "there is no role %q for a person", string(role)).WithHint("use one of viewer, operator, admin")
}

// Create makes an account. Without a password it can only be entered by a link
// that the server prints, or by OpenID Connect.
func (a Accounts) Create(ctx context.Context, login string, role Role, password string) error {
	if err := CheckPersonRole(role); err != nil {
		return err
	}
	if err := checkLogin(login); err != nil {
		return err
	}
	user := store.User{Login: login, Role: string(role), CreatedAt: a.Now()}
	if password != "" {
		hash, err := HashPassword(ctx, password)
		if err != nil {
			return err
		}
		user.Password = hash
	}
	_, err := a.Store.AddUser(ctx, user)
	return err
}

func checkLogin(login string) error {
	bad := func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) }
	if login == "" || utf8.RuneCountInString(login) > maxLogin || !utf8.ValidString(login) || strings.ContainsFunc(login, bad) {
		return task.Errorf(task.Invalid, "a login has 1 to %d characters and no spaces", maxLogin)
	}
	return nil
}

// SetPassword gives a user a new password and signs the user out everywhere.
func (a Accounts) SetPassword(ctx context.Context, login, password string) error {
	hash, err := HashPassword(ctx, password)
	if err != nil {
		return err
	}
	return a.Store.SetUserPassword(ctx, login, hash)
}

// Verify returns whose login and password these are. Whoever fails too often, by
// login or by address, is refused for a while with Unavailable, also with the right
// password. It does not tell an unknown login from a wrong password, neither by its
// answer nor by its time.
func (a Accounts) Verify(ctx context.Context, login, password, address string) (store.User, error) {
	name, network := strings.ToLower(login), Network(address)
	if wait := max(a.Logins.Wait(a.Now(), name), a.Addresses.Wait(a.Now(), network)); wait > 0 {
		return store.User{}, task.Errorf(task.Unavailable, "too many failed sign-ins; try again in %d s", int(wait.Seconds())+1)
	}
	user, err := a.Store.User(ctx, login)
	if err != nil && task.CodeOf(err) != task.NotFound {
		return store.User{}, err
	}
	right, err := checkPassword(ctx, user.Password, password)
	if err != nil {
		return store.User{}, err
	}
	if !right {
		a.Logins.Failed(a.Now(), name)
		a.Addresses.Failed(a.Now(), network)
		return store.User{}, task.Errorf(task.Unauthorized, "login or password is wrong")
	}
	a.Logins.Forget(name)
	return user, nil
}

// Open begins a session for someone who has shown who they are.
func (a Accounts) Open(ctx context.Context, login string) (secret string, err error) {
	return a.open(ctx, login, SessionLength)
}

func (a Accounts) open(ctx context.Context, login string, lasts time.Duration) (secret string, err error) {
	secret = sessionPrefix + NewSecret()
	now := a.Now()
	return secret, a.Store.AddSession(ctx, store.Session{Hash: Hash(secret), Login: login, CreatedAt: now, ExpiresAt: now.Add(lasts)})
}

// Check returns whose session the secret is of, or Unauthorized.
func (a Accounts) Check(ctx context.Context, secret string) (store.User, error) {
	refused := task.Errorf(task.Unauthorized, "nobody is signed in")
	if !strings.HasPrefix(secret, sessionPrefix) {
		return store.User{}, refused
	}
	user, err := a.Store.SessionUser(ctx, Hash(secret), a.Now())
	if task.CodeOf(err) == task.NotFound {
		return store.User{}, refused
	}
	if err == nil {
		prove(ctx)
	}
	return user, err
}

// SignOut ends a session.
func (a Accounts) SignOut(ctx context.Context, secret string) error {
	return a.Store.EndSession(ctx, Hash(secret))
}
