package sandbox

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/task"
)

// Shelf keeps snapshots as folders: one for the home, if the adapter keeps that
// as files, and one for what was added to the workspace. Beside them is a copy of
// both for the next sandbox to take, because moving folders takes no time and
// making a thousand files does.
type Shelf struct{ Dir string }

const (
	shelfHome      = "home"
	shelfWorkspace = "workspace"
	shelfInfo      = "snapshot.json"
	shelfReady     = "ready"
	// leftoverAge is when what a crash has left is old enough to be nobody's work.
	leftoverAge = 24 * time.Hour
)

// Put keeps a snapshot. A home of "" is not kept here; elsewhere is what it takes
// where it is kept instead. The key's older snapshot is replaced in one step, so
// that a crash leaves one or the other.
func (s Shelf) Put(key, home, workspace string, before Listing, elsewhere int64) (Snapshot, error) {
	if err := ValidateKey(key); err != nil {
		return Snapshot{}, err
	}
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return Snapshot{}, task.Wrap(task.DataDir, err, "the folder for snapshots cannot be made")
	}
	if err := s.sweep(time.Now()); err != nil {
		return Snapshot{}, err
	}
	made, err := os.MkdirTemp(s.Dir, ".new-")
	if err != nil {
		return Snapshot{}, task.Wrap(task.DataDir, err, "a snapshot cannot be written")
	}
	kept := false
	defer func() {
		if !kept {
			_ = RemoveTree(made)
		}
	}()
	bytes, err := s.fill(made, home, workspace, before)
	if err != nil {
		return Snapshot{}, err
	}
	now := time.Now().UTC()
	snapshot := Snapshot{Key: key, Bytes: 2*bytes + elsewhere, Made: now, Used: now}
	text, err := json.Marshal(snapshot)
	if err != nil {
		return Snapshot{}, err
	}
	if err := os.WriteFile(filepath.Join(made, shelfInfo), text, 0o600); err != nil {
		return Snapshot{}, err
	}
	if err := s.Remove(key); err != nil {
		return Snapshot{}, err
	}
	if err := os.Rename(made, filepath.Join(s.Dir, key)); err != nil {
		return Snapshot{}, fmt.Errorf("put the snapshot on the shelf: %w", err)
	}
	kept = true
	return snapshot, s.Prepare(key)
}

