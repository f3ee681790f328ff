package github

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	gh "github.com/google/go-github/v92/github"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

var _ forge.Setup = (*Forge)(nil)

// Labels returns the names of the labels of a repository.
func (f *Forge) Labels(ctx context.Context, repository string) ([]string, error) {
	at, err := placeOf(repository)
	if err != nil {
		return nil, err
	}
	found, complete, err := limited(forge.MaxLabels, func(page int) ([]*gh.Label, *gh.Response, error) {
		return f.client.Issues.ListLabels(ctx, at.owner, at.name, &gh.ListOptions{PerPage: perPage, Page: page})
	})
	if err != nil {
		return nil, callError(err, "list the labels of %s", repository)
	}
	if !complete {
		return nil, task.Errorf(task.TooLarge, "%s has more than %d labels", repository, forge.MaxLabels)
	}
	var names []string
	for _, label := range found {
		names = append(names, label.GetName())
	}
	return names, nil
}

// limited returns what a listing has, page by page. It is not complete if it has more than the limit,
// or too many pages for that.
func limited[T any](limit int, list func(page int) ([]T, *gh.Response, error)) (all []T, complete bool, err error) {
	page := 1
	for range limit / forge.FewestPerPage {
		got, answer, err := list(page)
		if err != nil {
			return nil, false, err
		}
		if all = append(all, got...); len(all) > limit {
			return nil, false, nil
		}
		if answer.NextPage == 0 {
			return all, true, nil
		}
		page = answer.NextPage
	}
	return nil, false, nil
}

// CreateLabel creates a label. GitHub refuses one that is there, in small or capital letters.
func (f *Forge) CreateLabel(ctx context.Context, repository string, label forge.Label) (bool, error) {
	at, err := placeOf(repository)
	if err != nil {
		return false, err
	}
	if label, err = label.Checked(); err != nil {
		return false, err
	}
	_, _, err = f.client.Issues.CreateLabel(ctx, at.owner, at.name, gh.CreateIssueLabelRequest{
		Name: label.Name, Color: &label.Color, Description: &label.Description,
	})
	if hasReason(err, "already_exists") {
		return false, nil
	}
	if err != nil {
		return false, callError(err, "create the label %q in %s", label.Name, repository)
	}
	return true, nil
}

// DeleteLabel deletes a label.
func (f *Forge) DeleteLabel(ctx context.Context, repository, name string) error {
	at, err := placeOf(repository)
	if err != nil {
		return err
	}
	if name == "" || name == "." || name == ".." {
		return nil // cannot be there, and would be another address
	}
	err = f.do(ctx, http.MethodDelete, at.path("labels", name), nil, nil)
	if status(err) == http.StatusNotFound {
		_, err := f.Repository(ctx, repository) // it is the label that is missing, or all of it
		return err
	}
	if err != nil {
		return callError(err, "delete the label %q of %s", name, repository)
	}
	return nil
}

// CreateIssue opens an issue. GitHub creates labels that are missing. It refuses an issue with an
// assignee who cannot be assigned; if we may not assign at all, it leaves assignees out itself.
func (f *Forge) CreateIssue(ctx context.Context, repository string, post forge.IssuePost) (forge.Item, error) {
	at, err := placeOf(repository)
	if err != nil {
		return forge.Item{}, err
	}
	title, text := post.Texts(repository)
	request := gh.CreateIssueRequest{Title: title, Body: &text, Assignees: post.Assignees, Labels: post.Labels}
	issue, _, err := f.client.Issues.Create(ctx, at.owner, at.name, request)
	if status(err) == http.StatusUnprocessableEntity && len(request.Assignees) > 0 {
		request.Assignees = nil
		issue, _, err = f.client.Issues.Create(ctx, at.owner, at.name, request)
	}
	if err == nil && issue.GetNumber() == 0 {
		err = errNonsense
	}
	if err != nil {
		return forge.Item{}, callError(err, "open an issue in %s", repository)
	}
	return issueItem(repository, issue), nil
}

