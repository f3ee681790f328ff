package mirror

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	program "github.com/toryo-dev/toryo/internal/git"
	"github.com/toryo-dev/toryo/internal/task"
)

const (
	// manyLoose and manyPacks are how many loose objects and packs make packing worth its
	// while.
	manyLoose = 2000
	manyPacks = 20
	// packAgain is how soon a mirror is packed again only because namespaces were dropped or it was
	// compacted.
	packAgain = 7 * 24 * time.Hour
	// tryAgain is how soon a mirror is packed again after that has failed.
	tryAgain = 24 * time.Hour
	// spareRoom is how much has to be free on the disk besides room for a second copy of the
	// packs, which there is until the old ones are removed.
	spareRoom = 256 << 20
	// longestPacking bounds packing one mirror.
	longestPacking = 4 * time.Hour
	// packMemory bounds what the search for similar objects takes of memory.
	packMemory = "256m"

	// droppedFile says by its time when something was last dropped from the mirror, or it was last
	// compacted, until the mirror is packed. packedFile says when the mirror was last packed, and usedFile when it was
	// last fetched. triedFile says when a packing began that has not succeeded.
	droppedFile = "toryo-dropped"
	triedFile   = "toryo-tried"
	packedFile  = "toryo-packed"
	usedFile    = "toryo-used"
)

// Repositories lists the repositories that there are mirrors of, by name.
func (m *Mirrors) Repositories() ([]task.Repository, error) {
	var all []task.Repository
	paths, err := List(m.options.Root)
	for _, path := range paths {
		r, _ := repositoryAt(path)
		all = append(all, r)
	}
	return all, err
}

// List lists where mirrors are below a root, by name. Folders that no mirror would be in are not
// among them.
func List(root string) (paths []string, err error) {
	names, err := fs.Glob(os.DirFS(root), "*/*.git")
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(slices.Values(names)) {
		path := filepath.FromSlash(name)
		if _, is := repositoryAt(path); is {
			paths = append(paths, path)
		}
	}
	return paths, nil
}

// repositoryAt is the repository whose mirror is at a path below the root, if that is where one is.
func repositoryAt(path string) (r task.Repository, is bool) {
	name, err := url.PathUnescape(strings.TrimSuffix(filepath.Base(path), ".git"))
	r = task.Repository{Forge: task.Forge(filepath.Base(filepath.Dir(path))), Name: name}
	return r, err == nil && pathOf(r) == path && check(r) == nil
}

// TaskRefs are the places of refs that are named after tasks. What they lead to may be nowhere
// but in the mirror.
var TaskRefs = []string{"refs/namespaces/", "refs/published/", "refs/seeded/", "refs/made/"}

// Restore makes a mirror of what a backup has of one: the refs in [TaskRefs], and what they lead
// to. The mirror lies at the path below the root, as it did before. Everything else is fetched when
// it is needed.
func (m *Mirrors) Restore(ctx context.Context, path string, refs program.Refs, pack io.Reader) error {
	r, is := repositoryAt(path)
	if !is {
		return task.Errorf(task.Invalid, "%q is not where a mirror is", path)
	}
	dir, err := m.ensure(ctx, r)
	if err != nil {
		return err
	}
	delete(refs.Symbolic, "HEAD") // that of the mirror itself stays as it was made
	return internal(m.git.Import(ctx, dir, refs, pack), "cannot restore the mirror of "+r.String())
}

// Tasks lists the tasks that have something in the mirror.
func (m *Mirrors) Tasks(ctx context.Context, r task.Repository) ([]task.ID, error) {
	release := m.use(r)
	defer release()
	dir, err := m.ensure(ctx, r)
	if err != nil {
		return nil, err
	}
	return m.tasksIn(ctx, dir)
}

