package local

import (
	"context"
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

	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/sandbox/guest"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/workdir"
)

// SnapshotStore keeps snapshots as folders: one for the home, if the adapter keeps that
// as files, and one for what was added to the workspace. Beside them is a copy of
// both for the next sandbox to take, because moving folders takes no time and
// making a thousand files does.
type SnapshotStore struct{ Dir string }

const (
	homeFolder      = "home"
	workspaceFolder = "workspace"
	infoFile        = "snapshot.json"
	readyFolder     = "ready"
	// leftoverAge is when what a crash has left is old enough to be nobody's work.
	leftoverAge = 24 * time.Hour
)

// Contents is what a snapshot is made of.
type Contents struct {
	Home      string          // empty where it is not kept here
	Workspace string          // of which only what is new is kept
	Before    workdir.Listing // what the workspace had before
	Elsewhere int64           // what is kept elsewhere takes
	Most      int64           // how much all may take, which is the disk limit of the sandbox
}

func (c Contents) tooLarge() error {
	return task.Errorf(task.TooLarge, "the sandbox takes more of the disk than the %d bytes that it may, and is not kept", c.Most)
}

// Put keeps a snapshot. It fails with TooLarge, and copies nothing, where the sandbox takes more of the
// disk than it may: files with holes may be seen only now, and a copy fills them. The key's older
// snapshot is removed before the new one is renamed to its place, so that a crash leaves one of them or
// none, and never half of one. Without one the environment is set up anew.
func (s SnapshotStore) Put(ctx context.Context, key string, contents Contents) (sandbox.Snapshot, error) {
	if err := sandbox.ValidateKey(key); err != nil {
		return sandbox.Snapshot{}, err
	}
	if workdir.TreeSize(contents.Home)+workdir.TreeSize(contents.Workspace)+contents.Elsewhere > contents.Most {
		return sandbox.Snapshot{}, contents.tooLarge()
	}
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return sandbox.Snapshot{}, task.Wrap(task.DataDir, err, "the folder for snapshots cannot be made")
	}
	_ = s.removeLeftovers(time.Now()) // Sweep says what cannot be removed
	made, err := os.MkdirTemp(s.Dir, ".new-")
	if err != nil {
		return sandbox.Snapshot{}, task.Wrap(task.DataDir, err, "a snapshot cannot be written")
	}
	kept := false
	defer func() {
		if !kept {
			_ = workdir.Remove(made)
		}
	}()
	bytes, err := s.fill(ctx, made, contents)
	if err != nil {
		return sandbox.Snapshot{}, err
	}
	now := time.Now().UTC()
	snapshot := sandbox.Snapshot{Key: key, Bytes: 2*bytes + contents.Elsewhere, Made: now, Used: now}
	text, err := json.Marshal(snapshot)
	if err != nil {
		return sandbox.Snapshot{}, err
	}
	if err := os.WriteFile(filepath.Join(made, infoFile), text, 0o600); err != nil {
		return sandbox.Snapshot{}, err
	}
	if err := s.Remove(key); err != nil {
		return sandbox.Snapshot{}, err
	}
	if err := os.Rename(made, filepath.Join(s.Dir, key)); err != nil {
		return sandbox.Snapshot{}, fmt.Errorf("store the snapshot: %w", err)
	}
	kept = true
	return snapshot, s.Prepare(ctx, key)
}

// Sweep removes what was being written, taken or removed when a program ended.
func (s SnapshotStore) Sweep() error {
	err := s.removeLeftovers(time.Now())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// removeLeftovers removes what was being written, taken or removed when a program ended.
func (s SnapshotStore) removeLeftovers(now time.Time) error {
	entries, err := os.ReadDir(s.Dir)
	if err != nil {
		return err
	}
	var failed []error
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || !strings.HasPrefix(entry.Name(), ".") || now.Sub(info.ModTime()) < leftoverAge {
			continue
		}
		failed = append(failed, workdir.Remove(filepath.Join(s.Dir, entry.Name())))
	}
	return errors.Join(failed...)
}

// Prepare makes the copy for the next sandbox, if there is none. A snapshot that
// is not there any more is not an error.
func (s SnapshotStore) Prepare(ctx context.Context, key string) error {
	if err := sandbox.ValidateKey(key); err != nil {
		return err
	}
	dir := filepath.Join(s.Dir, key)
	ready := filepath.Join(dir, readyFolder)
	if _, err := os.Lstat(ready); err == nil || !s.Has(key) {
		return nil
	}
	made, err := os.MkdirTemp(s.Dir, ".new-")
	if err != nil {
		return err
	}
	for _, part := range []string{homeFolder, workspaceFolder} {
		from, to := filepath.Join(dir, part), filepath.Join(made, part)
		if _, err := os.Lstat(from); err != nil {
			continue // the adapter keeps it elsewhere
		}
		err := os.Mkdir(to, 0o700)
		if err == nil {
			_, err = workdir.CopyTree(ctx, from, to, workdir.CopyOptions{Owner: NewOwner()})
		}
		if err != nil {
			return errors.Join(err, workdir.Remove(made))
		}
	}
	if os.Rename(made, ready) != nil {
		return workdir.Remove(made) // somebody else was faster, or the snapshot went
	}
	return nil
}

// PrepareNext prepares the snapshot from which a sandbox was started, if it was, for
// the next one. Without that the next one only takes longer to start.
func (s SnapshotStore) PrepareNext(ctx context.Context, key string, log *slog.Logger) {
	if key == "" {
		return
	}
	if err := s.Prepare(ctx, key); err != nil {
		log.WarnContext(ctx, "sandbox: a snapshot cannot be prepared for the next start", "snapshot", key, "error", err)
	}
}

