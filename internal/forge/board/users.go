package board

import (
	"context"
	"time"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/lazyregexp"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// loginPattern is what a login looks like. The name of the ghost is nobody's.
var loginPattern = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._-]{0,38}$`)

func isLogin(text string) bool {
	return loginPattern.MatchString(text) && !task.SameLogin(text, forge.Ghost)
}

// LoginOf makes a login of a name, such as that of a token or of an account on
// this machine: what a login cannot have becomes a dash. It is false if nothing
// is left that could be one, and for the bot's: what that writes is not taken for
// the word of a person.
func (b *Board) LoginOf(name string) (login string, ok bool) {
	login = task.BoardLogin(name)
	return login, isLogin(login) && !task.SameLogin(login, b.bot)
}

// User is someone with an account.
type User struct {
	Login  string
	Access forge.Access
}

// AddUser makes an account; Conflict if the login is or was taken.
func (b *Board) AddUser(ctx context.Context, login string, access forge.Access) error {
	if !isLogin(login) {
		return task.Errorf(task.Invalid, "%q cannot be a login: it has letters, digits, dots, dashes and underscores, %d at most", login, task.MaxBoardLogin)
	}
	_, err := b.store.AddBoardUser(ctx, store.BoardUser{Login: login, Access: store.BoardAccess(access.String())})
	return storeError("add the user "+login, err)
}

// EnsureUser makes sure that the login has an account: if there is none it makes one
// with the given access. An account that is there stays as it is; Forbidden if it
// was removed. It may be called by many at the same time.
func (b *Board) EnsureUser(ctx context.Context, login string, access forge.Access) (made bool, err error) {
	user, err := b.store.BoardUser(ctx, login)
	if task.CodeOf(err) == task.NotFound {
		err = b.AddUser(ctx, login, access)
		if task.CodeOf(err) != task.Conflict {
			return err == nil, err
		}
		user, err = b.store.BoardUser(ctx, login) // someone else was faster
	}
	if err != nil {
		return false, storeError("look for "+login, err)
	}
	if !user.RemovedAt.IsZero() {
		return false, task.Errorf(task.Forbidden, "the account %s was removed from the board", user.Login)
	}
	return false, nil
}

// HasUser reports whether the login has an account.
func (b *Board) HasUser(ctx context.Context, login string) (bool, error) {
	user, err := b.store.BoardUser(ctx, login)
	if task.CodeOf(err) == task.NotFound {
		return false, nil
	}
	return err == nil && user.RemovedAt.IsZero(), storeError("look for "+login, err)
}

// SetAccess changes what a user may do.
func (b *Board) SetAccess(ctx context.Context, login string, access forge.Access) error {
	return storeError("change what "+login+" may do", b.store.SetBoardAccess(ctx, login, store.BoardAccess(access.String())))
}

// RemoveUser removes an account. What it wrote stays, by the ghost.
func (b *Board) RemoveUser(ctx context.Context, login string) error {
	return storeError("remove the user "+login, b.store.RemoveBoardUser(ctx, login, time.Now()))
}

// Users returns those who have an account.
func (b *Board) Users(ctx context.Context) ([]User, error) {
	found, err := b.store.ListBoardUsers(ctx)
	if err != nil {
		return nil, storeError("list the users of the board", err)
	}
	var users []User
	for _, user := range found {
		if user.RemovedAt.IsZero() {
			users = append(users, User{Login: user.Login, Access: accessOf(user)})
		}
	}
	return users, nil
}