func (m *Mirrors) tasksIn(ctx context.Context, dir string) ([]task.ID, error) {
	output, err := m.git.run(ctx, command{dir: dir, args: append([]string{"for-each-ref", "--format=%(refname)"}, TaskRefs...)})
	if err != nil {
		return nil, internal(err, "cannot read the mirror")
	}
	var ids []task.ID
	for line := range strings.Lines(output) {
		parts := strings.SplitN(line, "/", 4)
		if id := task.ID(strings.TrimSpace(parts[min(2, len(parts)-1)])); len(ids) == 0 || ids[len(ids)-1] != id {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// Drop removes what a task has in the mirror, if it is over for good. Nobody changes the
// refs of the task meanwhile: a task that begins again is seen by over, or finds nothing.
func (m *Mirrors) Drop(ctx context.Context, r task.Repository, id task.ID, over func(context.Context) (bool, error)) (dropped bool, err error) {
	release := m.use(r)
	defer release()
	p, err := m.placeOf(ctx, r, id)
	if err != nil {
		return false, err
	}
	t, err := m.wait(ctx, id)
	if err != nil {
		return false, err
	}
	defer m.done(id, t)
	if is, err := over(ctx); err != nil || !is {
		return false, err
	}
	if _, err := m.git.run(ctx, command{dir: p.dir, args: []string{"symbolic-ref", "--delete", p.space() + "HEAD"}}); err != nil {
		m.options.Log.DebugContext(ctx, "the namespace has no HEAD", "task", id, "error", err)
	}
	places := []string{p.space(), publishedRef(id, ""), seededRef(id, ""), madeRef(id, "")}
	output, err := m.git.run(ctx, command{dir: p.dir, args: append([]string{"for-each-ref", "--format=delete %(refname)"}, places...)})
	if err != nil {
		return false, internal(err, "cannot read the mirror")
	}
	if err := m.update(ctx, p.dir, output); err != nil {
		return false, err
	}
	t.taken = 0
	return true, touch(filepath.Join(p.dir, droppedFile))
}

// Maintain packs the mirror, if there is enough to gain, and reports whether it did. One mirror
// is packed at a time. It begins when nothing is being fetched into the mirror; what is fetched
// and pushed later it does not hold up. Objects that nothing leads to are removed after two weeks
// or later; while others wait for that, it is checked that nothing else is missing.
func (m *Mirrors) Maintain(ctx context.Context, r task.Repository) (packed bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, longestPacking)
	defer cancel()
	if !m.begin(ctx, cancel) {
		return false, errStopped
	}
	defer m.running.Done()
	if err := m.packing.Lock(ctx); err != nil {
		return false, err
	}
	defer m.packing.Unlock()
	dir, err := m.ensure(ctx, r)
	if err != nil {
		return false, err
	}
	packed, err = m.packIfWorth(ctx, r, dir)
	if err != nil {
		return packed, err
	}
	return packed, internal(m.removeCruft(ctx, r, dir, time.Now()), "cannot remove objects from the mirror of "+r.String())
}

// packIfWorth packs the mirror, if there is enough to gain, and reports whether it did.
func (m *Mirrors) packIfWorth(ctx context.Context, r task.Repository, dir string) (packed bool, err error) {
	if worth, err := worthPacking(dir, time.Now()); err != nil || !worth {
		return false, internal(err, "cannot look at the mirror of "+r.String())
	}
	e := m.entry(r)
	if err := e.fetching.Lock(ctx); err != nil {
		return false, err
	}
	e.removeUnfinishedPacks(dir)
	e.fetching.Unlock()
	e.packing.RLock()
	defer e.packing.RUnlock()
	if err := m.packOnce(ctx, dir); err != nil {
		return false, internal(err, "cannot pack the mirror of "+r.String())
	}
	return true, nil
}

// packOnce packs the mirror, and has it left alone for a while if that fails or the server ends
// meanwhile, except when it was stopped.
func (m *Mirrors) packOnce(ctx context.Context, dir string) error {
	began, tried := time.Now(), filepath.Join(dir, triedFile)
	if err := touch(tried); err != nil {
		return err
	}
	err := m.room(dir)
	if err == nil {
		err = m.packWhole(ctx, dir)
	}
	if err != nil && !errors.Is(ctx.Err(), context.Canceled) {
		return err
	}
	if err == nil {
		err = notePacked(dir, began)
	}
	return errors.Join(err, os.Remove(tried))
}

// room fails unless the disk has room for a second copy of what is in packs.
func (m *Mirrors) room(dir string) error {
	folder := filepath.Join(dir, "objects", "pack")
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	need := int64(spareRoom)
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil { // a push may have moved it
			need += info.Size()
		}
	}
	free, err := m.options.Free(folder)
	if err != nil {
		return err
	}
	if free < need {
		return task.Errorf(task.DataDir, "the disk has %d MB free, and packing needs %d MB", free>>20, need>>20)
	}
	return nil
}

// packWhole packs all that the refs lead to into one pack, and the rest into another. The rest
// stays, see removeCruft: git would remove it by the age of its pack, though at this moment a task may be
// seeded with a commit of it that is still found here, and then the mirror would be broken for every
// task.
func (m *Mirrors) packWhole(ctx context.Context, dir string) error {
	_, err := m.git.run(ctx, command{dir: dir, args: []string{
		// No file that git writes may be larger than MaxFetch.
		"-c", "pack.packSizeLimit=" + strconv.FormatInt(m.options.MaxFetch-m.options.MaxFetch/8, 10),
		"-c", "pack.threads=1", "-c", "pack.windowMemory=" + packMemory, "-c", "gc.cruftPacks=true", "-c", "gc.autoDetach=false",
		// What is needed of a pack that was set aside is packed too.
		"-c", "repack.packKeptObjects=true",
		// No other packing runs, whatever the file of one that was killed says.
		"gc", "--quiet", "--force", "--prune=never",
	}})
	return err
}

// notePacked notes when the mirror was packed, and that what was dropped before is packed too.
func notePacked(dir string, began time.Time) error {
	if err := touch(filepath.Join(dir, packedFile)); err != nil {
		return err
	}
	at, err := touched(filepath.Join(dir, droppedFile))
	if err != nil || at.IsZero() || at.After(began) {
		return err
	}
	return os.Remove(filepath.Join(dir, droppedFile))
}

// worthPacking reports whether a mirror has many loose objects or packs, or something was
// dropped from it. Right after a packing that failed it is not.
func worthPacking(dir string, now time.Time) (bool, error) {
	if tried, err := touched(filepath.Join(dir, triedFile)); err != nil || now.Sub(tried) < tryAgain {
		return false, err
	}
	packs, err := fs.Glob(os.DirFS(dir), "objects/pack/*.pack")
	if err != nil || len(packs) > manyPacks {
		return err == nil, err
	}
	loose, err := looseObjects(dir)
	if err != nil || loose > manyLoose {
		return err == nil, err
	}
	dropped, err := touched(filepath.Join(dir, droppedFile))
	if err != nil || dropped.IsZero() {
		return false, err
	}
	last, err := touched(filepath.Join(dir, packedFile))
	return err == nil && now.Sub(last) > packAgain, err
}

// looseObjects is about how many objects are in files of their own: their names begin with
// hashes, so that one folder of 256 tells.
func looseObjects(dir string) (int, error) {
	const folders, sample = 256, "17"
	entries, err := os.ReadDir(filepath.Join(dir, "objects", sample))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	return folders * len(entries), err
}

// Forget removes the mirror of a repository that was not fetched since the moment and in
// which no task has anything, and reports whether it did. It is made anew when it is needed.
func (m *Mirrors) Forget(ctx context.Context, r task.Repository, before time.Time) (bool, error) {
	going, err := m.moveAway(ctx, r, before)
	if err != nil || going == "" {
		return false, err
	}
	return true, os.RemoveAll(going) // nobody waits for it
}

// Unused reports whether the mirror of a repository was not fetched since the moment.
func (m *Mirrors) Unused(r task.Repository, before time.Time) (bool, error) {
	used, err := touched(filepath.Join(m.dir(r), usedFile))
	return err == nil && !used.IsZero() && used.Before(before), err
}

// moveAway moves the mirror to where it is removed from, and returns that place, or "" if the
// mirror stays. Nothing is fetched into it meanwhile, and nobody uses it: a task that begins then is
// given a new mirror.
func (m *Mirrors) moveAway(ctx context.Context, r task.Repository, before time.Time) (going string, err error) {
	e := m.entry(r)
	if err := e.fetching.Lock(ctx); err != nil {
		return "", err
	}
	defer e.fetching.Unlock()
	if !e.using.TryLock() {
		return "", nil
	}
	defer e.using.Unlock()
	dir, err := m.ensure(ctx, r)
	if err != nil {
		return "", err
	}
	used, err := touched(filepath.Join(dir, usedFile))
	if err != nil {
		return "", err
	}
	if used.IsZero() { // an earlier version has made it
		return "", touch(filepath.Join(dir, usedFile))
	}
	ids, err := m.tasksIn(ctx, dir)
	if err != nil || len(ids) > 0 || !used.Before(before) {
		return "", err
	}
	e.made.Lock()
	defer e.made.Unlock()
	going = filepath.Join(filepath.Dir(dir), fmt.Sprintf("%s%d", goingPrefix, time.Now().UnixNano()))
	if err := os.Rename(dir, going); err != nil {
		return "", task.Wrap(task.DataDir, err, "cannot remove the mirror of "+r.String())
	}
	m.mu.Lock()
	e.ready, e.fetchedAt, e.merges, e.heads = false, time.Time{}, nil, nil
	m.mu.Unlock()
	return going, nil
}

// goingPrefix begins the names of mirrors that are being removed, and makingPrefix of those
// that are being made.
const (
	goingPrefix  = "removing-"
	makingPrefix = "making-"
)

// removeUnfinished removes what was being made or removed when an earlier process ended.
// It is called before anything else.
func (m *Mirrors) removeUnfinished() error {
	if m.options.ReadOnly {
		return nil
	}
	for _, prefix := range []string{goingPrefix, makingPrefix} {
		left, err := filepath.Glob(filepath.Join(m.options.Root, "*", prefix+"*"))
		if err != nil {
			return err
		}
		for _, path := range left {
			if filepath.Base(filepath.Dir(path)) == filepath.Base(m.git.hooks) {
				continue // another server on this machine may be writing it
			}
			if err := os.RemoveAll(path); err != nil {
				return err
			}
		}
	}
	return nil
}

// removeUnfinishedPacks removes what a fetch or a packing that failed has left: git does not
// remove it, and may stumble over it. No other fetch of the mirror runs meanwhile, pushes write
// elsewhere until they are done, and while others write packs, it is left to the next time.
func (e *entry) removeUnfinishedPacks(dir string) {
	if !e.packing.TryLock() {
		return
	}
	defer e.packing.Unlock()
	folder := filepath.Join(dir, "objects", "pack")
	entries, err := os.ReadDir(folder)
	if err != nil {
		return // git will say so
	}
	for _, entry := range entries {
		if unfinished(entry.Name()) {
			_ = os.Remove(filepath.Join(folder, entry.Name())) // as above
		}
	}
}

// unfinished reports whether a file has the name of something that git was writing.
func unfinished(name string) bool {
	return strings.HasPrefix(name, "tmp_") || strings.HasPrefix(name, ".tmp-")
}

// touch gives a file, which is made if need be, the present time.
func touch(path string) error {
	err := os.WriteFile(path, nil, 0o600)
	if err == nil {
		now := time.Now()
		err = os.Chtimes(path, now, now)
	}
	if err != nil {
		return task.Wrap(task.DataDir, err, "cannot write to the mirror")
	}
	return nil
}

// touched is the time of a file, zero if there is none.
func touched(path string) (time.Time, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, task.Wrap(task.DataDir, err, "cannot read the mirror")
	}
	return info.ModTime(), nil
}
