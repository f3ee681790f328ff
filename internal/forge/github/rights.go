package github

import (
	gh "github.com/google/go-github/v92/github"

	"github.com/toryo-dev/toryo/internal/forge"
)

// lacks says what we may not do in a repository. An App may what its installation was given,
// whatever the repository says of people. Everybody who can read an item may comment on it.
// Permissions of a fine-grained token, which may be less than those of its owner, are not told.
func (f *Forge) lacks(in *gh.Repository) forge.Rights {
	switch {
	case in.GetArchived():
		return forge.AllRights
	case f.app != nil:
		return lacksOfApp(f.app.permissions.Load())
	case in.Permissions == nil:
		return forge.Rights{}
	}
	may := in.Permissions
	pushes := may.GetPush() || may.GetMaintain() || may.GetAdmin()
	return forge.Rights{Push: !pushes, Label: !pushes && !may.GetTriage()}
}

// lacksOfApp says what an installation may not do. For labels and comments of pull requests either
// permission will do; for those of issues it has to be that of issues.
func lacksOfApp(given *gh.InstallationPermissions) forge.Rights {
	if given == nil {
		return forge.Rights{} // it was not told
	}
	const write = "write"
	return forge.Rights{
		Push:    given.GetContents() != write || given.GetPullRequests() != write,
		Comment: given.GetIssues() != write && given.GetPullRequests() != write,
		Label:   given.GetIssues() != write && given.GetPullRequests() != write,
		Issues:  given.GetIssues() != write,
	}
}
