package site

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/toryo-dev/toryo/internal/agent/contexts"
	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/environment"
	"github.com/toryo-dev/toryo/internal/mirror"
	"github.com/toryo-dev/toryo/internal/retention"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// Space is what something takes.
type Space struct {
	What  string `json:"what"`
	Where string `json:"where"`
	Count int64  `json:"count"` // rows of a table, files of a folder
	Bytes int64  `json:"bytes"`
}

// HasDatabase reports whether the database that the configuration names is there, with
// something in it. Nothing is changed.
func HasDatabase(ctx context.Context, c config.Config) (bool, error) {
	if err := requireRestored(c.DataDir); err != nil {
		return false, err
	}
	found, there, err := inspectDatabase(ctx, c)
	return there && found.Schema != 0, err
}

// OpenExistingStore opens the database that the configuration names. It neither makes one where
// there is none nor changes the schema of one that an older server uses.
func OpenExistingStore(ctx context.Context, c config.Config) (store.Store, error) {
	found, there, err := inspectDatabase(ctx, c)
	if err != nil {
		return nil, err
	}
	where := "PostgreSQL database of the configuration"
	if c.Database.Driver != "postgres" {
		where = "database " + filepath.Join(c.DataDir, DatabaseFile)
	}
	if !there || found.Schema == 0 {
		return nil, task.Errorf(task.DataDir, "there is no %s, or nothing is in it", where).WithHint("name the data directory with --data, or the configuration with --config")
	}
	if found.Schema != found.Newest {
		return nil, task.Errorf(task.DataDir, "the %s has schema %d, and this program is for %d", where, found.Schema, found.Newest).
			WithHint("run the command by the version of the server")
	}
	return OpenStore(ctx, c)
}

// DataUsage says what takes space: the tables of the database, and the folders of this
// machine.
func DataUsage(ctx context.Context, c config.Config, database store.Retention) ([]Space, error) {
	tables, err := database.TableSizes(ctx)
	if err != nil {
		return nil, err
	}
	var all []Space
	for _, table := range tables {
		all = append(all, Space{What: "table " + table.Name, Where: "database", Count: table.Rows, Bytes: table.Bytes})
	}
	mirrors, err := filepath.Glob(filepath.Join(c.DataDir, mirrorFolder, "*", "*.git"))
	if err != nil {
		return nil, err
	}
	folders := []Space{{What: "board repositories", Where: filepath.Join(c.DataDir, BoardFolder)}}
	for _, dir := range mirrors {
		folders = append(folders, Space{What: "mirror", Where: dir})
	}
	for _, folder := range []string{contexts.Running, contexts.Paused, contexts.Completed} {
		folders = append(folders, Space{What: folder + " contexts", Where: filepath.Join(c.ContextsPath(), folder)})
	}
	folders = append(folders,
		Space{What: "sandboxes and snapshots", Where: filepath.Join(c.DataDir, sandboxFolder)},
		Space{What: "workspaces of the agent", Where: filepath.Join(c.DataDir, AgentFolder)})
	for _, one := range folders {
		if one.Bytes, one.Count, err = folderSize(ctx, one.Where); err != nil {
			return nil, err
		}
		if one.Count > 0 {
			all = append(all, one)
		}
	}
	return all, nil
}

// folderSize adds up the files below a folder. What goes meanwhile, or cannot be looked at,
// does not count.
func folderSize(ctx context.Context, dir string) (bytes, files int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil || entry.IsDir() {
			return nil //nolint:nilerr // as said
		}
		if info, err := entry.Info(); err == nil {
			bytes += info.Size()
			files++
		}
		return nil
	})
	return bytes, files, err
}

// Removal is something that goes, or stays for a reason.
type Removal struct {
	What  string `json:"what"`
	Count int64  `json:"count"`
	Bytes int64  `json:"bytes,omitempty"`
	Note  string `json:"note,omitempty"`
}

// Pruning removes what was kept for long enough, or only says what that is.
type Pruning struct {
	Config config.Config
	Store  store.Store
	DryRun bool
	Log    *slog.Logger
}

// Run goes through the database, the mirrors and what an agent keeps here. The folders of a server or agent
// that runs are left to it: it removes the same by itself every hour. What fails of one does not keep the
// others; what went is returned with the error.
func (p Pruning) Run(ctx context.Context) ([]Removal, error) {
	now, err := p.Store.Time(ctx)
	if err != nil {
		return nil, err
	}
	var all []Removal
	var failed []error
	for _, part := range []func(context.Context, time.Time) ([]Removal, error){p.database, p.mirrors, p.agent} {
		more, err := part(ctx, now)
		all = append(all, more...)
		if ctx.Err() != nil {
			return all, ctx.Err()
		}
		failed = append(failed, err)
	}
	return all, errors.Join(failed...)
}

