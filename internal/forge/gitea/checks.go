package gitea

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	sdk "code.gitea.io/sdk/gitea"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/lazyregexp"
	"github.com/toryo-dev/toryo/internal/task"
)

// status is the state of a commit as Gitea has it.
type status struct {
	ID          int64           `json:"id"`
	State       sdk.StatusState `json:"status"`
	TargetURL   string          `json:"target_url"`
	Description string          `json:"description"`
	Context     string          `json:"context"`
	Updated     time.Time       `json:"updated_at"`
}

// maxStatuses is how many statuses of a commit are read: a job has one for each event.
const maxStatuses = 3 * forge.MaxChecks

// Checks returns the newest result of each check of a commit: statuses, which jobs of Gitea's
// own set as well. Of jobs that differ in nothing but what they ran for, and of workflows that
// are named alike, the worst counts.
func (f *Forge) Checks(ctx context.Context, repository, commit string) ([]forge.Check, error) {
	owner, name, err := split(repository)
	if err != nil {
		return nil, err
	}
	found := map[int64]status{}
	for page := 1; len(found) <= maxStatuses; page++ {
		// Only this has the newest of each context; the list of statuses has all that ever were.
		path := fmt.Sprintf("%s/commits/%s/status?page=%d&limit=%d", address{owner: owner, name: name}.repository(), url.PathEscape(commit), page, perPage)
		var combined struct {
			Statuses []status `json:"statuses"`
		}
		answer, err := f.request(ctx, http.MethodGet, path, nil, &combined)
		if err != nil {
			return nil, callError("read the statuses of a commit in "+repository, answer, err)
		}
		before := len(found)
		for _, one := range combined.Statuses {
			found[one.ID] = one
		}
		if len(found) == before {
			break
		}
	}
	var checks []forge.Check
	if len(found) > maxStatuses {
		checks = append(checks, forge.Unread())
	}
	for _, id := range slices.Backward(slices.Sorted(maps.Keys(found))) {
		checks = append(checks, f.checkOf(found[id]))
	}
	return forge.WorstChecks(checks), nil // of those that are as bad, the newest
}

// jobEvent is how the name of a job ends: with what it ran for. The same job has one result
// for the push to a branch and another one for a pull request, and the base has only the first.
// So it is left out, and the worst of both counts.
var jobEvent = lazyregexp.New(` \((?:push|pull_request|pull_request_target)\)$`)

// jobCanceled is what Gitea, and newer versions of it, say of a canceled job. Its state is that
// of one that failed.
var jobCanceled = lazyregexp.New(`^(?:Has been cancelled$|Canceled after )`)

// jobPath is how the address of a job's page ends.
var jobPath = lazyregexp.New(`/actions/runs/\d+/jobs/(\d+)$`)

func (f *Forge) checkOf(one status) forge.Check {
	check := forge.Check{
		Name: forge.Clean(one.Context), State: stateOf(one.State), Description: forge.Clean(one.Description),
		URL: one.TargetURL, At: one.Updated.UTC(),
	}
	if !strings.HasPrefix(check.URL, "/") && !strings.HasPrefix(check.URL, f.url+"/") {
		return check
	}
	if job := jobPath.FindStringSubmatch(check.URL); job != nil {
		check.ID, check.Name = job[1], jobEvent.ReplaceAllString(check.Name, "")
		if check.Failed() && jobCanceled.MatchString(check.Description) {
			check.State, check.Canceled = forge.StatusError, true
		}
	}
	if base, err := url.Parse(f.url); err == nil { // jobs have the address without the host
		if page, err := base.Parse(check.URL); err == nil {
			check.URL = page.String()
		}
	}
	return check
}

// stateOf maps Gitea's states; it has a warning besides, which is no obstacle.
func stateOf(state sdk.StatusState) forge.StatusState {
	switch state {
	case sdk.StatusWarning, "skipped":
		return forge.StatusSuccess
	default:
		return forge.StatusState(state)
	}
}

// CheckLog returns the end of the log of a job. The address in the status has the id of the
// job on Gitea 1.26, and may have something else there on others: whether it is the job's, the
// job says itself. Servers without these calls have no log for us.
func (f *Forge) CheckLog(ctx context.Context, repository string, check forge.Check, maxBytes int) (string, error) {
	owner, name, err := split(repository)
	if err != nil {
		return "", err
	}
	what := fmt.Sprintf("read the log of the check %q in %s", check.Name, repository)
	none := task.Errorf(task.NotFound, "Gitea has no log of the check %q", check.Name)
	id, err := commentID(check.ID)
	if err != nil {
		return "", none
	}
	path := fmt.Sprintf("%s/actions/jobs/%d", address{owner: owner, name: name}.repository(), id)
	var job struct {
		Page string `json:"html_url"`
	}
	if answer, err := f.request(ctx, http.MethodGet, path, nil, &job); err != nil {
		return "", callError(what, answer, err)
	}
	if page := jobPath.FindString(job.Page); page == "" || page != jobPath.FindString(check.URL) {
		return "", none
	}
	return f.logEnd(ctx, what, path+"/logs", maxBytes)
}

// logEnd reads a log and returns its end.
func (f *Forge) logEnd(ctx context.Context, what, path string, maxBytes int) (string, error) {
	request, err := f.newRequest(ctx, http.MethodGet, path, http.NoBody)
	if err != nil {
		return "", callError(what, nil, err)
	}
	request.Header.Set("Cache-Control", "no-store")
	answer, err := f.http.Do(request)
	if err != nil {
		return "", callError(what, nil, err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return "", callError(what, &sdk.Response{Response: answer}, refusal(answer))
	}
	end := forge.NewLogEnd(maxBytes)
	if _, err := io.Copy(end, answer.Body); err != nil {
		return "", callError(what, &sdk.Response{Response: answer}, err)
	}
	return end.String(), nil
}
