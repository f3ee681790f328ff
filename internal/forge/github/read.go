package github

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	gh "github.com/google/go-github/v92/github"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

// Self returns the login of the account that we write as. GitHub is asked once.
func (f *Forge) Self(ctx context.Context) (string, error) {
	f.selfLock.Lock()
	known := f.self
	f.selfLock.Unlock()
	if known != "" {
		return known, nil
	}
	name, err := f.askSelf(ctx)
	if err == nil && name == "" {
		err = errNonsense
	}
	if err != nil {
		return "", callError(err, "find out who we are on GitHub")
	}
	f.selfLock.Lock()
	defer f.selfLock.Unlock()
	f.self = name
	return name, nil
}

func (f *Forge) askSelf(ctx context.Context) (string, error) {
	if f.app == nil {
		user, _, err := f.client.Users.Get(ctx, "")
		return user.GetLogin(), err
	}
	app, _, err := f.app.client.Apps.Get(ctx, "")
	if err != nil || app.GetSlug() == "" {
		return "", err
	}
	return app.GetSlug() + "[bot]", nil
}

// Repositories returns the repositories that the token or installation reaches.
func (f *Forge) Repositories(ctx context.Context) ([]forge.Repository, error) {
	options := gh.ListOptions{PerPage: perPage}
	listing := f.client.Apps.ListReposIter(ctx, &options)
	if f.app == nil {
		listing = f.client.Repositories.ListByAuthenticatedUserIter(ctx, &gh.RepositoryListByAuthenticatedUserOptions{
			Sort: "created", Direction: "asc", ListOptions: options,
		})
	}
	var repositories []forge.Repository
	for found, err := range listing {
		if err != nil {
			return nil, callError(err, "list the repositories on GitHub")
		}
		if found.GetArchived() {
			continue
		}
		repository, err := f.repository(ctx, found)
		if err != nil {
			return nil, err
		}
		repositories = append(repositories, repository)
	}
	return repositories, nil
}

// Repository returns one repository.
func (f *Forge) Repository(ctx context.Context, name string) (forge.Repository, error) {
	at, err := placeOf(name)
	if err != nil {
		return forge.Repository{}, err
	}
	found, _, err := f.client.Repositories.Get(ctx, at.owner, at.name)
	if err == nil && !sameRepository(found.GetFullName(), name) {
		err = errNonsense
	}
	if err != nil {
		return forge.Repository{}, callError(err, "read the repository %s", name)
	}
	return f.repository(ctx, found)
}

func (f *Forge) repository(ctx context.Context, found *gh.Repository) (forge.Repository, error) {
	repository := forge.Repository{
		Name:          found.GetFullName(),
		DefaultBranch: found.GetDefaultBranch(),
		URL:           found.GetHTMLURL(),
		Private:       found.GetPrivate(),
		Archived:      found.GetArchived(),
		Lacks:         f.lacks(found),
	}
	if found.GetSize() > 0 || repository.DefaultBranch == "" {
		return repository, nil
	}
	// GitHub names a default branch before there is one.
	has, err := f.hasBranch(ctx, repository.Name, repository.DefaultBranch)
	if err == nil && !has {
		repository.DefaultBranch = ""
	}
	return repository, err
}

// Access says what a login may do in a repository.
func (f *Forge) Access(ctx context.Context, repository, name string) (forge.Access, error) {
	at, err := placeOf(repository)
	if err != nil {
		return forge.NoAccess, err
	}
	if !login.MatchString(name) || name == forge.Ghost {
		return forge.NoAccess, nil // nobody can be called that
	}
	level, _, err := f.client.Repositories.GetPermissionLevel(ctx, at.owner, at.name, url.PathEscape(name))
	if status(err) == http.StatusNotFound {
		// The login or the repository is not there.
		_, err := f.Repository(ctx, repository)
		return forge.NoAccess, err
	}
	if err != nil {
		return forge.NoAccess, callError(err, "read what %s may do in %s", name, repository)
	}
	// This field is rounded by GitHub: "maintain" is write and "triage" is read.
	switch level.GetPermission() {
	case "admin":
		return forge.AdminAccess, nil
	case "write":
		return forge.WriteAccess, nil
	case "read":
		return forge.ReadAccess, nil
	default:
		return forge.NoAccess, nil
	}
}

// List returns the open items that pass the query.
func (f *Forge) List(ctx context.Context, query forge.Query) ([]forge.Item, error) {
	at, err := placeOf(query.Repository)
	if err != nil {
		return nil, err
	}
	options := gh.IssueListByRepoOptions{
		State: "open", Sort: "created", Direction: "asc",
		Assignee: query.Assignee, Since: query.UpdatedSince,
		ListOptions: gh.ListOptions{PerPage: perPage},
	}
	for _, label := range query.Labels {
		if !strings.Contains(label, ",") { // the request is a list with commas
			options.Labels = append(options.Labels, label)
		}
	}
	var items []forge.Item
	for issue, err := range f.client.Issues.ListByRepoIter(ctx, at.owner, at.name, &options) {
		if status(err) == http.StatusUnprocessableEntity && query.Assignee != "" {
			// GitHub refuses to look for someone who does not exist.
			if exists, findErr := f.exists(ctx, query.Assignee); findErr != nil || !exists {
				return nil, findErr
			}
		}
		if err != nil {
			return nil, callError(err, "list the items of %s", query.Repository)
		}
		if item := issueItem(query.Repository, issue); passes(item, query) {
			items = append(items, item)
		}
	}
	slices.SortStableFunc(items, func(a, b forge.Item) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.Key.Number, b.Key.Number))
	})
	return items, nil
}

