package site

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/backup"
	"github.com/toryo-dev/toryo/internal/git"
	"github.com/toryo-dev/toryo/internal/mirror"
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
	refsSuffix    = ".json"                           // behind that, its refs
	packSuffix    = ".pack"                           // and its objects, unless it has none
	savedToken    = "files/" + AgentFolder + "/token" // of an agent with this data directory
)

// Backup writes backups. A server and an agent may use the data directory meanwhile.
type Backup struct {
	Config config.Config
	Store  store.Store
	// Report is told what is being done.
	Report func(what string)
}

// Write writes a backup to a file that is not there. The database comes first: so git may have
// more than the database knows of, and never less.
func (b Backup) Write(ctx context.Context, file string) (m backup.Manifest, err error) {
	program, err := git.Find()
	if err != nil {
		return m, err
	}
	making, err := backup.Begin(file)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, making.Close()) }()
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
		if !isThere(filepath.Join(b.Config.DataDir, path)) {
			b.Report("left out: " + path + " is not in this data directory")
			continue
		}
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
	all, err := filepath.Glob(filepath.Join(b.Config.DataDir, mirrorFolder, "*", "*.git"))
	if err != nil {
		return err
	}
	for _, dir := range all {
		path, err := filepath.Rel(b.Config.DataDir, dir)
		if err != nil {
			return err
		}
		if err := b.repository(ctx, program, making, exported{path, mirror.TaskRefs}); err != nil {
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

// repository adds a repository, unless it has nothing.
func (b Backup) repository(ctx context.Context, program *git.Program, making *backup.Making, of exported) (err error) {
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
	refs, err := program.Export(ctx, filepath.Join(b.Config.DataDir, of.path), of.places, pack)
	if err = errors.Join(err, pack.Close()); err != nil {
		return task.Wrap(task.DataDir, err, "the repository "+of.path+" cannot be packed")
	}
	if len(refs.Objects) == 0 && strings.HasPrefix(of.path, mirrorFolder) {
		return nil // the forge has all of it
	}
	text, err := json.Marshal(refs)
	if err != nil {
		return err
	}
	if err := making.AddText(ctx, name+refsSuffix, text); err != nil || len(refs.Objects) == 0 {
		return err
	}
	_, err = making.Add(ctx, name+packSuffix)
	return err
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
		command += " " + quoted(one)
	}
	return command, err
}

// quoted is a word as a shell reads it.
func quoted(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_=./:@", r)
	}
	if strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
