package guest

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/workdir"
)

// A parcel is a sequence of files, folders and links, and of paths that are gone.
// It is how a workspace goes in and out of a sandbox that does not share it, and
// how a snapshot is kept in one file. The content of a file follows its entry, and
// its length is not told before: files change while they are read.

// parcelEntry is one path of a parcel.
type parcelEntry struct {
	Path rawString   `json:"p"`
	Kind entryKind   `json:"k"`
	Mode fs.FileMode `json:"m,omitempty"`
	Time int64       `json:"t,omitempty"` // in nanoseconds
	Link rawString   `json:"l,omitempty"` // where a link points to
}

// parcelEnd is the last frame of a parcel. It is empty if the parcel has everything.
type parcelEnd struct {
	Left int `json:"left"` // how many paths did not fit
}

type entryKind string

const (
	isFolder entryKind = "d"
	isFile   entryKind = "f"
	isLink   entryKind = "l"
	isGone   entryKind = "g"
)

// kindOf is the kind of what a parcel can hold; empty for devices and the like.
func kindOf(mode fs.FileMode) entryKind {
	switch mode.Type() {
	case 0:
		return isFile
	case fs.ModeDir:
		return isFolder
	case fs.ModeSymlink:
		return isLink
	default:
		return ""
	}
}

const parcelBuffer = 256 << 10

// packer writes a parcel.
type packer struct{ to *bufio.Writer }

func newPacker(to io.Writer) *packer { return &packer{bufio.NewWriterSize(to, parcelBuffer)} }

func (p *packer) gone(name string) error {
	return writeMessage(p.to, frameEntry, parcelEntry{Path: rawString(name), Kind: isGone})
}

// added says what became of a path that was to be put into a parcel.
type added int

const (
	isIn    added = iota
	isAway        // it went, or cannot be read
	isLarge       // there is no room for it
)

// add puts in what has the name below the root, under another name, if it takes no
// more than room.
func (p *packer) add(root *workdir.Dir, name, as string, room int64) (stamp, added, error) {
	info, err := root.Lstat(name)
	if err != nil {
		return stamp{}, isAway, nil //nolint:nilerr // it went while we looked
	}
	entry := parcelEntry{Path: rawString(as), Kind: kindOf(info.Mode()), Mode: info.Mode().Perm(), Time: info.ModTime().UnixNano()}
	switch entry.Kind {
	case isFolder:
	case isLink:
		target, err := root.Readlink(name)
		if err != nil {
			return stamp{}, isAway, nil //nolint:nilerr // it went while we looked
		}
		entry.Link = rawString(target)
	case isFile:
		return p.addFile(root, name, entry, room)
	case isGone:
		return stamp{}, isAway, nil
	default:
		return stamp{}, isAway, nil
	}
	sent := stampOf(info)
	if sent.onDisk() > room {
		return stamp{}, isLarge, nil
	}
	return sent, isIn, writeMessage(p.to, frameEntry, entry)
}

// addFile puts in a file as long as it is when it is opened. What is written to it
// later changes its stamp, and goes with the next parcel.
func (p *packer) addFile(root *workdir.Dir, name string, entry parcelEntry, room int64) (stamp, added, error) {
	file, info, err := root.OpenFile(name)
	if err != nil {
		return stamp{}, isAway, nil // it went, may not be read, or something else took its place
	}
	defer func() { _ = file.Close() }() // it was only read
	sent := stampOf(info)
	if sent.onDisk() > room {
		return stamp{}, isLarge, nil
	}
	entry.Mode, entry.Time = info.Mode().Perm(), info.ModTime().UnixNano()
	if err := writeMessage(p.to, frameEntry, entry); err != nil {
		return stamp{}, isAway, err
	}
	content := io.LimitReader(file, info.Size())
	buffer := make([]byte, min(parcelBuffer, max(512, info.Size()+1)))
	for {
		n, err := content.Read(buffer)
		if n > 0 {
			if err := writeFrame(p.to, frameContent, buffer[:n]); err != nil {
				return stamp{}, isAway, err
			}
		}
		if errors.Is(err, io.EOF) {
			return sent, isIn, nil
		}
		if err != nil {
			return stamp{}, isAway, fmt.Errorf("read %s: %w", name, err)
		}
	}
}

// finish ends the parcel, in which so many paths are missing that did not fit.
func (p *packer) finish(left int) error {
	write := func() error { return writeFrame(p.to, frameDone, nil) }
	if left > 0 {
		write = func() error { return writeMessage(p.to, frameDone, parcelEnd{left}) }
	}
	if err := write(); err != nil {
		return err
	}
	return p.to.Flush()
}

// place says where an entry goes: to a name below a root.
type place func(entry string) (root *workdir.Dir, name string, err error)

// unpacker reads a parcel and carries it out.
type unpacker struct {
	place     place
	keepThere bool        // what is there already is left as it is
	atLeast   fs.FileMode // permissions that everything gets, for folders with the bits to enter
	budget    int64       // bytes of the disk that the entries may take
	done      func(entry parcelEntry, root *workdir.Dir, name string)
	replaced  func(name string) int64 // what had the name was removed for an entry; returns what it took
	freed     func() int64            // what was taken by all that is gone, since it was asked last

	left    int      // how many paths did not fit into the parcel
	file    *os.File // the one that content goes to
	length  int64    // of it
	at      placed   // and where it is
	folders []placed // given their modes in the end: they may be ones that allow nothing to be put in
}

