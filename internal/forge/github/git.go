package github

import (
	"context"
	"net/http"

	gh "github.com/google/go-github/v92/github"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

// SetStatus sets the state of a commit under a context.
func (f *Forge) SetStatus(ctx context.Context, repository string, status forge.CommitStatus) error {
	at, err := placeOf(repository)
	if err != nil {
		return err
	}
	if !hash.MatchString(status.Commit) {
		return task.Errorf(task.Invalid, "%q is not a full commit hash", status.Commit)
	}
	state, description := string(status.State), status.ShortDescription()
	body := gh.RepoStatus{State: &state, Context: &status.Context, Description: &description}
	if status.URL != "" {
		body.TargetURL = &status.URL
	}
	if _, _, err := f.client.Repositories.CreateStatus(ctx, at.owner, at.name, status.Commit, body); err != nil {
		return callError(err, "set the status %s of a commit in %s", status.Context, repository)
	}
	return nil
}

// Remote returns where git fetches and pushes.
func (f *Forge) Remote(ctx context.Context, repository string) (forge.Remote, error) {
	at, err := placeOf(repository)
	if err != nil {
		return forge.Remote{}, err
	}
	token, err := f.tokens.token(ctx)
	if err != nil {
		return forge.Remote{}, callError(err, "get a token for git")
	}
	return forge.Remote{
		URL:      f.web.JoinPath(at.owner, at.name+".git").String(),
		Username: "x-access-token",
		Password: token,
	}, nil
}

// hasBranch reports whether a repository has the branch. One that was renamed is not
// there.
func (f *Forge) hasBranch(ctx context.Context, repository, name string) (bool, error) {
	at, err := placeOf(repository)
	if err != nil {
		return false, err
	}
	if name == "." || name == ".." {
		return false, nil // no branch can be called that, and it would be another address
	}
	branch := new(gh.Branch)
	err = f.do(ctx, http.MethodGet, at.path("branches", name), nil, branch)
	if err == nil && branch.GetName() != name {
		err = errNonsense
	}
	if err == nil {
		return true, nil
	}
	failed := callError(err, "read the branch %s of %s", name, repository)
	if task.CodeOf(failed) == task.NotFound {
		return false, nil
	}
	return false, failed
}
