package workspace

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/toryo-dev/toryo/internal/git"
	"github.com/toryo-dev/toryo/internal/workdir"
)

// Merge brings what the base has got since into the workspace.
func (w *Workspace) Merge(ctx context.Context) ([]string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.fetch(ctx, "--depth=1", "+refs/heads/"+w.options.Base+":"+refTip); err != nil {
		return nil, err
	}
	tip, err := w.text(ctx, "rev-parse", "--verify", refTip+"^{commit}")
	if err != nil {
		return nil, err
	}
	w.tip = tip
	if tip == w.base || tip == w.merged {
		return nil, nil
	}
	merge, err := w.merging(ctx, w.base, tip)
	if err != nil {
		return nil, err
	}
	taken, err := w.takenWithBase(ctx, tip, merge)
	if err != nil {
		return nil, err
	}
	if err := w.bringIn(ctx, merge); err != nil {
		return nil, err
	}
	w.base, w.merged, w.wip, w.taken = tip, tip, "", taken
	return merge.conflicts, nil
}

// Tips are the commits of the base and of the branch.
func (w *Workspace) Tips() (base, branch string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.tip, w.start
}

// Conflicts names the files in which what the base had when the workspace was made
// contradicts what the work began with. Nothing is changed.
func (w *Workspace) Conflicts(ctx context.Context) ([]string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.tip == w.base || w.merged != "" || w.start == w.fork {
		return nil, nil
	}
	_, conflicts, err := w.mergeOnto(ctx, w.fork, w.start, w.tip)
	return conflicts, err
}

// TakeBranch puts the work on top of what others have pushed to the branch since. What may fail
// comes before the files are changed: if it fails, it is called again, and what was merged already
// would be merged once more.
func (w *Workspace) TakeBranch(ctx context.Context) ([]string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.fetch(ctx, "--depth=1", "+refs/heads/"+w.options.Branch+":"+refTheirs); err != nil {
		return nil, err
	}
	theirs, err := w.text(ctx, "rev-parse", "--verify", refTheirs+"^{commit}")
	if err != nil || theirs == w.start {
		return nil, err
	}
	fork, err := w.findFork(ctx, theirs, w.tip)
	if err != nil {
		return nil, err
	}
	merge, err := w.merging(ctx, w.start, theirs)
	if err != nil {
		return nil, err
	}
	taken, err := w.takenWith(ctx, theirs, merge)
	if err != nil {
		return nil, err
	}
	if err := w.replacePlain(ctx, theirs); err != nil {
		return nil, err
	}
	if err := w.bringIn(ctx, merge); err != nil {
		return nil, err
	}
	w.start, w.fork, w.wip, w.before, w.moved, w.taken = theirs, fork, "", "", true, taken
	if w.merged == "" || w.contains(ctx, fork, w.merged) { // they may have merged the base themselves
		w.base, w.merged = fork, ""
	}
	return merge.conflicts, nil
}

// merging is a merge of a commit of others with the files of the workspace.
type merging struct {
	tree      string   // what it makes
	conflicts []string // paths in which the two contradict each other
	was, want listing  // the files before and after
}

// merging merges a commit of others with the files of the workspace. Both have made something
// of the commit before. The files stay as they are; see bringIn.
func (w *Workspace) merging(ctx context.Context, before, theirs string) (m merging, err error) {
	if m.was, err = w.scan(ctx); err != nil {
		return merging{}, err
	}
	ours, err := w.record(ctx, m.was, []string{before}, "ours\n")
	if err != nil {
		return merging{}, err
	}
	if m.tree, m.conflicts, err = w.mergeOnto(ctx, before, ours, theirs); err != nil {
		return merging{}, err
	}
	m.want, err = w.tree(ctx, m.tree)
	return m, err
}

// bringIn brings a merge into the files of the workspace.
func (w *Workspace) bringIn(ctx context.Context, merge merging) error {
	if err := w.write(ctx, w.root, merge.was, merge.want); err != nil {
		return err
	}
	w.tracked, w.had, w.foldersOf = merge.want, merge.want, nil
	return nil
}

