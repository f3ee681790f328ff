package gitlab

import (
	"context"
	"net/http"
	"strings"

	gl "gitlab.com/gitlab-org/api/client-go/v2"

	"github.com/toryo-dev/toryo/internal/forge"
)

// Repositories returns the projects that the account is a member of.
func (f *Forge) Repositories(ctx context.Context) ([]forge.Repository, error) {
	yes, no, order, sort := true, false, "id", "asc"
	options := gl.ListProjectsOptions{Membership: &yes, Archived: &no, OrderBy: &order, Sort: &sort}
	options.PerPage = perPage
	projects, err := pages(ctx, func(page ...gl.RequestOptionFunc) ([]*gl.Project, *gl.Response, error) {
		return f.client.Projects.ListProjects(&options, page...)
	})
	if err != nil {
		return nil, callError(err, "list the projects on GitLab")
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
	repository := repositoryOf(project)
	if !project.Archived && repository.Lacks != (forge.Rights{}) {
		repository.Lacks, err = f.lacksAsMember(ctx, name, repository.Lacks)
	}
	return repository, err
}

// lacksAsMember says what we may not do in a project with the level that we have in it by all
// ways. What a project says of itself leaves out groups that were invited to it.
func (f *Forge) lacksAsMember(ctx context.Context, name string, otherwise forge.Rights) (forge.Rights, error) {
	self, err := f.selfAccount(ctx)
	if err != nil {
		return otherwise, err
	}
	member, _, err := f.client.ProjectMembers.GetInheritedProjectMember(name, self.id, in(ctx))
	if code := status(err); code == http.StatusNotFound || code == http.StatusForbidden {
		return otherwise, nil
	}
	if err == nil && (member == nil || member.ID != self.id) {
		err = errNonsense
	}
	if err != nil {
		return otherwise, callError(err, "read what we may do in %s", name)
	}
	return lacksAt(member.AccessLevel), nil
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
		return nil, callError(err, "read the project %s", name)
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
	repository.Lacks = lacks(project)
	return repository
}

// lacks says what we may not do in a project. Without a level of the project or its group it is
// not known: an administrator has none and may do everything. Who reads may comment.
func lacks(project *gl.Project) forge.Rights {
	if project.Archived {
		return forge.AllRights
	}
	if project.Permissions == nil || project.Permissions.ProjectAccess == nil && project.Permissions.GroupAccess == nil {
		return forge.Rights{}
	}
	level := gl.NoPermissions
	if given := project.Permissions.ProjectAccess; given != nil {
		level = max(level, given.AccessLevel)
	}
	if given := project.Permissions.GroupAccess; given != nil {
		level = max(level, given.AccessLevel)
	}
	return lacksAt(level)
}

// lacksAt says what may not be done with a level, by the same rules as [Forge.CheckRights].
func lacksAt(level gl.AccessLevelValue) forge.Rights {
	return forge.Rights{Push: level < needs[forge.Push].level, Label: level < needs[forge.LabelItems].level}
}