// hookEvents are the events that a webhook can be enabled for. Those that are not in
// [WebhookEvents] tell of the repository rather than of an item.
var hookEvents = append(WebhookEvents.Names(), "pull_request_review_thread", "label", "push")

// hookOf is a webhook as the port has it.
func hookOf(found *gh.Hook) forge.Hook {
	made := forge.Hook{ID: idOf(found.GetID()), URL: found.Config.GetURL(), Active: found.GetActive()}
	for _, event := range hookEvents {
		if slices.Contains(found.Events, event) || slices.Contains(found.Events, "*") {
			made.Events = append(made.Events, event)
		}
	}
	return made
}

// readHooks reads something about webhooks. The answer is not kept: the address of a webhook may have a
// secret in it. The SDK's own methods cannot ask for that.
func (f *Forge) readHooks(ctx context.Context, path string, result any) (*gh.Response, error) {
	request, err := f.client.NewRequest(ctx, http.MethodGet, path, nil, func(r *http.Request) {
		r.Header.Set("Cache-Control", "no-store")
	})
	if err != nil {
		return nil, err
	}
	return f.client.Do(request, result)
}

// Hooks returns the webhooks of a repository.
func (f *Forge) Hooks(ctx context.Context, repository string) ([]forge.Hook, error) {
	at, err := placeOf(repository)
	if err != nil {
		return nil, err
	}
	all, complete, err := limited(forge.MaxHooks, func(page int) ([]*gh.Hook, *gh.Response, error) {
		var found []*gh.Hook
		answer, err := f.readHooks(ctx, fmt.Sprintf("%s?per_page=%d&page=%d", at.path("hooks"), perPage, page), &found)
		return found, answer, err
	})
	if err != nil {
		return nil, f.hooksRefused(ctx, repository, err, "list the webhooks of %s", repository)
	}
	if !complete {
		return nil, task.Errorf(task.TooLarge, "%s has more than %d webhooks", repository, forge.MaxHooks)
	}
	var hooks []forge.Hook
	for _, found := range all {
		if found.GetName() == "web" {
			hooks = append(hooks, hookOf(found))
		}
	}
	return hooks, nil
}

// LastDelivery tells how the last delivery of a webhook went. Of one that did not reach the server
// GitHub says why, and gives a status of its own invention; of an answer that it does not like, which
// status that was. Servers that are too old, and tokens that may not read it, find nothing.
func (f *Forge) LastDelivery(ctx context.Context, repository, id string) (last forge.HookDelivery, err error) {
	at, err := placeOf(repository)
	if err != nil {
		return last, err
	}
	hook, err := hookNumber(id)
	if err != nil {
		return last, nil //nolint:nilerr // there is no such webhook, so nothing was delivered
	}
	var found []*gh.HookDelivery
	if _, err := f.readHooks(ctx, at.path("hooks", hook, "deliveries")+"?per_page=1", &found); err != nil {
		err = callError(err, "read the deliveries of a webhook of %s", repository)
		if code := task.CodeOf(err); code == task.NotFound || code == task.Forbidden {
			err = nil
		}
		return last, err
	}
	if len(found) == 0 {
		return last, nil
	}
	last.At = timeOf(found[0].GetDeliveredAt())
	if said := found[0].GetStatus(); said == "OK" || strings.HasPrefix(said, "Invalid HTTP Response") {
		last.Status = found[0].GetStatusCode()
	}
	return last, nil
}

// hooksRefused makes the error of a call about webhooks. To those who may not see them GitHub says
// that they are not there.
func (f *Forge) hooksRefused(ctx context.Context, repository string, err error, what string, args ...any) error {
	coded := callError(err, what, args...)
	switch task.CodeOf(coded) {
	case task.NotFound:
		if _, findErr := f.Repository(ctx, repository); findErr != nil {
			return findErr
		}
		fallthrough
	case task.Forbidden:
		return task.Wrap(task.Forbidden, coded, "GitHub shows us no webhooks of "+repository).
			WithHint("let an administrator of the repository do it, or give the account the role Admin and the token the scope admin:repo_hook or the permission Webhooks: read and write")
	default:
		return coded
	}
}

