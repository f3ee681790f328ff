package gitlab

import (
	"context"

	gl "gitlab.com/gitlab-org/api/client-go/v2"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

var _ forge.Addresses = (*Forge)(nil)

// Address is the address that an account shows to everybody, if it shows one.
func (f *Forge) Address(ctx context.Context, login string) (forge.Address, error) {
	if login == "" || login == forge.Ghost {
		return forge.Address{}, nil
	}
	users, _, err := f.client.Users.ListUsers(&gl.ListUsersOptions{Username: &login}, in(ctx))
	if err != nil {
		return forge.Address{}, callError(err, "look for the account %s on GitLab", login)
	}
	for _, user := range users {
		if user != nil && task.SameLogin(user.Username, login) && user.PublicEmail != "" {
			return forge.Address{Name: user.Name, Email: user.PublicEmail}, nil
		}
	}
	return forge.Address{}, nil
}
