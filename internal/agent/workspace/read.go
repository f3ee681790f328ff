package workspace

import (
	"bytes"
	"context"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/toryo-dev/toryo/internal/git"
	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/task"
)

// maxDiff is how much of a difference is given as text.
const maxDiff = 8 << 20

// Diff compares a save or the workspace with the base.
func (w *Workspace) Diff(ctx context.Context, saved string) (phase.Diff, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	files, commit, err := w.compared(ctx, saved)
	if err != nil {
		return phase.Diff{}, err
	}
	before, err := w.tree(ctx, w.base)
	if err != nil {
		return phase.Diff{}, err
	}
	diff := phase.Diff{Files: []string{}}
	for name := range maps.Keys(files) {
		if before[name] != files[name] {
			diff.Files = append(diff.Files, name)
		}
	}
	for name := range maps.Keys(before) {
		if _, stays := files[name]; !stays {
			diff.Files = append(diff.Files, name)
		}
	}
	slices.Sort(diff.Files)
	text := &bounded{left: maxDiff}
	if _, err := w.git.Run(ctx, git.Command{Dir: w.dir, Output: text, Args: []string{
		"diff-tree", "-r", "-p", "--no-ext-diff", "--no-textconv", "--no-color", "--find-renames", "--src-prefix=a/", "--dst-prefix=b/",
		"--end-of-options", w.base, commit,
	}}); err != nil {
		return phase.Diff{}, failure(err, "cannot compare with the base")
	}
	diff.Text, diff.Cut = text.String(), text.cut
	return diff, nil
}

// compared are the files of a save, or those of the workspace, and their commit.
func (w *Workspace) compared(ctx context.Context, saved string) (listing, string, error) {
	if saved != "" {
		files, err := w.tree(ctx, saved)
		return files, saved, err
	}
	files, err := w.scan(ctx)
	if err != nil {
		return nil, "", err
	}
	commit, err := w.record(ctx, files, []string{w.start}, "difference\n")
	return files, commit, err
}

// bounded keeps the start of what is written to it, and says when there was more.
type bounded struct {
	bytes.Buffer
	left int
	cut  bool
}

func (b *bounded) Write(p []byte) (int, error) {
	n := min(len(p), b.left)
	b.left -= n
	b.cut = b.cut || n < len(p)
	b.Buffer.Write(p[:n])
	return len(p), nil
}

func (b *bounded) String() string {
	text := b.Buffer.String()
	if !b.cut {
		return text
	}
	if at := strings.LastIndex(text, "\ndiff --git "); at > 0 {
		text = text[:at+1]
	}
	return text + "# the rest of the difference is too long to be shown\n"
}

// maxBase is how much of a file of the base is read.
const maxBase = 4 << 20

// Base returns a file of the base branch. A link is followed as long as it stays
// in the repository. A file that is too long to be read has the code TooLarge.
func (w *Workspace) Base(ctx context.Context, name string) ([]byte, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	missing := task.Errorf(task.NotFound, "the base branch has no file %s", quote(name))
	clean := path.Clean(name)
	if path.IsAbs(clean) || clean == ".." || strings.HasPrefix(clean, "../") || strings.Contains(clean, "\x00") {
		return nil, missing
	}
	about, err := w.git.Run(ctx, git.Command{
		Dir: w.dir, Input: strings.NewReader(w.tip + ":" + clean + "\x00"),
		Args: []string{"cat-file", "--batch-check=%(objecttype) %(objectsize) %(objectname)", "--follow-symlinks", "-z"},
	})
	if err != nil {
		return nil, failure(err, "cannot read the base branch")
	}
	fields := strings.Fields(about)
	if len(fields) != 3 || fields[0] != "blob" || !isHash(fields[2]) {
		return nil, missing
	}
	length, err := strconv.Atoi(fields[1])
	if err != nil {
		return nil, missing // a file that is called like that
	}
	if length > maxBase {
		w.remark("workspace.too_long", maxBase>>20, quote(name))
		return nil, task.Errorf(task.TooLarge, "the file %s of the base branch has more than %d MB", quote(name), maxBase>>20)
	}
	content, err := w.git.Run(ctx, git.Command{Dir: w.dir, Args: []string{"cat-file", "blob", fields[2]}})
	if err != nil {
		return nil, failure(err, "cannot read the base branch")
	}
	return []byte(content), nil
}

// BaseFiles lists the files of the base branch, without its submodules.
func (w *Workspace) BaseFiles(ctx context.Context) ([]string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.names(ctx, w.tip)
}

// Files lists the files of a commit, without its submodules.
func (w *Workspace) Files(ctx context.Context, commit string) ([]string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.names(ctx, commit)
}

func (w *Workspace) names(ctx context.Context, commit string) ([]string, error) {
	files, err := w.tree(ctx, commit)
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(files))
	for name, file := range files {
		if file.mode != submodule {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}
