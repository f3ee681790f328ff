package guest

import (
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

// send sends what has changed at this end. If it fails, the same is sent again the
// next time.
func (m *mirror) send(to io.Writer) error {
	now, err := m.scan()
	if err != nil {
		return err
	}
	parcel := newPacker(to)
	for _, name := range slices.Sorted(maps.Keys(m.seen)) {
		if _, there := now[name]; there {
			continue
		}
		if _, upper := m.seen[path.Dir(name)]; upper {
			if _, there := now[path.Dir(name)]; !there {
				continue // it went with its folder
			}
		}
		if err := parcel.gone(name); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if m.seen[name] == now[name] {
			continue
		}
		sent, there, err := parcel.add(m.root, name, name)
		if err != nil {
			return err
		}
		if !there {
			delete(now, name)
			continue
		}
		now[name] = sent
	}
	if err := parcel.finish(); err != nil {
		return err
	}
	m.seen = now
	return nil
}

// take carries out what the other end sent, up to a number of bytes.
func (m *mirror) take(from io.Reader, budget int64) error {
	var gone []string
	parcel := unpacker{budget: budget, atLeast: m.atLeast,
		place: func(name string) (*workdir.Dir, string, error) { return m.root, name, nil },
		done: func(entry parcelEntry, root *workdir.Dir, name string) {
			if entry.Kind == isGone {
				gone = append(gone, name)
				return
			}
			if info, err := root.Lstat(name); err == nil {
				m.seen[name] = stampOf(info)
			}
		}}
	err := parcel.unpack(from)
	m.forget(gone)
	return err
}

func (m *mirror) forget(gone []string) {
	folders := false
	for _, name := range gone {
		folders = folders || m.seen[name].kind == isFolder
		delete(m.seen, name)
	}
	if !folders {
		return
	}
	slices.Sort(gone)
	maps.DeleteFunc(m.seen, func(name string, _ stamp) bool {
		for at := strings.LastIndexByte(name, '/'); at > 0; at = strings.LastIndexByte(name[:at], '/') {
			if _, is := slices.BinarySearch(gone, name[:at]); is {
				return true
			}
		}
		return false
	})
}
