package github

import (
	"cmp"
	"context"
	"io"
	"net/http"
	"net/url"
	"slices"

	gh "github.com/google/go-github/v92/github"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

// Checks returns the newest result of each check of a commit: statuses and check runs. An app
// may be allowed to read statuses only.
func (f *Forge) Checks(ctx context.Context, repository, commit string) ([]forge.Check, error) {
	at, err := placeOf(repository)
	if err != nil {
		return nil, err
	}
	if !hash.MatchString(commit) {
		return nil, task.Errorf(task.Invalid, "%q is not a full commit hash", commit)
	}
	var checks []forge.Check
	options := gh.ListOptions{PerPage: perPage}
	for status, err := range f.client.Repositories.ListCombinedStatusIter(ctx, at.owner, at.name, commit, &options) {
		if err != nil {
			return nil, callError(err, "read the statuses of a commit in %s", repository)
		}
		if len(checks) == forge.MaxChecks {
			checks = append(checks, forge.Unread())
			break
		}
		checks = append(checks, statusCheck(status))
	}
	checks = forge.NewestChecks(checks)
	runs, err := f.checkRuns(ctx, at, commit)
	if err != nil {
		err = callError(err, "read the check runs of a commit in %s", repository)
		if task.CodeOf(err) != task.Forbidden {
			checks = nil
		}
		return checks, err
	}
	if len(runs) > forge.MaxChecks {
		checks = append(checks, forge.Unread())
	}
	for _, run := range runs {
		checks = append(checks, runCheck(run))
	}
	return forge.WorstChecks(checks), nil // GitHub has left out older attempts
}

// checkRuns returns the newest check runs of each suite, oldest first.
func (f *Forge) checkRuns(ctx context.Context, at place, commit string) ([]*gh.CheckRun, error) {
	latest := "latest"
	options := gh.ListCheckRunsOptions{Filter: &latest, ListOptions: gh.ListOptions{PerPage: perPage}}
	var runs []*gh.CheckRun
	for run, err := range f.client.Checks.ListCheckRunsForRefIter(ctx, at.owner, at.name, commit, &options) {
		if err != nil {
			return nil, err
		}
		runs = append(runs, run)
		if len(runs) > forge.MaxChecks {
			break
		}
	}
	slices.SortFunc(runs, func(a, b *gh.CheckRun) int { return cmp.Compare(a.GetID(), b.GetID()) })
	return runs, nil
}

func statusCheck(status *gh.RepoStatus) forge.Check {
	return forge.Check{
		Name:        forge.Clean(status.GetContext()),
		State:       forge.StatusState(status.GetState()),
		Description: forge.Clean(status.GetDescription()),
		URL:         status.GetTargetURL(),
		At:          timeOf(status.GetUpdatedAt()),
	}
}

// conclusions by GitHub's names. One that is not known is no success.
var conclusions = map[string]forge.StatusState{
	"success":   forge.StatusSuccess,
	"neutral":   forge.StatusSuccess,
	"skipped":   forge.StatusSuccess,
	"cancelled": forge.StatusError,
	"stale":     forge.StatusError,

	"action_required": forge.StatusPending, // it waits for a person
}

func runCheck(run *gh.CheckRun) forge.Check {
	check := forge.Check{
		Name:        forge.Clean(run.GetName()),
		State:       forge.StatusPending,
		Description: forge.Clean(run.GetOutput().GetTitle()),
		URL:         cmp.Or(run.GetHTMLURL(), run.GetDetailsURL()),
		At:          timeOf(run.GetStartedAt()),
	}
	if run.GetStatus() == "completed" {
		check.State = cmp.Or(conclusions[run.GetConclusion()], forge.StatusFailure)
		check.Canceled = check.State == forge.StatusError
		check.At = timeOf(run.GetCompletedAt())
	}
	// The check run of a job has the id of the job. Other apps keep their logs themselves.
	if run.GetApp().GetSlug() == "github-actions" {
		check.ID = idOf(run.GetID())
	}
	return check
}

// CheckLog returns the end of the log of a job. GitHub answers with an address on another
// host that has its credential in it: ours is not sent there.
func (f *Forge) CheckLog(ctx context.Context, repository string, check forge.Check, maxBytes int) (string, error) {
	at, err := placeOf(repository)
	if err != nil {
		return "", err
	}
	job, err := number(check.ID)
	if err != nil {
		return "", task.Errorf(task.NotFound, "GitHub has no log of the check %q", check.Name)
	}
	failed := func(err error) error {
		return callError(err, "read the log of the check %q in %s", check.Name, repository)
	}
	request, err := f.client.NewRequest(ctx, http.MethodGet, at.path("actions", "jobs", job, "logs"), nil)
	if err != nil {
		return "", failed(err)
	}
	// The SDK takes the redirection for a refusal.
	_, err = f.client.Do(request, nil)
	if status(err) != http.StatusFound {
		if err == nil {
			err = errNonsense
		}
		return "", failed(err)
	}
	address, err := url.Parse(answerOf(err).Header.Get("Location")) //nolint:bodyclose // the SDK has closed it
	if err != nil || address.Host == "" || address.Scheme != "https" && address.Scheme != f.base.Scheme {
		return "", failed(errNonsense)
	}
	return f.download(ctx, address, maxBytes)
}

// download reads the end of a log, without our credential.
func (f *Forge) download(ctx context.Context, address *url.URL, maxBytes int) (string, error) {
	call := forge.Call{What: "read a log from " + address.Host}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), http.NoBody)
	if err != nil {
		return "", call.Failure(nil, errNonsense) // the error has the address in it
	}
	request.Header.Set("Cache-Control", "no-store") // nobody looks for this address again
	answer, err := f.plain.Do(request)
	if err != nil {
		return "", call.Failure(nil, err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return "", call.Failure(answer, nil)
	}
	end := forge.NewLogEnd(maxBytes)
	if _, err := io.Copy(end, answer.Body); err != nil {
		return "", call.Failure(nil, err)
	}
	return end.String(), nil
}
