package guest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/toryo-dev/toryo/internal/workdir"
)

// An archive is a sequence of files, folders and links, and of paths that are gone.
// It is how a workspace goes in and out of a sandbox that does not share it, and
// how a snapshot is kept in one file. The content of a file follows its entry, and
// its length is not told before: files change while they are read.

// archiveEntry is one path of an archive.
type archiveEntry struct {
	Path rawString   `json:"p"`
	Kind entryKind   `json:"k"`
	Mode fs.FileMode `json:"m,omitempty"`
	Time int64       `json:"t,omitempty"` // in nanoseconds
	Link rawString   `json:"l,omitempty"` // where a link points to
}

// archiveEnd is the last frame of an archive. It is empty if the archive has everything.
type archiveEnd struct {
	Left int `json:"left"` // how many paths did not fit
}

type entryKind string

const (
	isFolder entryKind = "d"
	isFile   entryKind = "f"
	isLink   entryKind = "l"
	isGone   entryKind = "g"
)

// kindOf is the kind of what an archive can hold; empty for devices and the like.
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

const archiveBuffer = 256 << 10

// packer writes an archive.
type packer struct{ to *bufio.Writer }

func newPacker(to io.Writer) *packer { return &packer{bufio.NewWriterSize(to, archiveBuffer)} }

func (p *packer) gone(name string) error {
	return writeMessage(p.to, frameEntry, archiveEntry{Path: rawString(name), Kind: isGone})
}

// added says what became of a path that was to be put into an archive.
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
	entry := archiveEntry{Path: rawString(as), Kind: kindOf(info.Mode()), Mode: info.Mode().Perm(), Time: info.ModTime().UnixNano()}
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
// later changes its stamp, and goes with the next archive.
func (p *packer) addFile(root *workdir.Dir, name string, entry archiveEntry, room int64) (stamp, added, error) {
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
	buffer := make([]byte, min(archiveBuffer, max(512, info.Size()+1)))
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

// finish ends the archive, in which so many paths are missing that did not fit.
func (p *packer) finish(left int) error {
	write := func() error { return writeFrame(p.to, frameDone, nil) }
	if left > 0 {
		write = func() error { return writeMessage(p.to, frameDone, archiveEnd{left}) }
	}
	if err := write(); err != nil {
		return err
	}
	return p.to.Flush()
}
