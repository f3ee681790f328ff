package access_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/store/sqlite"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
)

const password = "a long pass phrase"

type clock struct{ now time.Time }

func newAccounts(t *testing.T) (access.Accounts, *clock) {
	t.Helper()
	database, err := sqlite.Open(t.Context(), testkit.SQLite(t, sqlite.Open))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = database.Close() })
	c := &clock{time.Date(2031, 5, 6, 12, 0, 0, 0, time.UTC)}
	return access.Accounts{Store: database, Now: func() time.Time { return c.now }, Logins: &access.Limiter{Free: 5}, Addresses: &access.Limiter{Free: 8}}, c
}

// signIn is what the pages do with a login and a password.
func signIn(ctx context.Context, a access.Accounts, login, password, address string) (secret string, err error) {
	user, err := a.Verify(ctx, login, password, address)
	if err != nil {
		return "", err
	}
	return a.Open(ctx, user.Login)
}

func wantCode(t *testing.T, what string, err error, code task.Code) {
	t.Helper()
	if task.CodeOf(err) != code {
		t.Errorf("%s: code %q, want %q: %v", what, task.CodeOf(err), code, err)
	}
}

func TestSignIn(t *testing.T) {
	t.Parallel()
	a, c := newAccounts(t)
	ctx := t.Context()
	wantCode(t, "create", a.Create(ctx, "Alice", access.Operator, password), "")
	secret, err := signIn(ctx, a, "aLICE", password, "192.0.2.1")
	wantCode(t, "sign in", err, "")
	user, err := a.Check(ctx, secret)
	wantCode(t, "check", err, "")
	if user.Login != "Alice" || user.Role != "operator" || !strings.HasPrefix(user.Password, "$argon2id$v=19$m=") || strings.Contains(user.Password, password) {
		t.Errorf("the session is of %+v", user)
	}
	for _, other := range []string{"", "session.", secret[:len(secret)-1], strings.TrimPrefix(secret, "session.")} {
		_, err := a.Check(ctx, other)
		wantCode(t, "another secret", err, task.Unauthorized)
	}
	c.now = c.now.Add(access.SessionLength)
	_, err = a.Check(ctx, secret)
	wantCode(t, "an old session", err, task.Unauthorized)
	again, err := signIn(ctx, a, "alice", password, "192.0.2.1")
	wantCode(t, "sign in again", err, "")
	wantCode(t, "sign out", a.SignOut(ctx, again), "")
	_, err = a.Check(ctx, again)
	wantCode(t, "after signing out", err, task.Unauthorized)
}

func TestNewPasswordSignsOut(t *testing.T) {
	t.Parallel()
	a, _ := newAccounts(t)
	ctx := t.Context()
	wantCode(t, "create", a.Create(ctx, "alice", access.Admin, password), "")
	secret, err := signIn(ctx, a, "alice", password, "")
	wantCode(t, "sign in", err, "")
	wantCode(t, "a short password", a.SetPassword(ctx, "alice", "short"), task.Invalid)
	wantCode(t, "change", a.SetPassword(ctx, "alice", "another pass phrase"), "")
	_, err = a.Check(ctx, secret)
	wantCode(t, "the old session", err, task.Unauthorized)
	_, err = signIn(ctx, a, "alice", password, "")
	wantCode(t, "the old password", err, task.Unauthorized)
	_, err = signIn(ctx, a, "alice", "another pass phrase", "")
	wantCode(t, "the new password", err, "")
}

func TestAccountsThatCannotBe(t *testing.T) {
	t.Parallel()
	a, _ := newAccounts(t)
	ctx := t.Context()
	for _, login := range []string{"", "a b", "a\n", strings.Repeat("x", 61), "\xff"} {
		wantCode(t, login, a.Create(ctx, login, access.Viewer, password), task.Invalid)
	}
	wantCode(t, "an agent", a.Create(ctx, "robot", access.Agent, password), task.Usage)
	wantCode(t, "no password", a.Create(ctx, "local", access.Admin, ""), "")
	_, err := signIn(ctx, a, "local", "", "")
	wantCode(t, "sign in without a password", err, task.Unauthorized)
	wantCode(t, "twice", a.Create(ctx, "LOCAL", access.Admin, ""), task.Conflict)
	ended, stop := context.WithCancel(ctx)
	stop()
	for range 8 { // one at least finds the place taken or the context ended
		if _, err := signIn(ended, a, "local", "x", ""); err == nil {
			t.Error("someone signed in after the request ended")
		}
	}
}

// Whoever guesses is slowed down, by login and by address, and the one with the
// right password gets in again after a bounded wait.
func TestSignInIsLimited(t *testing.T) {
	t.Parallel()
	a, c := newAccounts(t)
	ctx := t.Context()
	wantCode(t, "create", a.Create(ctx, "alice", access.Admin, password), "")
	wantCode(t, "create", a.Create(ctx, "bob", access.Admin, password), "")
	refused := 0
	for range 12 {
		_, err := signIn(ctx, a, "alice", "wrong", "192.0.2.1")
		if task.CodeOf(err) == task.Unavailable {
			refused++
		}
	}
	if refused != 6 {
		t.Errorf("%d of 12 tries at one moment were refused, want 6", refused)
	}
	_, err := signIn(ctx, a, "alice", password, "192.0.2.2")
	wantCode(t, "the right password from elsewhere, at once", err, task.Unavailable)
	_, err = signIn(ctx, a, "bob", password, "192.0.2.1")
	wantCode(t, "someone else from the same address", err, "")
	for _, login := range []string{"x", "y", "z", "bob"} {
		_, err = signIn(ctx, a, login, "wrong", "192.0.2.1")
	}
	wantCode(t, "an address that tries one login after the other", err, task.Unavailable)
	_, err = signIn(ctx, a, "bob", password, "192.0.2.2")
	wantCode(t, "someone else from elsewhere", err, "")
	c.now = c.now.Add(5 * time.Minute)
	_, err = signIn(ctx, a, "alice", password, "192.0.2.1")
	wantCode(t, "after the longest wait", err, "")
}
