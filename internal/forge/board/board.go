package board

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// Store is what the board keeps in the database.
type Store interface {
	store.BoardRepositories
	store.BoardItems
	store.BoardComments
	store.BoardReviews
	store.BoardUsers
	store.BoardReactions
	store.BoardStatuses
}

// Options says where the board is.
type Options struct {
	Store  Store
	Folder string // where the repositories are; it is made if it is missing
	URL    string // of the server, for the addresses of items; may be empty
}

// Board is the whole board. Its methods are for whoever runs the server; what
// users do goes through [Board.As].
type Board struct {
	store  Store
	folder string
	url    string

	// opening keeps two pull requests for one branch from being opened at the
	// same time.
	opening sync.Mutex
	// importing keeps two repositories of one name from being made at the same
	// time.
	importing sync.Mutex
}

// Open returns the board.
func Open(options Options) (*Board, error) {
	folder, err := filepath.Abs(options.Folder)
	if err == nil {
		err = os.MkdirAll(folder, 0o700)
	}
	if err != nil {
		return nil, task.Wrap(task.DataDir, err, "the folder for the board's repositories cannot be used")
	}
	return &Board{store: options.Store, folder: folder, url: strings.TrimRight(options.URL, "/")}, nil
}

// As returns the board in the hands of a user.
func (b *Board) As(login string) *Forge { return &Forge{board: b, self: login} }

// loginPattern is what a login looks like. The name of the ghost is nobody's.
var loginPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,38}$`)

// AddUser makes an account; Conflict if the login is or was taken.
func (b *Board) AddUser(ctx context.Context, login string, access forge.Access) error {
	if !loginPattern.MatchString(login) || task.SameLogin(login, forge.Ghost) {
		return task.Errorf(task.Invalid, "%q cannot be a login: it has letters, digits, dots, dashes and underscores, 39 at most", login)
	}
	_, err := b.store.AddBoardUser(ctx, store.BoardUser{Login: login, Access: store.BoardAccess(access.String())})
	return told("add the user "+login, true, err)
}

// SetAccess changes what a user may do.
func (b *Board) SetAccess(ctx context.Context, login string, access forge.Access) error {
	return told("change what "+login+" may do", true, b.store.SetBoardAccess(ctx, login, store.BoardAccess(access.String())))
}

// RemoveUser removes an account. What it wrote stays, by the ghost.
func (b *Board) RemoveUser(ctx context.Context, login string) error {
	return told("remove the user "+login, true, b.store.RemoveBoardUser(ctx, login, time.Now()))
}

// Users returns the logins of those who have an account.
func (b *Board) Users(ctx context.Context) ([]string, error) {
	users, err := b.store.ListBoardUsers(ctx)
	if err != nil {
		return nil, told("list the users of the board", false, err)
	}
	var logins []string
	for _, user := range users {
		if user.RemovedAt.IsZero() {
			logins = append(logins, user.Login)
		}
	}
	return logins, nil
}

// namePattern is what each of the two parts of a repository's name looks like.
var namePattern = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,99}$`)

func checkRepository(name string) error {
	owner, short, _ := strings.Cut(name, "/")
	good := namePattern.MatchString(owner) && namePattern.MatchString(short) &&
		!strings.HasSuffix(name, ".git") && !strings.HasSuffix(name, ".lock") && !strings.HasSuffix(name, ".")
	if !good {
		return task.Errorf(task.Invalid, "%q cannot be the name of a repository on the board: it is of the form owner/name, "+
			"with letters, digits, dots, dashes and underscores", name)
	}
	return nil
}

// path is where a repository of that name is.
func (b *Board) path(name string) string {
	return filepath.Join(b.folder, filepath.FromSlash(name)+".git")
}

// Import makes a repository on the board from a folder or a URL that git can
// clone, with all branches and tags; Conflict if the name is taken. Nothing of the
// source's address is kept.
func (b *Board) Import(ctx context.Context, name, source string) (forge.Repository, error) {
	if err := checkRepository(name); err != nil {
		return forge.Repository{}, err
	}
	b.importing.Lock()
	defer b.importing.Unlock()
	if _, err := b.store.BoardRepository(ctx, name); task.CodeOf(err) != task.NotFound {
		if err == nil {
			err = task.Errorf(task.Conflict, "there is a repository %s on the board already", name)
		}
		return forge.Repository{}, told("import "+name, true, err)
	}
	branch, err := b.clone(ctx, name, source)
	if err != nil {
		return forge.Repository{}, err
	}
	made, err := b.store.AddBoardRepository(ctx, store.BoardRepository{Name: name, DefaultBranch: branch})
	if err != nil {
		return forge.Repository{}, told("import "+name, true, err)
	}
	return b.repository(ctx, made)
}

// clone puts a bare clone in its place and returns its default branch. A folder
// that is there without being known is left from an import that did not end.
func (b *Board) clone(ctx context.Context, name, source string) (branch string, err error) {
	making, err := os.MkdirTemp(b.folder, "importing-")
	if err != nil {
		return "", task.Wrap(task.DataDir, err, "cannot import "+name)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(making)) }()
	bare := filepath.Join(making, "bare.git")
	if _, err := git(ctx, making, nil, "clone", "--quiet", "--bare", "--template=", "--end-of-options", source, bare); err != nil {
		return "", task.Wrap(task.Invalid, err, "cannot clone the repository to import")
	}
	if _, err := git(ctx, bare, nil, "remote", "remove", "origin"); err != nil {
		return "", task.Wrap(task.Internal, err, "cannot import "+name)
	}
	head, err := git(ctx, bare, nil, "symbolic-ref", "--short", "HEAD")
	if err != nil {
		return "", task.Wrap(task.Invalid, err, "the repository to import has no default branch")
	}
	target := b.path(name)
	if err := os.RemoveAll(target); err != nil {
		return "", task.Wrap(task.DataDir, err, "cannot import "+name)
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o700); err != nil {
		return "", task.Wrap(task.DataDir, err, "cannot import "+name)
	}
	if err := os.Rename(bare, target); err != nil {
		return "", task.Wrap(task.DataDir, err, "cannot import "+name)
	}
	return strings.TrimSpace(head), nil
}

func (b *Board) repository(ctx context.Context, r store.BoardRepository) (forge.Repository, error) {
	made := forge.Repository{Name: r.Name, DefaultBranch: r.DefaultBranch, URL: b.url + "/board/" + r.Name, Private: true}
	_, found, err := b.resolve(ctx, r.Name, "refs/heads/"+r.DefaultBranch)
	if err != nil {
		return forge.Repository{}, err
	}
	if !found {
		made.DefaultBranch = ""
	}
	return made, nil
}

func (b *Board) itemURL(key task.Key) string {
	kind := "issues"
	if key.Kind == task.Pull {
		kind = "pulls"
	}
	return fmt.Sprintf("%s/board/%s/%s/%d", b.url, key.Repository, kind, key.Number)
}

// told gives an error of the store the code that the port has for it.
func told(what string, write bool, err error) error {
	switch task.CodeOf(err) {
	case "":
		return nil
	case task.DatabaseDown, task.Interrupted:
		return &forge.Error{Err: task.Wrap(task.Unavailable, err, "cannot "+what), OutcomeUnknown: write}
	default:
		return fmt.Errorf("cannot %s: %w", what, err)
	}
}
