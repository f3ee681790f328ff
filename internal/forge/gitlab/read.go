package gitlab

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	gl "gitlab.com/gitlab-org/api/client-go/v2"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

// Self returns the login of the account that we write as. GitLab is asked once.
func (f *Forge) Self(ctx context.Context) (string, error) {
	self, err := f.selfAccount(ctx)
	return self.login, err
}

func (f *Forge) selfAccount(ctx context.Context) (account, error) {
	f.selfLock.Lock()
	known := f.self
	f.selfLock.Unlock()
	if known.id != 0 {
		return known, nil
	}
	user, _, err := f.client.Users.CurrentUser(in(ctx))
	if err == nil && (user == nil || user.ID == 0 || user.Username == "") {
		err = errNonsense
	}
	if err != nil {
		return account{}, reading(err, "find out who we are on GitLab")
	}
	f.selfLock.Lock()
	defer f.selfLock.Unlock()
	f.self = account{user.ID, user.Username, true}
	return f.self, nil
}

// find returns the account with a login, or false.
func (f *Forge) find(ctx context.Context, login string) (account, bool, error) {
	if login == "" || login == forge.Ghost {
		return account{}, false, nil
	}
	users, _, err := f.client.Users.ListUsers(&gl.ListUsersOptions{Username: &login}, in(ctx))
	if err != nil {
		return account{}, false, reading(err, "look for the account %s on GitLab", login)
	}
	for _, user := range users {
		if user != nil && task.SameLogin(user.Username, login) {
			return account{user.ID, user.Username, user.State == "" || user.State == "active"}, true, nil
		}
	}
	return account{}, false, nil
}

// Repositories returns the projects that the account is a member of.
func (f *Forge) Repositories(ctx context.Context) ([]forge.Repository, error) {
	yes, no, order, sort := true, false, "id", "asc"
	options := gl.ListProjectsOptions{Membership: &yes, Archived: &no, OrderBy: &order, Sort: &sort}
	options.PerPage = perPage
	projects, err := pages(ctx, func(page ...gl.RequestOptionFunc) ([]*gl.Project, *gl.Response, error) {
		return f.client.Projects.ListProjects(&options, page...)
	})
	if err != nil {
		return nil, reading(err, "list the projects on GitLab")
	}
	var repositories []forge.Repository
	for _, project := range projects {
		if !project.Archived {
			repositories = append(repositories, repositoryOf(project))
		}
	}
	return repositories, nil
}

// Repository returns one project.
func (f *Forge) Repository(ctx context.Context, name string) (forge.Repository, error) {
	project, err := f.project(ctx, name)
	if err != nil {
		return forge.Repository{}, err
	}
	return repositoryOf(project), nil
}

func (f *Forge) project(ctx context.Context, name string) (*gl.Project, error) {
	if err := checkRepository(name); err != nil {
		return nil, err
	}
	project, _, err := f.client.Projects.GetProject(name, nil, in(ctx))
	if err == nil && (project == nil || !strings.EqualFold(project.PathWithNamespace, name)) {
		err = errNonsense
	}
	if err != nil {
		return nil, reading(err, "read the project %s", name)
	}
	return project, nil
}

func repositoryOf(project *gl.Project) forge.Repository {
	repository := forge.Repository{
		Name:          project.PathWithNamespace,
		DefaultBranch: project.DefaultBranch,
		URL:           project.WebURL,
		Private:       project.Visibility != gl.PublicVisibility,
		Archived:      project.Archived,
	}
	if project.EmptyRepo {
		repository.DefaultBranch = ""
	}
	return repository
}

// Access says what a login may do in a project, by membership in it or in a group
// above it.
func (f *Forge) Access(ctx context.Context, repository, login string) (forge.Access, error) {
	if err := checkRepository(repository); err != nil {
		return forge.NoAccess, err
	}
	who, found, err := f.find(ctx, login)
	if err != nil || !found || !who.active {
		return forge.NoAccess, err
	}
	member, _, err := f.client.ProjectMembers.GetInheritedProjectMember(repository, who.id, in(ctx))
	if status(err) == http.StatusNotFound {
		// No member. A project that is not private can be read by everyone.
		project, err := f.project(ctx, repository)
		if err != nil || project.Visibility == gl.PrivateVisibility {
			return forge.NoAccess, err
		}
		return forge.ReadAccess, nil
	}
	if err == nil && (member == nil || member.ID != who.id) {
		err = errNonsense
	}
	if err != nil {
		return forge.NoAccess, reading(err, "read what %s may do in %s", login, repository)
	}
	return accessOf(member.AccessLevel), nil
}