// sweep removes what was being written or taken when a program ended.
func (s Shelf) sweep(now time.Time) error {
	entries, err := os.ReadDir(s.Dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || !strings.HasPrefix(entry.Name(), ".") || now.Sub(info.ModTime()) < leftoverAge {
			continue
		}
		if err := RemoveTree(filepath.Join(s.Dir, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

// Prepare makes the copy for the next sandbox, if there is none. A snapshot that
// is not there any more is not an error.
func (s Shelf) Prepare(key string) error {
	if err := ValidateKey(key); err != nil {
		return err
	}
	dir := filepath.Join(s.Dir, key)
	ready := filepath.Join(dir, shelfReady)
	if _, err := os.Lstat(ready); err == nil || !s.Has(key) {
		return nil
	}
	made, err := os.MkdirTemp(s.Dir, ".new-")
	if err != nil {
		return err
	}
	for _, part := range []string{shelfHome, shelfWorkspace} {
		from, to := filepath.Join(dir, part), filepath.Join(made, part)
		if _, err := os.Lstat(from); err != nil {
			continue // the adapter keeps it elsewhere
		}
		err := os.Mkdir(to, 0o700)
		if err == nil {
			_, err = CopyTree(from, to, Copying{Owner: NewOwner()})
		}
		if err != nil {
			return errors.Join(err, RemoveTree(made))
		}
	}
	if os.Rename(made, ready) != nil {
		return RemoveTree(made) // somebody else was faster, or the snapshot went
	}
	return nil
}

// Refill prepares the snapshot from which a sandbox was started, if it was, for
// the next one. Without that the next one only takes longer to start.
func (s Shelf) Refill(key string, log *slog.Logger) {
	if key == "" {
		return
	}
	if err := s.Prepare(key); err != nil {
		log.Warn("sandbox: a snapshot cannot be prepared for the next start", "snapshot", key, "error", err)
	}
}

// take makes the prepared copy, if there is one, the caller's own.
func (s Shelf) take(key string) (taken string, found bool) {
	taken = filepath.Join(s.Dir, ".taken-"+rand.Text())
	return taken, os.Rename(filepath.Join(s.Dir, key, shelfReady), taken) == nil
}

func (s Shelf) fill(made, home, workspace string, before Listing) (int64, error) {
	var total int64
	parts := []struct {
		from, to string
		skip     func(string) bool
	}{{home, shelfHome, IsCache}, {workspace, shelfWorkspace, func(name string) bool {
		if before[name] {
			info, err := os.Lstat(filepath.Join(workspace, filepath.FromSlash(name)))
			return err != nil || !info.IsDir() // an old folder may hold something new
		}
		return name == ".git"
	}}}
	for _, part := range parts {
		if part.from == "" {
			continue
		}
		to := filepath.Join(made, part.to)
		if err := os.Mkdir(to, 0o700); err != nil {
			return 0, err
		}
		bytes, err := CopyTree(part.from, to, Copying{Skip: part.skip})
		if err != nil {
			return 0, err
		}
		total += bytes
	}
	return total, nil
}

// caches are folders of a home from which programs download nothing again that
// is installed already. Keeping them would make every start slower.
var caches = []string{".npm/_cacache", ".npm/_logs", ".cache/pip"}

// IsCache reports whether a path of a home is such a folder.
func IsCache(name string) bool { return slices.Contains(caches, name) }

// Get puts a snapshot into a home and a workspace. What the workspace has already
// is left as it is: it is the project's. Get notes that the snapshot was used.
func (s Shelf) Get(key, home, workspace string) error {
	if err := ValidateKey(key); err != nil {
		return err
	}
	dir := filepath.Join(s.Dir, key)
	if _, err := os.Stat(filepath.Join(dir, shelfInfo)); err != nil {
		return task.Wrap(task.NotFound, err, "there is no such snapshot")
	}
	now := time.Now()
	if err := os.Chtimes(filepath.Join(dir, shelfInfo), now, now); err != nil {
		return fmt.Errorf("note the snapshot's use: %w", err)
	}
	if taken, found := s.take(key); found {
		return errors.Join(put(taken, home, workspace, move), RemoveTree(taken))
	}
	return put(dir, home, workspace, func(from, to string) error {
		_, err := CopyTree(from, to, Copying{KeepThere: true, Owner: NewOwner()})
		return err
	})
}

// put brings the parts of a snapshot to where they belong.
func put(from, home, workspace string, bring func(from, to string) error) error {
	if home != "" {
		if err := bring(filepath.Join(from, shelfHome), home); err != nil {
			return err
		}
	}
	return bring(filepath.Join(from, shelfWorkspace), workspace)
}

// move moves what is in one folder into another, where nothing else is at work.
// What is there is left as it is, but for folders, which are filled up. What
// cannot be moved, because it would change disks, is copied.
func move(from, to string) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		source, target := filepath.Join(from, entry.Name()), filepath.Join(to, entry.Name())
		there, err := os.Lstat(target)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			if os.Rename(source, target) == nil {
				continue
			}
			_, err = CopyTree(from, to, Copying{KeepThere: true, Owner: NewOwner(), Skip: func(name string) bool {
				top, _, _ := strings.Cut(name, "/")
				return top != entry.Name()
			}})
		case err == nil && there.IsDir() && entry.IsDir():
			err = move(source, target)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Has reports whether the snapshot is there.
func (s Shelf) Has(key string) bool {
	if ValidateKey(key) != nil {
		return false
	}
	_, err := os.Stat(filepath.Join(s.Dir, key, shelfInfo))
	return err == nil
}

// All lists the snapshots, least recently used first.
func (s Shelf) All() ([]Snapshot, error) {
	entries, err := os.ReadDir(s.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, task.Wrap(task.DataDir, err, "the snapshots cannot be listed")
	}
	var all []Snapshot
	for _, entry := range entries {
		path := filepath.Join(s.Dir, entry.Name(), shelfInfo)
		text, err := os.ReadFile(path)
		if err != nil {
			continue // not a snapshot, or one that goes this moment
		}
		var snapshot Snapshot
		if err := json.Unmarshal(text, &snapshot); err != nil {
			return nil, task.Wrap(task.DataDir, err, "the snapshot "+entry.Name()+" is broken")
		}
		if info, err := os.Stat(path); err == nil {
			snapshot.Used = info.ModTime().UTC()
		}
		all = append(all, snapshot)
	}
	slices.SortStableFunc(all, func(a, b Snapshot) int { return a.Used.Compare(b.Used) })
	return all, nil
}

// Remove takes a snapshot off the shelf. One that is not there is not an error.
func (s Shelf) Remove(key string) error {
	if err := ValidateKey(key); err != nil {
		return err
	}
	return RemoveTree(filepath.Join(s.Dir, key))
}
