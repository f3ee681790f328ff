package gitea

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	sdk "code.gitea.io/sdk/gitea"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

var _ forge.Setup = (*Forge)(nil)

// listed reads a listing page by page until it is complete. The end is where nothing new comes,
// as in [pages]; one with more than the limit is TooLarge.
func listed[T any](ctx context.Context, f *Forge, path, what string, limit int, id func(T) int64) ([]T, error) {
	var all []T
	seen := map[int64]bool{}
	for page := 1; ; page++ {
		var got []T
		answer, err := f.request(ctx, http.MethodGet, fmt.Sprintf("%s?page=%d&limit=%d", path, page, perPage), nil, &got)
		if err != nil {
			return nil, callError(what, answer, err)
		}
		before := len(all)
		for _, one := range got {
			if !seen[id(one)] {
				seen[id(one)] = true
				all = append(all, one)
			}
		}
		total, counted := strconv.Atoi(answer.Header.Get("X-Total-Count"))
		switch {
		case len(all) > limit:
			return nil, task.Errorf(task.TooLarge, "cannot %s: there are more than %d", what, limit)
		case len(all) == before, counted == nil && len(all) >= total:
			return all, nil
		}
	}
}

// repositoryPath is the path of a repository in the API.
func repositoryPath(repository string) (string, error) {
	owner, name, err := split(repository)
	return address{owner: owner, name: name}.repository(), err
}

// label is a label as Gitea has it.
type label struct {
	ID   int64  `json:"id"`
	Name string `json:"name"`
}

func labelID(one label) int64 { return one.ID }

// labels returns the labels of a repository, and apart from them those of its organisation as far
// as we may read them: for that the token needs the scope read:organization.
func (f *Forge) labels(ctx context.Context, repository string) (own, ofOrganisation []label, err error) {
	path, err := repositoryPath(repository)
	if err != nil {
		return nil, nil, err
	}
	what := "list the labels of " + repository
	own, err = listed(ctx, f, path+"/labels", what, forge.MaxLabels, labelID)
	if err != nil {
		return nil, nil, err
	}
	owner, _, _ := split(repository)
	ofOrganisation, err = listed(ctx, f, "/orgs/"+url.PathEscape(owner)+"/labels", what, forge.MaxLabels, labelID)
	if code := task.CodeOf(err); code == task.NotFound || code == task.Forbidden { // it is a person's, or we may not
		return own, nil, nil
	}
	return own, ofOrganisation, err
}

