package workspace

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/toryo-dev/toryo/internal/git"
	"github.com/toryo-dev/toryo/internal/task"
)

// The history of branches is in a repository of its own, which has commits only: files of long
// ago are not fetched to find out where two branches parted. No sandbox has it: git takes what is
// missing there for something that it can ask the server for.

// historyServer is what git runs in place of a server for a repository on this machine, whose own
// settings may not let parts be fetched.
const historyServer = "git -c uploadpack.allowFilter=true upload-pack"

// historyDir is where that repository is.
func (w *Workspace) historyDir() string { return filepath.Join(filepath.Dir(w.dir), "history") }

// findFork returns the commit at which a branch left the base, with its files here. It looks
// further and further back; without a common past it is the base itself.
func (w *Workspace) findFork(ctx context.Context, branch, base string) (string, error) {
	if branch == base {
		return base, nil
	}
	if err := w.openHistory(ctx); err != nil {
		return "", err
	}
	for _, depth := range []string{"--depth=50", "--deepen=500", "--deepen=5000", "--unshallow"} {
		if err := w.fetchHistory(ctx, depth, branch, base); err != nil {
			return "", err
		}
		output, err := w.git.Run(ctx, git.Command{Dir: w.historyDir(), Args: []string{"merge-base", branch, base}})
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		if err == nil {
			fork := strings.TrimSpace(output)
			return fork, w.fetchFork(ctx, fork)
		}
		if !w.historyEnds() {
			break
		}
	}
	w.remark("workspace.nothing_shared")
	return base, nil
}

// historyEnds reports whether a part of the history is not here.
func (w *Workspace) historyEnds() bool {
	_, err := os.Stat(filepath.Join(w.historyDir(), "shallow"))
	return err == nil
}

// openHistory makes the repository, if there is none yet.
func (w *Workspace) openHistory(ctx context.Context) error {
	if _, err := os.Stat(w.historyDir()); err == nil {
		return nil
	}
	_, err := w.git.Run(ctx, git.Command{Args: []string{"init", "--quiet", "--bare", "--template=", w.historyDir()}})
	if err == nil {
		err = addTo(filepath.Join(w.historyDir(), "config"), "[remote \"server\"]\n\turl = "+setting(w.remote.URL)+"\n\tpromisor = true\n\tpartialCloneFilter = tree:0\n")
	}
	if err != nil {
		return failure(err, "cannot make git's directory")
	}
	return nil
}

// fetchHistory fetches commits of two branches without their files.
func (w *Workspace) fetchHistory(ctx context.Context, depth, branch, base string) error {
	args := []string{
		"fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--no-auto-maintenance",
		"--no-show-forced-updates", "--update-shallow", "--filter=tree:0", depth,
	}
	if strings.HasPrefix(w.remote.URL, "/") {
		args = append(args, "--upload-pack="+historyServer)
	}
	args = append(args, "--end-of-options", "server", "+"+base+":"+refTip, "+"+branch+":"+refStart)
	_, err := w.git.Run(ctx, git.Command{Dir: w.historyDir(), Args: args, Remote: &w.remote})
	return coded(err, "cannot fetch from the repository")
}

// fetchFork fetches the files of a commit, which differences are counted from.
func (w *Workspace) fetchFork(ctx context.Context, fork string) error {
	if !isHash(fork) {
		return task.Errorf(task.Internal, "git names no commit that two branches share")
	}
	if w.has(ctx, fork) {
		return nil
	}
	return w.fetch(ctx, "--depth=1", "+"+fork+":"+refOld)
}

// contains reports whether a commit has another one in its history, as far as that is here.
func (w *Workspace) contains(ctx context.Context, commit, other string) bool {
	if commit == other {
		return true
	}
	_, err := w.git.Run(ctx, git.Command{Dir: w.historyDir(), Args: []string{"merge-base", "--is-ancestor", other, commit}})
	return err == nil
}
