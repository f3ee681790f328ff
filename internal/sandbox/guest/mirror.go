package guest

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/workdir"
)

// mirror is one of two folders that are kept the same. Each end knows what its own
// files were like when both were the same last, so that it can tell what has
// changed on its side since. Devices, pipes and sockets are not mirrored.
type mirror struct {
	dir  string
	root *workdir.Dir
	seen map[string]stamp
	// leave are names of folders that are not sent, unless the other end has them:
	// what package managers fill.
	leave []string
	// atLeast are permissions that this end gives everything that comes.
	atLeast fs.FileMode
	// skip has this end leave out paths that come and cannot be made here.
	skip bool
}

// stamp tells whether a file is still the one that was seen. Of a folder only its
// mode counts.
type stamp struct {
	kind          entryKind
	mode          fs.FileMode
	size          int64
	time, changed int64
	node          uint64
}

func stampOf(info fs.FileInfo) stamp {
	s := stamp{kind: kindOf(info.Mode()), mode: info.Mode().Perm()}
	switch s.kind {
	case isFile, isLink:
		s.size, s.time = info.Size(), info.ModTime().UnixNano()
		s.node, s.changed = nodeOf(info)
	case isFolder, isGone:
	}
	return s
}

// onDisk is what a path takes of the disk, as [workdir.TreeSize] counts it.
func (s stamp) onDisk() int64 {
	if s.kind != isFile {
		return workdir.MinSize
	}
	return max(workdir.MinSize, s.size)
}

func newMirror(dir string) (*mirror, error) {
	root, err := workdir.Open(dir)
	if err != nil {
		return nil, err
	}
	return &mirror{dir: dir, root: root, seen: map[string]stamp{}}, nil
}

const (
	// stampSize is what is kept of a file besides its name, and mostMirrored what
	// may be kept of all.
	stampSize    = 100
	mostMirrored = 256 << 20
)

func (m *mirror) scan() (map[string]stamp, error) {
	now := make(map[string]stamp, len(m.seen))
	size := 0
	err := m.root.Walk(func(name string, entry fs.DirEntry) error {
		if name == "." {
			return nil
		}
		if _, known := m.seen[name]; !known && entry.IsDir() && slices.Contains(m.leave, entry.Name()) {
			return fs.SkipDir
		}
		info, err := entry.Info()
		if err != nil || kindOf(info.Mode()) == "" {
			return nil //nolint:nilerr // it went, or is nothing to mirror
		}
		now[name] = stampOf(info)
		if size += len(name) + stampSize; size > mostMirrored {
			return task.Errorf(task.TooLarge, "the workspace has too many files")
		}
		return nil
	})
	return now, err
}

// size is what the files that both ends have take of a disk.
func (m *mirror) size() int64 {
	var total int64
	for _, one := range m.seen {
		total += one.onDisk()
	}
	return total
}

// send sends what has changed at this end. The other end may come to hold most bytes:
// what does not fit is left out, and sent when there is room for it. What the other
// end has of it stays as it is. Confirm waits for the other end to say that it has taken
// the archive, and returns the paths that it could not make. If that or anything else
// fails, the same is sent again the next time.
func (m *mirror) send(to io.Writer, most int64, confirm func() (skipped []rawString, err error)) error {
	now, err := m.scan()
	if err != nil {
		return err
	}
	archive := newPacker(to)
	total, err := m.sendGone(archive, now)
	if err != nil {
		return err
	}
	left, err := m.sendChanged(archive, now, most, total)
	if err != nil {
		return err
	}
	if err := archive.finish(left); err != nil {
		return err
	}
	skipped, err := confirm()
	if err != nil {
		return err
	}
	for _, name := range skipped {
		m.keepOlder(now, string(name))
	}
	m.seen = now
	return nil
}

// keepOlder notes that the other end has of a path what it had before.
func (m *mirror) keepOlder(now map[string]stamp, name string) {
	if older, known := m.seen[name]; known {
		now[name] = older
		return
	}
	delete(now, name)
}

