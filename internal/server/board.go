package server

import (
	"context"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// Board is the built-in board, as the API shows it under /api/board.
type Board interface {
	// LoginOf makes a login of the name of a token. It is false if nothing in the
	// name could be one, or if the login is not for people.
	LoginOf(name string) (login string, ok bool)
	// Welcome makes an account with the given access unless there is one;
	// Forbidden if it was removed. Many may call it at the same time.
	Welcome(ctx context.Context, login string, access forge.Access) (made bool, err error)
	// HasUser reports whether someone has an account.
	HasUser(ctx context.Context, login string) (bool, error)
	// Person is the board in the hands of someone with an account.
	Person(login string) BoardPerson
}

// BoardPerson is the board in the hands of one person. Who may do what is for the
// board to say: Forbidden, or NotFound for those who may not even read.
type BoardPerson interface {
	forge.Reader
	forge.Labeler
	forge.Assigner
	BoardTalk
	BoardPulls

	// Import makes a repository from a folder or a URL; Conflict if the name is
	// taken, Invalid if git cannot clone it.
	Import(ctx context.Context, name, source string) (forge.Repository, error)
}

// BoardTalk is about issues and pull requests alike. Text is kept as the person
// wrote it, but for control characters.
type BoardTalk interface {
	// Browse returns items, by number within a repository.
	Browse(ctx context.Context, listing forge.Listing) ([]forge.Item, error)
	// CreateIssue opens an issue; Invalid without a title, or with a label or an
	// assignee that cannot be.
	CreateIssue(ctx context.Context, repository string, issue forge.NewIssue) (forge.Item, error)
	// SetState closes an item or opens it again; Conflict if it is merged.
	SetState(ctx context.Context, key task.Key, state forge.ItemState) error
	// Say writes a comment; Invalid if it is empty.
	Say(ctx context.Context, key task.Key, body string) (task.Comment, error)
	// Rephrase replaces the text of the person's own comment.
	Rephrase(ctx context.Context, key task.Key, id, body string) (task.Comment, error)
	// DeleteComment removes the person's own comment; administrators of the board
	// remove those of others too.
	DeleteComment(ctx context.Context, key task.Key, id string) error
	// Timeline returns what happened to an item, oldest first.
	Timeline(ctx context.Context, key task.Key) ([]store.BoardEvent, error)
}

// BoardPulls is about pull requests. For the key of an issue every method that
// takes one is Invalid.
type BoardPulls interface {
	// Propose opens a pull request, or returns the one that is open for the same
	// branches: then opened is false and nothing changes.
	Propose(ctx context.Context, repository string, proposal forge.Proposal) (item forge.Item, opened bool, err error)
	// Branches returns the names of a repository's branches, the newest first.
	Branches(ctx context.Context, repository string) ([]string, error)
	// Diff returns what it changes; NotFound if its branch is gone.
	Diff(ctx context.Context, key task.Key) (forge.Diff, error)
	// Merge merges it; Conflict if it is not open or git cannot merge it.
	Merge(ctx context.Context, key task.Key) (forge.Item, error)
	// Reviews returns the reviews, and ReviewThreads the conversations on lines.
	Reviews(ctx context.Context, key task.Key) ([]forge.Review, error)
	ReviewThreads(ctx context.Context, key task.Key) ([]forge.ReviewThread, error)
	// Judge submits a review.
	Judge(ctx context.Context, key task.Key, judgement forge.Judgement) (forge.Review, error)
	// Answer writes into a review thread.
	Answer(ctx context.Context, key task.Key, thread, body string) (task.Comment, error)
}

// boardPath is where the board is in the API.
const boardPath = "/api/board/repositories"

// The library that reads requests looks only into parts of exported types.
type (
	// ByActor is part of the input of every operation on the board.
	ByActor struct {
		As string `header:"X-Toryo-As" doc:"Who acts: a login on the board. Only for administrators; others act as their token's name"`
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
func (s *Server) registerBoard(board Board) {
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
	board Board
}

// onBoard adds an operation that a person does on the board.
func onBoard[Input interface{ actor() string }, Output any](
	a boardAPI, role access.Role, operation huma.Operation, do func(context.Context, BoardPerson, *Input) (*Output, error),
) {
	operation.Tags = []string{"board"}
	operation.Errors = append(operation.Errors, http.StatusNotFound, http.StatusConflict, http.StatusRequestEntityTooLarge)
	register(a.Server, role, operation, func(ctx context.Context, input *Input) (*Output, error) {
		login, err := a.actor(ctx, (*input).actor())
		if err != nil {
			return nil, err
		}
		return do(ctx, a.board.Person(login), input)
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
	login, ok := a.board.LoginOf(token.Name)
	if !ok {
		login = "token-" + token.ID[max(0, len(token.ID)-12):]
	}
	_, err := a.board.Welcome(ctx, login, fitting[access.Role(token.Role)])
	return login, err
}

func (a boardAPI) named(ctx context.Context, login string, token store.Token) (string, error) {
	if access.Role(token.Role) != access.Admin {
		return "", task.Errorf(task.Forbidden, "only a token with the role admin may act as someone else").
			WithMend("leave X-Toryo-As away")
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
			WithMend("give a URL with https, http or git, or use toryo board import on the server's machine")
	}
}
