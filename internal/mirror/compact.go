package mirror

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/toryo-dev/toryo/internal/task"
)

const (
	// manyRefs is how many tasks with refs in files of their own make it worth putting them into
	// one, and smallPack is how large a pack is at most that is made part of another between two
	// packings.
	manyRefs  = 200
	smallPack = 64 << 20
	// compactAgain is how soon that is done again after it has failed.
	compactAgain = time.Hour
)

// Compact makes few packs of many small ones, and one file of many refs, and reports whether it
// did: git reads all of them again and again. Every fetch makes a pack, and a busy mirror has many
// of them long before the next Maintain. It does nothing while a mirror is packed, or where the disk
// has no room for it.
func (m *Mirrors) Compact(ctx context.Context, r task.Repository) (compacted bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, longestPacking)
	defer cancel()
	if !m.begin(ctx, cancel) {
		return false, errStopped
	}
	defer m.running.Done()
	if !m.packing.TryLock() {
		return false, nil
	}
	defer m.packing.Unlock()
	release := m.use(r)
	defer release()
	e, dir := m.entry(r), m.dir(r)
	e.made.Lock()
	ready := e.ready
	e.made.Unlock()
	if !ready || time.Since(e.notCompacted) < compactAgain { // nobody uses it, or it has failed
		return false, nil
	}
	commands, err := m.compacting(dir)
	if err == nil && len(commands) > 0 {
		err = m.compact(ctx, e, dir, commands)
	}
	if err != nil {
		e.notCompacted = time.Now()
		return false, internal(err, "cannot compact the mirror of "+r.String())
	}
	return len(commands) > 0, nil
}

// compacting are the commands that compact a mirror, none if it is not worth it.
func (m *Mirrors) compacting(dir string) (commands [][]string, err error) {
	packs, err := fs.Glob(os.DirFS(dir), "objects/pack/*.pack")
	if err != nil {
		return nil, err
	}
	repack := []string{"-c", "pack.threads=1", "-c", "pack.windowMemory=" + packMemory, "repack", "--geometric=2", "-d", "-q"}
	small, bytes := 0, int64(0)
	for _, pack := range packs {
		info, err := os.Stat(filepath.Join(dir, filepath.FromSlash(pack)))
		switch {
		case errors.Is(err, fs.ErrNotExist): // a push has just moved it
		case err != nil:
			return nil, err
		case info.Size() > smallPack:
			repack = append(repack, "--keep-pack="+filepath.Base(pack))
		default:
			small, bytes = small+1, bytes+info.Size()
		}
	}
	if small > manyPacks {
		free, err := m.options.Free(dir)
		if err != nil {
			return nil, err
		}
		if free > 2*bytes+smallPack {
			commands = append(commands, repack)
		}
	}
	seeded, err := os.ReadDir(filepath.Join(dir, filepath.FromSlash(seededRef("", "")))) // each task has one
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if len(seeded) > manyRefs {
		commands = append(commands, []string{"pack-refs", "--all"})
	}
	return commands, nil
}

// compact runs the commands. Git makes loose objects part of the pack, also those that nothing leads
// to: there is something for Maintain to do then.
func (m *Mirrors) compact(ctx context.Context, e *entry, dir string, commands [][]string) (failed error) {
	e.packing.RLock()
	for _, args := range commands {
		if slices.Contains(args, "repack") {
			failed = touch(filepath.Join(dir, droppedFile))
		}
		_, err := m.git.run(ctx, command{dir: dir, args: args})
		failed = errors.Join(failed, err)
	}
	e.packing.RUnlock()
	if failed == nil {
		return nil
	}
	if err := e.fetching.Lock(ctx); err != nil {
		return errors.Join(failed, err)
	}
	defer e.fetching.Unlock()
	e.removeUnfinishedPacks(dir)
	return failed
}
