package workspace

import (
	"context"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/toryo-dev/toryo/internal/git"
	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/workdir"
)

// Below is the commit that the branch's next one is on top of.
func (w *Workspace) Below() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.parents()[0]
}

// Before is the commit that the work is compared with.
func (w *Workspace) Before(ctx context.Context, others bool) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case !others:
		return w.base, nil
	case w.merged == "" || !w.has(ctx, w.fork):
		return w.start, nil
	case w.before == "" || w.beforeOf != w.merged:
		tree, conflicts, err := w.mergedStart(ctx)
		if err != nil {
			return "", err
		}
		if len(conflicts) > 0 {
			return w.merged, nil // with marks in its files it is nothing that could be tested
		}
		w.before, err = w.text(ctx, "-c", "user.name=toryo", "-c", "user.email=toryo@localhost", "commit-tree", "-p", w.start, "-m", "before", tree+"^{tree}")
		if err != nil {
			return "", err
		}
		w.beforeOf = w.merged
	}
	return w.before, nil
}

// export is a folder with the files of a commit.
type export struct {
	of    *Workspace
	dir   string // with the files and what git needs for them
	root  *workdir.Dir
	files listing
	sizes map[string]int64
}

// Export writes the files of a commit to a folder of their own. Folders of earlier ones are gone by
// then, so that no more of the disk is taken than when each was waited for.
func (w *Workspace) Export(ctx context.Context, commit string) (phase.Export, error) {
	if err := w.removals.wait(ctx); err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	dir, err := os.MkdirTemp(w.options.Dir, "export-")
	if err != nil {
		return nil, task.Wrap(task.DataDir, err, "cannot make a folder for the files of a commit")
	}
	made := &export{of: w, dir: dir}
	if err := made.fill(ctx, commit); err != nil {
		return nil, errors.Join(err, made.Remove())
	}
	return made, nil
}

func (e *export) fill(ctx context.Context, commit string) error {
	if err := os.Mkdir(e.Dir(), 0o700); err != nil {
		return task.Wrap(task.DataDir, err, "cannot make a folder for the files of a commit")
	}
	index := filepath.Join(e.dir, "index")
	if err := e.of.checkOut(ctx, commit, index, e.Dir()); err != nil {
		return err
	}
	if err := e.of.makePlain(ctx, plain{commit: commit, index: index}, e.Dir()); err != nil {
		return err
	}
	var err error
	if e.files, err = e.of.tree(ctx, commit); err != nil {
		return err
	}
	if e.sizes, err = e.of.fileSizes(ctx, commit); err != nil {
		return err
	}
	if e.root, err = workdir.Open(e.Dir()); err != nil {
		return task.Wrap(task.DataDir, err, "cannot open the files of a commit")
	}
	return nil
}

// fileSizes are the sizes of the files of a commit.
func (w *Workspace) fileSizes(ctx context.Context, commit string) (map[string]int64, error) {
	output, err := w.git.Run(ctx, git.Command{Dir: w.dir, Args: []string{"ls-tree", "-r", "-z", "-l", "--full-tree", commit}})
	if err != nil {
		return nil, failure(err, "cannot read the sizes of the files of a commit")
	}
	sizes := map[string]int64{}
	for line := range strings.SplitSeq(strings.TrimSuffix(output, "\x00"), "\x00") {
		about, name, found := strings.Cut(line, "\t")
		fields := strings.Fields(about)
		if !found || len(fields) != 4 {
			continue
		}
		if size, err := strconv.ParseInt(fields[3], 10, 64); err == nil { // a submodule has none
			sizes[name] = size
		}
	}
	return sizes, nil
}

// Dir is the folder.
func (e *export) Dir() string { return filepath.Join(e.dir, "files") }

// Restore puts back what differs from the commit.
func (e *export) Restore(ctx context.Context) ([]string, error) {
	e.of.mu.Lock()
	defer e.of.mu.Unlock()
	differing, err := e.differing(ctx)
	if err != nil {
		return nil, err
	}
	have := maps.Clone(e.files)
	for _, name := range differing {
		delete(have, name)
	}
	return differing, e.of.write(ctx, e.root, have, e.files)
}