// exists reports whether there is such an account.
func (f *Forge) exists(ctx context.Context, name string) (bool, error) {
	if !login.MatchString(name) {
		return false, nil
	}
	_, _, err := f.client.Users.Get(ctx, url.PathEscape(name))
	if status(err) == http.StatusNotFound {
		return false, nil
	}
	if err != nil {
		return false, callError(err, "look for the account %s on GitHub", name)
	}
	return true, nil
}

// passes checks what could not be asked for.
func passes(item forge.Item, query forge.Query) bool {
	return (query.Kind == "" || query.Kind == item.Key.Kind) && hasLabels(item, query.Labels)
}

// hasLabels compares as GitHub does, without regard to case.
func hasLabels(item forge.Item, wanted []string) bool {
	return !slices.ContainsFunc(wanted, func(label string) bool {
		return !slices.ContainsFunc(item.Labels, func(has string) bool { return forge.SameLabel(task.GitHub, has, label) })
	})
}

// Item returns one item.
func (f *Forge) Item(ctx context.Context, key task.Key) (forge.Item, error) {
	at, err := placeOfKey(key)
	if err != nil {
		return forge.Item{}, err
	}
	if key.Kind == task.Pull {
		return f.pull(ctx, key, at)
	}
	issue, _, err := f.client.Issues.Get(ctx, at.owner, at.name, at.number)
	if err == nil && issue.GetNumber() != at.number {
		err = errNonsense
	}
	if err != nil {
		return forge.Item{}, callError(err, "read %s", key)
	}
	if issue.IsPullRequest() {
		return forge.Item{}, task.Errorf(task.NotFound, "%s is a pull request, not an issue", key)
	}
	return issueItem(key.Repository, issue), nil
}

func (f *Forge) pull(ctx context.Context, key task.Key, at place) (forge.Item, error) {
	pull, _, err := f.client.PullRequests.Get(ctx, at.owner, at.name, at.number)
	if err == nil && pull.GetNumber() != at.number {
		err = errNonsense
	}
	if err != nil {
		return forge.Item{}, callError(err, "read %s", key)
	}
	return pullItem(key.Repository, pull), nil
}

// Comments returns the comments in the item's conversation.
func (f *Forge) Comments(ctx context.Context, key task.Key) ([]task.Comment, error) {
	at, err := placeOfKey(key)
	if err != nil {
		return nil, err
	}
	options := gh.IssueListCommentsOptions{ListOptions: gh.ListOptions{PerPage: perPage}}
	var comments []task.Comment
	for comment, err := range f.client.Issues.ListCommentsIter(ctx, at.owner, at.name, at.number, &options) {
		if err != nil {
			return nil, callError(err, "read the comments on %s", key)
		}
		if comment.GetID() == 0 {
			return nil, callError(errNonsense, "read the comments on %s", key)
		}
		comments = append(comments, issueComment(comment))
	}
	return comments, nil
}

// LabelEvents returns when labels were put on the item and taken off.
func (f *Forge) LabelEvents(ctx context.Context, key task.Key) ([]forge.LabelEvent, error) {
	timeline, err := f.timeline(ctx, key)
	if err != nil {
		return nil, err
	}
	var events []forge.LabelEvent
	for _, event := range timeline {
		if event.GetEvent() != "labeled" && event.GetEvent() != "unlabeled" {
			continue
		}
		events = append(events, forge.LabelEvent{
			Label: event.GetLabel().GetName(),
			On:    event.GetEvent() == "labeled",
			Actor: loginOf(event.Actor),
			At:    timeOf(event.GetCreatedAt()),
		})
	}
	return events, nil
}

// LinkedPulls returns the pull requests that are about the issue.
func (f *Forge) LinkedPulls(ctx context.Context, key task.Key) ([]forge.LinkedPull, error) {
	if key.Kind == task.Pull {
		_, err := placeOfKey(key)
		return nil, err
	}
	timeline, err := f.timeline(ctx, key)
	if err != nil {
		return nil, err
	}
	var links links
	connected := false
	for _, event := range timeline {
		// Links made by hand are in the timeline without saying to what.
		connected = connected || event.GetEvent() == "connected"
		source := event.GetSource().GetIssue()
		if event.GetEvent() != "cross-referenced" || !source.IsPullRequest() {
			continue
		}
		repository := cmp.Or(repositoryOf(source.GetRepositoryURL()), source.GetRepository().GetFullName())
		item := issueItem(repository, source)
		links.add(forge.LinkedPull{Key: item.Key, State: item.State, URL: item.URL})
	}
	if !connected {
		return links, nil
	}
	byHand, err := f.connectedPulls(ctx, key)
	if err != nil {
		return nil, err
	}
	for _, link := range byHand {
		links.add(link)
	}
	return links, nil
}

// links has each pull request once.
type links []forge.LinkedPull

func (l *links) add(link forge.LinkedPull) {
	known := func(other forge.LinkedPull) bool { return other.Key == link.Key }
	if link.Key.Validate() == nil && !slices.ContainsFunc(*l, known) {
		*l = append(*l, link)
	}
}

func (f *Forge) timeline(ctx context.Context, key task.Key) ([]*gh.Timeline, error) {
	at, err := placeOfKey(key)
	if err != nil {
		return nil, err
	}
	var timeline []*gh.Timeline
	options := gh.ListOptions{PerPage: perPage}
	for event, err := range f.client.Issues.ListIssueTimelineIter(ctx, at.owner, at.name, at.number, &options) {
		if err != nil {
			return nil, callError(err, "read the history of %s", key)
		}
		timeline = append(timeline, event)
	}
	return timeline, nil
}
