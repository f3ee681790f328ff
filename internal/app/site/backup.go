package site

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/backup"
	"github.com/toryo-dev/toryo/internal/git"
	"github.com/toryo-dev/toryo/internal/mirror"
	"github.com/toryo-dev/toryo/internal/sandbox/disk"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/store/postgres"
	"github.com/toryo-dev/toryo/internal/store/relational"
	"github.com/toryo-dev/toryo/internal/store/sqlite"
	"github.com/toryo-dev/toryo/internal/task"
)

// The names in a backup.
const (
	savedDatabase = "database/" + DatabaseFile
	savedGit      = "git/"                            // below it, what a repository was in the data directory
	refsSuffix    = ".refs"                           // behind that, its refs
	packSuffix    = ".pack"                           // and its objects, unless it has none
	savedToken    = "files/" + AgentFolder + "/token" // of an agent with this data directory
)

// maxRefs is how many bytes the refs of a repository may have.
const maxRefs = 64 << 20

// Backup writes backups. A server and an agent may use the data directory meanwhile.
type Backup struct {
	Config config.Config
	Store  store.Store
	// Report is told what is being done.
	Report func(what string)
	// Free is how many bytes are free on the disk that a folder is on; nil asks the system.
	Free func(dir string) (int64, error)
}

// Write writes a backup to a file that is not there. The database comes first: so git may have
// more than the database knows of, and never less. It fails with Interrupted if the context ends.
func (b Backup) Write(ctx context.Context, file string) (backup.Manifest, error) {
	m, err := b.write(ctx, file)
	return m, orInterrupted(ctx, err, "the backup was interrupted")
}

// orInterrupted is the error, or Interrupted if the context has ended: then that is why it failed.
func orInterrupted(ctx context.Context, err error, what string) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	return task.Wrap(task.Interrupted, errors.Join(ctx.Err(), err), what)
}

func (b Backup) write(ctx context.Context, file string) (m backup.Manifest, err error) {
	program, err := git.Find()
	if err != nil {
		return m, err
	}
	making, err := backup.Begin(file)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, making.Close()) }()
	if err := b.room(ctx, filepath.Dir(file)); err != nil { // what killed backups have left is gone now
		return m, err
	}
	about := backup.Manifest{Program: Version(), Database: b.Config.Database.Driver}
	if about.CreatedAt, err = b.Store.Time(ctx); err != nil {
		return m, err
	}
	if about.Schema, err = relational.LatestVersion(); err != nil { // the store has no other
		return m, err
	}
	for _, part := range []func(context.Context, *git.Program, *backup.Making) error{b.database, b.repositories, b.mirrors, b.files} {
		if err := part(ctx, program, making); err != nil {
			return m, err
		}
	}
	b.Report("writing " + file)
	return making.Write(ctx, about)
}

// room fails unless the disk has room for two copies of the database and the board: what goes into the
// file is beside it until it is written. How much is to be taken from the mirrors is not known yet.
func (b Backup) room(ctx context.Context, dir string) error {
	need, _, err := folderSize(ctx, filepath.Join(b.Config.DataDir, BoardFolder))
	if err != nil {
		return err
	}
	if b.Config.Database.Driver != "postgres" {
		info, err := os.Stat(filepath.Join(b.Config.DataDir, DatabaseFile))
		if err != nil {
			return task.Wrap(task.DataDir, err, "the database cannot be read")
		}
		need += info.Size()
	}
	free := b.Free
	if free == nil {
		free = func(dir string) (int64, error) { return disk.FreeSpace(dir) }
	}
	has, err := free(dir)
	if err != nil {
		return task.Wrap(task.DataDir, err, "the backup cannot be written")
	}
	if need *= 2; has < need {
		return task.Errorf(task.DataDir, "the backup needs %d MB in %s, and %d MB are free", need>>20, dir, has>>20).
			WithHint("make room there, or name a file on another disk")
	}
	return nil
}

// database adds a copy of the SQLite database.
func (b Backup) database(ctx context.Context, _ *git.Program, making *backup.Making) error {
	if b.Config.Database.Driver == "postgres" {
		return nil
	}
	b.Report("copying the database")
	path, err := making.Path(savedDatabase)
	if err != nil {
		return err
	}
	if err := sqlite.Copy(ctx, filepath.Join(b.Config.DataDir, DatabaseFile), path); err != nil {
		return err
	}
	_, err = making.Add(ctx, savedDatabase)
	return err
}

