package gitlab

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	gl "gitlab.com/gitlab-org/api/client-go/v2"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

var _ forge.Setup = (*Forge)(nil)

// labels returns the labels of a project, with those of the groups above it or without. Only those
// are returned that have the text in their names.
func (f *Forge) labels(ctx context.Context, repository, search string, ofGroups bool) ([]*gl.Label, error) {
	if err := checkRepository(repository); err != nil {
		return nil, err
	}
	options := gl.ListLabelsOptions{IncludeAncestorGroups: &ofGroups}
	if search != "" {
		options.Search = &search
	}
	options.PerPage = perPage
	return limitedPages(ctx, forge.MaxLabels, "list the labels of "+repository, func(page ...gl.RequestOptionFunc) ([]*gl.Label, *gl.Response, error) {
		return f.client.Labels.ListLabels(repository, &options, page...)
	})
}

// errTooManyPages says that a listing has more pages than it can have.
var errTooManyPages = errors.New("the listing has too many pages")

// limitedPages is [pages] for a listing that may not be larger than the limit, or have too many pages
// for that: then it is TooLarge.
func limitedPages[T any](ctx context.Context, limit int, what string, list func(options ...gl.RequestOptionFunc) ([]T, *gl.Response, error)) ([]T, error) {
	asked := 0
	all, err := gl.ScanAndCollectN(func(page gl.PaginationOptionFunc) ([]T, *gl.Response, error) {
		if asked++; asked > limit/forge.FewestPerPage {
			return nil, nil, errTooManyPages
		}
		return list(in(ctx), page)
	}, limit+1)
	switch {
	case errors.Is(err, errTooManyPages) || len(all) > limit:
		return nil, task.Errorf(task.TooLarge, "cannot %s: there are more than %d", what, limit)
	case err != nil:
		return nil, callError(err, "%s", what)
	}
	return all, nil
}

// Labels returns the names of the labels of a project and of the groups above it.
func (f *Forge) Labels(ctx context.Context, repository string) ([]string, error) {
	found, err := f.labels(ctx, repository, "", true)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, label := range found {
		if label != nil {
			names = append(names, label.Name)
		}
	}
	return names, nil
}

// CreateLabel creates a label of the project. GitLab refuses one that is there, also in a group above.
func (f *Forge) CreateLabel(ctx context.Context, repository string, label forge.Label) (bool, error) {
	if err := checkRepository(repository); err != nil {
		return false, err
	}
	label, err := label.Checked()
	if err != nil {
		return false, err
	}
	if err := checkLabel(label.Name); err != nil {
		return false, err
	}
	color := "#" + label.Color
	_, _, err = f.client.Labels.CreateLabel(repository, &gl.CreateLabelOptions{
		Name: &label.Name, Color: &color, Description: &label.Description,
	}, in(ctx))
	if status(err) == http.StatusConflict {
		return false, nil
	}
	if err != nil {
		return false, callError(err, "create the label %q in %s", label.Name, repository)
	}
	return true, nil
}

// DeleteLabel deletes a label of the project. It is asked for by its id: by its name, GitLab would
// take a label called "12" for the one with that id.
func (f *Forge) DeleteLabel(ctx context.Context, repository, name string) error {
	if !canBeLabel(name) {
		return nil // it is not there
	}
	found, err := f.labels(ctx, repository, name, false)
	if err != nil {
		return err
	}
	for _, label := range found {
		if label == nil || label.Name != name || !label.IsProjectLabel {
			continue
		}
		_, err := f.client.Labels.DeleteLabel(repository, label.ID, &gl.DeleteLabelOptions{}, in(ctx))
		if err != nil && status(err) != http.StatusNotFound {
			return callError(err, "delete the label %q of %s", name, repository)
		}
	}
	return nil
}

