package guest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/workdir"
)

// do does what the host asks for besides commands.
func (s *server) do(stream net.Conn, asked request) {
	var said answer
	var err error
	switch asked.Do {
	case takeFiles:
		err = s.takeFiles(stream)
	case sendFiles:
		if err = s.sendFiles(stream, asked.Most); err == nil {
			return // what was sent is the answer
		}
	case keepFiles:
		said, err = s.keep(stream)
	case restoreHome:
		err = s.restore(asked.Digest)
	case changeRoute:
		s.routes.change(asked.Route)
	case tryToReach:
		said.Reached = reach(asked.Reach)
	case killEverything:
		s.killAll()
	case leave: // the session's end ends everything
		defer time.AfterFunc(leaveTime, func() { _ = s.session.Close() })
	default:
		err = fmt.Errorf("the guest cannot %q", string(asked.Do))
	}
	if err != nil {
		said = failedAnswer(err)
	}
	_ = writeMessage(stream, frameAnswer, said) // the host being gone ends the guest anyway
}

// leaveTime is how long the answer may take to get out before the guest ends.
const leaveTime = 200 * time.Millisecond

func (s *server) workspaceFiles() (*mirror, error) {
	if s.files != nil {
		return s.files, nil
	}
	files, err := newMirror(s.options.Workspace)
	if err != nil {
		return nil, err
	}
	files.leave = s.options.Leave
	s.files = files
	return files, nil
}

func (s *server) takeFiles(stream net.Conn) error {
	files, err := s.workspaceFiles()
	if err != nil {
		return err
	}
	s.setFilling(true)
	defer s.setFilling(false)
	_, err = files.take(stream, noLimit)
	return err
}

// setFilling says whether it is the host that writes to the disk.
func (s *server) setFilling(is bool) {
	if s.disk == nil {
		return
	}
	s.watch.killing.Lock()
	defer s.watch.killing.Unlock()
	s.disk.filling = is
}

func (s *server) sendFiles(stream net.Conn, most int64) error {
	files, err := s.workspaceFiles()
	if err != nil {
		return err
	}
	return files.send(stream, most, func() ([]rawString, error) {
		var said answer
		err := awaitAnswer(stream, &said)
		return said.Skipped, err
	})
}

// The parts of a snapshot: names in its archive begin with these.
const (
	partHome      = "home"
	partWorkspace = "workspace"
	snapshotFile  = "snapshot"
)

// keep writes the home and what is new in the workspace to the folder for snapshots. If the sandbox takes
// more of the disk than it may, nothing is written: files with holes may be seen only now, and the archive
// has them filled.
func (s *server) keep(stream net.Conn) (answer, error) {
	before, err := readNames(stream)
	if err != nil {
		return answer{}, err
	}
	if most := s.options.Disk; most > 0 && workdir.TreeSize(s.options.Home)+workdir.TreeSize(s.options.Workspace) > most {
		return answer{}, errKeepsTooMuch
	}
	file := filepath.Join(s.options.Snapshots, snapshotFile)
	made, err := os.OpenFile(file+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644) //nolint:gosec // the pod that starts from it has another user
	if err != nil {
		return answer{}, err
	}
	digest := sha256.New()
	counted := &counter{}
	err = s.pack(io.MultiWriter(made, digest, counted), before)
	if err := errors.Join(err, made.Sync(), made.Close()); err != nil {
		return answer{}, errors.Join(err, os.Remove(file+".new"))
	}
	if err := os.Rename(file+".new", file); err != nil {
		return answer{}, err
	}
	return answer{Digest: hex.EncodeToString(digest.Sum(nil)), Bytes: counted.bytes}, nil
}

var errKeepsTooMuch = errors.New("the sandbox takes more of the disk than it may, and is not kept")

type counter struct{ bytes int64 }

func (c *counter) Write(data []byte) (int, error) {
	c.bytes += int64(len(data))
	return len(data), nil
}

// pack writes the archive. Commands may write meanwhile, so that it is bounded too.
func (s *server) pack(to io.Writer, before workdir.Listing) error {
	archive := newPacker(to)
	room := int64(noLimit)
	if s.options.Disk > 0 {
		room = s.options.Disk
	}
	for _, part := range []struct {
		name, dir string
		skip      func(name string, folder bool) bool
	}{
		{partHome, s.options.Home, func(name string, _ bool) bool { return IsCache(name) }},
		{partWorkspace, s.options.Workspace, func(name string, folder bool) bool {
			return name == ".git" || before[name] && !folder // an old folder may hold something new
		}},
	} {
		if err := packFolder(archive, part.name, part.dir, part.skip, &room); err != nil {
			return err
		}
	}
	return archive.finish(0)
}

func packFolder(archive *packer, part, dir string, skip func(name string, folder bool) bool, room *int64) error {
	root, err := workdir.Open(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	return root.Walk(func(name string, entry fs.DirEntry) error {
		if name == "." {
			return nil
		}
		if skip(name, entry.IsDir()) {
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		sent, added, err := archive.add(root, name, path.Join(part, name), *room)
		if added == isLarge {
			return errKeepsTooMuch
		}
		if added == isIn {
			*room -= sent.onDisk()
		}
		return err
	})
}

// restore puts a snapshot back. What is in the workspace already is the project's,
// and stays. The digest is checked to the end, and whoever gets an error must not
// use the sandbox.
func (s *server) restore(digest string) error {
	file, err := os.Open(filepath.Join(s.options.Source, snapshotFile))
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // it was only read
	home, err := workdir.Open(s.options.Home)
	if err != nil {
		return err
	}
	defer func() { _ = home.Close() }()
	workspace, err := workdir.Open(s.options.Workspace)
	if err != nil {
		return err
	}
	defer func() { _ = workspace.Close() }()
	roots := map[string]*workdir.Dir{partHome: home, partWorkspace: workspace}
	sum := sha256.New()
	archive := unpacker{keepThere: true, names: noLimit, room: func() int64 { return noLimit }, place: func(name string) (*workdir.Dir, string, error) {
		part, rest, _ := strings.Cut(name, "/")
		if roots[part] == nil || rest == "" {
			return nil, "", fmt.Errorf("%q is no path of a snapshot", name)
		}
		return roots[part], rest, nil
	}}
	whole := io.TeeReader(file, sum)
	err = archive.unpack(whole)
	if err == nil {
		_, err = io.Copy(io.Discard, whole)
	}
	if err == nil && hex.EncodeToString(sum.Sum(nil)) != digest {
		err = errors.New("the snapshot is not the one that was kept")
	}
	return err
}

// readNames reads names that are separated by zero bytes.
func readNames(from io.Reader) (workdir.Listing, error) {
	var text bytes.Buffer
	for {
		kind, data, err := readFrame(from)
		if err != nil {
			return nil, err
		}
		if kind == frameDone {
			break
		}
		if kind != frameContent {
			return nil, errors.New("an unknown frame in a list of names")
		}
		_, _ = text.Write(data) // it never fails
	}
	names := workdir.Listing{}
	for name := range strings.SplitSeq(text.String(), "\x00") {
		if name != "" {
			names[name] = true
		}
	}
	return names, nil
}
