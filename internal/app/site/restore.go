package site

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/backup"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/board"
	"github.com/toryo-dev/toryo/internal/git"
	"github.com/toryo-dev/toryo/internal/leader"
	"github.com/toryo-dev/toryo/internal/mirror"
	"github.com/toryo-dev/toryo/internal/outbox"
	"github.com/toryo-dev/toryo/internal/sandbox/disk"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/store/relational"
	"github.com/toryo-dev/toryo/internal/task"
)

const (
	// restoringFolder is where a restore has what is not in its place yet, in the data directory.
	// While it is there no server starts.
	restoringFolder = "restoring"
	// restoredFolder is what that becomes when all is in its place, until it is removed.
	// Nobody else has a folder of this name.
	restoredFolder = ".toryo-restored"
	// planFile is in that folder and lists what is being put in place: if the restore is cut
	// off there, the next one knows what of it is not somebody else's.
	planFile = "plan.json"
	// filesFolder has what was in the backup.
	filesFolder = "backup"
)

// Restore restores backups.
type Restore struct {
	Config config.Config
	// Report is told what is being done.
	Report func(what string)
	Now    func() time.Time
	Log    *slog.Logger
}

// Restored is what a restore has done.
type Restored struct {
	Manifest backup.Manifest
	Fenced   store.Fenced
	Left     []string // what was there already, and was left as it is
}

// Run restores a backup into the data directory, in which there is no database, and fences what
// ran since it was made. Everything is made in a folder beside, and put in place at the end. With
// PostgreSQL the database has been restored before; what is in the data directory stays.
func (r Restore) Run(ctx context.Context, file string) (Restored, error) {
	program, err := git.Find()
	if err != nil {
		return Restored{}, err
	}
	done, err := r.run(ctx, program, file)
	return done, orInterrupted(ctx, err, "the restore was interrupted")
}

func (r Restore) run(ctx context.Context, program *git.Program, file string) (done Restored, err error) {
	unlock, err := r.lock()
	if err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if err := r.removeUnfinished(); err != nil {
		return done, err
	}
	if err := r.checkPlace(ctx); err != nil {
		return done, err
	}
	staging := r.path(restoringFolder)
	if err := os.MkdirAll(filepath.Join(staging, filesFolder), 0o700); err != nil {
		return done, misplaced(err)
	}
	if err := r.fill(ctx, program, file, &done); err != nil {
		return done, errors.Join(err, r.removeUnfinished())
	}
	plan, left, err := r.plan()
	if err != nil {
		return done, errors.Join(err, r.removeUnfinished())
	}
	// From here on the next one puts right what is cut off.
	done.Left = left
	if err := r.place(plan); err != nil {
		return done, misplaced(err)
	}
	// Under another name first: servers refuse a folder in which part of it is left.
	old := r.path(restoredFolder)
	return done, misplaced(errors.Join(os.RemoveAll(old), os.Rename(staging, old), os.RemoveAll(old)))
}

// misplaced is the error for a data directory that cannot be written.
func misplaced(err error) error {
	if err == nil {
		return nil
	}
	return task.Wrap(task.DataDir, err, "the backup cannot be put into the data directory")
}

func (r Restore) path(names ...string) string {
	return filepath.Join(append([]string{r.Config.DataDir}, names...)...)
}

func (r Restore) postgres() bool { return r.Config.Database.Driver == "postgres" }

// lock keeps servers and agents away.
func (r Restore) lock() (unlock func() error, err error) {
	server, err := lockFolder(r.Config.DataDir, serverLock, "a server")
	if err != nil {
		return nil, err
	}
	agent, err := lockFolder(r.path(AgentFolder), agentLock, "an agent")
	if err != nil {
		return nil, errors.Join(err, server())
	}
	return func() error { return errors.Join(agent(), server()) }, nil
}

