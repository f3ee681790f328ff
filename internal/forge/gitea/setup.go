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

// requester is [Forge.request] or [Forge.hookRequest].
type requester func(ctx context.Context, method, path string, in, out any) (*sdk.Response, error)

// listed is [pages] for what the SDK does not offer. A listing with more than the limit is TooLarge.
func listed[T any](ctx context.Context, ask requester, path, what string, limit int, id func(T) int64) ([]T, error) {
	all, answer, err := pagesUpTo(limit, id, func(page sdk.ListOptions) ([]T, *sdk.Response, error) {
		var got []T
		answer, err := ask(ctx, http.MethodGet, fmt.Sprintf("%s?page=%d&limit=%d", path, page.Page, page.PageSize), nil, &got)
		return got, answer, err
	})
	if err != nil {
		return nil, callError(what, answer, err)
	}
	if len(all) > limit {
		return nil, task.Errorf(task.TooLarge, "cannot %s: there are more than %d", what, limit)
	}
	return all, nil
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
	own, err = listed(ctx, f.request, path+"/labels", what, forge.MaxLabels, labelID)
	if err != nil {
		return nil, nil, err
	}
	owner, _, _ := split(repository)
	ofOrganisation, err = listed(ctx, f.request, "/orgs/"+url.PathEscape(owner)+"/labels", what, forge.MaxLabels, labelID)
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
	own, err := listed(ctx, f.request, path+"/labels", "list the labels of "+repository, forge.MaxLabels, labelID)
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

// CreateIssue opens an issue. Gitea wants the ids of labels, and refuses an issue with an assignee who
// cannot be assigned.
func (f *Forge) CreateIssue(ctx context.Context, repository string, post forge.IssuePost) (forge.Item, error) {
	labels, err := f.labelIDs(ctx, repository, post.Labels)
	if err != nil {
		return forge.Item{}, err
	}
	title, text := post.Texts(repository)
	option := sdk.CreateIssueOption{Title: title, Body: text, Assignees: post.Assignees, Labels: labels}
	item, err := f.openIssue(ctx, repository, option)
	if task.CodeOf(err) == task.Invalid && len(option.Assignees) > 0 {
		option.Assignees = nil
		item, err = f.openIssue(ctx, repository, option)
	}
	return item, err
}

func (f *Forge) openIssue(ctx context.Context, repository string, option sdk.CreateIssueOption) (forge.Item, error) {
	owner, name, err := split(repository)
	if err != nil {
		return forge.Item{}, err
	}
	issue, answer, err := f.client(ctx).CreateIssue(owner, name, option)
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
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			continue // once is enough
		}
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
	kept

	ID     int64             `json:"id,omitempty"`
	Type   string            `json:"type"`
	Config map[string]string `json:"config"`
	Events []string          `json:"events"`
	Active bool              `json:"active"`
}

// kept is what people may have set on a webhook that we do not know of.
type kept struct {
	BranchFilter string `json:"branch_filter,omitempty"`
	// AuthorizationHeader is sent with every delivery. It is a secret.
	AuthorizationHeader string `json:"authorization_header,omitempty"`
}

// ours reports whether the webhook sends what Gitea sends to programs. Others send something
// else to a chat, and their addresses are secrets.
func (h hook) ours() bool { return h.Type == "gitea" || h.Type == "forgejo" || h.Type == "gogs" }

// port is the webhook as the port has it.
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
	found, err := listed(ctx, f.hookRequest, path+"/hooks", "list the webhooks of "+repository, forge.MaxHooks, func(h hook) int64 { return h.ID })
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
	return f.createHook(ctx, repository, post, kept{})
}

func (f *Forge) createHook(ctx context.Context, repository string, post forge.HookPost, like kept) (forge.Hook, error) {
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
	answer, err := f.hookRequest(ctx, http.MethodPost, path+"/hooks", hook{
		Type: "gitea", Active: true, Events: events, kept: like,
		Config: map[string]string{"url": post.URL, "content_type": "json", "secret": post.Secret},
	}, &made)
	if err = post.Hide(err, like.AuthorizationHeader); err == nil && made.ID == 0 {
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
func (f *Forge) hook(ctx context.Context, repository, id string) (hook, error) {
	path, err := hookPath(repository, id)
	if err != nil {
		return hook{}, err
	}
	var found hook
	answer, err := f.hookRequest(ctx, http.MethodGet, path, nil, &found)
	if err == nil && !found.ours() {
		return hook{}, task.Errorf(task.NotFound, "the webhook %s of %s is for another program", id, repository)
	}
	return found, callError("read the webhook "+id+" of "+repository, answer, err)
}

// EditHook puts another webhook in the place of one: Gitea changes everything of a webhook but its
// secret. The new one is made first, so that there is always one; it is returned also if the old one
// cannot be deleted.
func (f *Forge) EditHook(ctx context.Context, repository, id string, post forge.HookPost) (forge.Hook, error) {
	old, err := f.hook(ctx, repository, id)
	if err != nil {
		return forge.Hook{}, err
	}
	made, err := f.createHook(ctx, repository, post, old.kept)
	if err != nil {
		return forge.Hook{}, err
	}
	if err := f.deleteHook(ctx, repository, id); err != nil && task.CodeOf(err) != task.NotFound {
		return made, err
	}
	return made, nil
}

// DeleteHook deletes a webhook. One of a chat is none.
func (f *Forge) DeleteHook(ctx context.Context, repository, id string) error {
	_, err := f.hook(ctx, repository, id)
	if err == nil {
		err = f.deleteHook(ctx, repository, id)
	}
	if task.CodeOf(err) == task.NotFound {
		_, err = f.Repository(ctx, repository) // it is the webhook that is missing, or all of it
	}
	return err
}

func (f *Forge) deleteHook(ctx context.Context, repository, id string) error {
	path, err := hookPath(repository, id)
	if err != nil {
		return err
	}
	answer, err := f.hookRequest(ctx, http.MethodDelete, path, nil, nil)
	return callError("delete the webhook "+id+" of "+repository, answer, err)
}

// TestHook lets Gitea deliver the last commit as if it had just been pushed.
func (f *Forge) TestHook(ctx context.Context, repository, id string) error {
	found, err := f.hook(ctx, repository, id)
	if err != nil {
		return err
	}
	if !slices.Contains(found.port().Events, pushes) {
		return task.Errorf(task.Invalid, "Gitea tests a webhook with a push, and the webhook %s of %s is not enabled for pushes", id, repository).
			WithHint("enable the event Push")
	}
	path, err := hookPath(repository, id)
	if err != nil {
		return err
	}
	answer, err := f.hookRequest(ctx, http.MethodPost, path+"/tests", nil, nil)
	err = callError("test the webhook "+id+" of "+repository, answer, err)
	if task.CodeOf(err) != task.NotFound {
		return err
	}
	if now, findErr := f.Repository(ctx, repository); findErr == nil && now.DefaultBranch == "" {
		return task.Errorf(task.Conflict, "Gitea tests a webhook with the last commit, and %s has none", repository)
	}
	return err
}

// LastDelivery tells nothing: Gitea's interface does not.
func (f *Forge) LastDelivery(_ context.Context, repository, _ string) (forge.HookDelivery, error) {
	_, err := repositoryPath(repository)
	return forge.HookDelivery{}, err
}
