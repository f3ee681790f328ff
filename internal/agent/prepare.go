package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/toryo-dev/toryo/internal/agent/workspace"
	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
	"github.com/toryo-dev/toryo/internal/workdir"
)

// Workspaces makes the workspaces of runs, each in a folder of its own.
type Workspaces struct {
	Dir    string
	Server string // its address as this agent knows it
	CAFile string // with certificates by which git knows the server, or empty
	// Language of what people are told: auto, ja or en.
	Language task.Language
	Log      *slog.Logger
}

// Sweep removes the workspaces that an earlier process left. What counts of them
// was pushed.
func (w Workspaces) Sweep() error {
	left, err := os.ReadDir(w.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, entry := range left {
		err = errors.Join(err, workdir.Remove(filepath.Join(w.Dir, entry.Name())))
	}
	if err != nil {
		return task.Wrap(task.DataDir, err, "workspaces of earlier runs cannot be removed")
	}
	return nil
}

// Prepare implements [Prepare].
func (w Workspaces) Prepare(ctx context.Context, a wire.Assignment) (phase.Repository, func() error, error) {
	options := workspace.Options{
		Dir: filepath.Join(w.Dir, fmt.Sprintf("%s-%d", filepath.Base(a.TaskID), a.Generation)),
		URL: reachable(w.Server, a.CloneURL), Token: a.Lease.Token, Base: a.Base, Branch: a.Branch, CAFile: w.CAFile, Log: w.Log,
		BaseCommit: a.BaseCommit, StartCommit: a.StartCommit, Language: w.Language.OfItem(a.Title, a.Body),
	}
	if a.PullRequest != nil {
		options.Start = a.PullRequest.HeadRef
		options.Branch = cmp.Or(options.Branch, a.PullRequest.Head)
	}
	if a.Resume != nil {
		options.WIP, options.WIPCommit = a.Resume.WIPRef, a.Resume.WIPCommit
	}
	made, err := workspace.Prepare(ctx, options)
	if err != nil {
		return nil, nil, fmt.Errorf("prepare the workspace: %w", err)
	}
	return made, made.Remove, nil
}

// reachable is the address of a repository on the server as the agent reaches it:
// the server may know itself by another name.
func reachable(server, repository string) string {
	address, err := url.Parse(repository)
	at := strings.Index(repository, gitPath)
	if err != nil || server == "" || !strings.HasPrefix(address.Path, gitPath) || at < 0 {
		return repository
	}
	return strings.TrimSuffix(server, "/") + repository[at:]
}

// gitPath is where servers have their repositories.
const gitPath = "/git/"
