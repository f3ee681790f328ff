package github

import (
	"cmp"
	"context"
	"net/http"
	"slices"

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
		return writing(err, "set the status %s of a commit in %s", status.Context, repository)
	}
	return nil
}

// Statuses returns the last status of each context on a commit.
func (f *Forge) Statuses(ctx context.Context, repository, commit string) ([]forge.CommitStatus, error) {
	at, err := placeOf(repository)
	if err != nil {
		return nil, err
	}
	if !hash.MatchString(commit) {
		return nil, task.Errorf(task.Invalid, "%q is not a full commit hash", commit)
	}
	var statuses []forge.CommitStatus
	options := gh.ListOptions{PerPage: perPage}
	for status, err := range f.client.Repositories.ListCombinedStatusIter(ctx, at.owner, at.name, commit, &options) {
		if err != nil {
			return nil, reading(err, "read the statuses of a commit in %s", repository)
		}
		statuses = append(statuses, forge.CommitStatus{
			Commit:      commit,
			Context:     status.GetContext(),
			State:       forge.StatusState(status.GetState()),
			Description: forge.Clean(status.GetDescription()),
			URL:         status.GetTargetURL(),
		})
	}
	slices.SortFunc(statuses, func(a, b forge.CommitStatus) int { return cmp.Compare(a.Context, b.Context) })
	return statuses, nil
}

// Remote returns where git fetches and pushes.
func (f *Forge) Remote(ctx context.Context, repository string) (forge.Remote, error) {
	at, err := placeOf(repository)
	if err != nil {
		return forge.Remote{}, err
	}
	token, err := f.tokens.token(ctx)
	if err != nil {
		return forge.Remote{}, reading(err, "get a token for git")
	}
	return forge.Remote{
		URL:      f.web.JoinPath(at.owner, at.name+".git").String(),
		Username: "x-access-token",
		Password: token,
	}, nil
}

// Branch returns one branch. One that was renamed is not there.
func (f *Forge) Branch(ctx context.Context, repository, name string) (forge.Branch, error) {
	at, err := placeOf(repository)
	if err != nil {
		return forge.Branch{}, err
	}
	if name == "" || name == "." || name == ".." {
		return forge.Branch{}, task.Errorf(task.NotFound, "no branch can be called %q", name)
	}
	branch := new(gh.Branch)
	err = f.do(ctx, http.MethodGet, at.path("branches", name), nil, branch)
	if err == nil && branch.GetName() != name {
		err = errNonsense
	}
	if err != nil {
		return forge.Branch{}, reading(err, "read the branch %s of %s", name, repository)
	}
	return forge.Branch{Name: name, Commit: branch.GetCommit().GetSHA(), Protected: branch.GetProtected()}, nil
}

// CreateBranch makes a branch at a commit.
func (f *Forge) CreateBranch(ctx context.Context, repository, name, commit string) (forge.Branch, error) {
	at, err := placeOf(repository)
	if err != nil {
		return forge.Branch{}, err
	}
	if !hash.MatchString(commit) {
		return forge.Branch{}, task.Errorf(task.Invalid, "%q is not a full commit hash", commit)
	}
	made, _, err := f.client.Git.CreateRef(ctx, at.owner, at.name, gh.CreateRef{Ref: "refs/heads/" + name, SHA: commit})
	if status(err) == http.StatusUnprocessableEntity && says(err, "already exists") {
		branch, err := f.Branch(ctx, repository, name)
		if err == nil && branch.Commit != commit {
			err = task.Errorf(task.Conflict, "the branch %s of %s is at %s already", name, repository, branch.Commit)
		}
		return branch, err
	}
	if err == nil && made.GetObject().GetSHA() != commit {
		err = errNonsense
	}
	if err != nil {
		return forge.Branch{}, writing(err, "create the branch %s in %s", name, repository)
	}
	return forge.Branch{Name: name, Commit: commit}, nil
}
