package workspace

import (
	"context"
	"errors"
	"maps"
	"strings"

	"github.com/toryo-dev/toryo/internal/git"
	"github.com/toryo-dev/toryo/internal/task"
)

// Save commits the workspace as work in progress and pushes it. Files over the
// limit stay as they were, and are in the remarks: the rest is not lost for them.
func (w *Workspace) Save(ctx context.Context, message string) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	files, err := w.scan(ctx)
	if err != nil {
		return "", err
	}
	if len(w.large) > 0 {
		w.remark("workspace.over_limit", w.options.MaxFile>>20, w.largeNames())
	}
	last, err := w.last(ctx)
	if err != nil {
		return "", err
	}
	if maps.Equal(files, last) && (w.wip != "" || w.merged == "" && !w.moved) {
		return w.wip, nil
	}
	parents := []string{w.start}
	if w.merged != "" {
		parents = append(parents, w.merged)
	}
	commit, err := w.record(ctx, files, parents, strings.TrimRight(message, "\n")+"\n\n"+baseTrailer+w.base+"\n"+forkTrailer+w.fork+"\n"+w.taken.trailers())
	if err != nil {
		return "", err
	}
	if err := w.send(ctx, commit, task.WIPRef); err != nil {
		return "", err
	}
	w.kept, w.had, w.wip, w.moved = files, files, commit, false
	return commit, nil
}

// last is what the last save had.
func (w *Workspace) last(ctx context.Context) (listing, error) {
	if w.wip != "" {
		return w.kept, nil
	}
	return w.tree(ctx, w.start)
}

// Fits implements phase.Repository.
func (w *Workspace) Fits(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, err := w.scan(ctx); err != nil {
		return err
	}
	return w.tooLarge()
}

// Commit makes the branch and pushes it. Without the commit of a save it fails with
// TooLarge if a file is over the limit.
func (w *Workspace) Commit(ctx context.Context, message, saved string) (commit string, changed bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	files, err := w.toCommit(ctx, saved)
	if err != nil {
		return "", false, err
	}
	parents := w.parents()
	before, err := w.tree(ctx, parents[0])
	if err != nil {
		return "", false, err
	}
	if maps.Equal(files, before) && len(parents) == 1 {
		return parents[0], false, nil
	}
	if commit, err = w.record(ctx, files, parents, strings.TrimRight(message, "\n")+"\n"); err != nil {
		return "", false, err
	}
	if err := w.send(ctx, commit, "refs/heads/"+w.options.Branch); err != nil {
		return "", false, err
	}
	return commit, true, nil
}

// toCommit are the files of a save, or of the workspace.
func (w *Workspace) toCommit(ctx context.Context, saved string) (listing, error) {
	if saved != "" {
		files, err := w.tree(ctx, saved)
		return maps.Clone(files), err
	}
	files, err := w.scan(ctx)
	if err != nil {
		return nil, err
	}
	return files, w.tooLarge()
}

// parents are those of the branch's next commit.
func (w *Workspace) parents() []string {
	switch {
	case w.merged == "":
		return []string{w.start}
	case w.start == w.fork: // there is nothing below the work but the base
		return []string{w.merged}
	default:
		return []string{w.start, w.merged}
	}
}

// record makes a commit of the files, read anew where the history does not have them yet.
// The listing is made to say what they had just then.
func (w *Workspace) record(ctx context.Context, files listing, parents []string, message string) (string, error) {
	before, err := w.tree(ctx, parents[0])
	if err != nil {
		return "", err
	}
	for name, now := range files {
		if now == before[name] || w.known[now.hash] || now.mode == submodule {
			continue
		}
		if err := ctx.Err(); err != nil {
			return "", err
		}
		if err := w.keep(name, files); err != nil {
			return "", err
		}
	}
	root, err := w.writeTrees(files, before, w.folders[parents[0]])
	if err != nil {
		return "", failure(err, "cannot commit the workspace")
	}
	commit, err := w.writeCommit(root, parents, message)
	if err != nil {
		return "", failure(err, "cannot commit the workspace")
	}
	return commit, nil
}

// errShrunk says that a file got shorter after it was known how long it is.
var errShrunk = errors.New("it got shorter while it was read")

// keep puts the content of a file into the history. One that went in the meantime is taken
// out of the listing.
func (w *Workspace) keep(name string, files listing) error {
	now := files[name]
	var err error
	const attempts = 5
	for range attempts {
		if now.mode == link {
			now.hash, err = w.keepLink(name)
		} else {
			now.hash, err = w.keepContent(name)
		}
		if !errors.Is(err, errShrunk) {
			break
		}
	}
	switch {
	case err != nil:
		if _, ours := task.AsError(err); ours {
			return err
		}
		return failure(err, "cannot keep the file "+quote(name))
	case now.hash == "":
		delete(files, name)
	default:
		files[name], w.known[now.hash] = now, true
	}
	return nil
}

// keepLink returns the name of the content of a link, or none if it went.
func (w *Workspace) keepLink(name string) (string, error) {
	target, err := w.root.Readlink(name)
	if err != nil {
		return "", gone(err)
	}
	return w.writeObject("blob", int64(len(target)), strings.NewReader(target))
}

// keepContent is the same of a file, which has as much as when it is opened.
func (w *Workspace) keepContent(name string) (string, error) {
	opened, err := w.openFile(name)
	if err != nil || opened == nil {
		return "", err
	}
	defer func() { _ = opened.Close() }()
	info, err := opened.Stat()
	if err != nil {
		return "", err
	}
	if info.Size() > w.options.MaxFile {
		return "", task.Errorf(task.TooLarge, "the file %s grows while it is read and is over the limit now", quote(name))
	}
	return w.writeObject("blob", info.Size(), opened)
}

// push pushes a commit to a ref of the task's namespace, whatever that has.
func (w *Workspace) push(ctx context.Context, commit, ref string) error {
	_, err := w.git.Run(ctx, git.Command{Dir: w.dir, Remote: &w.remote, Args: []string{
		"push", "--quiet", "--no-verify", "--no-follow-tags", "--no-signed", "--no-thin", "--force", "--end-of-options", w.remote.URL, commit + ":" + ref,
	}})
	return coded(err, "cannot push to "+ref)
}
