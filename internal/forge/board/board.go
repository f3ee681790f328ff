package board

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/lazyregexp"
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
	Bot    string // the login of the bot, which is not for people
}

// Board is the whole board. Its methods are for whoever runs the server; what
// users do goes through [Board.As].
type Board struct {
	store  Store
	folder string
	url    string
	bot    string

	// mu is held while something is made of which there may be only one: a
	// repository of a name, or a pull request of a branch. See withLock.
	mu sync.Mutex
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
	return &Board{store: options.Store, folder: folder, url: strings.TrimRight(options.URL, "/"), bot: options.Bot}, nil
}

// Bot is the login of the bot.
func (b *Board) Bot() string { return b.bot }

// As returns the board as a user sees it and acts on it.
func (b *Board) As(login string) *Forge { return &Forge{board: b, self: login} }

// namePattern is what each of the two parts of a repository's name looks like.
var namePattern = lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,99}$`)

// CheckName refuses what cannot be the name of a repository on the board.
func CheckName(name string) error {
	owner, short, _ := strings.Cut(name, "/")
	good := namePattern.MatchString(owner) && namePattern.MatchString(short) &&
		!strings.HasSuffix(name, ".git") && !strings.HasSuffix(name, ".lock") && !strings.HasSuffix(name, ".")
	if !good {
		return task.Errorf(task.Invalid, "%q cannot be the name of a repository on the board: it is of the form owner/name, "+
			"with letters, digits, dots, dashes and underscores", name)
	}
	return nil
}

// Path is the folder where a repository of that name is, if there is one.
func (b *Board) Path(name string) string {
	return filepath.Join(b.folder, filepath.FromSlash(name)+".git")
}

// MissingRepositories returns the repositories that the database knows of and the folder does
// not have: they are in the folder of another server on the same database.
func (b *Board) MissingRepositories(ctx context.Context) ([]string, error) {
	all, err := b.store.ListBoardRepositories(ctx)
	if err != nil {
		return nil, err
	}
	var missing []string
	for _, one := range all {
		if _, err := os.Stat(b.Path(one.Name)); errors.Is(err, fs.ErrNotExist) {
			missing = append(missing, one.Name)
		}
	}
	return missing, nil
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

// storeError gives an error of the store the code that the port has for it.
func storeError(what string, err error) error {
	switch task.CodeOf(err) {
	case "":
		return nil
	case task.DatabaseDown, task.Interrupted:
		return task.Wrap(task.Unavailable, err, "cannot "+what)
	default:
		return fmt.Errorf("cannot %s: %w", what, err)
	}
}
