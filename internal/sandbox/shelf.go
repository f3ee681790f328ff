package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/toryo-dev/toryo/internal/task"
)

// Shelf keeps snapshots as folders: one for the home, if the adapter keeps that
// as files, and one for what was added to the workspace.
type Shelf struct{ Dir string }

const (
	shelfHome      = "home"
	shelfWorkspace = "workspace"
	shelfInfo      = "snapshot.json"
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
	snapshot := Snapshot{Key: key, Bytes: bytes + elsewhere, Made: now, Used: now}
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
	return snapshot, nil
}

func (s Shelf) fill(made, home, workspace string, before Listing) (int64, error) {
	var total int64
	parts := []struct {
		from, to string
		skip     func(string) bool
	}{{home, shelfHome, isCache}, {workspace, shelfWorkspace, func(name string) bool {
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

func isCache(name string) bool { return slices.Contains(caches, name) }

// Get puts a snapshot into a home and a workspace. What the workspace has already
// is left as it is: it is the project's. Get notes that the snapshot was used.
func (s Shelf) Get(key, home, workspace string, owner int) error {
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
	if home != "" {
		if _, err := CopyTree(filepath.Join(dir, shelfHome), home, Copying{Owner: owner}); err != nil {
			return err
		}
	}
	_, err := CopyTree(filepath.Join(dir, shelfWorkspace), workspace, Copying{KeepThere: true, Owner: owner})
	return err
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