// CreateIssue opens an issue. GitLab creates labels that are missing, and leaves out accounts that
// cannot be assigned.
func (f *Forge) CreateIssue(ctx context.Context, repository string, post forge.IssuePost) (forge.Item, error) {
	if err := checkRepository(repository); err != nil {
		return forge.Item{}, err
	}
	for _, label := range post.Labels {
		if err := checkLabel(label); err != nil {
			return forge.Item{}, err
		}
	}
	var assignees []int64
	for _, login := range post.Assignees {
		who, found, err := f.find(ctx, login)
		if err != nil {
			return forge.Item{}, err
		}
		if found {
			assignees = append(assignees, who.id)
		}
	}
	title, text := post.Texts(repository)
	options := gl.CreateIssueOptions{Title: &title, Description: &text, Labels: labelsOption(post.Labels)}
	if len(assignees) > 0 {
		options.AssigneeIDs = &assignees
	}
	issue, _, err := f.client.Issues.CreateIssue(repository, &options, in(ctx))
	if err == nil && (issue == nil || issue.IID == 0) {
		err = errNonsense
	}
	if err != nil {
		return forge.Item{}, callError(err, "open an issue in %s", repository)
	}
	return issueItem(repository, issue), nil
}

// pushes is the event that tells of pushes.
const pushes = "push_events"

// hookEvents are the events that a webhook can be enabled for.
var hookEvents = append(WebhookEvents.Names(), pushes)

// confidential are the events that tell of confidential issues and notes what others tell of the
// rest. They are enabled together.
var confidential = map[string]string{"issues_events": "confidential_issues_events", "note_events": "confidential_note_events"}

// settingsOf is a webhook as GitLab gets it. What is not chosen is switched off: left out, it would
// stay as it is, and pushes are on if nobody says anything.
func settingsOf(post forge.HookPost) (map[string]any, error) {
	events, err := post.Checked(hookEvents)
	if err != nil {
		return nil, err
	}
	settings := map[string]any{"url": post.URL, "token": post.Secret, "enable_ssl_verification": !post.Insecure}
	for _, event := range hookEvents {
		settings[event] = slices.Contains(events, event)
		if other := confidential[event]; other != "" {
			settings[other] = settings[event]
		}
	}
	return settings, nil
}

// hookOf is a webhook as the port has it. GitLab stops one that fails again and again.
func hookOf(found *gl.ProjectHook) forge.Hook {
	made := forge.Hook{
		ID: idOf(found.ID), URL: found.URL,
		Active: found.AlertStatus == "" || found.AlertStatus == "executable",
	}
	enabled := map[string]bool{
		"issues_events": found.IssuesEvents, "note_events": found.NoteEvents, "merge_requests_events": found.MergeRequestsEvents,
		"pipeline_events": found.PipelineEvents, "job_events": found.JobEvents, pushes: found.PushEvents,
	}
	for _, event := range hookEvents {
		if enabled[event] {
			made.Events = append(made.Events, event)
		}
	}
	return made
}

func hooksPath(repository string) string {
	return fmt.Sprintf("projects/%s/hooks", gl.PathEscape(repository))
}

// Hooks returns the webhooks of a project. What is read of webhooks is not
// kept anywhere: their addresses may have secrets in them.
func (f *Forge) Hooks(ctx context.Context, repository string) ([]forge.Hook, error) {
	if err := checkRepository(repository); err != nil {
		return nil, err
	}
	options := gl.ListProjectHooksOptions{}
	options.PerPage = perPage
	found, err := limitedPages(ctx, forge.MaxHooks, "list the webhooks of "+repository, func(page ...gl.RequestOptionFunc) ([]*gl.ProjectHook, *gl.Response, error) {
		return f.client.Projects.ListProjectHooks(repository, &options, append(page, noStore)...)
	})
	if err != nil {
		return nil, err
	}
	var hooks []forge.Hook
	for _, one := range found {
		if one != nil {
			hooks = append(hooks, hookOf(one))
		}
	}
	return hooks, nil
}

