package mirror

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/task"
)

const (
	// cruftKept is for how long a pack of objects that no ref leads to is set aside before it is
	// removed.
	cruftKept = 14 * 24 * time.Hour
	// longestCheck bounds the check whether the rest is whole, for which everybody else waits.
	longestCheck = 2 * time.Minute
	// cruftFolder is where a pack is while that is checked, and goneFolder while it is removed.
	cruftFolder = "toryo-cruft"
	goneFolder  = "toryo-gone"
)

// use has the mirror in use until release is called: no object is removed from it meanwhile. Whoever has
// it in use may call it again.
func (m *Mirrors) use(r task.Repository) (release func()) {
	e := m.entry(r)
	e.using.RLock()
	return e.using.RUnlock
}

// removeCruft removes objects that nothing has led to for long enough. Packing puts all of them into one
// pack. That pack is set aside by a .keep file, so that the next packing makes another one of what has been
// added. After two weeks it goes, and the other one is set aside.
//
// Git would go by the age of the objects, which says nothing about when they were last needed. And it would
// remove them while others use the mirror, who may just have found one of them. Here nobody uses the
// mirror meanwhile: if somebody does, it is left to the next time.
func (m *Mirrors) removeCruft(ctx context.Context, r task.Repository, dir string, now time.Time) error {
	packs, err := filepath.Glob(filepath.Join(dir, "objects", "pack", "pack-*.mtimes")) // which only such packs have
	if err != nil {
		return err
	}
	aside := false
	var others []string
	for _, pack := range packs {
		keep := strings.TrimSuffix(pack, ".mtimes") + ".keep"
		since, err := touched(keep)
		switch {
		case err != nil:
			return err
		case since.IsZero():
			others = append(others, keep)
		case now.Sub(since) < cruftKept:
			aside = true
		default:
			gone, err := m.removePack(ctx, r, dir, strings.TrimSuffix(filepath.Base(keep), "keep"))
			if err != nil {
				return err
			}
			aside = aside || !gone
		}
	}
	if aside {
		return nil
	}
	for _, keep := range others {
		err = errors.Join(err, touch(keep))
	}
	return err
}

// removePack removes the pack whose files begin with the name, unless a ref leads to something in it, and
// reports whether it is gone. Its files are moved away first: all that the refs lead to has to be
// there without them.
func (m *Mirrors) removePack(ctx context.Context, r task.Repository, dir, name string) (gone bool, err error) {
	e := m.entry(r)
	if !e.using.TryLock() { // to wait would hold up those who come
		return false, nil
	}
	defer e.using.Unlock()
	files, err := filepath.Glob(filepath.Join(dir, "objects", "pack", name+"*"))
	if err != nil {
		return false, err
	}
	away := filepath.Join(dir, cruftFolder)
	if err := os.MkdirAll(away, 0o700); err != nil {
		return false, err
	}
	for _, file := range files {
		if err := os.Rename(file, filepath.Join(away, filepath.Base(file))); err != nil {
			return false, errors.Join(err, restoreCruft(dir))
		}
	}
	checking, cancel := context.WithTimeout(ctx, longestCheck)
	defer cancel()
	_, failed := m.git.run(checking, command{dir: dir, args: []string{
		"-c", "core.commitGraph=false", // which knows commits that are not there
		"rev-list", "--objects", "--all", "--quiet",
	}})
	if failed == nil {
		going := filepath.Join(dir, goneFolder)
		m.options.Log.InfoContext(ctx, "removing objects from a mirror that nothing leads to", "repository", r.String())
		return true, errors.Join(os.Rename(away, going), os.RemoveAll(going))
	}
	if err := restoreCruft(dir); err != nil {
		return false, err
	}
	keep := filepath.Join(dir, "objects", "pack", name+"keep")
	if err := checking.Err(); err != nil {
		failed = internal(failed, "cannot check the mirror of "+r.String())
		if errors.Is(err, context.DeadlineExceeded) { // it is not tried again at once, with everybody waiting for it again
			failed = errors.Join(failed, touch(keep))
		}
		return false, failed
	}
	// With the next packing it is one of those that are not set aside.
	m.options.Log.InfoContext(ctx, "objects in a mirror are needed again", "repository", r.String(), "error", failed)
	return true, errors.Join(os.Remove(keep), touch(filepath.Join(dir, droppedFile)))
}

// restoreCruft puts back what was moved away, also by an earlier process, and ends what that had begun to remove.
func restoreCruft(dir string) error {
	if err := os.RemoveAll(filepath.Join(dir, goneFolder)); err != nil {
		return err
	}
	away := filepath.Join(dir, cruftFolder)
	entries, err := os.ReadDir(away)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, entry := range entries {
		err = errors.Join(err, os.Rename(filepath.Join(away, entry.Name()), filepath.Join(dir, "objects", "pack", entry.Name())))
	}
	if err != nil {
		return err
	}
	return os.Remove(away)
}