// sendChanged sends what is new or was changed. It returns how many paths did not fit.
func (m *mirror) sendChanged(archive *packer, now map[string]stamp, most, total int64) (int, error) {
	left := map[string]bool{} // what did not fit
	for _, name := range m.changed(now) {
		older, known := m.seen[name]
		if known {
			total -= older.onDisk()
		}
		room := most - total
		if left[path.Dir(name)] {
			room = 0
		}
		sent, how, err := archive.add(m.root, name, name, room)
		if err != nil {
			return 0, err
		}
		if how == isIn {
			now[name] = sent
			total += sent.onDisk()
			continue
		}
		if known { // the other end keeps what it has
			total += older.onDisk()
		}
		m.keepOlder(now, name)
		left[name] = how == isLarge
	}
	maps.DeleteFunc(left, func(_ string, is bool) bool { return !is })
	return len(left), nil
}

// changed are the paths that are not as they were: first those that the other end has,
// so that what is new does not take the room of what is older.
func (m *mirror) changed(now map[string]stamp) []string {
	var known, made []string
	for _, name := range slices.Sorted(maps.Keys(now)) {
		switch older, is := m.seen[name]; {
		case !is:
			made = append(made, name)
		case older != now[name]:
			known = append(known, name)
		}
	}
	return append(known, made...)
}

// sendGone sends what is not there any more, and returns what the rest takes of a
// disk at the other end.
func (m *mirror) sendGone(archive *packer, now map[string]stamp) (int64, error) {
	var total int64
	for _, name := range slices.Sorted(maps.Keys(m.seen)) {
		if _, there := now[name]; there {
			total += m.seen[name].onDisk()
			continue
		}
		upper, there := now[path.Dir(name)]
		if _, known := m.seen[path.Dir(name)]; known && !there {
			continue // it went with its folder
		}
		if path.Dir(name) == "." || upper.kind == isFolder {
			if _, err := m.root.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
				now[name] = m.seen[name] // its folder cannot be read
				total += m.seen[name].onDisk()
				continue
			}
		}
		if err := archive.gone(name); err != nil {
			return 0, err
		}
	}
	return total, nil
}

// taken is what became of an archive.
type taken struct {
	left    int         // how many paths the other end has left out
	skipped []rawString // those that could not be made here
}

// take carries out what the other end sent. This end does not come to take more than
// most bytes of the disk by it, or than it took before. If take fails, it has read up to
// the end of the archive where there is one.
func (m *mirror) take(from io.Reader, most int64) (taken, error) {
	var folders []string // those that are gone, with what is below them still in seen
	archive := unpacker{atLeast: m.atLeast, names: mostMirrored, skip: m.skip,
		place: func(name string) (*workdir.Dir, string, error) { return m.root, name, nil },
		room: func() int64 {
			if most == noLimit {
				return most
			}
			return max(0, most-workdir.TreeSize(m.dir))
		},
		done: func(_ archiveEntry, root *workdir.Dir, name string) {
			if info, err := root.Lstat(name); err == nil {
				m.seen[name] = stampOf(info)
			}
		},
		removed: func(name string) {
			if m.seen[name].kind == isFolder {
				folders = append(folders, name)
			}
			delete(m.seen, name)
		}}
	err := archive.unpack(from)
	m.forgetBelow(folders)
	if err != nil {
		drain(from)
	}
	return taken{archive.left, archive.skipped}, err
}

// drain reads up to the end of an archive, so that the other end does not wait for that.
func drain(from io.Reader) {
	for {
		if kind, _, err := readFrame(from); err != nil || kind == frameDone || kind == frameAnswer {
			return
		}
	}
}

// forgetBelow forgets what was in folders that are gone.
func (m *mirror) forgetBelow(folders []string) {
	if len(folders) == 0 {
		return
	}
	slices.Sort(folders)
	maps.DeleteFunc(m.seen, func(name string, _ stamp) bool {
		for at := strings.LastIndexByte(name, '/'); at > 0; at = strings.LastIndexByte(name[:at], '/') {
			if _, is := slices.BinarySearch(folders, name[:at]); is {
				return true
			}
		}
		return false
	})
}
