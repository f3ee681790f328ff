package gitlab

import (
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
	statuses, err := f.Checks(ctx, repository, wanted.Commit)
	if err != nil {
		return err
	}
	same := func(has forge.Check) bool { return has.Name == wanted.Context && has.State == wanted.State }
	if slices.ContainsFunc(statuses, same) {
		return nil
	}
	return failed
}

// Remote returns where git fetches and pushes.
func (f *Forge) Remote(_ context.Context, repository string) (forge.Remote, error) {
	if err := checkRepository(repository); err != nil {
		return forge.Remote{}, err
	}
	return forge.Remote{URL: f.base.JoinPath(repository + ".git").String(), Username: "oauth2", Password: f.token}, nil
}
