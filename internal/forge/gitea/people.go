package gitea

import (
	"context"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

var _ forge.Addresses = (*Forge)(nil)

// Address is the address that Gitea shows of an account; of one that hides its own it is
// one that Gitea made.
func (f *Forge) Address(ctx context.Context, login string) (forge.Address, error) {
	user, answer, err := f.client(ctx).GetUserInfo(login)
	if err != nil {
		if err = read("look for "+login, answer, err); task.CodeOf(err) == task.NotFound {
			return forge.Address{}, nil
		}
		return forge.Address{}, err
	}
	return forge.Address{Name: user.FullName, Email: user.Email}, nil
}