// take moves the prepared copy, if there is one, to where only the caller uses it.
func (s SnapshotStore) take(key string) (taken string, found bool) {
	taken = filepath.Join(s.Dir, ".taken-"+rand.Text())
	return taken, setAside(filepath.Join(s.Dir, key, readyFolder), taken) == nil
}

// setAside renames a folder to one that is removed as a leftover only a day from now.
func setAside(dir, to string) error {
	now := time.Now()
	_ = os.Chtimes(dir, now, now) // the rename says what is wrong
	return os.Rename(dir, to)
}

// fill copies what is to be kept. The sandbox may write meanwhile, so that the copies are bounded too.
func (s SnapshotStore) fill(ctx context.Context, made string, contents Contents) (int64, error) {
	var total int64
	room := workdir.NewRoom(contents.Most - contents.Elsewhere)
	parts := []struct {
		from, to string
		skip     func(string) bool
	}{{contents.Home, homeFolder, guest.IsCache}, {contents.Workspace, workspaceFolder, func(name string) bool {
		if contents.Before[name] {
			info, err := os.Lstat(filepath.Join(contents.Workspace, filepath.FromSlash(name)))
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
		bytes, err := workdir.CopyTree(ctx, part.from, to, workdir.CopyOptions{Skip: part.skip, Room: room})
		if errors.Is(err, workdir.ErrNoRoom) {
			return 0, contents.tooLarge()
		}
		if err != nil {
			return 0, err
		}
		total += bytes
	}
	return total, nil
}

// Get puts a snapshot into a home and a workspace. What the workspace has already
// is left as it is: it is the project's. Get notes that the snapshot was used.
func (s SnapshotStore) Get(ctx context.Context, key, home, workspace string) error {
	if err := sandbox.ValidateKey(key); err != nil {
		return err
	}
	dir := filepath.Join(s.Dir, key)
	info, err := os.Stat(filepath.Join(dir, infoFile))
	if err != nil {
		return task.Wrap(task.NotFound, err, "there is no such snapshot")
	}
	now := time.Now()
	if err := os.Chtimes(filepath.Join(dir, infoFile), now, now); err != nil {
		return fmt.Errorf("note the snapshot's use: %w", err)
	}
	if taken, found := s.take(key); found {
		return errors.Join(put(taken, home, workspace, func(from, to string) error { return move(ctx, from, to) }), workdir.Remove(taken))
	}
	err = put(dir, home, workspace, func(from, to string) error {
		_, err := workdir.CopyTree(ctx, from, to, workdir.CopyOptions{KeepExisting: true, Owner: NewOwner()})
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if same, gone := os.Stat(filepath.Join(dir, infoFile)); gone != nil || !os.SameFile(info, same) {
		return task.Errorf(task.NotFound, "the snapshot was removed while it was copied")
	}
	return err
}

// put places the home and the workspace of a snapshot.
func put(from, home, workspace string, place func(from, to string) error) error {
	if home != "" {
		if err := place(filepath.Join(from, homeFolder), home); err != nil {
			return err
		}
	}
	return place(filepath.Join(from, workspaceFolder), workspace)
}

// move moves what is in one folder into another, where nothing else is at work.
// What is there is left as it is, but for folders, which are filled up. What
// cannot be moved, because it would change disks, is copied.
func move(ctx context.Context, from, to string) error {
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
			_, err = workdir.CopyTree(ctx, from, to, workdir.CopyOptions{KeepExisting: true, Owner: NewOwner(), Skip: func(name string) bool {
				top, _, _ := strings.Cut(name, "/")
				return top != entry.Name()
			}})
		case err == nil && there.IsDir() && entry.IsDir():
			err = move(ctx, source, target)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Has reports whether the snapshot is there.
func (s SnapshotStore) Has(key string) bool {
	if sandbox.ValidateKey(key) != nil {
		return false
	}
	_, err := os.Stat(filepath.Join(s.Dir, key, infoFile))
	return err == nil
}

// All lists the snapshots, least recently used first.
func (s SnapshotStore) All() ([]sandbox.Snapshot, error) {
	entries, err := os.ReadDir(s.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, task.Wrap(task.DataDir, err, "the snapshots cannot be listed")
	}
	var all []sandbox.Snapshot
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), ".") {
			continue // it is being written, taken or removed
		}
		path := filepath.Join(s.Dir, entry.Name(), infoFile)
		text, err := os.ReadFile(path)
		if err != nil {
			continue // not a snapshot, or one that goes this moment
		}
		var snapshot sandbox.Snapshot
		if err := json.Unmarshal(text, &snapshot); err != nil {
			return nil, task.Wrap(task.DataDir, err, "the snapshot "+entry.Name()+" is broken")
		}
		if info, err := os.Stat(path); err == nil {
			snapshot.Used = info.ModTime().UTC()
		}
		all = append(all, snapshot)
	}
	slices.SortStableFunc(all, func(a, b sandbox.Snapshot) int { return a.Used.Compare(b.Used) })
	return all, nil
}

// Remove removes a snapshot. One that is not there is not an error. It is renamed first, so that a removal
// that is cut off leaves no part of it; Get notices when it goes meanwhile.
func (s SnapshotStore) Remove(key string) error {
	if err := sandbox.ValidateKey(key); err != nil {
		return err
	}
	gone := filepath.Join(s.Dir, ".old-"+rand.Text())
	if err := setAside(filepath.Join(s.Dir, key), gone); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return fmt.Errorf("remove the snapshot: %w", err)
	}
	return workdir.Remove(gone)
}
