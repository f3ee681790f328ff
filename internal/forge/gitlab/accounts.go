package gitlab

import (
	"context"
	"net/http"

	gl "gitlab.com/gitlab-org/api/client-go/v2"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

// Self returns the login of the account that we write as. GitLab is asked once.
func (f *Forge) Self(ctx context.Context) (string, error) {
	self, err := f.selfAccount(ctx)
	return self.login, err
}

func (f *Forge) selfAccount(ctx context.Context) (account, error) {
	f.selfLock.Lock()
	known := f.self
	f.selfLock.Unlock()
	if known.id != 0 {
		return known, nil
	}
	user, _, err := f.client.Users.CurrentUser(in(ctx))
	if err == nil && (user == nil || user.ID == 0 || user.Username == "") {
		err = errNonsense
	}
	if err != nil {
		return account{}, callError(err, "find out who we are on GitLab")
	}
	f.selfLock.Lock()
	defer f.selfLock.Unlock()
	f.self = account{user.ID, user.Username, true}
	return f.self, nil
}

// find returns the account with a login, or false.
func (f *Forge) find(ctx context.Context, login string) (account, bool, error) {
	if login == "" || login == forge.Ghost {
		return account{}, false, nil
	}
	users, _, err := f.client.Users.ListUsers(&gl.ListUsersOptions{Username: &login}, in(ctx))
	if err != nil {
		return account{}, false, callError(err, "look for the account %s on GitLab", login)
	}
	for _, user := range users {
		if user != nil && task.SameLogin(user.Username, login) {
			return account{user.ID, user.Username, user.State == "" || user.State == "active"}, true, nil
		}
	}
	return account{}, false, nil
}

// Access says what a login may do in a project, by membership in it or in a group
// above it.
func (f *Forge) Access(ctx context.Context, repository, login string) (forge.Access, error) {
	if err := checkRepository(repository); err != nil {
		return forge.NoAccess, err
	}
	who, found, err := f.find(ctx, login)
	if err != nil || !found || !who.active {
		return forge.NoAccess, err
	}
	member, _, err := f.client.ProjectMembers.GetInheritedProjectMember(repository, who.id, in(ctx))
	if status(err) == http.StatusNotFound {
		// No member. A project that is not private can be read by everyone.
		project, err := f.project(ctx, repository)
		if err != nil || project.Visibility == gl.PrivateVisibility {
			return forge.NoAccess, err
		}
		return forge.ReadAccess, nil
	}
	if err == nil && (member == nil || member.ID != who.id) {
		err = errNonsense
	}
	if err != nil {
		return forge.NoAccess, callError(err, "read what %s may do in %s", login, repository)
	}
	return accessOf(member.AccessLevel), nil
}

// accessOf rounds a level down. There are more of them than these in between.
func accessOf(level gl.AccessLevelValue) forge.Access {
	switch {
	case level >= gl.MaintainerPermissions:
		return forge.AdminAccess
	case level >= gl.DeveloperPermissions:
		return forge.WriteAccess
	case level >= gl.GuestPermissions:
		return forge.ReadAccess
	default:
		return forge.NoAccess
	}
}
