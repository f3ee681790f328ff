package workspace

import (
	"context"
	"crypto/sha1" //nolint:gosec // it is how git names objects
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/toryo-dev/toryo/internal/git"
	"github.com/toryo-dev/toryo/internal/task"
)

// The modes of files in the history.
const (
	plainFile  = "100644"
	executable = "100755"
	link       = "120000"
	submodule  = "160000"
)

// file is a file as the history has it.
type file struct{ mode, hash string }

// listing is all files of a commit, or of the workspace, by path.
type listing map[string]file

// sight is a file when it was last read, and what it looked like from outside.
type sight struct {
	look look
	file file
}

// settled is how old a change must be for a look from outside to tell whether
// there was another: clocks of file systems tick slowly.
const settled = 2 * time.Second

// tree lists the files of a commit.
func (w *Workspace) tree(ctx context.Context, commit string) (listing, error) {
	if files, known := w.trees[commit]; known {
		return files, nil
	}
	output, err := w.git.Run(ctx, git.Command{Dir: w.dir, Args: []string{"ls-tree", "-r", "-t", "-z", "--full-tree", commit}})
	if err != nil {
		return nil, failure(err, "cannot read the files of a commit")
	}
	files, folders := listing{}, map[string]string{}
	for line := range strings.SplitSeq(strings.TrimSuffix(output, "\x00"), "\x00") {
		about, name, found := strings.Cut(line, "\t")
		fields := strings.Fields(about)
		switch {
		case !found || len(fields) != 3:
		case fields[1] == "tree":
			folders[name] = fields[2]
		default:
			files[name] = file{mode: fields[0], hash: fields[2]}
			w.known[fields[2]] = true
		}
	}
	w.trees[commit], w.folders[commit] = files, folders
	return files, nil
}

// scan lists the files of the workspace as a commit would have them.
func (w *Workspace) scan(ctx context.Context) (listing, error) {
	w.large = nil
	files := make(listing, len(w.tracked))
	base, err := w.tree(ctx, w.base)
	if err != nil {
		return nil, err
	}
	changed, err := w.walk(ctx, base, files)
	if err != nil {
		return nil, err
	}
	// Only a look by its name tells that a file is gone: a folder may be one that cannot be listed, and
	// a name may be passed over while something else is renamed. Of submodules there may be nothing.
	for name := range w.tracked {
		if _, listed := files[name]; listed {
			continue
		}
		if _, ofBase := base[name]; ofBase || !w.isApart(name) {
			changed = append(changed, name)
		}
	}
	near := newNearby(w.root)
	defer near.close()
	slices.Sort(changed) // folder by folder
	for _, name := range slices.Compact(changed) {
		_, ofBase := base[name]
		if err := w.include(ctx, near, files, name, w.tracked[name], ofBase); err != nil {
			return nil, err
		}
	}
	if err := w.includeClosed(near, files); err != nil {
		return nil, err
	}
	slices.Sort(w.large)
	return files, ctx.Err()
}

