package gitlab

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	gl "gitlab.com/gitlab-org/api/client-go/v2"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

// Checks returns the newest result of each check of a commit: statuses and jobs, which are
// statuses on GitLab.
func (f *Forge) Checks(ctx context.Context, repository, commit string) ([]forge.Check, error) {
	if err := checkRepository(repository); err != nil {
		return nil, err
	}
	if !hash.MatchString(commit) {
		return nil, task.Errorf(task.Invalid, "%q is not a full commit hash", commit)
	}
	options := gl.GetCommitStatusesOptions{}
	options.PerPage, options.OrderBy, options.Sort = perPage, "id", "desc" // older servers give the oldest first
	found, err := gl.ScanAndCollectN(func(page gl.PaginationOptionFunc) ([]*gl.CommitStatus, *gl.Response, error) {
		return f.client.Commits.GetCommitStatuses(repository, commit, &options, in(ctx), page)
	}, forge.MaxChecks+1)
	if err != nil {
		return nil, callError(err, "read the statuses of a commit in %s", repository)
	}
	slices.SortFunc(found, func(a, b *gl.CommitStatus) int { return cmp.Compare(a.ID, b.ID) })
	last := map[string]*gl.CommitStatus{} // whatever their times are
	for _, status := range found {
		last[status.Name] = status
	}
	var checks []forge.Check
	for _, status := range last {
		checks = append(checks, f.checkOf(status))
	}
	if len(found) > forge.MaxChecks {
		checks = append(checks, forge.Unread()) // the last, so that no job of that name replaces it
	}
	return forge.NewestChecks(checks), nil
}

func (f *Forge) checkOf(status *gl.CommitStatus) forge.Check {
	check := forge.Check{
		Name:        forge.Clean(status.Name),
		State:       statusState(status),
		Canceled:    status.Status == "canceled",
		Description: forge.Clean(status.Description),
		URL:         status.TargetURL,
		At:          timeOf(cmp.Or(status.FinishedAt, status.StartedAt, status.CreatedAt)),
	}
	if f.isJob(status) {
		check.ID = idOf(status.ID)
	}
	return check
}

// isJob reports whether a status is one of GitLab's own jobs: then it leads to its page. Who
// sets a status of another kind can give it any address, so that of a job counts only with
// the id of the status itself.
func (f *Forge) isJob(status *gl.CommitStatus) bool {
	return strings.HasPrefix(status.TargetURL, f.base.String()) &&
		(strings.HasSuffix(status.TargetURL, fmt.Sprint("/jobs/", status.ID)) || strings.HasSuffix(status.TargetURL, fmt.Sprint("/builds/", status.ID)))
}

// statusState maps GitLab's states. What waits for a person to start it is no obstacle.
func statusState(status *gl.CommitStatus) forge.StatusState {
	switch status.Status {
	case "success", "skipped", "manual":
		return forge.StatusSuccess
	case "failed":
		if status.AllowFailure {
			return forge.StatusSuccess
		}
		return forge.StatusFailure
	case "canceled":
		return forge.StatusError
	default: // created, pending, preparing, running, scheduled, waiting_for_resource, canceling
		return forge.StatusPending
	}
}

// CheckLog returns the end of the log of a job.
func (f *Forge) CheckLog(ctx context.Context, repository string, check forge.Check, maxBytes int) (string, error) {
	if err := checkRepository(repository); err != nil {
		return "", err
	}
	job, err := number(check.ID)
	if err != nil {
		return "", task.Errorf(task.NotFound, "GitLab has no log of the check %q", check.Name)
	}
	path := fmt.Sprintf("projects/%s/jobs/%d/trace", gl.PathEscape(repository), job)
	request, err := f.client.NewRequest(http.MethodGet, path, nil, []gl.RequestOptionFunc{in(ctx), noStore})
	if err != nil {
		return "", callError(err, "read the log of the check %q in %s", check.Name, repository)
	}
	end := forge.NewLogEnd(maxBytes)
	if _, err := f.client.Do(request, end); err != nil {
		return "", callError(err, "read the log of the check %q in %s", check.Name, repository)
	}
	return end.String(), nil
}