// hookConfig says where and how a webhook is delivered.
func hookConfig(post forge.HookPost) *gh.HookConfig {
	media, insecure := "json", "0"
	if post.Insecure {
		insecure = "1"
	}
	return &gh.HookConfig{URL: &post.URL, ContentType: &media, Secret: &post.Secret, InsecureSSL: &insecure}
}

// CreateHook creates a webhook.
func (f *Forge) CreateHook(ctx context.Context, repository string, post forge.HookPost) (forge.Hook, error) {
	at, err := placeOf(repository)
	if err != nil {
		return forge.Hook{}, err
	}
	events, err := post.Checked(hookEvents)
	if err != nil {
		return forge.Hook{}, err
	}
	active := true
	made, _, err := f.client.Repositories.CreateHook(ctx, at.owner, at.name, &gh.Hook{
		Config: hookConfig(post), Events: events, Active: &active,
	})
	if err = post.Hide(err); err == nil && made.GetID() == 0 {
		err = errNonsense
	}
	if hasReason(err, "already exists") {
		return forge.Hook{}, task.Wrap(task.Conflict, err, "there is such a webhook of "+repository)
	}
	if err != nil {
		return forge.Hook{}, f.hooksRefused(ctx, repository, err, "create a webhook of %s", repository)
	}
	return hookOf(made), nil
}

// hookNumber reads the id of a webhook.
func hookNumber(id string) (int64, error) {
	value, err := number(id)
	if err != nil {
		return 0, task.Errorf(task.NotFound, "GitHub has no webhook with the id %q", id)
	}
	return value, nil
}

// noHook makes the error of a call about one webhook. If we see the others, it is missing.
func (f *Forge) noHook(ctx context.Context, repository, id string, at place, err error, what string) error {
	if status(err) == http.StatusNotFound {
		var others []*gh.Hook
		if _, listErr := f.readHooks(ctx, at.path("hooks")+"?per_page=1", &others); listErr == nil {
			return callError(err, what+" the webhook %s of %s", id, repository)
		}
	}
	return f.hooksRefused(ctx, repository, err, what+" the webhook %s of %s", id, repository)
}

// EditHook changes a webhook.
func (f *Forge) EditHook(ctx context.Context, repository, id string, post forge.HookPost) (forge.Hook, error) {
	at, err := placeOf(repository)
	if err != nil {
		return forge.Hook{}, err
	}
	hook, err := hookNumber(id)
	if err != nil {
		return forge.Hook{}, err
	}
	events, err := post.Checked(hookEvents)
	if err != nil {
		return forge.Hook{}, err
	}
	active := true
	edited, _, err := f.client.Repositories.EditHook(ctx, at.owner, at.name, hook, &gh.Hook{
		Config: hookConfig(post), Events: events, Active: &active,
	})
	if err = post.Hide(err); err == nil && edited.GetID() != hook {
		err = errNonsense
	}
	if err != nil {
		return forge.Hook{}, f.noHook(ctx, repository, id, at, err, "change")
	}
	return hookOf(edited), nil
}

// DeleteHook deletes a webhook.
func (f *Forge) DeleteHook(ctx context.Context, repository, id string) error {
	at, err := placeOf(repository)
	if err != nil {
		return err
	}
	hook, err := hookNumber(id)
	if err == nil {
		if _, err = f.client.Repositories.DeleteHook(ctx, at.owner, at.name, hook); err != nil {
			err = f.noHook(ctx, repository, id, at, err, "delete")
		}
	}
	if task.CodeOf(err) == task.NotFound {
		_, err = f.Repository(ctx, repository) // it is the webhook that is missing, or all of it
	}
	return err
}

// TestHook lets GitHub deliver a ping, which it does whatever the webhook is enabled for.
func (f *Forge) TestHook(ctx context.Context, repository, id string) error {
	at, err := placeOf(repository)
	if err != nil {
		return err
	}
	hook, err := hookNumber(id)
	if err != nil {
		return err
	}
	if _, err := f.client.Repositories.PingHook(ctx, at.owner, at.name, hook); err != nil {
		return f.noHook(ctx, repository, id, at, err, "test")
	}
	return nil
}
