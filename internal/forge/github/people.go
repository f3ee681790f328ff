package github

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/toryo-dev/toryo/internal/forge"
)

var _ forge.Addresses = (*Forge)(nil)

// Address is the address that GitHub gives to everybody for commits. Of an Enterprise
// server it is not known: it may have mail or not.
func (f *Forge) Address(ctx context.Context, name string) (forge.Address, error) {
	if f.base.String() != PublicAPI || !login.MatchString(name) {
		return forge.Address{}, nil
	}
	user, _, err := f.client.Users.Get(ctx, url.PathEscape(name))
	if status(err) == http.StatusNotFound {
		return forge.Address{}, nil
	}
	if err != nil {
		return forge.Address{}, callError(err, "look for the account %s on GitHub", name)
	}
	return forge.Address{Name: user.GetName(), Email: noReply(user.GetID(), user.GetLogin())}, nil
}

// noReply is the address by which GitHub knows the commits of an account that shows no
// other.
func noReply(id int64, login string) string {
	return fmt.Sprintf("%d+%s@users.noreply.github.com", id, login)
}
