package github

import (
	"context"
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
	var names []string
	for label, err := range f.client.Issues.ListLabelsIter(ctx, at.owner, at.name, &gh.ListOptions{PerPage: perPage}) {
		if err != nil {
			return nil, callError(err, "list the labels of %s", repository)
		}
		if names = append(names, label.GetName()); len(names) > forge.MaxLabels {
			return nil, task.Errorf(task.TooLarge, "%s has more than %d labels", repository, forge.MaxLabels)
		}
	}
	return names, nil
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

// CreateIssue opens an issue. GitHub creates labels that are missing.
func (f *Forge) CreateIssue(ctx context.Context, repository string, post forge.IssuePost) (forge.Item, error) {
	at, err := placeOf(repository)
	if err != nil {
		return forge.Item{}, err
	}
	title, text := post.Texts(repository)
	issue, _, err := f.client.Issues.Create(ctx, at.owner, at.name, gh.CreateIssueRequest{
		Title: title, Body: &text, Assignees: post.Assignees, Labels: post.Labels,
	})
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

// Hooks returns the webhooks of a repository, with their last deliveries.
func (f *Forge) Hooks(ctx context.Context, repository string) ([]forge.Hook, error) {
	at, err := placeOf(repository)
	if err != nil {
		return nil, err
	}
	var hooks []forge.Hook
	for found, err := range f.client.Repositories.ListHooksIter(ctx, at.owner, at.name, &gh.ListOptions{PerPage: perPage}) {
		if err != nil {
			return nil, f.hooksRefused(ctx, repository, err, "list the webhooks of %s", repository)
		}
		if found.GetName() != "web" {
			continue
		}
		hook := hookOf(found)
		if len(hooks) < forge.MaxLastDeliveries && delivered(found) {
			if err := f.lastDelivery(ctx, at, found.GetID(), &hook); err != nil {
				return nil, callError(err, "read the deliveries of a webhook of %s", repository)
			}
		}
		if hooks = append(hooks, hook); len(hooks) > forge.MaxHooks {
			return nil, task.Errorf(task.TooLarge, "%s has more than %d webhooks", repository, forge.MaxHooks)
		}
	}
	return hooks, nil
}

// delivered reports whether GitHub knows of a delivery of the webhook.
func delivered(hook *gh.Hook) bool {
	return hook.LastResponse["code"] != nil || hook.LastResponse["status"] != "unused"
}

// lastDelivery fills in the last delivery. Of one that did not reach the server GitHub says why, and
// gives a status of its own invention; of an answer that it does not like, which status that was.
func (f *Forge) lastDelivery(ctx context.Context, at place, id int64, hook *forge.Hook) error {
	found, _, err := f.client.Repositories.ListHookDeliveries(ctx, at.owner, at.name, id, &gh.ListCursorOptions{PerPage: 1})
	if status(err) == http.StatusNotFound {
		return nil // a server that is too old
	}
	if err != nil || len(found) == 0 {
		return err
	}
	hook.LastAt = timeOf(found[0].GetDeliveredAt())
	if said := found[0].GetStatus(); said == "OK" || strings.HasPrefix(said, "Invalid HTTP Response") {
		hook.LastStatus = found[0].GetStatusCode()
	}
	return nil
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
	if err == nil && made.GetID() == 0 {
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
		if _, _, listErr := f.client.Repositories.ListHooks(ctx, at.owner, at.name, &gh.ListOptions{PerPage: 1}); listErr == nil {
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
	if err == nil && edited.GetID() != hook {
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