// Labels returns the names of the labels of a repository and of its organisation.
func (f *Forge) Labels(ctx context.Context, repository string) ([]string, error) {
	own, ofOrganisation, err := f.labels(ctx, repository)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, one := range slices.Concat(own, ofOrganisation) {
		names = append(names, one.Name)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// CreateLabel creates a label. Gitea would make a second one of the same name, so we look first.
func (f *Forge) CreateLabel(ctx context.Context, repository string, wanted forge.Label) (bool, error) {
	wanted, err := wanted.Checked()
	if err != nil {
		return false, err
	}
	names, err := f.Labels(ctx, repository)
	if err != nil || slices.Contains(names, wanted.Name) {
		return false, err
	}
	_, err = f.newLabel(ctx, repository, wanted)
	return err == nil, err
}

// newLabel creates a label, without looking whether it is there, and returns its id.
func (f *Forge) newLabel(ctx context.Context, repository string, wanted forge.Label) (int64, error) {
	owner, name, err := split(repository)
	if err != nil {
		return 0, err
	}
	made, answer, err := f.client(ctx).CreateLabel(owner, name, sdk.CreateLabelOption{
		Name: wanted.Name, Color: "#" + wanted.Color, Description: wanted.Description,
	})
	if err == nil && made.ID < 1 {
		err = errors.New("the answer lacks the label")
	}
	if err != nil {
		return 0, callError("create the label "+strconv.Quote(wanted.Name)+" in "+repository, answer, err)
	}
	return made.ID, nil
}

// DeleteLabel deletes the labels of that name, of which Gitea may have several.
func (f *Forge) DeleteLabel(ctx context.Context, repository, name string) error {
	path, err := repositoryPath(repository)
	if err != nil {
		return err
	}
	own, err := listed(ctx, f, path+"/labels", "list the labels of "+repository, forge.MaxLabels, labelID)
	if err != nil {
		return err
	}
	for _, one := range own {
		if one.Name != name {
			continue
		}
		answer, err := f.request(ctx, http.MethodDelete, fmt.Sprintf("%s/labels/%d", path, one.ID), nil, nil)
		if err := callError("delete the label "+strconv.Quote(name)+" of "+repository, answer, err); err != nil && task.CodeOf(err) != task.NotFound {
			return err
		}
	}
	return nil
}

// CreateIssue opens an issue. Gitea wants the ids of labels.
func (f *Forge) CreateIssue(ctx context.Context, repository string, post forge.IssuePost) (forge.Item, error) {
	owner, name, err := split(repository)
	if err != nil {
		return forge.Item{}, err
	}
	labels, err := f.labelIDs(ctx, repository, post.Labels)
	if err != nil {
		return forge.Item{}, err
	}
	title, text := post.Texts(repository)
	issue, answer, err := f.client(ctx).CreateIssue(owner, name, sdk.CreateIssueOption{
		Title: title, Body: text, Assignees: post.Assignees, Labels: labels,
	})
	if err == nil && issue.Index < 1 {
		err = errors.New("the answer lacks the issue")
	}
	if err != nil {
		return forge.Item{}, callError("open an issue in "+repository, answer, err)
	}
	return itemOf(repository, issue), nil
}

// labelIDs returns the ids of labels, and creates those that are missing.
func (f *Forge) labelIDs(ctx context.Context, repository string, names []string) ([]int64, error) {
	if len(names) == 0 {
		return nil, nil
	}
	own, ofOrganisation, err := f.labels(ctx, repository)
	if err != nil {
		return nil, err
	}
	ids := make([]int64, 0, len(names))
	known := slices.Concat(own, ofOrganisation)
	for _, name := range names {
		if at := slices.IndexFunc(known, func(l label) bool { return l.Name == name }); at >= 0 {
			ids = append(ids, known[at].ID)
			continue
		}
		wanted, err := forge.Label{Name: name}.Checked()
		if err != nil {
			return nil, err
		}
		id, err := f.newLabel(ctx, repository, wanted)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// pushes is the event that tells of pushes.
const pushes = "push"

// hookEvents are the events that a webhook can be enabled for. Gitea's test of a webhook is a
// push: one that is not enabled for pushes gets no test.
var hookEvents = append(WebhookEvents.Names(), pushes)

// asked is how an event is asked for. The names of two of them would stand for all events of
// issues and of pull requests.
func asked(event string) string {
	switch event {
	case "issues", "pull_request":
		return event + "_only"
	}
	return event
}

// hook is a webhook as Gitea has it. The secret is never told.
type hook struct {
	ID     int64             `json:"id"`
	Type   string            `json:"type"`
	Config map[string]string `json:"config"`
	Events []string          `json:"events"`
	Active bool              `json:"active"`
}

// ours reports whether the webhook sends what Gitea sends to programs. Others send something
// else to a chat, and their addresses are secrets.
func (h hook) ours() bool { return h.Type == "gitea" || h.Type == "forgejo" || h.Type == "gogs" }

// port is the webhook as the port has it. Gitea's interface tells nothing of deliveries.
func (h hook) port() forge.Hook {
	made := forge.Hook{ID: strconv.FormatInt(h.ID, 10), URL: h.Config["url"], Active: h.Active}
	for _, event := range hookEvents {
		// One that is enabled for everything has the kinds of reviews in place of reviews.
		if slices.Contains(h.Events, event) || event == "pull_request_review" && slices.Contains(h.Events, "pull_request_review_approved") {
			made.Events = append(made.Events, event)
		}
	}
	return made
}

// Hooks returns the webhooks of a repository.
func (f *Forge) Hooks(ctx context.Context, repository string) ([]forge.Hook, error) {
	path, err := repositoryPath(repository)
	if err != nil {
		return nil, err
	}
	found, err := listed(ctx, f, path+"/hooks", "list the webhooks of "+repository, forge.MaxHooks, func(h hook) int64 { return h.ID })
	if err != nil {
		return nil, err
	}
	var hooks []forge.Hook
	for _, one := range found {
		if one.ours() {
			hooks = append(hooks, one.port())
		}
	}
	return hooks, nil
}

// CreateHook creates a webhook. Whether the certificate of a server is checked is one setting for
// all of Gitea.
func (f *Forge) CreateHook(ctx context.Context, repository string, post forge.HookPost) (forge.Hook, error) {
	path, err := repositoryPath(repository)
	if err != nil {
		return forge.Hook{}, err
	}
	events, err := post.Checked(hookEvents)
	if err != nil {
		return forge.Hook{}, err
	}
	if post.Insecure {
		return forge.Hook{}, task.Errorf(task.Unsupported, "Gitea cannot leave a certificate unchecked for one webhook").
			WithHint("give Gitea the certificate of the authority, or set SKIP_TLS_VERIFY = true in the section [webhook] of its configuration")
	}
	for i, event := range events {
		events[i] = asked(event)
	}
	var made hook
	answer, err := f.request(ctx, http.MethodPost, path+"/hooks", map[string]any{
		"type": "gitea", "active": true, "events": events,
		"config": map[string]string{"url": post.URL, "content_type": "json", "secret": post.Secret},
	}, &made)
	if err == nil && made.ID == 0 {
		err = errors.New("the answer lacks the webhook")
	}
	if err != nil {
		return forge.Hook{}, callError("create a webhook of "+repository, answer, err)
	}
	return made.port(), nil
}

// hookPath is the path of a webhook. What is not a number is the id of none.
func hookPath(repository, id string) (string, error) {
	path, err := repositoryPath(repository)
	if err != nil {
		return "", err
	}
	number, err := strconv.ParseInt(id, 10, 64)
	if err != nil || number < 1 {
		return "", task.Errorf(task.NotFound, "there is no webhook %q", id)
	}
	return fmt.Sprintf("%s/hooks/%d", path, number), nil
}

// hook reads a webhook.
func (f *Forge) hook(ctx context.Context, repository, id string) (forge.Hook, error) {
	path, err := hookPath(repository, id)
	if err != nil {
		return forge.Hook{}, err
	}
	var found hook
	answer, err := f.request(ctx, http.MethodGet, path, nil, &found)
	if err == nil && !found.ours() {
		return forge.Hook{}, task.Errorf(task.NotFound, "the webhook %s of %s is for another program", id, repository)
	}
	return found.port(), callError("read the webhook "+id+" of "+repository, answer, err)
}

// EditHook puts another webhook in the place of one: Gitea changes everything of a webhook but its
// secret. The new one is made first, so that there is always one; it is returned also if the old one
// cannot be deleted.
func (f *Forge) EditHook(ctx context.Context, repository, id string, post forge.HookPost) (forge.Hook, error) {
	if _, err := f.hook(ctx, repository, id); err != nil {
		return forge.Hook{}, err
	}
	made, err := f.CreateHook(ctx, repository, post)
	if err != nil {
		return forge.Hook{}, err
	}
	return made, f.DeleteHook(ctx, repository, id)
}

// DeleteHook deletes a webhook.
func (f *Forge) DeleteHook(ctx context.Context, repository, id string) error {
	path, err := hookPath(repository, id)
	if err == nil {
		var answer *sdk.Response
		answer, err = f.request(ctx, http.MethodDelete, path, nil, nil)
		err = callError("delete the webhook "+id+" of "+repository, answer, err)
	}
	if task.CodeOf(err) == task.NotFound {
		_, err = f.Repository(ctx, repository) // it is the webhook that is missing, or all of it
	}
	return err
}

// TestHook lets Gitea deliver the last commit as if it had just been pushed.
func (f *Forge) TestHook(ctx context.Context, repository, id string) error {
	found, err := f.hook(ctx, repository, id)
	if err != nil {
		return err
	}
	if !slices.Contains(found.Events, pushes) {
		return task.Errorf(task.Invalid, "Gitea tests a webhook with a push, and the webhook %s of %s is not enabled for pushes", id, repository).
			WithHint("enable the event Push")
	}
	path, err := hookPath(repository, id)
	if err != nil {
		return err
	}
	answer, err := f.request(ctx, http.MethodPost, path+"/tests", nil, nil)
	err = callError("test the webhook "+id+" of "+repository, answer, err)
	if task.CodeOf(err) != task.NotFound {
		return err
	}
	if now, findErr := f.Repository(ctx, repository); findErr == nil && now.DefaultBranch == "" {
		return task.Errorf(task.Conflict, "Gitea tests a webhook with the last commit, and %s has none", repository)
	}
	return err
}
