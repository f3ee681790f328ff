package guest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/workdir"
)

// place says where an entry goes: to a name below a root.
type place func(entry string) (root *workdir.Dir, name string, err error)

// noLimit is more than there can be of anything, and can be added to.
const noLimit = math.MaxInt64 / 2

// unpacker reads an archive and carries it out. Whoever sent it may have made it up: what
// it may take of disk and memory is counted by what is done, and not by what it says.
type unpacker struct {
	place     place
	keepThere bool         // what is there already is left as it is
	atLeast   fs.FileMode  // permissions that everything gets, for folders with the bits to enter
	room      func() int64 // bytes by which the disk may become fuller; asked when the first entry comes
	names     int64        // bytes of memory that may be kept of the entries
	skip      bool         // a path that cannot be made is left out
	done      func(entry archiveEntry, root *workdir.Dir, name string)
	removed   func(name string) // what had the name is gone, and what was below it

	budget  int64       // what is left of the room
	left    int         // how many paths did not fit into the archive
	skipped []rawString // those that could not be made
	// skippedSize is what their names take.
	skippedSize int
	file        *os.File // the one that content goes to
	length      int64    // of it
	at          placed   // and where it is
	folders     []placed // given their modes in the end: they may be ones that allow nothing to be put in
	entered     placed   // a folder that is one, as are those above it
}

// placed is where an entry is put.
type placed struct {
	root  *workdir.Dir
	name  string
	entry archiveEntry
}

func (u *unpacker) unpack(from io.Reader) error {
	if u.done == nil {
		u.done = func(archiveEntry, *workdir.Dir, string) {}
		u.removed = func(string) {}
	}
	for {
		kind, data, err := readFrame(from)
		if err == nil {
			err = u.frame(kind, data)
		}
		if errors.Is(err, errWhole) {
			return u.finishFolders()
		}
		if err != nil {
			return errors.Join(err, u.finishFile())
		}
	}
}

// errWhole says that nothing follows in an archive.
var errWhole = errors.New("the archive is whole")

// frame carries out one frame.
func (u *unpacker) frame(kind frameKind, data []byte) error {
	switch kind {
	case frameContent:
		return u.content(data)
	case frameAnswer: // in place of the rest
		return readAnswer(data, nil)
	case frameDone:
		if err := u.finishFile(); err != nil {
			return err
		}
		return u.end(data)
	case frameEntry:
		return u.begin(data)
	default:
		return errors.New("an unknown frame in an archive")
	}
}

// end reads what the last frame says.
func (u *unpacker) end(data []byte) error {
	var last archiveEnd
	if len(data) > 0 {
		if err := json.Unmarshal(data, &last); err != nil {
			return fmt.Errorf("read the end of an archive: %w", err)
		}
	}
	u.left = max(0, last.Left)
	return errWhole
}

// spend takes bytes of the budget.
func (u *unpacker) spend(bytes int64) error {
	if u.budget -= bytes; u.budget < 0 {
		return task.Errorf(task.TooLarge, "there is more in the archive than there is room for")
	}
	return nil
}

// remember counts a name that is kept in memory.
func (u *unpacker) remember(name string) error {
	if u.names -= int64(len(name)) + stampSize; u.names < 0 {
		return task.Errorf(task.TooLarge, "there are too many files in the archive")
	}
	return nil
}

func (u *unpacker) content(data []byte) error {
	if u.file == nil {
		return nil // of a file that is not wanted
	}
	before := max(workdir.MinSize, u.length)
	u.length += int64(len(data))
	if err := u.spend(max(workdir.MinSize, u.length) - before); err != nil {
		return err
	}
	_, err := u.file.Write(data)
	return err
}

