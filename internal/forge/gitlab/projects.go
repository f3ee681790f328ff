package gitlab

import (
	"context"
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
	return repository
}
