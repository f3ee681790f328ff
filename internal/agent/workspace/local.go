package workspace

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toryo-dev/toryo/internal/git"
	"github.com/toryo-dev/toryo/internal/task"
)

// trusted lets git read a repository that belongs to someone else: the person
// who named it decides.
const trusted = "[safe]\n\tdirectory = *\n"

// Local makes a workspace from a repository on this machine, which URL is the
// path of. Commits leave a branch there; work in progress stays in git's own
// directory. The checked-out files of the repository, its hooks and its other
// branches are left alone. It fails with Conflict if the branch is checked out
// there.
func Local(ctx context.Context, options Options) (*Workspace, error) {
	w, err := open(options)
	if err != nil {
		return nil, err
	}
	if err := w.prepareLocal(ctx); err != nil {
		_ = w.root.Close()
		return nil, err
	}
	return w, nil
}

func (w *Workspace) prepareLocal(ctx context.Context) error {
	w.git.Config = filepath.Join(w.options.Dir, "config")
	if err := os.WriteFile(w.git.Config, []byte(trusted), 0o600); err != nil {
		return task.Wrap(task.DataDir, err, "the folder for the workspace cannot be used")
	}
	path, err := filepath.Abs(w.options.URL)
	if err != nil {
		return task.Wrap(task.Invalid, err, "the path of the repository cannot be used")
	}
	theirs, err := w.git.Run(ctx, git.Command{From: path, Args: []string{"rev-parse", "--absolute-git-dir"}})
	if err != nil {
		return task.Wrap(task.NotFound, err, path+" is no git repository").WithHint("make one with git init and a first commit")
	}
	theirs = strings.TrimSuffix(theirs, "\n")
	if !filepath.IsAbs(theirs) {
		return task.Errorf(task.NotFound, "%s is no git repository", path)
	}
	w.remote, w.theirs = git.Remote{URL: theirs}, theirs
	listed, err := w.localRefs(ctx, theirs)
	if err != nil {
		return err
	}
	w.send = func(ctx context.Context, commit, ref string) error { return w.leave(ctx, theirs, commit, ref) }
	return w.prepare(ctx, listed)
}

// localRefs lists the refs of a repository on this machine as git ls-remote does. It fails with
// Conflict if the branch is checked out there.
func (w *Workspace) localRefs(ctx context.Context, theirs string) (string, error) {
	branch := "refs/heads/" + w.options.Branch
	output, err := w.git.Run(ctx, git.Command{Dir: theirs, Args: []string{"for-each-ref", "--format=%(objectname)%09%(refname)%09%(worktreepath)"}})
	if err != nil {
		return "", task.Wrap(task.Invalid, err, "cannot read the repository "+w.options.URL)
	}
	var listed strings.Builder
	head, err := w.git.Run(ctx, git.Command{Dir: theirs, Args: []string{"symbolic-ref", "--quiet", "HEAD"}})
	if head = strings.TrimSuffix(head, "\n"); err == nil {
		listed.WriteString(headTarget + head + "\tHEAD\n")
	}
	used := err == nil && head == branch
	for line := range strings.Lines(output) {
		hash, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		name, tree, _ := strings.Cut(rest, "\t")
		listed.WriteString(hash + "\t" + name + "\n")
		used = used || name == branch && tree != ""
	}
	if used {
		return "", task.Errorf(task.Conflict, "the branch %q is checked out in %s", w.options.Branch, w.options.URL).WithHint("check another branch out, or choose another name")
	}
	return listed.String(), nil
}

// packFrom takes two commits from a repository on this machine, without what was before them. They are
// packed where they are wanted, and nothing is written to the repository. To fetch them would be to
// read all that was packed once more, in order to name it. So neither is checked again here: that the
// objects have the names that they are known by, and that all are there that others name. What is on
// this machine is believed, as far as the checksums that it has.
func (w *Workspace) packFrom(ctx context.Context, theirs, tip, start string) error {
	objects, err := w.git.Run(ctx, git.Command{Dir: theirs, Args: []string{"rev-parse", "--path-format=absolute", "--git-path", "objects"}})
	if err != nil {
		return coded(err, "cannot copy from the repository")
	}
	commits := slices.Compact([]string{tip, start})
	shallow := strings.Join(commits, "\n") + "\n"
	var wanted strings.Builder
	for _, commit := range commits {
		wanted.WriteString("--shallow " + commit + "\n")
	}
	wanted.WriteString(shallow)
	if _, err := w.git.Run(ctx, git.Command{Dir: w.dir, Alternate: strings.TrimSuffix(objects, "\n"), Input: strings.NewReader(wanted.String()), Args: []string{
		"pack-objects", "--quiet", "--revs", "--delta-base-offset", "--window=0", "--compression=1", filepath.Join(w.dir, "objects", "pack", "pack"),
	}}); err != nil {
		return coded(err, "cannot copy from the repository")
	}
	if err := addTo(filepath.Join(w.dir, "shallow"), shallow); err != nil {
		return task.Wrap(task.DataDir, err, "cannot write to git's directory")
	}
	_, err = w.git.Run(ctx, git.Command{Dir: w.dir, Args: []string{"update-ref", "--no-deref", "--stdin"},
		Input: strings.NewReader("update " + refTip + " " + tip + "\nupdate " + refStart + " " + start + "\n")})
	return coded(err, "cannot copy from the repository")
}

// leave brings a commit into the repository and moves the branch there, if it is
// where it was when we began or where we have put it.
func (w *Workspace) leave(ctx context.Context, theirs, commit, ref string) error {
	if ref == task.WIPRef {
		return nil
	}
	own := git.Remote{URL: w.dir}
	if _, err := w.git.Run(ctx, git.Command{Dir: theirs, Remote: &own, Args: []string{
		"fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--no-auto-maintenance", own.URL, commit,
	}}); err != nil {
		return coded(err, "cannot bring the commit into the repository")
	}
	old := w.left
	if old == "" {
		old = strings.Repeat("0", len(commit))
	}
	if _, err := w.git.Run(ctx, git.Command{Dir: theirs, Args: []string{"update-ref", "--no-deref", "--end-of-options", ref, commit, old}}); err != nil {
		return task.Wrap(task.Conflict, err, "the branch "+strings.TrimPrefix(ref, "refs/heads/")+" was changed by someone else in the meantime")
	}
	w.left = commit
	return nil
}
