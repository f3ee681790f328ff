package gitea

import (
	"context"
	"net/http"
	"slices"
	"strings"

	sdk "code.gitea.io/sdk/gitea"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

// Self returns the login behind the token.
func (f *Forge) Self(ctx context.Context) (string, error) {
	f.selfLock.Lock()
	defer f.selfLock.Unlock()
	if f.self != "" {
		return f.self, nil
	}
	user, answer, err := f.client(ctx).GetMyUserInfo()
	if err != nil {
		return "", callError("ask Gitea who we are", answer, err)
	}
	f.self = user.UserName
	return f.self, nil
}

// Repositories returns the repositories that the token reaches.
func (f *Forge) Repositories(ctx context.Context) ([]forge.Repository, error) {
	found, answer, err := pages(func(r *sdk.Repository) int64 { return r.ID },
		func(page sdk.ListOptions) ([]*sdk.Repository, *sdk.Response, error) {
			return f.client(ctx).ListMyRepos(sdk.ListReposOptions{ListOptions: page})
		})
	if err != nil {
		return nil, callError("list the repositories on Gitea", answer, err)
	}
	slices.SortFunc(found, func(a, b *sdk.Repository) int { return int(a.ID - b.ID) })
	var all []forge.Repository
	for _, one := range found {
		if !one.Archived {
			all = append(all, repositoryOf(one))
		}
	}
	return all, nil
}

// Repository returns one repository.
func (f *Forge) Repository(ctx context.Context, name string) (forge.Repository, error) {
	owner, short, err := split(name)
	if err != nil {
		return forge.Repository{}, err
	}
	found, answer, err := f.client(ctx).GetRepo(owner, short)
	if err != nil {
		return forge.Repository{}, callError("read the repository "+name, answer, err)
	}
	return repositoryOf(found), nil
}

// accessByTeams adds what somebody may do as a member of teams of an organisation, which
// Gitea leaves out when it is asked for a permission.
func (f *Forge) accessByTeams(ctx context.Context, repository, login string, known forge.Access) (forge.Access, error) {
	owner, name, err := split(repository)
	if err != nil {
		return forge.NoAccess, err
	}
	if _, ofPerson, err := f.teams(ctx, repository); err != nil || ofPerson {
		return known, err
	}
	assignable, answer, err := f.client(ctx).GetAssignees(owner, name)
	if err != nil {
		return forge.NoAccess, callError("ask who may write in "+repository, answer, err)
	}
	if !slices.ContainsFunc(assignable, func(u *sdk.User) bool { return task.SameLogin(u.UserName, login) }) {
		return known, nil
	}
	member, err := f.accessOfAssignable(ctx, repository, login)
	return max(known, member), err
}

// accessOfAssignable is what somebody may do at least who can be assigned. In a repository
// of a person they can write. In one of an organisation so can members of teams that may
// only read pull requests, or only write issues. If there is such a team, they can write
// if we see them in one that can push: Gitea shows its members to those who are in it and
// to owners. Else all that is certain is that they can read.
func (f *Forge) accessOfAssignable(ctx context.Context, repository, login string) (forge.Access, error) {
	teams, ofPerson, err := f.teams(ctx, repository)
	if err != nil {
		return forge.NoAccess, err
	}
	if ofPerson || !slices.ContainsFunc(teams, func(t *sdk.Team) bool { return !writesCode(t) }) {
		return forge.WriteAccess, nil
	}
	for _, team := range teams {
		if !writesCode(team) {
			continue
		}
		_, answer, err := f.client(ctx).GetTeamMember(team.ID, login)
		if err == nil {
			return forge.WriteAccess, nil
		}
		err = callError("ask who is in a team of "+repository, answer, err)
		if code := task.CodeOf(err); code != task.NotFound && code != task.Forbidden {
			return forge.NoAccess, err
		}
	}
	return forge.ReadAccess, nil
}

// teams returns the teams that a repository is given to, or that it is a person's.
func (f *Forge) teams(ctx context.Context, repository string) (teams []*sdk.Team, ofPerson bool, err error) {
	owner, name, err := split(repository)
	if err != nil {
		return nil, false, err
	}
	teams, answer, err := f.client(ctx).GetRepoTeams(owner, name)
	if answer != nil && answer.Response != nil && answer.StatusCode == http.StatusMethodNotAllowed {
		return nil, true, nil
	}
	if err != nil {
		return nil, false, callError("ask for the teams of "+repository, answer, err)
	}
	return teams, false, nil
}

// writesCode reports whether everyone in a team can push.
func writesCode(team *sdk.Team) bool {
	mode := team.Permission
	if unit, apart := team.UnitsMap[string(sdk.RepoUnitCode)]; apart && mode != sdk.AccessModeAdmin && mode != sdk.AccessModeOwner {
		mode = sdk.AccessMode(unit)
	}
	return accessLevels[mode].CanWrite()
}

func repositoryOf(r *sdk.Repository) forge.Repository {
	made := forge.Repository{Name: r.FullName, DefaultBranch: r.DefaultBranch, URL: r.HTMLURL, Private: r.Private, Archived: r.Archived}
	if r.Empty {
		made.DefaultBranch = ""
	}
	switch may := r.Permissions; {
	case r.Archived:
		made.Lacks = forge.AllRights
	case may != nil && !may.Push && !may.Admin: // who reads may comment
		made.Lacks = forge.Rights{Push: true, Label: true}
	}
	return made
}

var accessLevels = map[sdk.AccessMode]forge.Access{
	sdk.AccessModeRead: forge.ReadAccess, sdk.AccessModeWrite: forge.WriteAccess,
	sdk.AccessModeAdmin: forge.AdminAccess, sdk.AccessModeOwner: forge.AdminAccess,
}

// Access says what a login may do in a repository.
func (f *Forge) Access(ctx context.Context, repository, login string) (forge.Access, error) {
	owner, name, err := split(repository)
	if err != nil {
		return forge.NoAccess, err
	}
	if login == "" || task.SameLogin(login, forge.Ghost) {
		return forge.NoAccess, nil
	}
	permission, answer, err := f.client(ctx).CollaboratorPermission(owner, name, login)
	if err == nil {
		known := accessLevels[permission.Permission]
		if known.CanWrite() {
			return known, nil
		}
		return f.accessByTeams(ctx, repository, login, known)
	}
	err = callError("ask what "+login+" may do in "+repository, answer, err)
	switch task.CodeOf(err) {
	case task.NotFound:
		// It does not say whether the account or the repository is missing.
		_, err = f.Repository(ctx, repository)
		return forge.NoAccess, err
	case task.Forbidden:
		return f.accessAsWriter(ctx, repository, login)
	default:
		return forge.NoAccess, err
	}
}

// accessAsWriter says what a login may do, as far as someone can see who is not
// an administrator of the repository.
func (f *Forge) accessAsWriter(ctx context.Context, repository, login string) (forge.Access, error) {
	owner, name, err := split(repository)
	if err != nil {
		return forge.NoAccess, err
	}
	what := "ask who may write in " + repository
	assignable, answer, err := f.client(ctx).GetAssignees(owner, name)
	if err != nil {
		return forge.NoAccess, callError(what, answer, err)
	}
	if slices.ContainsFunc(assignable, func(u *sdk.User) bool { return task.SameLogin(u.UserName, login) }) {
		return f.accessOfAssignable(ctx, repository, login)
	}
	if _, answer, err := f.client(ctx).GetUserInfo(login); err != nil {
		err = callError(what, answer, err)
		if task.CodeOf(err) == task.NotFound {
			return forge.NoAccess, nil
		}
		return forge.NoAccess, err
	}
	found, err := f.Repository(ctx, repository)
	if err != nil || !found.Private {
		return forge.ReadAccess, err
	}
	reads, answer, err := f.client(ctx).IsCollaborator(owner, name, login)
	if err != nil {
		return forge.NoAccess, callError(what, answer, err)
	}
	if reads {
		return forge.ReadAccess, nil
	}
	return forge.NoAccess, nil
}

var issueTypes = map[task.ItemKind]sdk.IssueType{task.Issue: sdk.IssueTypeIssue, task.Pull: sdk.IssueTypePull}

// List returns open items.
func (f *Forge) List(ctx context.Context, query forge.Query) ([]forge.Item, error) {
	owner, name, err := split(query.Repository)
	if err != nil {
		return nil, err
	}
	found, answer, err := pages(func(i *sdk.Issue) int64 { return i.ID },
		func(page sdk.ListOptions) ([]*sdk.Issue, *sdk.Response, error) {
			return f.client(ctx).ListRepoIssues(owner, name, sdk.ListIssueOption{
				ListOptions: page, State: sdk.StateOpen, Type: issueTypes[query.Kind],
				Labels: askedLabels(query.Labels), AssignedBy: query.Assignee, Since: query.UpdatedSince,
			})
		})
	if err != nil {
		err = callError("list the open items of "+query.Repository, answer, err)
		if task.CodeOf(err) == task.NotFound && query.Assignee != "" {
			// Gitea says so as well when the assignee does not exist.
			_, err = f.Repository(ctx, query.Repository)
		}
		return nil, err
	}
	var items []forge.Item
	for _, issue := range found {
		item := itemOf(query.Repository, issue)
		if passes(item, query) {
			items = append(items, item)
		}
	}
	slices.SortStableFunc(items, func(a, b forge.Item) int {
		if order := a.CreatedAt.Compare(b.CreatedAt); order != 0 {
			return order
		}
		return int(a.Key.Number - b.Key.Number)
	})
	return items, nil
}

// askedLabels returns the labels that Gitea can be asked for: it takes them as one
// text with commas in between.
func askedLabels(labels []string) []string {
	var asked []string
	for _, label := range labels {
		if !strings.Contains(label, ",") {
			asked = append(asked, label)
		}
	}
	return asked
}

// passes looks again at what Gitea has sorted out: it leaves out of account labels
// that do not exist, belong to the organisation or have a comma.
func passes(item forge.Item, query forge.Query) bool {
	if slices.ContainsFunc(query.Labels, func(label string) bool { return !item.HasLabel(label) }) {
		return false
	}
	return query.Assignee == "" || item.AssignedTo(query.Assignee)
}

// Item returns one item.
func (f *Forge) Item(ctx context.Context, key task.Key) (forge.Item, error) {
	at, err := locate(key)
	if err != nil {
		return forge.Item{}, err
	}
	if key.Kind == task.Pull {
		pull, answer, err := f.client(ctx).GetPullRequest(at.owner, at.name, at.number)
		if err != nil {
			return forge.Item{}, callError("read "+key.String(), answer, err)
		}
		return pullOf(key.Repository, pull), nil
	}
	issue, answer, err := f.client(ctx).GetIssue(at.owner, at.name, at.number)
	if err != nil {
		return forge.Item{}, callError("read "+key.String(), answer, err)
	}
	if issue.PullRequest != nil {
		return forge.Item{}, task.Errorf(task.NotFound, "%s is not an issue but a pull request", key)
	}
	return itemOf(key.Repository, issue), nil
}

func itemOf(repository string, issue *sdk.Issue) forge.Item {
	item := forge.Item{
		Key:       task.Key{Forge: task.Gitea, Repository: repository, Kind: task.Issue, Number: issue.Index},
		Title:     forge.Clean(issue.Title),
		Body:      forge.Clean(issue.Body),
		State:     forge.Open,
		Labels:    labelNames(issue.Labels),
		Assignees: logins(issue.Assignees),
		Author:    login(issue.Poster),
		URL:       issue.HTMLURL,
		CreatedAt: issue.Created.UTC(),
		UpdatedAt: issue.Updated.UTC(),
	}
	if issue.State != sdk.StateOpen {
		item.State = forge.Closed
	}
	if issue.PullRequest != nil {
		item.Key.Kind = task.Pull
		item.Title, item.Draft = cutDraft(item.Title)
		if issue.PullRequest.HasMerged {
			item.State = forge.Merged
		}
	}
	return item
}

func labelNames(labels []*sdk.Label) []string {
	var names []string
	for _, label := range labels {
		names = append(names, label.Name)
	}
	return names
}

func logins(users []*sdk.User) []string {
	var names []string
	for _, user := range users {
		names = append(names, login(user))
	}
	return names
}

// Comments returns the comments in an item's conversation.
func (f *Forge) Comments(ctx context.Context, key task.Key) ([]task.Comment, error) {
	at, err := locate(key)
	if err != nil {
		return nil, err
	}
	found, answer, err := pages(func(c *sdk.Comment) int64 { return c.ID },
		func(page sdk.ListOptions) ([]*sdk.Comment, *sdk.Response, error) {
			return f.client(ctx).ListIssueComments(at.owner, at.name, at.number, sdk.ListIssueCommentOptions{ListOptions: page})
		})
	if err != nil {
		return nil, f.explain(ctx, key, callError("read the comments on "+key.String(), answer, err))
	}
	var comments []task.Comment
	for _, one := range found {
		comments = append(comments, commentOf(one))
	}
	return comments, nil
}
