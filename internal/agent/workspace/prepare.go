package workspace

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/toryo-dev/toryo/internal/git"
	"github.com/toryo-dev/toryo/internal/task"
)

// raw makes git check files out as they are in the history.
const raw = "* -text !eol -ident -filter !working-tree-encoding\n"

// Names that the commits have in git's own directory.
const (
	refTip    = "refs/toryo/base"
	refStart  = "refs/toryo/start"
	refOld    = "refs/toryo/old"
	refWork   = "refs/toryo/work"
	refTheirs = "refs/toryo/theirs"
	refTaken  = "refs/toryo/taken"
)

// Lines of the message of work in progress say what differences are counted from
// and where the work left the base.
const (
	baseTrailer = "Toryo-Base: "
	forkTrailer = "Toryo-Fork: "
)

// prepare fetches and checks out. The refs of the repository are as git ls-remote lists them.
func (w *Workspace) prepare(ctx context.Context, listed string) error {
	if _, err := w.git.Run(ctx, git.Command{Args: []string{"init", "--quiet", "--bare", "--template=", w.dir}}); err != nil {
		return failure(err, "cannot make git's directory")
	}
	if err := os.MkdirAll(filepath.Join(w.dir, "info"), 0o700); err != nil {
		return task.Wrap(task.DataDir, err, "cannot make git's directory")
	}
	if err := os.WriteFile(filepath.Join(w.dir, "info", "attributes"), []byte(raw), 0o600); err != nil {
		return task.Wrap(task.DataDir, err, "cannot make git's directory")
	}
	// What is fetched stays one pack, however small, which can be copied.
	if err := addTo(filepath.Join(w.dir, "config"), "[fetch]\n\tunpackLimit = 1\n"); err != nil {
		return task.Wrap(task.DataDir, err, "cannot make git's directory")
	}
	refs, err := w.readRefs(listed)
	if err != nil {
		return err
	}
	if err := w.fetchAll(ctx, refs); err != nil {
		return err
	}
	begin := w.start
	if w.wip != "" {
		begin = w.wip
	}
	if err := w.notePacks(); err != nil {
		return err
	}
	index := filepath.Join(w.dir, "index")
	if err := w.checkOut(ctx, begin, index, w.files); err != nil {
		return err
	}
	if w.tracked, err = w.tree(ctx, begin); err != nil {
		return err
	}
	w.had = w.tracked
	w.remarkOn(w.tracked)
	if w.wip != "" {
		w.kept = w.tracked
	}
	if w.wip != "" {
		index = "" // it is that of the work, which is on top of the start
	}
	if err := w.makePlain(ctx, plain{commit: w.start, base: w.tip, index: index}, w.files); err != nil {
		return err
	}
	return w.lookAtAll()
}

// remoteRefs lists what the repository has.
func (w *Workspace) remoteRefs(ctx context.Context) (string, error) {
	output, err := w.git.Run(ctx, git.Command{Args: []string{"ls-remote", "--quiet", "--symref", "--end-of-options", w.remote.URL}, Remote: &w.remote})
	return output, coded(err, "cannot reach the repository")
}

// headTarget is before the branch that HEAD leads to, in a list of refs.
const headTarget = "ref: "

// readRefs reads the list of what the repository has, and settles which branch is the base.
func (w *Workspace) readRefs(listed string) (map[string]string, error) {
	refs := map[string]string{}
	for line := range strings.Lines(listed) {
		hash, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if target, is := strings.CutPrefix(hash, headTarget); is {
			if name == "HEAD" && w.options.Base == "" {
				w.options.Base = strings.TrimPrefix(target, "refs/heads/")
			}
			continue
		}
		refs[name] = hash
	}
	if w.options.Base == "" {
		return nil, task.Errorf(task.NotFound, "the repository has no default branch").WithHint("push a first commit, or name a base branch")
	}
	if refs["refs/heads/"+w.options.Base] == "" {
		return nil, task.Errorf(task.NotFound, "the repository has no branch %q", w.options.Base).WithHint("push a first commit to it, or name another base branch")
	}
	if err := checkName("refs/heads/" + w.options.Branch); err != nil {
		return nil, err
	}
	return refs, nil
}

// checkName refuses what git would not take for the name of a ref.
func checkName(ref string) error {
	if git.IsRefName(ref) {
		return nil
	}
	return task.Errorf(task.Invalid, "%q is no name for a branch", ref)
}

// fetchAll fetches the base, what the work begins with, and the work in progress,
// and settles what differences are counted from.
func (w *Workspace) fetchAll(ctx context.Context, refs map[string]string) error {
	base := cmp.Or(w.options.BaseCommit, "refs/heads/"+w.options.Base)
	first := base
	switch branch := "refs/heads/" + w.options.Branch; {
	case w.options.StartCommit != "":
		first = w.options.StartCommit
	case w.options.Start != "":
		if first = w.options.Start; refs[first] == "" {
			return task.Errorf(task.NotFound, "the repository has no %s to begin with", first)
		}
	case refs[branch] != "":
		first = branch
	}
	w.left = refs["refs/heads/"+w.options.Branch]
	wip := cmp.Or(w.options.WIPCommit, refs[w.options.WIP])
	if w.options.WIP != "" && wip == "" {
		w.remark("workspace.work_gone")
	}
	if wip != "" {
		return w.fetchWork(ctx, base, wip)
	}
	if err := w.bring(ctx, refs, base, first); err != nil {
		return err
	}
	// The base may have moved since the refs were listed.
	var err error
	if w.tip, err = w.text(ctx, "rev-parse", "--verify", refTip+"^{commit}"); err != nil {
		return err
	}
	w.start = w.tip
	if first != base { // else one fetch has given both refs the same
		if w.start, err = w.text(ctx, "rev-parse", "--verify", refStart+"^{commit}"); err != nil {
			return err
		}
	}
	w.fork, err = w.findFork(ctx, w.start, w.tip)
	w.base = w.fork
	return err
}

