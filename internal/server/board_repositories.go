package server

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/forge/board"
	"github.com/toryo-dev/toryo/internal/wire"
)

type (
	importInput struct {
		ByActor
		Body wire.NewBoardRepository
	}
	repositoriesOutput struct{ Body wire.BoardRepositories }
	repositoryOutput   struct{ Body wire.BoardRepository }
)

func (a boardAPI) registerRepositories() {
	onBoard(a, access.Viewer, huma.Operation{
		OperationID: "list-board-repositories", Method: http.MethodGet, Path: boardPath, Summary: "The repositories on the board",
	}, func(ctx context.Context, person *board.Forge, _ *ByActor) (*repositoriesOutput, error) {
		found, err := person.Repositories(ctx)
		return &repositoriesOutput{wire.BoardRepositories{Repositories: eachOf(found, BoardRepositoryOf)}}, err
	})
	onBoard(a, access.Operator, huma.Operation{
		OperationID: "import-board-repository", Method: http.MethodPost, Path: boardPath, Summary: "Import a repository",
		DefaultStatus: http.StatusCreated,
	}, importRepository)
	onBoard(a, access.Viewer, huma.Operation{
		OperationID: "get-board-repository", Method: http.MethodGet, Path: boardPath + "/{owner}/{name}", Summary: "One repository",
	}, func(ctx context.Context, person *board.Forge, input *InRepository) (*repositoryOutput, error) {
		found, err := person.Repository(ctx, input.repository())
		return &repositoryOutput{BoardRepositoryOf(found)}, err
	})
}

func importRepository(ctx context.Context, person *board.Forge, input *importInput) (*repositoryOutput, error) {
	if err := sourceOf(input.Body.Source, access.Role(caller(ctx).Role)); err != nil {
		return nil, err
	}
	made, err := person.Import(ctx, input.Body.Name, input.Body.Source)
	return &repositoryOutput{BoardRepositoryOf(made)}, err
}
