package workspace

import (
	"bufio"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
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
	w.kept, w.wip, w.moved = files, commit, false
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

// record makes a commit of the files, read anew where the history does not have
// them yet. Git gets them as a stream and looks at nothing itself.
func (w *Workspace) record(ctx context.Context, files listing, parents []string, message string) (string, error) {
	before, err := w.tree(ctx, parents[0])
	if err != nil {
		return "", err
	}
	const attempts = 5
	for left := attempts; ; left-- {
		commit, err := w.recordOnce(ctx, files, before, parents, message)
		if err == nil || left == 0 || !errors.Is(err, errShrunk) {
			return commit, err
		}
	}
}

func (w *Workspace) recordOnce(ctx context.Context, files, before listing, parents []string, message string) (string, error) {
	reader, writer := io.Pipe()
	written := make(chan error, 1)
	go func() {
		err := w.stream(writer, files, before, parents, message)
		_ = writer.CloseWithError(err)
		written <- err
	}()
	output, err := w.git.Run(ctx, git.Command{
		Dir: w.dir, Input: reader,
		// Files over the threshold are not held in memory.
		Args: []string{"-c", "core.bigFileThreshold=4m", "fast-import", "--quiet", "--force", "--done", "--date-format=raw"},
	})
	_ = reader.CloseWithError(io.ErrClosedPipe) // ends the writer, should git have ended early
	streamErr := <-written
	if err != nil {
		if _, ours := task.AsError(streamErr); ours || errors.Is(streamErr, errShrunk) {
			return "", streamErr
		}
		return "", failure(err, "cannot commit the workspace")
	}
	commit := strings.TrimSpace(output)
	if !isHash(commit) {
		return "", task.Errorf(task.Internal, "git made no commit of the workspace")
	}
	for _, file := range files {
		w.known[file.hash] = true
	}
	return commit, nil
}

// stream tells git what the commit is: what differs from before, its first
// parent. The files are told with their content, and the listing is made to say
// what they had just then.
func (w *Workspace) stream(to io.Writer, files, before listing, parents []string, message string) error {
	out := bufio.NewWriterSize(to, 256<<10)
	message = strings.ReplaceAll(message, "\x00", "")
	if _, err := fmt.Fprintf(out, "commit %s\nmark :1\ncommitter %s <%s> %d +0000\ndata %d\n%s\nfrom %s\n",
		refWork, w.options.Author.Name, w.options.Author.Email, w.now().Unix(), len(message), message, parents[0]); err != nil {
		return err
	}
	for _, parent := range parents[1:] {
		if _, err := fmt.Fprintf(out, "merge %s\n", parent); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if _, stays := files[name]; !stays {
			if _, err := fmt.Fprintf(out, "D %s\n", git.StreamName(name)); err != nil {
				return err
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if files[name] == before[name] {
			continue
		}
		if err := w.streamFile(out, name, files); err != nil {
			return err
		}
	}
	if _, err := out.WriteString("get-mark :1\ndone\n"); err != nil {
		return err
	}
	return out.Flush()
}

func (w *Workspace) streamFile(out *bufio.Writer, name string, files listing) error {
	now := files[name]
	if w.known[now.hash] || now.mode == submodule {
		_, err := fmt.Fprintf(out, "M %s %s %s\n", now.mode, now.hash, git.StreamName(name))
		return err
	}
	if now.mode == link {
		target, err := w.root.Readlink(name)
		if err != nil {
			return w.streamGone(out, name, files, gone(err))
		}
		files[name] = file{link, w.hash([]byte(target))}
		_, err = fmt.Fprintf(out, "M %s inline %s\ndata %d\n%s\n", link, git.StreamName(name), len(target), target)
		return err
	}
	opened, err := w.openFile(name)
	if err != nil || opened == nil {
		return w.streamGone(out, name, files, err)
	}
	defer func() { _ = opened.Close() }()
	return w.streamContent(out, name, opened, files)
}

// streamGone tells that a file went away in the meantime.
func (w *Workspace) streamGone(out *bufio.Writer, name string, files listing, err error) error {
	if err != nil {
		return err
	}
	delete(files, name)
	_, err = fmt.Fprintf(out, "D %s\n", git.StreamName(name))
	return err
}

// errShrunk says that a file got shorter after git was told its length.
var errShrunk = errors.New("it got shorter while it was read")

// streamContent tells the content of a file without holding it in memory: as much
// as the file has when it is opened.
func (w *Workspace) streamContent(out *bufio.Writer, name string, opened *os.File, files listing) error {
	info, err := opened.Stat()
	if err != nil {
		return err
	}
	if info.Size() > w.options.MaxFile {
		return task.Errorf(task.TooLarge, "the file %s grows while it is read and is over the limit now", quote(name))
	}
	mode := files[name].mode
	if _, err := fmt.Fprintf(out, "M %s inline %s\ndata %d\n", mode, git.StreamName(name), info.Size()); err != nil {
		return err
	}
	sum := w.hasher(info.Size())
	n, err := io.Copy(io.MultiWriter(out, sum), io.LimitReader(opened, info.Size()))
	switch {
	case err != nil:
		return failure(err, "cannot read the file "+quote(name))
	case n < info.Size():
		return errShrunk
	}
	files[name] = file{mode, hex.EncodeToString(sum.Sum(nil))}
	return out.WriteByte('\n')
}

// push pushes a commit to a ref of the task's namespace, whatever that has.
func (w *Workspace) push(ctx context.Context, commit, ref string) error {
	_, err := w.git.Run(ctx, git.Command{Dir: w.dir, Remote: &w.remote, Args: []string{
		"push", "--quiet", "--no-verify", "--no-follow-tags", "--no-signed", "--no-thin", "--force", "--end-of-options", w.remote.URL, commit + ":" + ref,
	}})
	return coded(err, "cannot push to "+ref)
}
