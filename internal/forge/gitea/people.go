package gitea

import (
	"context"
	"strings"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

var _ forge.Addresses = (*Forge)(nil)

// Address is the address that Gitea shows of an account; of one that hides its own it is
// one that Gitea made. Gitea tells administrators the hidden ones too and does not say
// which those are: to an administrator only those count that Gitea made.
func (f *Forge) Address(ctx context.Context, login string) (forge.Address, error) {
	user, answer, err := f.client(ctx).GetUserInfo(login)
	if err != nil {
		if err = callError("look for "+login, answer, err); task.CodeOf(err) == task.NotFound {
			return forge.Address{}, nil
		}
		return forge.Address{}, err
	}
	self, answer, err := f.client(ctx).GetMyUserInfo() // what we are may change
	if err != nil {
		return forge.Address{}, callError("ask Gitea who we are", answer, err)
	}
	if self.IsAdmin && !strings.HasPrefix(strings.ToLower(user.Email), strings.ToLower(user.UserName)+"@noreply.") {
		return forge.Address{}, nil
	}
	return forge.Address{Name: user.FullName, Email: user.Email}, nil
}
