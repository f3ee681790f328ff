package app

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/backup"
	"github.com/toryo-dev/toryo/internal/leader"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/store/postgres"
	"github.com/toryo-dev/toryo/internal/store/sqlite"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
)

// toryo runs a command, and returns its exit code and what it says.
func toryo(t *testing.T, environ []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, complaint bytes.Buffer
	p := site.Program{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &complaint, Now: time.Now, Environ: environ}
	code = run(t.Context(), p, args)
	return code, out.String(), complaint.String()
}

// mustRun runs a command that succeeds, and returns what it says.
func mustRun(t *testing.T, environ []string, args ...string) string {
	t.Helper()
	code, said, complaint := toryo(t, environ, args...)
	if code != 0 {
		t.Fatalf("toryo %v: exit %d: %s", args, code, complaint)
	}
	return said
}

// wantExit runs a command that fails in a certain way, and returns what it complains about.
func wantExit(t *testing.T, code task.Code, args ...string) string {
	t.Helper()
	exit, _, complaint := toryo(t, nil, args...)
	if exit != code.Info().Exit {
		t.Errorf("toryo %v: exit %d, want %d: %s", args, exit, code.Info().Exit, complaint)
	}
	return complaint
}

// boardData makes a data directory with a repository and an issue on the board.
func boardData(t *testing.T, environ ...string) string {
	t.Helper()
	data, project := filepath.Join(t.TempDir(), "data"), t.TempDir()
	for _, args := range [][]string{
		{"init", "--quiet", "--initial-branch=trunk"},
		{"-c", "user.name=A", "-c", "user.email=a@example.com", "commit", "--quiet", "--allow-empty", "--message=first commit"},
	} {
		git := exec.CommandContext(t.Context(), "git", args...)
		git.Dir = project
		if said, err := git.CombinedOutput(); err != nil {
			t.Fatalf("git: %v %s", err, said)
		}
	}
	mustRun(t, environ, "board", "import", project, "--name", "team/app", "--data", data)
	mustRun(t, environ, "board", "issue", "create", "--repo", "team/app", "--title", "Say hello", "--data", data)
	return data
}

func history(t *testing.T, data string) string {
	t.Helper()
	git := exec.CommandContext(t.Context(), "git", "--git-dir="+filepath.Join(data, site.BoardFolder, "team", "app.git"), "log", "--format=%s", "HEAD")
	said, err := git.CombinedOutput()
	if err != nil {
		t.Fatalf("git: %v %s", err, said)
	}
	return string(said)
}

// A backup has the database, the board and the token of an agent, and comes back in another folder
// in which nobody but the user reads anything.
func TestBackupComesBack(t *testing.T) {
	t.Parallel()
	data := boardData(t)
	token := filepath.Join(data, site.AgentFolder, "token")
	if err := os.MkdirAll(filepath.Dir(token), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(token, []byte("agent_token\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "toryo.backup")
	if said := mustRun(t, nil, "backup", file, "--data", data); !strings.Contains(said, "not in it") {
		t.Errorf("it says %s", said)
	}
	if said := wantExit(t, task.Conflict, "backup", file, "--data", data); !strings.Contains(said, "is there already") {
		t.Errorf("a second backup of the name says %s", said)
	}
	back := filepath.Join(t.TempDir(), "somewhere", "else")
	mustRun(t, nil, "restore", file, "--data", back)
	if said := mustRun(t, nil, "board", "issue", "show", "team/app#1", "--data", back); !strings.Contains(said, "Say hello") {
		t.Errorf("the issue is %s", said)
	}
	if is := history(t, back); is != "first commit\n" {
		t.Errorf("the history is %q", is)
	}
	if text, err := os.ReadFile(filepath.Join(back, site.AgentFolder, "token")); err != nil || string(text) != "agent_token\n" {
		t.Errorf("the token is %q, %v", text, err)
	}
	for _, name := range []string{"", site.DatabaseFile, filepath.Join(site.AgentFolder, "token"), site.BoardFolder} {
		if info, err := os.Stat(filepath.Join(back, name)); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%q is %v, %v", name, info.Mode(), err)
		}
	}
	if _, err := os.Stat(filepath.Join(back, "restoring")); !os.IsNotExist(err) {
		t.Errorf("something is left: %v", err)
	}
	opened, err := sqlite.Open(t.Context(), filepath.Join(back, site.DatabaseFile))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = opened.Close() })
	entries, err := opened.ListAudit(t.Context(), "", 1)
	if err != nil || len(entries) != 1 || entries[0].Action != "data.restore" || entries[0].Outcome != "done" {
		t.Errorf("the audit ends with %+v, %v", entries, err)
	}
}