// bring brings the base, and what the work begins with, without what was before them.
func (w *Workspace) bring(ctx context.Context, refs map[string]string, base, first string) error {
	tip, start := cmp.Or(refs[base], base), cmp.Or(refs[first], first)
	if w.theirs != "" && isHash(tip) && isHash(start) {
		return w.packFrom(ctx, w.theirs, tip, start)
	}
	return w.fetch(ctx, "--depth=1", "+"+base+":"+refTip, "+"+first+":"+refStart)
}

// fetchWork fetches work in progress, which says itself what it is on top of.
func (w *Workspace) fetchWork(ctx context.Context, base, wip string) error {
	if err := w.fetch(ctx, "--depth=2", "+"+base+":"+refTip, "+"+wip+":"+refWork); err != nil {
		return err
	}
	var err error
	if w.tip, err = w.text(ctx, "rev-parse", "--verify", refTip+"^{commit}"); err != nil {
		return err
	}
	if err := w.readWork(ctx, wip); err != nil {
		return err
	}
	if from := w.taken.from; from != "" && !w.has(ctx, from) {
		if err := w.fetch(ctx, "--depth=1", "+"+from+":"+refTaken); err != nil { // they may have replaced the history
			w.options.Log.WarnContext(ctx, "failed to fetch what the branch had: what others have pushed since is not compared", "commit", from, "error", err)
		}
	}
	if w.has(ctx, w.base) {
		return nil
	}
	return w.fetch(ctx, "--depth=1", "+"+w.base+":"+refOld)
}

// readWork reads what the work in progress is on top of.
func (w *Workspace) readWork(ctx context.Context, wip string) error {
	text, err := w.git.Run(ctx, git.Command{Dir: w.dir, Args: []string{"cat-file", "commit", wip}})
	if err != nil {
		return failure(err, "cannot read the work in progress")
	}
	var parents []string
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if parent, is := strings.CutPrefix(line, "parent "); is {
			parents = append(parents, parent)
		}
		if hash, is := strings.CutPrefix(line, baseTrailer); is && isHash(hash) {
			w.base = hash
		}
		if hash, is := strings.CutPrefix(line, forkTrailer); is && isHash(hash) {
			w.fork = hash
		}
		w.taken.read(line)
	}
	if len(parents) == 0 || len(parents) > 2 || w.base == "" || w.fork == "" {
		return task.Errorf(task.Invalid, "the work in progress at %s was not made by this program", w.options.WIP)
	}
	w.wip, w.start = wip, parents[0]
	if len(parents) == 2 {
		w.merged = parents[1]
	}
	return nil
}

func isHash(text string) bool {
	return (len(text) == 40 || len(text) == 64) && strings.Trim(text, "0123456789abcdef") == ""
}

// has reports whether a commit is here.
func (w *Workspace) has(ctx context.Context, commit string) bool {
	_, err := w.git.Run(ctx, git.Command{Dir: w.dir, Args: []string{"cat-file", "-e", commit + "^{tree}"}})
	return err == nil
}

// fetch fetches by refspecs. Flags come before them.
func (w *Workspace) fetch(ctx context.Context, specs ...string) error {
	args := []string{
		"fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--no-auto-maintenance",
		"--no-show-forced-updates", "--update-shallow",
	}
	for len(specs) > 0 && strings.HasPrefix(specs[0], "--") {
		args, specs = append(args, specs[0]), specs[1:]
	}
	args = append(append(args, "--end-of-options", w.remote.URL), specs...)
	_, err := w.git.Run(ctx, git.Command{Dir: w.dir, Args: args, Remote: &w.remote})
	return coded(err, "cannot fetch from the repository")
}

// checkOut writes the files of a commit into an empty folder.
func (w *Workspace) checkOut(ctx context.Context, commit, index, to string) error {
	if _, err := w.git.Run(ctx, git.Command{Dir: w.dir, Index: index, Args: []string{"read-tree", commit}}); err != nil {
		return ofMachine(task.Wrap(task.Invalid, err, "git does not take the file names of the repository"))
	}
	if _, err := w.git.Run(ctx, git.Command{Dir: w.dir, Index: index, Tree: to, From: to, Args: []string{"checkout-index", "--all", "--force", "--quiet", "--index"}}); err != nil {
		return failure(err, "cannot check the files out")
	}
	return nil
}

// remarkOn says what is in the repository that we do not bring along.
func (w *Workspace) remarkOn(files listing) {
	var modules []string
	for path, file := range files {
		if file.mode == submodule {
			modules = append(modules, quote(path))
		}
		if filepath.Base(path) == ".gitattributes" {
			if text, err := w.root.ReadFile(path, longestPatterns); err == nil && strings.Contains(string(text), "filter=lfs") {
				w.remark("workspace.pointers_only")
			}
		}
	}
	if len(modules) > 0 {
		w.remark("workspace.modules_left", some(modules))
	}
}