// repositories adds the repositories of the board.
func (b Backup) repositories(ctx context.Context, program *git.Program, making *backup.Making) error {
	all, err := b.Store.ListBoardRepositories(ctx)
	if err != nil {
		return err
	}
	for _, one := range all {
		path := filepath.Join(BoardFolder, filepath.FromSlash(one.Name)+".git")
		if err := b.repository(ctx, program, making, exported{path, []string{"refs/"}}); err != nil {
			return err
		}
	}
	return nil
}

// mirrors adds what tasks have in the mirrors. With PostgreSQL that is in the database.
func (b Backup) mirrors(ctx context.Context, program *git.Program, making *backup.Making) error {
	if b.Config.Database.Driver == "postgres" {
		return nil
	}
	all, err := mirror.List(filepath.Join(b.Config.DataDir, mirrorFolder))
	if err != nil {
		return err
	}
	for _, path := range all {
		if err := b.repository(ctx, program, making, exported{filepath.Join(mirrorFolder, path), mirror.TaskRefs}); err != nil {
			return err
		}
	}
	return nil
}

// exported is what is taken of a repository in the data directory.
type exported struct {
	path   string
	places []string // of its refs
}

// repository adds a repository, unless it has nothing. What is no repository, and one that is removed
// meanwhile, is left out.
func (b Backup) repository(ctx context.Context, program *git.Program, making *backup.Making, of exported) (err error) {
	dir := filepath.Join(b.Config.DataDir, of.path)
	if !isRepository(dir) {
		b.Report("left out: " + of.path + " is no repository in this data directory")
		return nil
	}
	name := savedGit + filepath.ToSlash(of.path)
	path, err := making.Path(name + packSuffix)
	if err != nil {
		return err
	}
	pack, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	b.Report("packing " + of.path)
	refs, err := program.Export(ctx, dir, of.places, pack)
	if err = errors.Join(err, pack.Close()); err != nil {
		if !isThere(dir) {
			b.Report("left out: " + of.path + " was removed meanwhile")
			return nil
		}
		return task.Wrap(task.DataDir, err, "the repository "+of.path+" cannot be packed")
	}
	if len(refs.Objects) == 0 && strings.HasPrefix(of.path, mirrorFolder) {
		return nil // the forge has all of it
	}
	text := refs.Text()
	if len(text) > maxRefs {
		return task.Errorf(task.TooLarge, "the repository %s has %d MB of names of refs; %d MB are allowed", of.path, len(text)>>20, maxRefs>>20)
	}
	if err := making.AddText(ctx, name+refsSuffix, text); err != nil || len(refs.Objects) == 0 {
		return err
	}
	_, err = making.Add(ctx, name+packSuffix)
	return err
}

// isRepository reports whether a folder is a repository, by what git goes by.
func isRepository(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, "HEAD"))
	return err == nil && isThere(filepath.Join(dir, "objects"))
}

// files adds what else cannot be made anew.
func (b Backup) files(ctx context.Context, _ *git.Program, making *backup.Making) error {
	token, err := os.ReadFile(filepath.Join(b.Config.DataDir, AgentFolder, "token"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return task.Wrap(task.DataDir, err, "the token of the agent cannot be read")
	}
	return making.AddText(ctx, savedToken, token)
}

// DumpCommand is the command that dumps the PostgreSQL database of the configuration.
func DumpCommand(c config.Config) (string, error) {
	return databaseCommand(c, "pg_dump --format=custom --file=toryo.dump")
}

// restoreCommand is the command that restores the dump.
func restoreCommand(c config.Config) (string, error) {
	command, err := databaseCommand(c, "pg_restore --exit-on-error --single-transaction --no-owner")
	return command + " toryo.dump", err
}

func databaseCommand(c config.Config, command string) (string, error) {
	arguments, err := postgres.Arguments(c.Database.URL.Reveal())
	for _, one := range arguments {
		command += " " + Quoted(one)
	}
	return command, err
}

// Quoted is a word as a shell reads it.
func Quoted(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_=./:@", r)
	}
	if strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