// accessOf rounds a level down. There are more of them than these in between.
func accessOf(level gl.AccessLevelValue) forge.Access {
	switch {
	case level >= gl.MaintainerPermissions:
		return forge.AdminAccess
	case level >= gl.DeveloperPermissions:
		return forge.WriteAccess
	case level >= gl.GuestPermissions:
		return forge.ReadAccess
	default:
		return forge.NoAccess
	}
}

// List returns the open items that pass the query.
func (f *Forge) List(ctx context.Context, query forge.Query) ([]forge.Item, error) {
	if err := checkRepository(query.Repository); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(query.Labels, hasComma) {
		return nil, nil // no label can be called that
	}
	var assignee *gl.AssigneeIDValue
	if query.Assignee != "" {
		who, found, err := f.find(ctx, query.Assignee)
		if err != nil || !found {
			return nil, err
		}
		assignee = gl.AssigneeID(who.id)
	}
	var items []forge.Item
	if query.Kind != task.Pull {
		issues, err := f.listIssues(ctx, query, assignee)
		if err != nil {
			return nil, reading(err, "list the issues of %s", query.Repository)
		}
		items = append(items, issues...)
	}
	if query.Kind != task.Issue {
		requests, err := f.listPulls(ctx, query, assignee)
		if err != nil {
			return nil, reading(err, "list the merge requests of %s", query.Repository)
		}
		items = append(items, requests...)
	}
	slices.SortStableFunc(items, func(a, b forge.Item) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.Key.Number, b.Key.Number))
	})
	return items, nil
}

func hasComma(label string) bool { return strings.Contains(label, ",") }

func labelsOption(labels []string) *gl.LabelOptions {
	if len(labels) == 0 {
		return nil
	}
	options := gl.LabelOptions(labels)
	return &options
}

func (f *Forge) listIssues(ctx context.Context, query forge.Query, assignee *gl.AssigneeIDValue) ([]forge.Item, error) {
	state, order, sort := "opened", "created_at", "asc"
	options := gl.ListProjectIssuesOptions{
		State: &state, Labels: labelsOption(query.Labels), AssigneeID: assignee, OrderBy: &order, Sort: &sort,
	}
	options.PerPage = perPage
	if !query.UpdatedSince.IsZero() {
		options.UpdatedAfter = &query.UpdatedSince
	}
	issues, err := pages(ctx, func(page ...gl.RequestOptionFunc) ([]*gl.Issue, *gl.Response, error) {
		return f.client.Issues.ListProjectIssues(query.Repository, &options, page...)
	})
	var items []forge.Item
	for _, issue := range issues {
		items = append(items, issueItem(query.Repository, issue))
	}
	return items, err
}

func (f *Forge) listPulls(ctx context.Context, query forge.Query, assignee *gl.AssigneeIDValue) ([]forge.Item, error) {
	state, order, sort := "opened", "created_at", "asc"
	options := gl.ListProjectMergeRequestsOptions{
		State: &state, Labels: labelsOption(query.Labels), AssigneeID: assignee, OrderBy: &order, Sort: &sort,
	}
	options.PerPage = perPage
	if !query.UpdatedSince.IsZero() {
		options.UpdatedAfter = &query.UpdatedSince
	}
	requests, err := pages(ctx, func(page ...gl.RequestOptionFunc) ([]*gl.BasicMergeRequest, *gl.Response, error) {
		return f.client.MergeRequests.ListProjectMergeRequests(query.Repository, &options, page...)
	})
	var items []forge.Item
	for _, request := range requests {
		items = append(items, pullItem(query.Repository, request))
	}
	return items, err
}