// begin carries out an entry, up to the content that may follow.
func (u *unpacker) begin(data []byte) error {
	if err := u.finishFile(); err != nil {
		return err
	}
	if u.room != nil {
		u.budget, u.room = u.room(), nil
	}
	var entry archiveEntry
	if err := json.Unmarshal(data, &entry); err != nil {
		return fmt.Errorf("read an entry: %w", err)
	}
	root, name, err := u.placeOf(entry)
	if err != nil {
		return err
	}
	if entry.Kind != isGone {
		if err := u.remember(name); err != nil {
			return err
		}
	}
	u.at = placed{root, name, entry}
	u.file, err = u.put(entry, root, name)
	return u.failed(entry, err)
}

// failed decides what it means that a path cannot be made.
func (u *unpacker) failed(entry archiveEntry, err error) error {
	if err == nil {
		return nil
	}
	if !u.skip || task.CodeOf(err) == task.TooLarge || isForAll(err) {
		return fmt.Errorf("put %q: %w", string(entry.Path), err)
	}
	if u.skippedSize += len(entry.Path); u.skippedSize > mostSkipped {
		return task.Errorf(task.TooLarge, "too many paths of the archive cannot be made, such as %q: %v", string(entry.Path), err)
	}
	u.skipped = append(u.skipped, entry.Path)
	return nil
}

// mostSkipped is what the names of all paths may take that cannot be made: they are told
// in one answer.
const mostSkipped = 1 << 20

// isForAll says that the next path would fail for the same reason.
func isForAll(err error) bool {
	for _, one := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EIO, syscall.EROFS, syscall.EMFILE, syscall.ENFILE} {
		if errors.Is(err, one) {
			return true
		}
	}
	return false
}

func (u *unpacker) placeOf(entry archiveEntry) (*workdir.Dir, string, error) {
	switch entry.Kind {
	case isFolder, isFile, isLink, isGone:
	default:
		return nil, "", fmt.Errorf("an entry of the kind %.20q", string(entry.Kind))
	}
	given := string(entry.Path)
	if !filepath.IsLocal(given) || path.Clean(given) != given {
		return nil, "", fmt.Errorf("%.200q is no path of an archive", given)
	}
	root, name, err := u.place(given)
	if err == nil && len(name) > workdir.Deepest {
		err = fmt.Errorf("%.200q is too long for a path", given)
	}
	return root, name, err
}

// put makes an entry. For a file it returns what the content is to be written to,
// or nothing if that is not wanted.
func (u *unpacker) put(entry archiveEntry, root *workdir.Dir, name string) (*os.File, error) {
	err := u.enter(root, path.Dir(name), entry.Kind != isGone)
	switch {
	case err != nil && entry.Kind == isGone:
		u.removed(name)
		return nil, nil
	case err != nil && u.keepThere && errors.Is(err, syscall.ENOTDIR):
		return nil, nil // something else is there, and stays
	case err != nil:
		return nil, err
	}
	free, err := u.makeWay(entry, root, name)
	if err != nil || !free || entry.Kind == isGone {
		return nil, err
	}
	u.length = 0
	if err := u.spend(workdir.MinSize); err != nil {
		return nil, err
	}
	return u.make(entry, root, name)
}

// makeWay reports whether an entry has to be made. What is in its way is removed, unless
// it is to be left, and so is what is gone.
func (u *unpacker) makeWay(entry archiveEntry, root *workdir.Dir, name string) (free bool, err error) {
	there, err := root.Lstat(name)
	switch {
	case err != nil:
		if entry.Kind == isGone {
			u.removed(name)
		}
		return true, nil // nothing is there; if that is not why, making the entry fails too
	case entry.Kind == isFolder && there.IsDir():
		if !u.keepThere {
			u.folders = append(u.folders, placed{root, name, entry})
		}
		return false, nil
	case u.keepThere:
		return false, nil
	}
	return true, u.remove(root, name, there)
}