// LastDelivery tells how the last delivery of a webhook went, which older servers do not. The status of
// one that did not reach the server is a text.
func (f *Forge) LastDelivery(ctx context.Context, repository, id string) (last forge.HookDelivery, err error) {
	if err := checkRepository(repository); err != nil {
		return last, err
	}
	hook, err := hookNumber(id)
	if err != nil {
		return last, nil //nolint:nilerr // there is no such webhook, so nothing was delivered
	}
	var events []struct {
		Status string     `json:"response_status"`
		At     *time.Time `json:"created_at"`
	}
	page := struct {
		PerPage int `url:"per_page"`
	}{1}
	err = f.do(ctx, http.MethodGet, fmt.Sprintf("%s/%d/events", hooksPath(repository), hook), page, &events, noStore)
	if code := status(err); code == http.StatusNotFound || code == http.StatusForbidden || code == http.StatusBadRequest {
		return last, nil
	}
	if err != nil {
		return last, callError(err, "read the deliveries of a webhook of %s", repository)
	}
	if len(events) > 0 {
		last.At = timeOf(events[0].At)
		last.Status, _ = strconv.Atoi(events[0].Status) // what is no number is none
	}
	return last, nil
}

// CreateHook creates a webhook.
func (f *Forge) CreateHook(ctx context.Context, repository string, post forge.HookPost) (forge.Hook, error) {
	return f.writeHook(ctx, http.MethodPost, repository, "", post)
}

// EditHook changes a webhook. One that GitLab has stopped goes on when it can be delivered again: a
// test is enough.
func (f *Forge) EditHook(ctx context.Context, repository, id string, post forge.HookPost) (forge.Hook, error) {
	number, err := hookNumber(id)
	if err != nil {
		return forge.Hook{}, err
	}
	return f.writeHook(ctx, http.MethodPut, repository, "/"+idOf(number), post)
}

func (f *Forge) writeHook(ctx context.Context, method, repository, which string, post forge.HookPost) (forge.Hook, error) {
	if err := checkRepository(repository); err != nil {
		return forge.Hook{}, err
	}
	settings, err := settingsOf(post)
	if err != nil {
		return forge.Hook{}, err
	}
	var made gl.ProjectHook
	err = post.Hide(f.do(ctx, method, hooksPath(repository)+which, settings, &made))
	if err == nil && made.ID == 0 {
		err = errNonsense
	}
	if status(err) == http.StatusUnprocessableEntity && hasReason(err, "url") {
		return forge.Hook{}, task.Wrap(task.Invalid, callError(err, "write a webhook of %s", repository), "GitLab refuses the address of the webhook").
			WithHint("GitLab sends nothing into its own network unless an administrator allows it: Admin area, Settings, Network, Outbound requests")
	}
	if err != nil {
		return forge.Hook{}, callError(err, "write a webhook of %s", repository)
	}
	return hookOf(&made), nil
}

// hookNumber reads the id of a webhook.
func hookNumber(id string) (int64, error) {
	value, err := number(id)
	if err != nil {
		return 0, task.Errorf(task.NotFound, "GitLab has no webhook with the id %q", id)
	}
	return value, nil
}

// DeleteHook deletes a webhook.
func (f *Forge) DeleteHook(ctx context.Context, repository, id string) error {
	if err := checkRepository(repository); err != nil {
		return err
	}
	hook, err := hookNumber(id)
	if err == nil {
		if _, err = f.client.Projects.DeleteProjectHook(repository, hook, in(ctx)); err != nil {
			err = callError(err, "delete the webhook %s of %s", id, repository)
		}
	}
	if task.CodeOf(err) == task.NotFound {
		_, err = f.project(ctx, repository) // it is the webhook that is missing, or all of it
	}
	return err
}

// TestHook lets GitLab deliver the last commits as if they had just been pushed. It waits for the
// delivery and says what went wrong.
func (f *Forge) TestHook(ctx context.Context, repository, id string) error {
	if err := checkRepository(repository); err != nil {
		return err
	}
	hook, err := hookNumber(id)
	if err != nil {
		return err
	}
	_, err = f.client.Projects.TriggerTestProjectHook(repository, hook, gl.ProjectHookEventPush, in(ctx))
	if err == nil {
		return nil
	}
	if status(err) == http.StatusNotFound {
		if _, _, findErr := f.client.Projects.GetProjectHook(repository, hook, in(ctx), noStore); findErr == nil {
			return task.Wrap(task.Unsupported, err, "this GitLab is too old to test a webhook for us").
				WithHint("press Test on the page of the webhook")
		}
	}
	return callError(err, "test the webhook %s of %s", id, repository)
}