// Item returns one item.
func (f *Forge) Item(ctx context.Context, key task.Key) (forge.Item, error) {
	if err := checkKey(key); err != nil {
		return forge.Item{}, err
	}
	if key.Kind == task.Pull {
		request, err := f.request(ctx, key)
		if err != nil {
			return forge.Item{}, err
		}
		return pullItem(key.Repository, &request.BasicMergeRequest), nil
	}
	issue, err := f.issue(ctx, key)
	if err != nil {
		return forge.Item{}, err
	}
	return issueItem(key.Repository, issue), nil
}

func (f *Forge) issue(ctx context.Context, key task.Key) (*gl.Issue, error) {
	issue, _, err := f.client.Issues.GetIssue(key.Repository, key.Number, in(ctx))
	if err == nil && (issue == nil || issue.IID != key.Number) {
		err = errNonsense
	}
	if err != nil {
		return nil, f.missing(ctx, err, key)
	}
	if issue.MovedToID != 0 {
		return nil, f.moved(ctx, key)
	}
	return issue, nil
}

func (f *Forge) request(ctx context.Context, key task.Key) (*gl.MergeRequest, error) {
	request, _, err := f.client.MergeRequests.GetMergeRequest(key.Repository, key.Number, nil, in(ctx))
	if err == nil && (request == nil || request.IID != key.Number) {
		err = errNonsense
	}
	if err != nil {
		return nil, f.missing(ctx, err, key)
	}
	return request, nil
}

// missing makes the error of an item that could not be read. If GitLab redirects,
// its project was moved: one more request tells where to.
func (f *Forge) missing(ctx context.Context, err error, key task.Key) error {
	failed := reading(err, "read %s", key)
	var coded *forge.Error
	answer := answerOf(err) //nolint:bodyclose // the SDK has closed it
	if answer == nil || answer.StatusCode < 300 || answer.StatusCode > 399 || !errors.As(failed, &coded) {
		return failed
	}
	location, parseErr := f.base.Parse(answer.Header.Get("Location"))
	path, found := f.apiPath(location)
	if parseErr != nil || !found {
		return failed
	}
	var item struct {
		References struct{ Full string }
	}
	if err := f.do(ctx, http.MethodGet, path, nil, &item); err != nil {
		return errors.Join(failed, reading(err, "read where %s is now", key))
	}
	if moved, ok := parseReference(item.References.Full); ok && moved.Kind == key.Kind {
		coded.MovedTo = moved
	}
	return failed
}

// apiPath returns the part of an address below the API of this server, to which
// alone our token may go.
func (f *Forge) apiPath(address *url.URL) (string, bool) {
	if address == nil || address.Host != f.base.Host || address.Scheme != f.base.Scheme {
		return "", false
	}
	return strings.CutPrefix(address.EscapedPath(), f.base.Path+"api/v4/")
}

// moved makes the error of an issue that was moved to another project. The issue
// tells only the new one's id, by which it cannot be read; the note that GitLab
// leaves behind tells more.
func (f *Forge) moved(ctx context.Context, key task.Key) error {
	failed := &forge.Error{Err: task.Errorf(task.NotFound, "%s was moved to another project", key)}
	order, sort := "created_at", "desc"
	options := gl.ListIssueNotesOptions{OrderBy: &order, Sort: &sort}
	options.PerPage = perPage
	notes, _, err := f.client.Notes.ListIssueNotes(key.Repository, key.Number, &options, in(ctx))
	if err != nil {
		return errors.Join(failed, reading(err, "read where %s is now", key))
	}
	for _, note := range notes {
		reference, found := strings.CutPrefix(note.Body, "moved to ")
		if !note.System || !found {
			continue
		}
		if !strings.Contains(reference, "/") { // within the same group
			reference = key.Repository[:strings.LastIndexByte(key.Repository, '/')+1] + reference
		}
		if to, ok := parseReference(reference); ok {
			failed.MovedTo = to
		}
		break
	}
	return failed
}

// Comments returns the comments in the item's conversation, without the notes
// that GitLab writes itself, internal ones, those on lines, and the texts of our own
// reviews.
func (f *Forge) Comments(ctx context.Context, key task.Key) ([]task.Comment, error) {
	notes, err := f.notes(ctx, key)
	if err != nil {
		return nil, err
	}
	var comments []task.Comment
	for _, note := range notes {
		if note.System || note.Internal || onLine(note) {
			continue
		}
		comment := commentOf(note)
		if reviewTag.MatchString(comment.Body) {
			self, err := f.Self(ctx)
			if err != nil {
				return nil, err
			}
			if comment.By(self) {
				continue
			}
		}
		comments = append(comments, comment)
	}
	slices.SortStableFunc(comments, oldestFirst)
	return comments, nil
}