// branches lists the branches of the repository on the board.
func branches(t *testing.T, data string) string {
	t.Helper()
	git := exec.CommandContext(t.Context(), "git", "--git-dir="+filepath.Join(data, site.BoardFolder, "team", "app.git"), "for-each-ref", "--format=%(refname)", "refs/heads")
	said, err := git.CombinedOutput()
	if err != nil {
		t.Fatalf("git: %v %s", err, said)
	}
	return string(said)
}

// Branches come back with their names, also with spaces that are not ASCII and bytes that are not UTF-8.
func TestBackupHasOddNames(t *testing.T) {
	t.Parallel()
	data := boardData(t)
	for _, name := range []string{"\u6a5f\u80fd\u3000\u8ffd\u52a0", "a\u00a0b", "latin-\xe9"} {
		git := exec.CommandContext(t.Context(), "git", "--git-dir="+filepath.Join(data, site.BoardFolder, "team", "app.git"), "update-ref", "refs/heads/"+name, "HEAD")
		if said, err := git.CombinedOutput(); err != nil {
			t.Fatalf("git: %v %s", err, said)
		}
	}
	file, back := filepath.Join(t.TempDir(), "toryo.backup"), filepath.Join(t.TempDir(), "data")
	mustRun(t, nil, "backup", file, "--data", data)
	mustRun(t, nil, "restore", file, "--data", back)
	if was, is := branches(t, data), branches(t, back); was != is || strings.Count(is, "\n") != 4 {
		t.Errorf("there was\n%q\nand now there is\n%q", was, is)
	}
}

// A folder among the mirrors in which none is, or whose name no mirror has, is left out.
func TestBackupLeavesOutWhatIsNoMirror(t *testing.T) {
	t.Parallel()
	data := boardData(t)
	for _, name := range []string{"team%2Fapp.git", "alone.git"} {
		if err := os.MkdirAll(filepath.Join(data, "mirrors", "gitea", name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	repository := exec.CommandContext(t.Context(), "git", "clone", "--quiet", "--bare", filepath.Join(data, site.BoardFolder, "team", "app.git"), filepath.Join(data, "mirrors", "gitea", "copy.git"))
	if said, err := repository.CombinedOutput(); err != nil {
		t.Fatalf("git: %v %s", err, said)
	}
	file := filepath.Join(t.TempDir(), "toryo.backup")
	if code, _, said := toryo(t, nil, "backup", file, "--data", data); code != 0 || !strings.Contains(said, "team%2Fapp.git is no repository") || strings.Contains(said, "alone.git") || strings.Contains(said, "copy.git") {
		t.Errorf("exit %d: %s", code, said)
	}
	mustRun(t, nil, "restore", file, "--data", filepath.Join(t.TempDir(), "data"))
}

// backupOf is a backup of the data directory by whoever is told what is being done.
func backupOf(t *testing.T, data string, report func(string)) site.Backup {
	t.Helper()
	opened, err := sqlite.Open(t.Context(), filepath.Join(data, site.DatabaseFile))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = opened.Close() })
	return site.Backup{Config: config.Config{DataDir: data, Database: config.Database{Driver: "sqlite"}}, Store: opened, Report: report}
}

// A repository that is removed while the backup is made is left out, and the rest is in it.
func TestBackupWhileARepositoryGoes(t *testing.T) {
	t.Parallel()
	data := boardData(t)
	var said []string
	making := backupOf(t, data, func(what string) {
		if said = append(said, what); strings.HasPrefix(what, "packing ") {
			if err := os.RemoveAll(filepath.Join(data, site.BoardFolder, "team", "app.git")); err != nil {
				t.Error(err)
			}
		}
	})
	m, err := making.Write(t.Context(), filepath.Join(t.TempDir(), "toryo.backup"))
	if err != nil || len(m.Entries) != 1 || !strings.Contains(strings.Join(said, "\n"), "was removed meanwhile") {
		t.Errorf("it has %+v, %v, and says %q", m.Entries, err, said)
	}
}

// Who ends a backup is told that, and not that the data directory is broken.
func TestBackupIsBrokenOff(t *testing.T) {
	t.Parallel()
	data := boardData(t)
	for _, at := range []string{"copying ", "packing ", "writing "} {
		ctx, cancel := context.WithCancel(t.Context())
		making := backupOf(t, data, func(what string) {
			if strings.HasPrefix(what, at) {
				cancel()
			}
		})
		folder := t.TempDir()
		_, err := making.Write(ctx, filepath.Join(folder, "toryo.backup"))
		cancel()
		if task.CodeOf(err) != task.Interrupted {
			t.Errorf("while %sit: %v", at, err)
		}
		if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
			t.Errorf("left are %v, %v", left, err)
		}
	}
}

