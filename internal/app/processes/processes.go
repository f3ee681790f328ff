// Package processes tells which processes that used a folder have ended, surely.
//
// A process that starts again may free at once what the one before it held, such as
// tasks, if that one is dead for certain. Each process registers itself in a folder:
// with a file that it keeps locked while it lives, and that says which file it is and
// on which boot of which kernel. A process whose file can be locked has ended, because
// the kernel gives a lock back when its holder ends and not before. A copy of the
// folder is known by files that are not where they say, and a folder that is shared
// with another machine by another boot: of processes in those nothing is known, and
// whoever waits for them has to wait until their time is over.
package processes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/gofrs/flock"
	"github.com/google/uuid"

	"github.com/toryo-dev/toryo/internal/owner"
)

// Process is this process as it is registered in a folder.
type Process struct {
	path   string
	folder *os.Root
	id     string
	lock   *flock.Flock

	unreadable sync.Map // ids of other processes that were logged
}

// making begins the names of files that are not registered yet.
const making = "."

// Start registers this process in the folder, which it makes. The registration ends
// with Stop, or with the process.
func Start(path string) (*Process, error) {
	folder, err := openFolder(path)
	if err != nil {
		return nil, fmt.Errorf("make the folder of processes: %w", err)
	}
	p := &Process{path: path, folder: folder, id: uuid.NewString()}
	if err := p.register(); err != nil {
		return nil, errors.Join(fmt.Errorf("register the process: %w", err), folder.Close())
	}
	return p, nil
}

// openFolder makes the folder and opens it. Root does that in a directory of another user,
// who may put something else under that name at any time. So what is written is written
// through what was opened, and not by name.
func openFolder(path string) (*os.Root, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	parent, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer func() { _ = parent.Close() }() // nothing was written through it
	if err := parent.Mkdir(filepath.Base(path), 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, err
	}
	folder, err := parent.OpenRoot(filepath.Base(path))
	if err != nil {
		return nil, err
	}
	if err := giveToOwner(folder, parent); err != nil {
		return nil, errors.Join(err, folder.Close())
	}
	return folder, nil
}

// giveToOwner gives the folder to the owner of the one that it is in, who has to register there too.
func giveToOwner(folder, parent *os.Root) error {
	in, err := parent.Stat(".")
	if err != nil {
		return err
	}
	self, err := folder.Open(".")
	if err != nil {
		return err
	}
	owner.Give(self, in)
	return self.Close()
}

// register locks the file before it has its name, so that nobody sees one that is
// not locked while its process lives.
func (p *Process) register() error {
	draft := making + p.id
	file, err := p.folder.OpenFile(draft, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	p.lock = flock.New(filepath.Join(p.path, draft), flock.SetFlag(os.O_RDONLY|openAsFile))
	err = errors.Join(p.write(file), file.Close())
	if err == nil {
		err = p.folder.Rename(draft, p.id)
	}
	if err != nil {
		return errors.Join(err, p.lock.Close(), p.folder.RemoveAll(draft))
	}
	return nil
}

// write locks the file, which is opened by name for that, and says in it which one it is.
// The owner of the folder may be another user and has to read it; others cannot get into
// the folder.
func (p *Process) write(file *os.File) error {
	locked, err := p.lock.TryLock()
	if err == nil && !locked {
		err = errors.New("another process has the lock")
	}
	if err != nil {
		return err
	}
	written, err := file.Stat()
	if err != nil {
		return err
	}
	if is, err := p.lock.Stat(); err != nil || !os.SameFile(is, written) {
		return errors.Join(errors.New("the file was replaced"), err)
	}
	if _, err := file.WriteString(identify(written)); err != nil {
		return err
	}
	return file.Chmod(0o644)
}

// ID names this process and no other.
func (p *Process) ID() string { return p.id }

// Stop ends the registration. Those who come later see that this process has ended.
func (p *Process) Stop() error { return errors.Join(p.lock.Close(), p.folder.Close()) }

// Ended returns the ids of processes that were registered in the folder and have
// ended. What is there of processes of which nothing can be known is removed, but for
// what cannot be read, as that of another user: that stays, and is logged once.
func (p *Process) Ended(ctx context.Context, log *slog.Logger) ([]string, error) {
	entries, err := fs.ReadDir(p.folder.FS(), ".")
	if err != nil {
		return nil, fmt.Errorf("list the processes: %w", err)
	}
	var ended, unknown []string
	for _, entry := range entries {
		id := entry.Name()
		if id == p.id || uuid.Validate(id) != nil || !entry.Type().IsRegular() {
			continue
		}
		free, proven, err := p.look(id)
		switch {
		case errors.Is(err, os.ErrNotExist): // somebody has forgotten it meanwhile
		case err != nil:
			if _, known := p.unreadable.LoadOrStore(id, true); !known {
				hint := "none; it is tried again"
				if errors.Is(err, os.ErrPermission) {
					hint = "if the process has ended, remove the file"
				}
				log.WarnContext(ctx, "cannot tell whether a process has ended; its tasks are released when their leases expire",
					"file", filepath.Join(p.path, id), "error", err, "hint", hint)
			}
		case free && proven:
			ended = append(ended, id)
		case free:
			unknown = append(unknown, id)
		}
	}
	return ended, p.Forget(unknown)
}

// errReplaced says that a file is not the one that was listed any more.
var errReplaced = fmt.Errorf("the file was replaced: %w", os.ErrNotExist)

// look reports whether nobody has the file locked, and whether it is the very file
// that the process made, on this boot of this machine. The owner of the folder may replace
// the file at any moment, so what is read is what was locked.
func (p *Process) look(id string) (free, proven bool, err error) {
	lock := flock.New(filepath.Join(p.path, id), flock.SetFlag(os.O_RDONLY|openAsFile))
	defer func() { err = errors.Join(err, lock.Close()) }()
	free, err = lock.TryLock()
	if errors.Is(err, syscall.ELOOP) {
		return false, false, errReplaced
	}
	if err != nil || !free {
		return false, false, err
	}
	file, err := p.folder.OpenFile(id, os.O_RDONLY|openAsFile, 0)
	if err != nil {
		return false, false, err
	}
	defer func() { _ = file.Close() }() // nothing was written
	info, err := file.Stat()
	if err != nil {
		return false, false, err
	}
	locked, err := lock.Stat()
	if err != nil {
		return false, false, err
	}
	if !os.SameFile(locked, info) || !info.Mode().IsRegular() {
		return false, false, errReplaced
	}
	text, err := io.ReadAll(io.LimitReader(file, longestIdentity))
	if err != nil {
		return false, false, err
	}
	identity := identify(info)
	return true, identity != "" && strings.TrimSpace(string(text)) == identity, nil
}

// Lives reports whether a process of the folder lives, for certain: whether its file is locked. The
// folder may be of another user.
func Lives(folder, id string) bool {
	if uuid.Validate(id) != nil {
		return false
	}
	lock := flock.New(filepath.Join(folder, id), flock.SetFlag(os.O_RDONLY|openAsFile))
	free, err := lock.TryRLock()
	return errors.Join(err, lock.Close()) == nil && !free
}

// OpenFile opens a regular file to read it, in a folder that may be of another user, who may have put
// a link or a pipe there.
func OpenFile(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|openAsFile, 0)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: fs.ErrInvalid}
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// longestIdentity is more than identify returns.
const longestIdentity = 1 << 10

// Forget removes what is there of processes that have ended, when nothing of theirs is
// left to free.
func (p *Process) Forget(ids []string) error {
	for _, id := range ids {
		if err := p.folder.Remove(id); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("forget a process: %w", err)
		}
	}
	return nil
}