// notes returns everything in the item's conversation.
func (f *Forge) notes(ctx context.Context, key task.Key) ([]*gl.Note, error) {
	if err := checkKey(key); err != nil {
		return nil, err
	}
	order, sort := "created_at", "asc"
	notes, err := pages(ctx, func(page ...gl.RequestOptionFunc) ([]*gl.Note, *gl.Response, error) {
		if key.Kind == task.Pull {
			options := gl.ListMergeRequestNotesOptions{OrderBy: &order, Sort: &sort}
			options.PerPage = perPage
			return f.client.Notes.ListMergeRequestNotes(key.Repository, key.Number, &options, page...)
		}
		options := gl.ListIssueNotesOptions{OrderBy: &order, Sort: &sort}
		options.PerPage = perPage
		return f.client.Notes.ListIssueNotes(key.Repository, key.Number, &options, page...)
	})
	if err == nil && slices.ContainsFunc(notes, func(note *gl.Note) bool { return note == nil || note.ID == 0 }) {
		err = errNonsense
	}
	if err != nil {
		return nil, reading(err, "read the comments on %s", key)
	}
	return notes, nil
}

// LabelEvents returns when labels were put on the item and taken off. GitLab
// forgets the name of a label that was deleted since.
func (f *Forge) LabelEvents(ctx context.Context, key task.Key) ([]forge.LabelEvent, error) {
	if err := checkKey(key); err != nil {
		return nil, err
	}
	options := gl.ListLabelEventsOptions{}
	options.PerPage = perPage
	found, err := pages(ctx, func(page ...gl.RequestOptionFunc) ([]*gl.LabelEvent, *gl.Response, error) {
		if key.Kind == task.Pull {
			return f.client.ResourceLabelEvents.ListMergeRequestsLabelEvents(key.Repository, key.Number, &options, page...)
		}
		return f.client.ResourceLabelEvents.ListIssueLabelEvents(key.Repository, key.Number, &options, page...)
	})
	if err != nil {
		return nil, reading(err, "read the history of %s", key)
	}
	var events []forge.LabelEvent
	for _, event := range found {
		if event == nil || event.Label.Name == "" {
			continue
		}
		events = append(events, forge.LabelEvent{
			Label: event.Label.Name,
			On:    event.Action == "add",
			Actor: userLogin(&event.User),
			At:    timeOf(event.CreatedAt),
		})
	}
	slices.SortStableFunc(events, func(a, b forge.LabelEvent) int { return a.At.Compare(b.At) })
	return events, nil
}

// LinkedPulls returns the merge requests that are about the issue.
func (f *Forge) LinkedPulls(ctx context.Context, key task.Key) ([]forge.LinkedPull, error) {
	if err := checkKey(key); err != nil || key.Kind == task.Pull {
		return nil, err
	}
	options := gl.ListMergeRequestsRelatedToIssueOptions{}
	options.PerPage = perPage
	requests, err := pages(ctx, func(page ...gl.RequestOptionFunc) ([]*gl.BasicMergeRequest, *gl.Response, error) {
		return f.client.Issues.ListMergeRequestsRelatedToIssue(key.Repository, key.Number, &options, page...)
	})
	if err != nil {
		return nil, reading(err, "read the links of %s", key)
	}
	slices.SortStableFunc(requests, func(a, b *gl.BasicMergeRequest) int {
		return cmp.Or(timeOf(a.CreatedAt).Compare(timeOf(b.CreatedAt)), cmp.Compare(a.ID, b.ID))
	})
	var links []forge.LinkedPull
	for _, request := range requests {
		repository := key.Repository
		if request.References != nil {
			if to, ok := parseReference(request.References.Full); ok {
				repository = to.Repository
			}
		}
		item := pullItem(repository, request)
		links = append(links, forge.LinkedPull{Key: item.Key, State: item.State, URL: item.URL})
	}
	return links, nil
}