// changedFrom names the files that a listing has and another one has not, or otherwise.
func changedFrom(want, have listing) []string {
	var names []string
	for name, file := range want {
		if have[name] != file {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// differing names the files that are not as the commit has them. All are read, several folders at a
// time: what files look like from outside is not enough for a verdict, because a program that has a
// file in its memory can write to it unseen for a while.
func (e *export) differing(ctx context.Context) ([]string, error) {
	folders := map[string][]string{}
	for name := range e.files {
		folders[path.Dir(name)] = append(folders[path.Dir(name)], name)
	}
	near := newNearby(e.root)
	defer near.close()
	jobs, ctx := errgroup.WithContext(ctx)
	jobs.SetLimit(runtime.GOMAXPROCS(0))
	var mu sync.Mutex
	var differing []string
	for at, names := range folders {
		is, err := near.isFolder(at)
		if err != nil {
			return nil, errors.Join(err, jobs.Wait())
		}
		jobs.Go(func() error {
			if is {
				var err error
				if names, err = e.differingIn(ctx, at, names); err != nil {
					return err
				}
			}
			mu.Lock()
			defer mu.Unlock()
			differing = append(differing, names...)
			return nil
		})
	}
	err := jobs.Wait()
	slices.Sort(differing)
	return differing, err
}

// differingIn are those of the names of a folder.
func (e *export) differingIn(ctx context.Context, at string, names []string) ([]string, error) {
	in, err := e.root.Sub(at)
	if err != nil {
		return names, gone(err)
	}
	defer func() { _ = in.Close() }() // it was only read
	var differing []string
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		same, err := e.same(in, path.Base(name), name)
		if err != nil {
			return nil, err
		}
		if !same {
			differing = append(differing, name)
		}
	}
	return differing, nil
}

// same reports whether a file in a folder is as the commit has it.
func (e *export) same(in *workdir.Dir, base, name string) (bool, error) {
	want := e.files[name]
	info, err := in.Lstat(base)
	if err != nil {
		return false, gone(err)
	}
	switch {
	case want.mode == submodule:
		return info.IsDir(), nil
	case want.mode == link:
		if info.Mode().Type() != fs.ModeSymlink {
			return false, nil
		}
		target, err := in.Readlink(base)
		return err == nil && e.of.hash([]byte(target)) == want.hash, gone(err)
	case !info.Mode().IsRegular() || info.Size() != e.sizes[name] || modeOf(info) != want.mode:
		return false, nil
	}
	opened, _, err := in.OpenFile(base)
	if err != nil {
		return false, gone(err)
	}
	defer func() { _ = opened.Close() }()
	sum := e.of.blob(info.Size())
	if _, err := io.Copy(sum, io.LimitReader(opened, info.Size())); err != nil {
		return false, failure(err, "cannot read the file "+quote(name))
	}
	return hex.EncodeToString(sum.Sum(nil)) == want.hash, nil
}

// Remove has the folder removed, which nobody waits for but the next Export and the Remove of the
// workspace: in a large repository it takes as long as to write the files.
func (e *export) Remove() error {
	var err error
	if e.root != nil {
		err = e.root.Close()
	}
	e.of.removals.begin(func() {
		if err := workdir.Remove(e.dir); err != nil { // the workspace tries again
			e.of.options.Log.Warn("failed to remove the files of a commit", "error", err)
		}
	})
	return err
}

// Preserve does something and puts back the files that it has changed.
func (w *Workspace) Preserve(ctx context.Context, do func(context.Context) error) (phase.Preserved, error) {
	before, err := w.recorded(ctx)
	if err != nil {
		return phase.Preserved{}, err
	}
	failed := do(ctx)
	ctx = context.WithoutCancel(ctx) // what was done is undone in any case
	w.mu.Lock()
	defer w.mu.Unlock()
	after, err := w.scan(ctx)
	if err != nil {
		return phase.Preserved{}, errors.Join(failed, err)
	}
	preserved := phase.Preserved{Restored: changedFrom(before, after), Made: map[string]string{}}
	for name, file := range after {
		if _, was := before[name]; !was {
			preserved.Made[name] = file.hash
			delete(after, name) // it stays
		}
	}
	return preserved, errors.Join(failed, w.write(ctx, w.root, after, before))
}

// Changed reports whether a save has other files than the branch had at first, with what
// the base has got since.
func (w *Workspace) Changed(ctx context.Context, saved string) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if saved == "" {
		return false, nil
	}
	files, err := w.tree(ctx, saved)
	if err != nil {
		return false, err
	}
	before := w.start
	if w.merged != "" && w.has(ctx, w.fork) {
		if before, _, err = w.mergedStart(ctx); err != nil {
			return false, err
		}
	}
	first, err := w.tree(ctx, before)
	return !maps.Equal(files, first), err
}

// mergedStart is the tree of what the branch had at first with the base merged into it.
func (w *Workspace) mergedStart(ctx context.Context) (tree string, conflicts []string, err error) {
	if w.start == w.fork {
		return w.merged, nil, nil
	}
	return w.mergeOnto(ctx, w.fork, w.start, w.merged)
}

// recorded lists the files of the workspace after the history has them all.
func (w *Workspace) recorded(ctx context.Context) (listing, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	files, _, err := w.compared(ctx, "")
	return files, err
}