func (p Pruning) database(ctx context.Context, now time.Time) (all []Removal, err error) {
	aged := DatabaseRetention(p.Config, p.Store, func() time.Time { return now }, p.Log)
	extents, failed := aged.Prunable(ctx)
	var removed retention.Removed
	if !p.DryRun {
		removed, err = aged.Prune(ctx)
		failed = errors.Join(failed, err)
	}
	for _, what := range store.AllKept {
		count := int64(removed[what])
		if p.DryRun {
			count = extents[what].Rows
		}
		if count > 0 {
			all = append(all, Removal{What: string(what), Count: count, Bytes: extents[what].Bytes})
		}
	}
	return all, failed
}

// lock keeps a folder to this process, unless another one uses it. A dry run makes no lock where there is
// none: nobody has used the folder.
func (p Pruning) lock(path, name string) (unlock func() error, locked bool, err error) {
	if p.DryRun {
		if _, err := os.Stat(filepath.Join(path, name)); errors.Is(err, fs.ErrNotExist) {
			return func() error { return nil }, true, nil
		}
	}
	return tryLockFolder(path, name)
}

// isThere reports whether there is such a folder.
func isThere(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func (p Pruning) mirrors(ctx context.Context, now time.Time) (all []Removal, err error) {
	root := filepath.Join(p.Config.DataDir, mirrorFolder)
	if !isThere(root) {
		return nil, nil
	}
	unlock, locked, err := p.lock(p.Config.DataDir, serverLock)
	if err != nil {
		return nil, err
	}
	if !locked {
		return []Removal{{What: "mirrors", Note: "left to the server that uses them"}}, nil
	}
	defer func() { err = errors.Join(err, unlock()) }()
	opened, err := mirror.Open(ctx, mirror.Options{Root: root, ReadOnly: p.DryRun, Log: p.Log, Remote: noRemote})
	if err != nil {
		return nil, err
	}
	defer opened.Stop()
	keeping := mirrorRetention(p.Config, opened, p.Store, func() time.Time { return now }, p.Log)
	if p.DryRun {
		would, err := keeping.Prunable(ctx)
		return dropped(would, 0), err
	}
	before, _, err := folderSize(ctx, root)
	if err != nil {
		return nil, err
	}
	did, failed := keeping.Prune(ctx)
	after, _, err := folderSize(ctx, root)
	return dropped(did, max(before-after, 0)), errors.Join(failed, err)
}

func dropped(all retention.Dropped, bytes int64) []Removal {
	return []Removal{
		{What: "work of ended tasks in mirrors", Count: int64(all.Tasks), Bytes: bytes},
		{What: "mirrors that nobody uses", Count: int64(all.Mirrors)},
	}
}

func (p Pruning) agent(ctx context.Context, now time.Time) (all []Removal, err error) {
	if !isThere(p.Config.ContextsPath()) && !isThere(filepath.Join(p.Config.DataDir, sandboxFolder)) {
		return nil, nil
	}
	unlock, locked, err := p.lock(filepath.Join(p.Config.DataDir, AgentFolder), agentLock)
	if err != nil {
		return nil, err
	}
	if !locked {
		return []Removal{{What: "context files and snapshots", Note: "left to the agent that uses them"}}, nil
	}
	defer func() { err = errors.Join(err, unlock()) }()
	runs, err := p.contexts(ctx, now)
	return []Removal{{What: "context files of ended runs", Count: int64(runs)}, p.snapshots(ctx, now)}, err
}

func (p Pruning) contexts(ctx context.Context, now time.Time) (int, error) {
	days := p.Config.Retention.Contexts
	if days == 0 {
		return 0, nil
	}
	files, err := contexts.Open(p.Config.ContextsPath(), contexts.Options{ReadOnly: p.DryRun, Log: p.Log})
	if err != nil {
		return 0, err
	}
	before := now.Add(-config.Days(days))
	if !p.DryRun {
		return files.Prune(ctx, before)
	}
	old, err := files.Old(before)
	return len(old), err
}

// snapshots are those of the sandbox engine; without one nothing is known of them.
func (p Pruning) snapshots(ctx context.Context, now time.Time) Removal {
	removal := Removal{What: "snapshots that nothing is started from"}
	engine, err := chooseEngine(ctx, p.Config, p.Log)
	if err != nil || p.Config.Retention.Snapshots == 0 {
		return removal
	}
	before := now.Add(-config.Days(p.Config.Retention.Snapshots))
	kept, err := engine.Snapshots(ctx)
	for _, one := range kept {
		if one.Used.Before(before) {
			removal.Count++
			removal.Bytes += one.Bytes
		}
	}
	if err == nil && !p.DryRun {
		var removed int
		removed, err = environment.PruneUnused(ctx, engine, before)
		removal.Count = int64(removed)
	}
	if err != nil {
		removal.Note = err.Error()
	}
	return removal
}
