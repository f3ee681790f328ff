package gitea

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	sdk "code.gitea.io/sdk/gitea"

	"github.com/toryo-dev/toryo/internal/forge"
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

// Checks returns the newest result of each check of a commit: statuses, which jobs of Gitea's
// own set as well.
func (f *Forge) Checks(ctx context.Context, repository, commit string) ([]forge.Check, error) {
	owner, name, err := split(repository)
	if err != nil {
		return nil, err
	}
	var checks []forge.Check
	for page := 1; len(checks) < forge.MaxChecks; page++ {
		// Only this has the newest of each context; the list of statuses has all that ever were.
		path := fmt.Sprintf("%s/commits/%s/status?page=%d&limit=%d", address{owner: owner, name: name}.repository(), url.PathEscape(commit), page, perPage)
		var combined struct {
			Statuses []status `json:"statuses"`
		}
		answer, err := f.request(ctx, http.MethodGet, path, nil, &combined)
		if err != nil {
			return nil, callError("read the statuses of a commit in "+repository, answer, err)
		}
		before := len(checks)
		for _, one := range combined.Statuses {
			checks = append(checks, f.checkOf(one))
		}
		checks = forge.NewestChecks(checks)
		if len(checks) == before {
			break
		}
	}
	return checks, nil
}

// jobPath is how the address of a job's page ends.
var jobPath = regexp.MustCompile(`/actions/runs/\d+/jobs/(\d+)$`)

func (f *Forge) checkOf(one status) forge.Check {
	check := forge.Check{
		Name: forge.Clean(one.Context), State: stateOf(one.State), Description: forge.Clean(one.Description),
		URL: one.TargetURL, At: one.Updated.UTC(),
	}
	if !strings.HasPrefix(check.URL, "/") && !strings.HasPrefix(check.URL, f.url+"/") {
		return check
	}
	if job := jobPath.FindStringSubmatch(check.URL); job != nil {
		check.ID = job[1]
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