// enter sees to it that a folder is there and is no link, nor is one above it: by a link
// one path would have many names, and longer ones than anybody looks at.
func (u *unpacker) enter(root *workdir.Dir, folder string, create bool) error {
	if folder == "." || u.entered.root == root && (u.entered.name == folder || strings.HasPrefix(u.entered.name, folder+"/")) {
		return nil
	}
	if err := u.enter(root, path.Dir(folder), create); err != nil {
		return err
	}
	info, err := root.Lstat(folder)
	switch {
	case errors.Is(err, fs.ErrNotExist) && create: // it came up while the archive was packed
		if err := errors.Join(u.spend(workdir.MinSize), u.remember(folder)); err != nil {
			return err
		}
		if err := inFolder(root, folder, func() error { return root.Mkdir(folder, 0o755) }); err != nil {
			return err
		}
	case err != nil:
		return err
	case !info.IsDir():
		return &fs.PathError{Op: "enter", Path: folder, Err: syscall.ENOTDIR}
	}
	u.entered = placed{root: root, name: folder}
	return nil
}

// remove removes what has the name. The disk has as much room more as that took.
func (u *unpacker) remove(root *workdir.Dir, name string, there fs.FileInfo) error {
	freed := stampOf(there).onDisk()
	if there.IsDir() {
		u.entered = placed{}
		below, err := root.Sub(name)
		if err == nil {
			freed = below.TreeSize()
			_ = below.Close()
		}
	}
	if err := inFolder(root, name, func() error { return root.RemoveAll(name) }); err != nil {
		return err
	}
	u.budget += freed
	u.removed(name)
	return nil
}

func (u *unpacker) make(entry archiveEntry, root *workdir.Dir, name string) (made *os.File, err error) {
	switch entry.Kind {
	case isFolder:
		if err := inFolder(root, name, func() error { return root.Mkdir(name, 0o700) }); err != nil {
			return nil, err
		}
		u.folders = append(u.folders, placed{root, name, entry})
	case isLink:
		if err := inFolder(root, name, func() error { return root.Symlink(string(entry.Link), name) }); err != nil {
			return nil, err
		}
		u.done(entry, root, name)
	case isFile:
		err = inFolder(root, name, func() error {
			made, err = root.Create(name, 0o600)
			return err
		})
	case isGone:
	}
	return made, err
}

// inFolder does something in the folder of a name, which may be one that may not be
// written to.
func inFolder(root *workdir.Dir, name string, do func() error) error {
	err := do()
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	folder := path.Dir(name)
	info, statErr := root.Lstat(folder)
	if statErr != nil || !info.IsDir() {
		return err
	}
	if err := root.Root().Chmod(folder, info.Mode().Perm()|0o700); err != nil {
		return err
	}
	return errors.Join(do(), root.Root().Chmod(folder, info.Mode().Perm()))
}

// finishFile ends the file that content went to, if there is one.
func (u *unpacker) finishFile() error {
	file, at := u.file, u.at
	if file == nil {
		return nil
	}
	u.file = nil
	err := errors.Join(file.Chmod(at.entry.Mode.Perm()|u.atLeast), file.Close())
	when := time.Unix(0, at.entry.Time)
	if err := errors.Join(err, at.root.Root().Chtimes(at.name, when, when)); err != nil {
		return u.failed(at.entry, err)
	}
	u.done(at.entry, at.root, at.name)
	return nil
}

func (u *unpacker) finishFolders() error {
	for _, folder := range u.folders {
		mode := folder.entry.Mode.Perm()
		if u.atLeast != 0 {
			mode |= u.atLeast | 0o100
		}
		if err := folder.root.Root().Chmod(folder.name, mode); err != nil && !errors.Is(err, fs.ErrNotExist) {
			if info, statErr := folder.root.Lstat(folder.name); statErr == nil && info.Mode().Perm() == mode {
				continue // somebody else's, and as it should be
			}
			if err := u.failed(folder.entry, err); err != nil {
				return err
			}
			continue
		}
		u.done(folder.entry, folder.root, folder.name)
	}
	return nil
}