// mergeOnto merges the files of two commits as if each were made on top of the one before. The
// history between is not here, and is not needed: what counts is what the two have made of the
// commit that they share.
func (w *Workspace) mergeOnto(ctx context.Context, before, ours, theirs string) (tree string, conflicts []string, err error) {
	var commits [2]string
	for i, commit := range []string{ours, theirs} {
		commits[i], err = w.text(ctx, "-c", "user.name=toryo", "-c", "user.email=toryo@localhost", "commit-tree", "-p", before, "-m", "merge", commit+"^{tree}")
		if err != nil {
			return "", nil, err
		}
	}
	return w.mergeTrees(ctx, commits[0], commits[1])
}

// text runs git on our own directory and returns the line that it says.
func (w *Workspace) text(ctx context.Context, args ...string) (string, error) {
	output, err := w.git.Run(ctx, git.Command{Dir: w.dir, Args: args})
	if err != nil {
		return "", failure(err, "cannot merge the base")
	}
	return strings.TrimSpace(output), nil
}

// mergeTrees merges two commits and returns the tree, with marks where they
// contradict each other, and the paths of those.
func (w *Workspace) mergeTrees(ctx context.Context, ours, theirs string) (tree string, conflicts []string, err error) {
	output, err := w.git.Run(ctx, git.Command{Dir: w.dir, Args: []string{"merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", ours, theirs}})
	parts := strings.Split(strings.TrimSuffix(output, "\x00"), "\x00")
	if len(parts) == 0 || !isHash(parts[0]) { // it fails when there are conflicts, too
		if err == nil {
			err = errors.New("git merge-tree said nothing")
		}
		return "", nil, failure(err, "cannot merge the base")
	}
	conflicts = slices.DeleteFunc(parts[1:], func(name string) bool { return name == "" })
	slices.Sort(conflicts)
	return parts[0], slices.Compact(conflicts), nil
}

// write brings a folder from the files that it has to those of the history that it is
// to have. It writes below the folder only, whatever links there are.
func (w *Workspace) write(ctx context.Context, to *workdir.Dir, have, want listing) error {
	for _, name := range slices.Sorted(maps.Keys(have)) {
		if have[name] != want[name] && have[name].mode != submodule {
			if err := to.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return failure(err, "cannot remove the file "+quote(name))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if have[name] == want[name] {
			continue
		}
		if err := w.writeFile(ctx, to, name, want[name]); err != nil {
			return failure(err, "cannot write the file "+quote(name))
		}
	}
	return nil
}

// longestLink is how long the path may be that a link points to.
const longestLink = 4096

// writeFile makes one file of the history.
func (w *Workspace) writeFile(ctx context.Context, to *workdir.Dir, name string, want file) error {
	if info, err := to.Lstat(name); want.mode == submodule && err == nil && info.IsDir() {
		return nil
	}
	if err := makeWay(to, name); err != nil {
		return err
	}
	if want.mode == submodule {
		return to.Mkdir(name, 0o755)
	}
	command := git.Command{Dir: w.dir, Args: []string{"cat-file", "blob", want.hash}}
	if want.mode == link {
		target := &bounded{left: longestLink}
		command.Output = target
		if _, err := w.git.Run(ctx, command); err != nil {
			return err
		}
		return to.Symlink(target.Buffer.String(), name)
	}
	mode := fs.FileMode(0o644)
	if want.mode == executable {
		mode = 0o755
	}
	made, err := to.Create(name, mode)
	if err != nil {
		return err
	}
	command.Output = made
	_, err = w.git.Run(ctx, command)
	return errors.Join(err, made.Close())
}

// makeWay makes the folders above a file that is to be made. What is in its way
// and is not of the history goes: also a link or a file in the place of a folder.
func makeWay(to *workdir.Dir, name string) error {
	for at := 0; ; {
		end := strings.IndexByte(name[at:], '/')
		if end < 0 {
			return to.RemoveAll(name)
		}
		at += end
		if info, err := to.Lstat(name[:at]); err == nil && !info.IsDir() {
			if err := to.Remove(name[:at]); err != nil {
				return err
			}
		}
		if err := to.Mkdir(name[:at], 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		at++
	}
}