// Who ends a restore is told that too, and nothing is left.
func TestRestoreIsBrokenOff(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "toryo.backup")
	mustRun(t, nil, "backup", file, "--data", boardData(t))
	for _, at := range []string{"reading ", "unpacking ", "ending "} {
		ctx, cancel := context.WithCancel(t.Context())
		into := filepath.Join(t.TempDir(), "data")
		_, err := site.Restore{
			Config: config.Config{DataDir: into, Database: config.Database{Driver: "sqlite"}}, Now: time.Now, Log: slog.New(slog.DiscardHandler),
			Report: func(what string) {
				if strings.HasPrefix(what, at) {
					cancel()
				}
			},
		}.Run(ctx, file)
		cancel()
		if task.CodeOf(err) != task.Interrupted {
			t.Errorf("while %sit: %v", at, err)
		}
		if _, err := os.Lstat(filepath.Join(into, "restoring")); !os.IsNotExist(err) {
			t.Errorf("something is left: %v", err)
		}
	}
}

// What has more refs than a backup may have is refused before it is read.
func TestRestoreRefusesManyRefs(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "toryo.backup")
	making, err := backup.Begin(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = making.Close() })
	if err := making.AddText(t.Context(), "git/board/a/b.git.refs", make([]byte, 64<<20+1)); err != nil {
		t.Fatal(err)
	}
	if _, err := making.Write(t.Context(), backup.Manifest{Database: "sqlite"}); err != nil {
		t.Fatal(err)
	}
	if said := wantExit(t, task.TooLarge, "restore", file, "--data", filepath.Join(t.TempDir(), "data")); !strings.Contains(said, "64 MB are allowed") {
		t.Errorf("it says %s", said)
	}
}

// Without room for it a backup is not begun.
func TestBackupWithoutRoom(t *testing.T) {
	t.Parallel()
	making := backupOf(t, boardData(t), func(what string) { t.Errorf("it goes on with %s", what) })
	making.Free = func(string) (int64, error) { return 10_000, nil }
	if _, err := making.Write(t.Context(), filepath.Join(t.TempDir(), "toryo.backup")); task.CodeOf(err) != task.DataDir || !strings.Contains(err.Error(), "are free") {
		t.Errorf("it says %v", err)
	}
}

// What comes to the data directory during a restore is in its way, and stays.
func TestRestoreWhileSomethingComes(t *testing.T) {
	t.Parallel()
	file, into := filepath.Join(t.TempDir(), "toryo.backup"), filepath.Join(t.TempDir(), "data")
	mustRun(t, nil, "backup", file, "--data", boardData(t))
	came := filepath.Join(into, site.BoardFolder, "came")
	_, err := site.Restore{
		Config: config.Config{DataDir: into, Database: config.Database{Driver: "sqlite"}}, Now: time.Now, Log: slog.New(slog.DiscardHandler),
		Report: func(what string) {
			if strings.HasPrefix(what, "ending ") {
				if err := os.MkdirAll(came, 0o700); err != nil {
					t.Error(err)
				}
			}
		},
	}.Run(t.Context(), file)
	if task.CodeOf(err) != task.Conflict {
		t.Errorf("it says %v", err)
	}
	if _, err := os.Stat(came); err != nil {
		t.Errorf("what came is gone: %v", err)
	}
	for _, piece := range []string{site.DatabaseFile, "restoring"} {
		if _, err := os.Lstat(filepath.Join(into, piece)); !os.IsNotExist(err) {
			t.Errorf("%s is there: %v", piece, err)
		}
	}
}

