package server

import (
	"context"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/board"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// boardPath is where the board is in the API.
const boardPath = "/api/board/repositories"

// The library that reads requests looks only into parts of exported types.
type (
	// ByActor is part of the input of every operation on the board.
	ByActor struct {
		As string `header:"X-Toryo-As" doc:"Who acts: a login on the board. Only for administrators; others act as the person of their token, or as its name"`
	}
	// InRepository is part of the input of operations in a repository.
	InRepository struct {
		ByActor
		Owner string `path:"owner"`
		Name  string `path:"name"`
	}
	// OnItem is part of the input of operations on an issue or a pull request.
	OnItem struct {
		InRepository
		Number int64 `path:"number" minimum:"1"`
	}
)

func (i ByActor) actor() string { return i.As }

func (i InRepository) repository() string { return i.Owner + "/" + i.Name }

func (i OnItem) key(kind task.ItemKind) task.Key {
	return task.Key{Forge: task.Board, Repository: i.repository(), Kind: kind, Number: i.Number}
}

// registerBoard adds the operations on the board.
func (s *Server) registerBoard(board *board.Board) {
	a := boardAPI{Server: s, board: board}
	a.registerRepositories()
	a.registerIssues()
	a.registerPulls()
	for _, kind := range []task.ItemKind{task.Issue, task.Pull} {
		a.registerItems(kind)
	}
}

type boardAPI struct {
	*Server
	board *board.Board
}

// onBoard adds an operation that a person does on the board.
func onBoard[Input interface{ actor() string }, Output any](
	a boardAPI, role access.Role, operation huma.Operation, do func(context.Context, *board.Forge, *Input) (*Output, error),
) {
	operation.Tags = []string{"board"}
	operation.Errors = append(operation.Errors, http.StatusNotFound, http.StatusConflict, http.StatusRequestEntityTooLarge)
	register(a.Server, role, operation, func(ctx context.Context, input *Input) (*Output, error) {
		login, err := a.actor(ctx, (*input).actor())
		if err != nil {
			return nil, err
		}
		return do(ctx, a.board.As(login), input)
	})
}

// fitting is the access to the board of those who come with a token of a role.
var fitting = map[access.Role]forge.Access{
	access.Viewer: forge.ReadAccess, access.Operator: forge.WriteAccess, access.Admin: forge.AdminAccess,
}

// actor is the login that acts: that of the token, which is made when it is
// first needed, or the one that an administrator names.
func (a boardAPI) actor(ctx context.Context, named string) (string, error) {
	token := caller(ctx)
	if named != "" {
		return a.named(ctx, named, token)
	}
	login, ok := a.board.LoginOf(person(ctx))
	if !ok {
		login = "token-" + token.ID[max(0, len(token.ID)-12):]
	}
	_, err := a.board.EnsureUser(ctx, login, fitting[access.Role(token.Role)])
	return login, err
}

func (a boardAPI) named(ctx context.Context, login string, token store.Token) (string, error) {
	if access.Role(token.Role) != access.Admin {
		return "", task.Errorf(task.Forbidden, "only a token with the role admin may act as someone else").
			WithHint("leave X-Toryo-As away")
	}
	found, err := a.board.HasUser(ctx, login)
	if err == nil && !found {
		err = task.Errorf(task.Invalid, "there is no user %q on the board", login)
	}
	return login, err
}

// sourceOf checks from where a repository is to be imported. Git over ssh would
// use the keys of the server, and a folder could be anyone's.
func sourceOf(source string, role access.Role) error {
	scheme, rest, found := strings.Cut(source, "://")
	switch {
	case found && rest != "" && (scheme == "https" || scheme == "http" || scheme == "git"):
		return nil
	case strings.HasPrefix(source, "/") && role == access.Admin:
		return nil
	case strings.HasPrefix(source, "/"):
		return task.Errorf(task.Forbidden, "only a token with the role admin may import a folder of the server's machine")
	default:
		return task.Errorf(task.Invalid, "the source cannot be imported over the API").
			WithHint("give a URL with https, http or git, or use toryo board import on the server's machine")
	}
}