// removeUnfinished removes what an earlier restore has left that was cut off.
func (r Restore) removeUnfinished() error {
	staging := r.path(restoringFolder)
	text, err := os.ReadFile(filepath.Join(staging, planFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return misplaced(err)
	}
	var plan []string
	if err == nil {
		if err := json.Unmarshal(text, &plan); err != nil {
			return misplaced(err)
		}
	}
	for _, piece := range plan {
		if slices.Contains(pieces, piece) {
			err = errors.Join(err, os.RemoveAll(r.path(piece)))
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return misplaced(err)
	}
	return misplaced(errors.Join(os.RemoveAll(staging), removeRestored(r.Config.DataDir)))
}

// removeRestored removes what a restore has left that was cut off when all was in its place.
func removeRestored(dir string) error { return os.RemoveAll(filepath.Join(dir, restoredFolder)) }

// pieces are what is put in place, in this order: without the database there is nothing to serve.
var pieces = []string{BoardFolder, mirrorFolder, filepath.Join(AgentFolder, "token"), DatabaseFile}

// checkPlace refuses a data directory in which a server has worked, and a PostgreSQL database in
// which nothing is.
func (r Restore) checkPlace(ctx context.Context) error {
	if r.postgres() {
		found, _, err := inspectDatabase(ctx, r.Config)
		if err != nil {
			return err
		}
		if found.Schema == found.Newest { // else it is looked at once it is brought up to date
			return r.lookForServers(ctx)
		}
		if found.Schema > 0 {
			return nil
		}
		command, err := restoreCommand(r.Config)
		if err != nil {
			return err
		}
		return task.Errorf(task.DataDir, "nothing is in the PostgreSQL database of the configuration").
			WithHint("restore its dump first: %s", command)
	}
	for _, piece := range append([]string{DatabaseFile + "-wal"}, pieces...) {
		path := r.path(piece)
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if isThere(path) && os.Remove(path) == nil { // an empty folder
			continue
		}
		return inTheWay(path)
	}
	return nil
}

func inTheWay(path string) error {
	return task.Errorf(task.Conflict, "there is %s already", path).WithHint("move it away, or name another data directory with --data")
}

// lookForServers refuses a PostgreSQL database that a server works with.
func (r Restore) lookForServers(ctx context.Context) (err error) {
	database, err := openStore(ctx, r.Config)
	if err != nil {
		return err
	}
	return errors.Join(r.requireNoServer(ctx, database), database.Close())
}

// requireNoServer refuses a PostgreSQL database that a server works with. A file has locks for that.
// While it is fenced no server becomes the leader.
func (r Restore) requireNoServer(ctx context.Context, database store.Store) error {
	if !r.postgres() {
		return nil
	}
	free, err := leader.Take(ctx, database, "toryo restore")
	if err != nil || free {
		return err
	}
	return task.Errorf(task.Conflict, "a server works with the PostgreSQL database of the configuration").
		WithHint("stop all servers of this database, wait ten seconds, and run it again; if it is not the restored database, name that with database.url")
}

// fill makes everything beside its place, and fences the database.
func (r Restore) fill(ctx context.Context, program *git.Program, file string, done *Restored) (err error) {
	r.Report("reading " + file)
	from := r.path(restoringFolder, filesFolder)
	if done.Manifest, err = backup.Read(ctx, file, from, r.accept); err != nil {
		return err
	}
	if err := r.unpack(ctx, program, done.Manifest); err != nil {
		return err
	}
	r.Report("ending what ran when the backup was made")
	database, err := r.open(ctx)
	if err != nil {
		return err
	}
	if err := r.requireNoServer(ctx, database); err != nil {
		return errors.Join(err, database.Close())
	}
	labels := outbox.Labels(r.Config.LabelNames)
	audit := access.Auditor{Store: database, Now: r.Now, Log: r.Log}
	err = audit.Do(ctx, "the command line", "data.restore", "backup of "+done.Manifest.CreatedAt.UTC().Format(time.RFC3339), func() error {
		done.Fenced, err = database.Fence(ctx, labels.Effects)
		return err
	})
	if err = errors.Join(err, database.Close()); err != nil || r.postgres() {
		return err
	}
	// What is in the log of the database would be lost.
	if _, err := os.Lstat(r.path(restoringFolder, DatabaseFile+"-wal")); err == nil {
		return task.Errorf(task.Internal, "the restored database was not written to its file")
	}
	return nil
}

// accept refuses a backup that cannot be restored here.
func (r Restore) accept(m backup.Manifest) error {
	newest, err := relational.LatestVersion()
	if err != nil {
		return err
	}
	if m.Schema > newest {
		return task.Errorf(task.DatabaseNewer, "the database in the backup has schema version %d, and this program knows versions up to %d", m.Schema, newest).
			WithHint("restore it with toryo %s or newer", m.Program)
	}
	if m.Database != r.Config.Database.Driver {
		return task.Errorf(task.BadConfig, "the backup is of a server with database.driver: %s, and the configuration says %s", m.Database, r.Config.Database.Driver).
			WithHint("name the configuration of that server with --config")
	}
	for _, entry := range m.Entries {
		if !known(entry.Name) {
			return task.Errorf(task.Invalid, "this program does not know what %q in the backup is", entry.Name).WithHint("restore it with the version that wrote it, or a newer one")
		}
		if strings.HasSuffix(entry.Name, refsSuffix) && entry.Size > maxRefs {
			return task.Errorf(task.TooLarge, "%q in the backup has %d MB; %d MB are allowed", entry.Name, entry.Size>>20, maxRefs>>20)
		}
	}
	free, err := disk.FreeSpace(r.Config.DataDir)
	if err != nil {
		return misplaced(err)
	}
	if need := 2 * m.Bytes(); free < need { // what is packed is there twice meanwhile
		return task.Errorf(task.DataDir, "restoring the backup needs %d MB on the disk of %s, and %d MB are free", need>>20, r.Config.DataDir, free>>20).
			WithHint("make room, or name a data directory on another disk with --data")
	}
	return nil
}

// known reports whether a file in a backup is one that a backup has.
func known(name string) bool {
	if name == savedDatabase || name == savedToken {
		return true
	}
	of, git := strings.CutPrefix(name, savedGit)
	of, refs := strings.CutSuffix(of, refsSuffix)
	of, pack := strings.CutSuffix(of, packSuffix)
	folder, _, _ := strings.Cut(of, "/")
	return git && refs != pack && path.Ext(of) == ".git" && (folder == BoardFolder || folder == mirrorFolder)
}

// unpack makes repositories and files of what was in the backup, in the folder beside.
func (r Restore) unpack(ctx context.Context, program *git.Program, m backup.Manifest) error {
	staging := r.path(restoringFolder)
	for _, entry := range m.Entries {
		of, is := strings.CutPrefix(entry.Name, savedGit)
		of, refs := strings.CutSuffix(of, refsSuffix)
		if !is || !refs {
			continue
		}
		r.Report("unpacking " + of)
		err := r.repository(of, func(refs git.Refs, pack io.Reader) error {
			if of, is := strings.CutPrefix(of, mirrorFolder+"/"); is {
				return r.mirror(ctx, filepath.FromSlash(of), refs, pack)
			}
			return importBoard(ctx, program, staging, of, refs, pack)
		})
		if err != nil {
			return err
		}
	}
	return r.takeFiles(m)
}

// repository reads what the backup has of a repository.
func (r Restore) repository(of string, do func(git.Refs, io.Reader) error) (err error) {
	from := r.path(restoringFolder, filesFolder, filepath.FromSlash(savedGit+of))
	text, err := os.ReadFile(from + refsSuffix)
	if err != nil {
		return misplaced(err)
	}
	refs, err := git.ParseRefs(text)
	if err != nil {
		return task.Wrap(task.Invalid, err, "the refs of "+of+" in the backup cannot be read")
	}
	if len(refs.Objects) == 0 {
		return do(refs, strings.NewReader(""))
	}
	pack, err := os.Open(from + packSuffix)
	if err != nil {
		return task.Wrap(task.Invalid, err, "the objects of "+of+" are not in the backup")
	}
	defer func() { err = errors.Join(err, pack.Close()) }()
	return do(refs, pack)
}

// noRemote is for mirrors into which nothing is fetched.
func noRemote(context.Context, task.Repository) (forge.Remote, error) {
	return forge.Remote{}, task.Errorf(task.Unsupported, "nothing is fetched")
}

// mirror makes a mirror.
func (r Restore) mirror(ctx context.Context, of string, refs git.Refs, pack io.Reader) error {
	mirrors, err := mirror.Open(ctx, mirror.Options{Root: r.path(restoringFolder, mirrorFolder), Log: r.Log, Remote: noRemote})
	if err != nil {
		return err
	}
	defer mirrors.Stop()
	return mirrors.Restore(ctx, of, refs, pack)
}

// importBoard makes a repository of the board.
func importBoard(ctx context.Context, program *git.Program, staging, of string, refs git.Refs, pack io.Reader) error {
	name := strings.TrimSuffix(strings.TrimPrefix(of, BoardFolder+"/"), ".git")
	if err := board.CheckName(name); err != nil {
		return err
	}
	dir := filepath.Join(staging, filepath.FromSlash(of))
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return misplaced(err)
	}
	if err := program.Init(ctx, dir, refs.Format); err != nil {
		return misplaced(err)
	}
	return program.Import(ctx, dir, refs, pack)
}

// takeFiles moves the files of the backup to where they are put in place from.
func (r Restore) takeFiles(m backup.Manifest) error {
	for saved, piece := range map[string]string{savedDatabase: DatabaseFile, savedToken: filepath.Join(AgentFolder, "token")} {
		if !slices.ContainsFunc(m.Entries, func(e backup.Entry) bool { return e.Name == saved }) {
			if saved == savedDatabase && !r.postgres() {
				return task.Errorf(task.Invalid, "there is no database in the backup")
			}
			continue
		}
		to := r.path(restoringFolder, piece)
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return misplaced(err)
		}
		if err := os.Rename(r.path(restoringFolder, filesFolder, filepath.FromSlash(saved)), to); err != nil {
			return misplaced(err)
		}
	}
	return nil
}

