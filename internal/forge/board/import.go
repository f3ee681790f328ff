package board

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/toryo-dev/toryo/internal/forge"
	program "github.com/toryo-dev/toryo/internal/git"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// Import makes a repository on the board from a folder or a URL that git can
// clone, with all branches and tags; Conflict if the name is taken. Nothing of the
// source's address is kept, and a password in it is not shown to anyone.
func (b *Board) Import(ctx context.Context, name, source string) (made forge.Repository, err error) {
	if err := CheckName(name); err != nil {
		return forge.Repository{}, err
	}
	if err := b.requireFree(ctx, name); err != nil {
		return forge.Repository{}, err
	}
	making, err := os.MkdirTemp(b.folder, "importing-")
	if err != nil {
		return forge.Repository{}, task.Wrap(task.DataDir, err, "cannot import "+name)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(making)) }()
	bare := filepath.Join(making, "bare.git")
	branch, err := clone(ctx, source, bare)
	if err != nil {
		return forge.Repository{}, err
	}
	err = b.withLock(ctx, func() error { return b.place(ctx, name, bare, branch) })
	if err != nil {
		return forge.Repository{}, err
	}
	return b.repository(ctx, store.BoardRepository{Name: name, DefaultBranch: branch})
}

// Import makes a repository, as [Board.Import] does. It is for who may write.
func (f *Forge) Import(ctx context.Context, name, source string) (forge.Repository, error) {
	if err := f.require(ctx, name, forge.WriteAccess); err != nil {
		return forge.Repository{}, err
	}
	return f.board.Import(ctx, name, source)
}

func (b *Board) requireFree(ctx context.Context, name string) error {
	_, err := b.store.BoardRepository(ctx, name)
	if task.CodeOf(err) == task.NotFound {
		return nil
	}
	if err == nil {
		err = task.Errorf(task.Conflict, "there is a repository %s on the board already", name)
	}
	return storeError("import "+name, err)
}

// clone makes a bare clone and returns its default branch.
func clone(ctx context.Context, source, bare string) (branch string, err error) {
	address, environment := reach(source)
	parent := filepath.Dir(bare)
	if _, err := git(ctx, parent, environment, "clone", "--quiet", "--bare", "--template=", "--end-of-options", address, bare); err != nil {
		return "", task.Wrap(task.Invalid, err, "cannot clone the repository to import")
	}
	if _, err := git(ctx, bare, nil, "remote", "remove", "origin"); err != nil {
		return "", task.Wrap(task.Internal, err, "cannot import the repository")
	}
	head, err := git(ctx, bare, nil, "symbolic-ref", "--short", "HEAD")
	if err != nil {
		return "", task.Wrap(task.Invalid, err, "the repository to import has no default branch")
	}
	return strings.TrimSuffix(head, "\n"), nil
}

// place puts a clone where it belongs and makes it known. A folder that is there
// without being known is left from an import that did not end.
func (b *Board) place(ctx context.Context, name, bare, branch string) error {
	if err := b.requireFree(ctx, name); err != nil {
		return err
	}
	target := b.Path(name)
	err := os.RemoveAll(target)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(target), 0o700)
	}
	if err == nil {
		err = os.Rename(bare, target)
	}
	if err != nil {
		return task.Wrap(task.DataDir, err, "cannot import "+name)
	}
	_, err = b.store.AddBoardRepository(ctx, store.BoardRepository{Name: name, DefaultBranch: branch})
	return storeError("import "+name, err)
}

// reach returns the address to clone from, without a password, and what git has
// to be told by its environment: how to get through to the network, when to give
// up, and the password, which must be in no list of arguments and in no message.
func reach(source string) (address string, environment []string) {
	environment = program.Network()
	if agent, set := os.LookupEnv("SSH_AUTH_SOCK"); set {
		environment = append(environment, "SSH_AUTH_SOCK="+agent)
	}
	settings := [][2]string{{"http.lowSpeedLimit", "1000"}, {"http.lowSpeedTime", "60"}}
	parsed, err := url.Parse(source)
	if err == nil && parsed.User != nil && (parsed.Scheme == "http" || parsed.Scheme == "https") {
		password, _ := parsed.User.Password()
		credential := base64.StdEncoding.EncodeToString([]byte(parsed.User.Username() + ":" + password))
		parsed.User = nil
		source = parsed.String()
		settings = append(settings, [2]string{"http.extraHeader", "Authorization: Basic " + credential},
			[2]string{"http.followRedirects", "false"}) // the password is for nobody else
	}
	environment = append(environment, fmt.Sprint("GIT_CONFIG_COUNT=", len(settings)))
	for i, one := range settings {
		environment = append(environment, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i, one[0]), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i, one[1]))
	}
	return source, environment
}