// What cannot be restored leaves nothing behind that a server would start on, and says why.
func TestRestoreRefuses(t *testing.T) {
	t.Parallel()
	data := boardData(t)
	file := filepath.Join(t.TempDir(), "toryo.backup")
	mustRun(t, nil, "backup", file, "--data", data)
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	changed := func(name string, content []byte) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	flipped := bytes.Clone(whole)
	flipped[len(whole)/2] ^= 1
	for name, bad := range map[string]struct {
		file string
		code task.Code
		says string
	}{
		"missing":        {filepath.Join(t.TempDir(), "nothing"), task.NotFound, "cannot be opened"},
		"cut":            {changed("cut", whole[:len(whole)/2]), task.Invalid, "is cut off, or was changed"},
		"cut at the end": {changed("cut", whole[:len(whole)-1]), task.Invalid, "is cut off, or was changed"},
		"flipped":        {changed("flipped", flipped), task.Invalid, ""},
		"no backup":      {changed("text", []byte("no backup")), task.Invalid, "is cut off, or was changed"},
		"newer schema":   {madeBackup(t, backup.Manifest{Schema: 9999, Database: "sqlite", Program: "9.9"}, "database/toryo.db"), task.DatabaseNewer, "restore it with toryo 9.9 or newer"},
		"other database": {madeBackup(t, backup.Manifest{Database: "postgres"}), task.BadConfig, "database.driver: postgres"},
		"no database":    {madeBackup(t, backup.Manifest{Database: "sqlite"}), task.Invalid, "no database"},
		"bad database":   {madeBackup(t, backup.Manifest{Database: "sqlite"}, "database/toryo.db"), task.DataDir, "is not a SQLite database"},
		"unknown file":   {madeBackup(t, backup.Manifest{Database: "sqlite"}, "bin/sh"), task.Invalid, "does not know"},
		"hook":           {madeBackup(t, backup.Manifest{Database: "sqlite"}, "git/board/a/b.git/hooks/pre-receive.pack"), task.Invalid, "does not know"},
		"bad refs":       {madeBackup(t, backup.Manifest{Database: "sqlite"}, "git/board/a/b.git.refs"), task.Invalid, "cannot be read"},
		"bad folder":     {madeBackup(t, backup.Manifest{Database: "sqlite"}, "git/files/b.git.refs"), task.Invalid, "does not know"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			into := filepath.Join(t.TempDir(), "data")
			if said := wantExit(t, bad.code, "restore", bad.file, "--data", into); !strings.Contains(said, bad.says) {
				t.Errorf("it says %s", said)
			}
			for _, piece := range []string{site.DatabaseFile, site.BoardFolder, "mirrors", "restoring"} {
				if _, err := os.Lstat(filepath.Join(into, piece)); !os.IsNotExist(err) {
					t.Errorf("%s is there: %v", piece, err)
				}
			}
			// The folder can be used for a good one.
			mustRun(t, nil, "restore", file, "--data", into)
			history(t, into)
		})
	}
	t.Run("over a database", func(t *testing.T) {
		t.Parallel()
		before, err := os.ReadFile(filepath.Join(data, site.DatabaseFile))
		if err != nil {
			t.Fatal(err)
		}
		if said := wantExit(t, task.Conflict, "restore", file, "--data", data); !strings.Contains(said, "move it away") {
			t.Errorf("it says %s", said)
		}
		after, err := os.ReadFile(filepath.Join(data, site.DatabaseFile))
		if err != nil || !bytes.Equal(before, after) {
			t.Errorf("the database was changed: %v", err)
		}
	})
}

// madeBackup writes a backup with files in which nothing good is.
func madeBackup(t *testing.T, m backup.Manifest, names ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "made")
	making, err := backup.Begin(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if err := making.AddText(t.Context(), name, []byte(strings.Repeat("nothing good\n", 100))); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := making.Write(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if err := making.Close(); err != nil {
		t.Fatal(err)
	}
	return file
}

// A restore that was cut off while it put things in their places is one that no server starts on,
// and that the next restore puts right.
func TestRestoreThatWasCutOff(t *testing.T) {
	t.Parallel()
	data := boardData(t)
	file := filepath.Join(t.TempDir(), "toryo.backup")
	mustRun(t, nil, "backup", file, "--data", data)
	into := filepath.Join(t.TempDir(), "data")
	mustRun(t, nil, "restore", file, "--data", into)
	// As after the first of two renames.
	if err := os.Remove(filepath.Join(into, site.DatabaseFile)); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(into, "restoring"), 0o700); err != nil {
		t.Fatal(err)
	}
	plan, err := json.Marshal([]string{site.BoardFolder, site.DatabaseFile, "../outside"})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(into, "restoring", "plan.json"), plan, 0o600); err != nil {
		t.Fatal(err)
	}
	left := filepath.Join(into, ".toryo-restored")
	if err := os.MkdirAll(filepath.Join(left, "backup"), 0o700); err != nil {
		t.Fatal(err)
	}
	outside := filepath.Join(filepath.Dir(into), "outside")
	if err := os.WriteFile(outside, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"serve", "--addr", "127.0.0.1:0"}, {"agent", "--server", "http://127.0.0.1:1"}, {"board", "repo", "list"}, {"tasks", "list"}} {
		if said := wantExit(t, task.DataDir, append(args, "--data", into)...); !strings.Contains(said, "cut off") {
			t.Errorf("%v says %s", args, said)
		}
		if _, err := os.Lstat(filepath.Join(into, site.DatabaseFile)); !os.IsNotExist(err) {
			t.Fatalf("%v has made a database: %v", args, err)
		}
	}
	mustRun(t, nil, "restore", file, "--data", into)
	if said := mustRun(t, nil, "board", "issue", "show", "team/app#1", "--data", into); !strings.Contains(said, "Say hello") {
		t.Errorf("the issue is %s", said)
	}
	history(t, into)
	if _, err := os.Stat(left); !os.IsNotExist(err) {
		t.Errorf("what an earlier restore has left is there: %v", err)
	}
	if _, err := os.Stat(outside); err != nil {
		t.Errorf("what is outside is gone: %v", err)
	}
}

