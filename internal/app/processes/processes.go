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
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"
	"github.com/google/uuid"
)

// Process is this process as it is registered in a folder.
type Process struct {
	folder string
	id     string
	lock   *flock.Flock
}

// making begins the names of files that are not registered yet.
const making = "."

// Start registers this process in the folder, which it makes. The registration ends
// with Stop, or with the process.
func Start(folder string) (*Process, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of processes: %w", err)
	}
	if err := giveToOwner(folder); err != nil {
		return nil, fmt.Errorf("make the folder of processes: %w", err)
	}
	id := uuid.NewString()
	draft := filepath.Join(folder, making+id)
	lock := flock.New(draft, flock.SetPermissions(0o600))
	if err := register(lock, draft, filepath.Join(folder, id)); err != nil {
		return nil, errors.Join(fmt.Errorf("register the process: %w", err), lock.Close(), os.RemoveAll(draft))
	}
	return &Process{folder, id, lock}, nil
}

// register locks the file before it has its name, so that nobody sees one that is
// not locked while its process lives.
func register(lock *flock.Flock, draft, name string) error {
	locked, err := lock.TryLock()
	if err == nil && !locked {
		err = errors.New("another process has the lock")
	}
	if err != nil {
		return err
	}
	identity, err := identify(draft)
	if err != nil {
		return err
	}
	if err := os.WriteFile(draft, []byte(identity), 0o600); err != nil { // the file is there, and stays the same one
		return err
	}
	if err := giveToOwner(draft); err != nil {
		return err
	}
	return os.Rename(draft, name)
}

// ID names this process and no other.
func (p *Process) ID() string { return p.id }

// Stop ends the registration. Those who come later see that this process has ended.
func (p *Process) Stop() error { return p.lock.Close() }

// Ended returns the ids of processes that were registered in the folder and have
// ended. What is there of processes of which nothing can be known is removed.
func (p *Process) Ended() ([]string, error) {
	entries, err := os.ReadDir(p.folder)
	if err != nil {
		return nil, fmt.Errorf("list the processes: %w", err)
	}
	var ended, unknown []string
	for _, entry := range entries {
		id := entry.Name()
		if id == p.id || uuid.Validate(id) != nil {
			continue
		}
		free, proven, err := look(filepath.Join(p.folder, id))
		switch {
		case errors.Is(err, os.ErrPermission): // of another user: nothing can be known
		case err != nil:
			return nil, err
		case free && proven:
			ended = append(ended, id)
		case free:
			unknown = append(unknown, id)
		}
	}
	return ended, p.Forget(unknown)
}

// look reports whether nobody has the file locked, and whether it is the very file
// that the process made, on this boot of this machine.
func look(name string) (free, proven bool, err error) {
	lock := flock.New(name, flock.SetFlag(os.O_RDONLY))
	free, err = lock.TryLock()
	if errors.Is(err, os.ErrNotExist) {
		return false, false, lock.Close() // somebody has forgotten it meanwhile
	}
	if err != nil || !free {
		return false, false, errors.Join(err, lock.Close())
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return false, false, errors.Join(err, lock.Close())
	}
	identity, err := identify(name)
	proven = identity != "" && strings.TrimSpace(string(text)) == identity
	return true, proven, errors.Join(err, lock.Close())
}

// Forget removes what is there of processes that have ended, when nothing of theirs is
// left to free.
func (p *Process) Forget(ids []string) error {
	for _, id := range ids {
		if err := os.Remove(filepath.Join(p.folder, id)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("forget a process: %w", err)
		}
	}
	return nil
}