// open opens the database that is to be fenced.
func (r Restore) open(ctx context.Context) (store.Store, error) {
	restored := r.Config
	if !r.postgres() {
		restored.DataDir = r.path(restoringFolder)
	}
	return openStore(ctx, restored)
}

// plan says what is to be put in place. With PostgreSQL what is there stays. With SQLite nothing was
// there, and what has come since is in the way.
func (r Restore) plan() (plan, left []string, err error) {
	for _, piece := range pieces {
		if _, err := os.Lstat(r.path(restoringFolder, piece)); err != nil {
			continue // it was not in the backup
		}
		if _, err := os.Lstat(r.path(piece)); err != nil {
			plan = append(plan, piece)
			continue
		}
		if !r.postgres() {
			return nil, nil, inTheWay(r.path(piece))
		}
		left = append(left, r.path(piece))
	}
	return plan, left, nil
}

// place puts everything in its place.
func (r Restore) place(plan []string) error {
	text, err := json.Marshal(plan)
	if err != nil {
		return err
	}
	if err := writeSynced(r.path(restoringFolder, planFile), text); err != nil {
		return err
	}
	for _, piece := range plan {
		to := r.path(piece)
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return err
		}
		if err := errors.Join(os.Rename(r.path(restoringFolder, piece), to), backup.SyncFolder(filepath.Dir(to))); err != nil {
			return err
		}
	}
	return nil
}

// writeSynced writes a small file, whole or not at all, and returns when it is durable.
func writeSynced(path string, text []byte) error {
	making := path + ".new"
	file, err := os.OpenFile(making, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	return errors.Join(os.Rename(making, path), backup.SyncFolder(filepath.Dir(path)))
}

// requireRestored refuses a data directory into which a backup was restored in part.
func requireRestored(dir string) error {
	if !isThere(filepath.Join(dir, restoringFolder)) {
		return nil
	}
	return task.Errorf(task.DataDir, "a backup is being restored into %s, or that was cut off", dir).
		WithHint("run toryo restore again")
}