// includeClosed adds the files that were not checked out, and that were there at the last save, of folders
// that may not be opened now.
func (w *Workspace) includeClosed(near *nearby, files listing) error {
	var names []string
	for name := range w.had {
		_, tracked := w.tracked[name]
		if _, listed := files[name]; !tracked && !listed && !w.isApart(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names) // folder by folder
	for _, name := range names {
		above, err := near.isFolder(path.Dir(name))
		if err != nil {
			return err
		}
		if !above {
			continue
		}
		if _, err := near.lstat(name); errors.Is(err, fs.ErrPermission) {
			files[name], _ = w.unreadable(name)
		}
	}
	return nil
}

// unreadable is a file that may not be looked at: it is taken to be as it was when that was last known.
func (w *Workspace) unreadable(name string) (was file, there bool) {
	w.remark("workspace.unreadable", quote(name))
	was, there = w.had[name]
	return was, there
}

// include adds a file to a listing, unless set-up made it and nothing has changed it since.
func (w *Workspace) include(ctx context.Context, near *nearby, files listing, name string, was file, ofBase bool) error {
	if above, err := near.isFolder(path.Dir(name)); err != nil || !above && was.mode != submodule {
		return err
	}
	now, there, err := w.see(ctx, near, name, was)
	if there && (ofBase || !w.isMade(name, now)) {
		files[name] = now
	}
	return err
}

// isMade reports whether a file is as set-up made it.
func (w *Workspace) isMade(name string, now file) bool {
	return w.apart[name] != "" && w.apart[name] == now.hash
}

// see looks at one file, and reads it if it may have changed. What is over the
// limit and was changed is noted, and is as it was.
func (w *Workspace) see(ctx context.Context, near *nearby, name string, was file) (now file, there bool, err error) {
	info, err := near.lstat(name)
	if err != nil && was.mode == submodule {
		return was, true, gone(err)
	}
	if errors.Is(err, fs.ErrPermission) { // it is in a folder that may not be opened
		was, there = w.unreadable(name)
		return was, there, nil
	}
	if err != nil {
		return file{}, false, gone(err)
	}
	kind := info.Mode().Type()
	switch {
	case was.mode == submodule:
		return was, kind == fs.ModeDir, nil
	case kind == fs.ModeDir:
		return file{}, false, nil
	case kind == fs.ModeSymlink:
		target, err := w.root.Readlink(name)
		if err != nil {
			return file{}, false, gone(err)
		}
		return file{link, w.hash([]byte(target))}, true, nil
	case kind != 0:
		w.remark("workspace.no_file", quote(name))
		return file{}, false, nil
	case info.Size() > w.options.MaxFile:
		return w.seeLarge(ctx, name, was, info)
	}
	from := lookOf(info)
	if last, seen := w.seen[name]; seen && from.certain && last.look == from {
		return last.file, true, nil
	}
	return w.read(name)
}

// seeLarge looks at a file over the limit. One that the history has like this is no
// change; it is read only if it has the size that it had there, so that nobody can
// make us read without end.
func (w *Workspace) seeLarge(ctx context.Context, name string, was file, info fs.FileInfo) (now file, there bool, err error) {
	from := lookOf(info)
	if last, seen := w.seen[name]; seen && from.certain && last.look == from && last.file.hash == was.hash {
		return last.file, true, nil
	}
	if was.mode != "" && was.mode != link {
		had, err := w.sizeOf(ctx, was.hash)
		if err != nil {
			return file{}, false, err
		}
		if had == info.Size() {
			now, there, err = w.read(name)
			if err != nil || there && now.hash == was.hash {
				return now, there, err
			}
		}
	}
	w.large = append(w.large, name)
	return was, was.mode != "", nil
}

// sizeOf is how many bytes a file of the history has.
func (w *Workspace) sizeOf(ctx context.Context, hash string) (int64, error) {
	if size, known := w.sizes[hash]; known {
		return size, nil
	}
	output, err := w.git.Run(ctx, git.Command{Dir: w.dir, Args: []string{"cat-file", "-s", hash}})
	if err != nil {
		return 0, failure(err, "cannot read the size of a file of the history")
	}
	size, err := strconv.ParseInt(strings.TrimSpace(output), 10, 64)
	if err != nil {
		return 0, task.Wrap(task.Internal, err, "cannot read the size of a file of the history")
	}
	w.sizes[hash] = size
	return size, nil
}

// read reads one file to name its content.
func (w *Workspace) read(name string) (now file, there bool, err error) {
	opened, err := w.openFile(name)
	if errors.Is(err, fs.ErrPermission) {
		now, there = w.unreadable(name)
		return now, there, nil
	}
	if err != nil || opened == nil {
		return file{}, false, err
	}
	defer func() { _ = opened.Close() }()
	info, err := opened.Stat()
	if err != nil {
		return file{}, false, err
	}
	from := lookOf(info)
	sum := w.blob(info.Size())
	n, err := io.Copy(sum, io.LimitReader(opened, info.Size()))
	if err != nil {
		return file{}, false, failure(err, "cannot read the file "+quote(name))
	}
	if n < info.Size() { // it got shorter while we read it
		return w.read(name)
	}
	now = file{modeOf(info), hex.EncodeToString(sum.Sum(nil))}
	from.certain = from.certain && w.now().Sub(from.changed) > settled
	w.seen[name] = sight{look: from, file: now}
	return now, true, nil
}

// openFile opens a file that is below the folder and is really a file. It does not
// wait for the other end of a pipe. Nil means that there is none.
func (w *Workspace) openFile(name string) (*os.File, error) {
	opened, _, err := w.root.OpenFile(name)
	if errors.Is(err, fs.ErrPermission) || ofSystem(err) != nil {
		return nil, err
	}
	if err != nil {
		w.options.Log.Debug("a file of the workspace went away while it was looked at", "name", quote(name), "error", err)
		return nil, nil
	}
	return opened, nil
}

// ofSystem is an error that says nothing about a file, or nil: there are too many open files, or no more
// memory, or the disk is broken. A file that cannot be looked at because of that is not gone.
func ofSystem(err error) error {
	for _, one := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EIO} {
		if errors.Is(err, one) {
			return err
		}
	}
	return nil
}

// gone turns the error of a file that is not there into none.
func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.EINVAL) || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return err
}

func modeOf(info fs.FileInfo) string {
	if info.Mode()&0o100 != 0 {
		return executable
	}
	return plainFile
}

// hasher makes the names that git gives to objects of the repository.
func (w *Workspace) hasher() hash.Hash {
	if len(w.start) == 64 {
		return sha256.New()
	}
	return sha1.New() //nolint:gosec // it is how git names objects
}

// blob begins the name that git gives to content of the size.
func (w *Workspace) blob(size int64) hash.Hash {
	sum := w.hasher()
	_, _ = fmt.Fprintf(sum, "blob %d\x00", size) // a hash takes everything
	return sum
}

func (w *Workspace) hash(content []byte) string {
	sum := w.blob(int64(len(content)))
	_, _ = sum.Write(content)
	return hex.EncodeToString(sum.Sum(nil))
}

// tooLarge is the error for files over the limit.
func (w *Workspace) tooLarge() error {
	if len(w.large) == 0 {
		return nil
	}
	return task.Errorf(task.TooLarge, "larger than the %d MB that a file may have in the history: %s", w.options.MaxFile>>20, w.largeNames()).
		WithHint("remove it, or name it in .gitignore")
}

func (w *Workspace) largeNames() string {
	names := make([]string, len(w.large))
	for i, name := range w.large {
		names[i] = quote(name)
	}
	return some(names)
}

// some joins names, not too many.
func some(names []string) string {
	slices.Sort(names)
	const most = 10
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}