// placed is where an entry is put.
type placed struct {
	root  *workdir.Dir
	name  string
	entry parcelEntry
}

func (u *unpacker) unpack(from io.Reader) error {
	if u.done == nil {
		u.done = func(parcelEntry, *workdir.Dir, string) {}
		u.replaced = func(string) int64 { return 0 }
		u.freed = func() int64 { return 0 }
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

// errWhole says that nothing follows in a parcel.
var errWhole = errors.New("the parcel is whole")

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
		return errors.New("an unknown frame in a parcel")
	}
}

// end reads what the last frame says.
func (u *unpacker) end(data []byte) error {
	var last parcelEnd
	if len(data) > 0 {
		if err := json.Unmarshal(data, &last); err != nil {
			return fmt.Errorf("read the end of a parcel: %w", err)
		}
	}
	u.left = last.Left
	return errWhole
}

// spend takes bytes of the budget.
func (u *unpacker) spend(bytes int64) error {
	u.budget -= bytes
	if u.budget < 0 {
		u.budget += u.freed()
	}
	if u.budget < 0 {
		return task.Errorf(task.TooLarge, "there is more in the parcel than there is room for")
	}
	return nil
}

func (u *unpacker) content(data []byte) error {
	if u.file == nil {
		return u.spend(int64(len(data))) // of a file that is left as it is
	}
	before := max(sandbox.LeastSize, u.length)
	u.length += int64(len(data))
	if err := u.spend(max(sandbox.LeastSize, u.length) - before); err != nil {
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
	var entry parcelEntry
	if err := json.Unmarshal(data, &entry); err != nil {
		return fmt.Errorf("read an entry: %w", err)
	}
	root, name, err := u.placeOf(string(entry.Path))
	if err != nil {
		return err
	}
	u.at = placed{root, name, entry}
	if u.file, err = u.put(entry, root, name); err != nil {
		return fmt.Errorf("put %s: %w", entry.Path, err)
	}
	return nil
}

func (u *unpacker) placeOf(name string) (*workdir.Dir, string, error) {
	if !filepath.IsLocal(name) || path.Clean(name) != name {
		return nil, "", fmt.Errorf("%q is no path of a parcel", name)
	}
	return u.place(name)
}

// put makes an entry. For a file it returns what the content is to be written to,
// or nothing if that is not wanted.
func (u *unpacker) put(entry parcelEntry, root *workdir.Dir, name string) (*os.File, error) {
	there, err := root.Lstat(name)
	switch {
	case err != nil && entry.Kind == isGone:
		u.done(entry, root, name)
		return nil, nil
	case err != nil:
	case entry.Kind == isFolder && there.IsDir():
		if !u.keepThere {
			u.folders = append(u.folders, placed{root, name, entry})
		}
		return nil, nil
	case u.keepThere:
		return nil, nil
	default:
		if err := removeAll(root, name); err != nil {
			return nil, err
		}
		if entry.Kind != isGone {
			u.budget += u.replaced(name)
		}
	}
	if entry.Kind != isGone {
		if err := u.spend(sandbox.LeastSize); err != nil {
			return nil, err
		}
	}
	u.length = 0
	return u.make(entry, root, name)
}

func (u *unpacker) make(entry parcelEntry, root *workdir.Dir, name string) (made *os.File, err error) {
	switch entry.Kind {
	case isGone:
	case isFolder:
		if err := inFolder(root, name, func() error { return root.Mkdir(name, 0o700) }); err != nil {
			return nil, err
		}
		u.folders = append(u.folders, placed{root, name, entry})
		return nil, nil
	case isLink:
		err = inFolder(root, name, func() error { return root.Symlink(string(entry.Link), name) })
	case isFile:
		err = inFolder(root, name, func() error {
			made, err = root.Create(name, 0o600)
			return err
		})
		return made, err
	default:
		return nil, fmt.Errorf("an entry of the kind %q", string(entry.Kind))
	}
	if err == nil {
		u.done(entry, root, name)
	}
	return nil, err
}

// inFolder does something in the folder of a name, which may be missing because it
// came up while the parcel was packed, or be one that may not be written to.
func inFolder(root *workdir.Dir, name string, do func() error) error {
	err := do()
	folder := path.Dir(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := root.MkdirAll(folder, 0o755); err != nil {
			return err
		}
		return do()
	case errors.Is(err, fs.ErrPermission):
		info, statErr := root.Lstat(folder)
		if statErr != nil || !info.IsDir() {
			return err
		}
		if err := root.Root().Chmod(folder, info.Mode().Perm()|0o700); err != nil {
			return err
		}
		return errors.Join(do(), root.Root().Chmod(folder, info.Mode().Perm()))
	}
	return err
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
		return err
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
			return err
		}
		u.done(folder.entry, folder.root, folder.name)
	}
	return nil
}

// removeAll removes a path and what is below it, also from folders that may not be
// written to.
func removeAll(root *workdir.Dir, name string) error {
	return inFolder(root, name, func() error { return root.RemoveAll(name) })
}