// With PostgreSQL the command says how to dump the database, without the password. Restoring
// fences the database and puts the rest in place, and does so again without harm.
func TestBackupWithPostgres(t *testing.T) {
	t.Parallel()
	address := testkit.Postgres(t)
	environ := []string{"TORYO_DATABASE_DRIVER=postgres", "TORYO_DATABASE_URL=" + address, "PATH=" + os.Getenv("PATH")}
	data := boardData(t, environ...)
	opened, err := postgres.Open(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = opened.Close() })
	key := task.Key{Forge: task.Board, Repository: "team/app", Kind: task.Issue, Number: 1}
	queued, _, err := opened.Assign(t.Context(), store.NewTask{Key: key, Type: task.Development, Title: "x", Reason: task.ReasonAssigned}, nil)
	if err != nil {
		t.Fatal(err)
	}
	held, err := opened.Claim(t.Context(), []store.Claim{{Task: queued.ID, Generation: 1, Agent: "a", TokenHash: []byte("t"), ExpiresAt: time.Now().Add(time.Hour)}}, nil)
	if err != nil || len(held) != 1 {
		t.Fatalf("%v, %v", held, err)
	}

	file := filepath.Join(t.TempDir(), "toryo.backup")
	with, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	if _, set := with.User.Password(); !set {
		with.User = url.UserPassword(with.User.Username(), "hunter2")
	}
	password, _ := with.User.Password()
	said := mustRun(t, []string{environ[0], "TORYO_DATABASE_URL=" + with.String(), environ[2]}, "backup", file, "--data", data)
	if !strings.Contains(said, "pg_dump --format=custom --file=toryo.dump --host=") || strings.Contains(said, password) {
		t.Errorf("it says %s", said)
	}
	// It is said before anything is done, because it has to be done before.
	if _, said, _ := toryo(t, environ, "backup", file, "--data", data); !strings.Contains(said, "pg_dump ") {
		t.Errorf("a backup that is refused says %s", said)
	}
	into := filepath.Join(t.TempDir(), "data")
	last := int64(1)
	for _, again := range []bool{false, true} {
		said := mustRun(t, environ, "restore", file, "--data", into)
		if strings.Contains(said, "left as it is") != again {
			t.Errorf("it says %s", said)
		}
		is, err := opened.Task(t.Context(), queued.ID)
		if err != nil || is.State != task.Queued || is.Reason != task.ReasonRestored || is.Generation < last+1_000_000 {
			t.Errorf("the task is %+v, %v", is, err)
		}
		last = is.Generation
		if is := history(t, into); is != "first commit\n" {
			t.Errorf("the history is %q", is)
		}
	}
	if err := opened.Holds(t.Context(), queued.ID, 1, []byte("t")); task.CodeOf(err) != task.LeaseLost {
		t.Errorf("the old lease: %v", err)
	}
	// A database that a server works with is not fenced.
	if leads, err := leader.Take(t.Context(), opened, "a server"); err != nil || !leads {
		t.Fatalf("the server leads: %v, %v", leads, err)
	}
	if code, _, complaint := toryo(t, environ, "restore", file, "--data", into); code != task.Conflict.Info().Exit || !strings.Contains(complaint, "stop all servers") {
		t.Errorf("while a server works with it: exit %d: %s", code, complaint)
	}
	if is, err := opened.Task(t.Context(), queued.ID); err != nil || is.Generation != last {
		t.Errorf("the task is %+v, %v", is, err)
	}
	empty := []string{"TORYO_DATABASE_DRIVER=postgres", "TORYO_DATABASE_URL=" + testkit.Postgres(t), "PATH=" + os.Getenv("PATH")}
	code, _, complaint := toryo(t, empty, "restore", file, "--data", filepath.Join(t.TempDir(), "data"))
	if code != task.DataDir.Info().Exit || !strings.Contains(complaint, "pg_restore --exit-on-error") {
		t.Errorf("without a restored dump: exit %d: %s", code, complaint)
	}
}
