package gitlab

import (
	"cmp"
	"context"
	"net/http"
	"slices"

	gl "gitlab.com/gitlab-org/api/client-go/v2"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

// buildStates are the states as GitLab has them: it does not tell an error from a
// failure.
var buildStates = map[forge.StatusState]gl.BuildStateValue{
	forge.StatusPending: gl.Pending,
	forge.StatusSuccess: gl.Success,
	forge.StatusFailure: gl.Failed,
	forge.StatusError:   gl.Failed,
}

// SetStatus sets the state of a commit under a context.
func (f *Forge) SetStatus(ctx context.Context, repository string, wanted forge.CommitStatus) error {
	if err := checkRepository(repository); err != nil {
		return err
	}
	state, known := buildStates[wanted.State]
	if !known || !hash.MatchString(wanted.Commit) || wanted.Context == "" {
		return task.Errorf(task.Invalid, "a status needs a full commit hash, a context and a known state")
	}
	description := wanted.ShortDescription()
	options := gl.SetCommitStatusOptions{State: state, Name: &wanted.Context, Description: &description}
	if wanted.URL != "" {
		options.TargetURL = &wanted.URL
	}
	_, _, err := f.client.Commits.SetCommitStatus(repository, wanted.Commit, &options, in(ctx))
	if err == nil {
		return nil
	}
	failed := callError(err, "set the status %s of a commit in %s", wanted.Context, repository)
	if status(err) != http.StatusBadRequest || !hasReason(err, "cannot transition") {
		return failed
	}
	// GitLab refuses to make something pending that is.
	statuses, err := f.Statuses(ctx, repository, wanted.Commit)
	if err != nil {
		return err
	}
	same := func(has forge.CommitStatus) bool { return has.Context == wanted.Context && has.State == wanted.State }
	if slices.ContainsFunc(statuses, same) {
		return nil
	}
	return failed
}

// Statuses returns the last status of each context on a commit: of the project's
// own jobs, too.
func (f *Forge) Statuses(ctx context.Context, repository, commit string) ([]forge.CommitStatus, error) {
	if err := checkRepository(repository); err != nil {
		return nil, err
	}
	if !hash.MatchString(commit) {
		return nil, task.Errorf(task.Invalid, "%q is not a full commit hash", commit)
	}
	options := gl.GetCommitStatusesOptions{}
	options.PerPage = perPage
	found, err := pages(ctx, func(page ...gl.RequestOptionFunc) ([]*gl.CommitStatus, *gl.Response, error) {
		return f.client.Commits.GetCommitStatuses(repository, commit, &options, page...)
	})
	if err != nil {
		return nil, callError(err, "read the statuses of a commit in %s", repository)
	}
	last := map[string]*gl.CommitStatus{}
	for _, status := range found {
		if known := last[status.Name]; known == nil || known.ID < status.ID {
			last[status.Name] = status
		}
	}
	var statuses []forge.CommitStatus
	for _, status := range last {
		statuses = append(statuses, forge.CommitStatus{
			Commit:      commit,
			Context:     status.Name,
			State:       statusState(status.Status),
			Description: forge.Clean(status.Description),
			URL:         status.TargetURL,
		})
	}
	slices.SortFunc(statuses, func(a, b forge.CommitStatus) int { return cmp.Compare(a.Context, b.Context) })
	return statuses, nil
}

func statusState(state string) forge.StatusState {
	switch state {
	case "success", "skipped":
		return forge.StatusSuccess
	case "failed":
		return forge.StatusFailure
	case "canceled":
		return forge.StatusError
	default: // created, pending, running, manual, ...
		return forge.StatusPending
	}
}

// Remote returns where git fetches and pushes.
func (f *Forge) Remote(_ context.Context, repository string) (forge.Remote, error) {
	if err := checkRepository(repository); err != nil {
		return forge.Remote{}, err
	}
	return forge.Remote{URL: f.base.JoinPath(repository + ".git").String(), Username: "oauth2", Password: f.token}, nil
}
