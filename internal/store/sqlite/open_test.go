package sqlite

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
)

// refused opens and looks at a file that must be refused, and checks that this
// has changed nothing in its directory.
func refused(t *testing.T, path string, code task.Code) {
	t.Helper()
	before := contents(t, filepath.Dir(path))
	for name, try := range map[string]func() error{
		"Open": func() error { _, err := Open(t.Context(), path); return err },
		"Look": func() error { _, err := Look(t.Context(), path); return err },
	} {
		err := try()
		if task.CodeOf(err) != code {
			t.Errorf("%s: error has the code %q, want %q: %v", name, task.CodeOf(err), code, err)
		}
		checkMessage(t, err)
		if after := contents(t, filepath.Dir(path)); len(after) != len(before) {
			t.Errorf("%s left %d files where %d were", name, len(after), len(before))
		} else {
			for file, sum := range before {
				if after[file] != sum {
					t.Errorf("%s changed %s", name, file)
				}
			}
		}
	}
}

// checkMessage wants one line that says how to fix it.
func checkMessage(t *testing.T, err error) {
	t.Helper()
	coded, found := task.AsError(err)
	if !found || coded.Hint == "" {
		t.Errorf("the error does not say how to fix it: %v", err)
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("the error has several lines: %v", err)
	}
}

func contents(t *testing.T, dir string) map[string][32]byte {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	sums := map[string][32]byte{}
	for _, file := range files {
		if info, err := os.Stat(file); err != nil || info.IsDir() {
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		sums[file] = sha256.Sum256(data)
	}
	return sums
}

func newPath(t testing.TB) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "toryo.db")
}

func opened(t testing.TB, path string) store.Store {
	t.Helper()
	s, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func closed(t testing.TB, s store.Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// raw runs a statement on a file, as another program would.
func raw(t testing.TB, path, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// What another process writes is heard of, and what this one writes is not taken for that.
func TestOtherProcessesAreHeardOf(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	here, there := opened(t, path), opened(t, path)
	heard := make(chan store.Notice, 100)
	stop := here.Listen(func(n store.Notice) { heard <- n })
	if first := <-heard; first != (store.Notice{}) {
		t.Errorf("%+v is heard when listening begins", first)
	}
	for range 2 {
		if err := errors.Join(here.TestWrite(t.Context()), there.TestWrite(t.Context())); err != nil {
			t.Fatal(err)
		}
		if n := <-heard; n != (store.Notice{}) {
			t.Errorf("%+v is heard of another process", n)
		}
		if err := here.TestWrite(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	closed(t, there)
	closed(t, here)
	if len(heard) > 0 {
		t.Errorf("%+v is heard although nobody else has written", <-heard)
	}
}

func TestNotADatabase(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	if err := os.WriteFile(path, []byte(strings.Repeat("this is not a database\n", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	refused(t, path, task.DataDir)
}

func TestDamagedDatabase(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	closed(t, opened(t, path))
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := 100; i < 4096; i++ { // the root page after the header
		data[i] = 0xa5
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	refused(t, path, task.DataDir)
}

func TestOtherProgramsDatabase(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	raw(t, path, `CREATE TABLE recipes (name TEXT)`)
	refused(t, path, task.DataDir)
}

func TestNewerDatabase(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	closed(t, opened(t, path))
	raw(t, path, `INSERT INTO toryo_schema (version_id, is_applied) VALUES (9999, 1)`)
	refused(t, path, task.DatabaseNewer)
}

func TestUnusablePaths(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	refused(t, filepath.Join(dir, "missing", "toryo.db"), task.DataDir)
	refused(t, filepath.Join(file, "toryo.db"), task.DataDir)
	if err := os.Mkdir(filepath.Join(dir, "directory"), 0o700); err != nil {
		t.Fatal(err)
	}
	refused(t, filepath.Join(dir, "directory"), task.DataDir)
}

func TestLookChangesNothing(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	closed(t, opened(t, path))
	before := contents(t, filepath.Dir(path))
	found, err := Look(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if found.Schema == 0 || found.Schema != found.Newest || !strings.HasPrefix(found.Engine, "SQLite 3.") {
		t.Errorf("found %+v", found)
	}
	for file, sum := range contents(t, filepath.Dir(path)) {
		if before[file] != sum {
			t.Errorf("%s was changed", file)
		}
	}
	if _, err := Look(t.Context(), newPath(t)); task.CodeOf(err) != task.DataDir {
		t.Errorf("looking at nothing: %v", err)
	}
}

func TestStrangeNames(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a b?c=d&e#f%20g 棟梁")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "it's ?mode=memory.db")
	closed(t, opened(t, path))
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() == 0 || info.Mode().Perm() != 0o600 {
		t.Errorf("the file has %d bytes and the mode %v", info.Size(), info.Mode())
	}
}

func TestOpenTogether(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			s, err := Open(t.Context(), path)
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := s.AddQuestion(t.Context(), store.Question{}); err != nil {
				t.Error(err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	s := opened(t, path)
	defer closed(t, s)
	questions, err := s.ListQuestions(t.Context(), store.QuestionFilter{})
	if err != nil || len(questions) != 8 {
		t.Errorf("%d questions: %v", len(questions), err)
	}
}

// TestWaitsForOther: a writer in another process is waited for, and readers do not
// wait.
func TestWaitsForOther(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	s := opened(t, path)
	defer closed(t, s)
	other, err := connect(path, 1, "immediate")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	tx, err := other.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	added := make(chan error, 1)
	go func() {
		_, err := s.AddQuestion(t.Context(), store.Question{})
		added <- err
	}()
	if found, err := s.ListQuestions(t.Context(), store.QuestionFilter{}); err != nil || len(found) != 0 {
		t.Errorf("%d questions while another process writes: %v", len(found), err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := <-added; err != nil {
		t.Error(err)
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	s := opened(t, path)
	defer closed(t, s)
	db, err := writer(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1"} {
		var is string
		if err := db.QueryRowContext(t.Context(), "PRAGMA "+pragma).Scan(&is); err != nil || is != want {
			t.Errorf("%s is %q, want %q: %v", pragma, is, want, err)
		}
	}
}

func TestOpenBrokenOff(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Open(ctx, newPath(t)); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v, want that of the context", err)
	}
}

// A login with a letter beyond A to Z that has two cases is found in a database that an
// older program has folded by all of Unicode.
func TestLoginsOfOlderDatabases(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	s := opened(t, path)
	for _, login := range []string{"émile", "Bob"} {
		if _, err := s.AddUser(t.Context(), store.User{Login: login, Role: "viewer"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.AddSession(t.Context(), store.Session{Hash: []byte("one"), Login: "Bob"}); err != nil {
		t.Fatal(err)
	}
	// What belongs to the name of a token is Bob's, however it is written.
	written := map[string]string{"bOB": "Bob", "bobby": "bobby", "Émile": "Émile"}
	ids := map[string]string{}
	for owner := range written {
		made, err := s.AddReview(t.Context(), store.Review{Owner: owner})
		if err != nil {
			t.Fatal(err)
		}
		ids[owner] = made.ID
	}
	closed(t, s)
	raw(t, path, `UPDATE users SET folded = 'ÉMILE' WHERE login = 'émile'`)
	raw(t, path, `INSERT INTO sessions (hash, folded, created_at, expires_at) VALUES (x'02', 'ÉMILE', 0, 0)`)
	// The older program had nothing of what came after either.
	for _, table := range []string{"runs", "opened_pulls", "spent_days", "counted_days"} {
		raw(t, path, `DROP TABLE `+table)
	}
	raw(t, path, `ALTER TABLE tasks DROP COLUMN free_since`)
	raw(t, path, `DROP TABLE receipts`)
	raw(t, path, `DROP TABLE receipt_keys`)
	for table, column := range map[string]string{"tasks": "lease_process", "actions": "held_by", "messages": "held_by"} {
		raw(t, path, `DROP INDEX `+table+`_of_process`)
		raw(t, path, `ALTER TABLE `+table+` DROP COLUMN `+column)
	}
	raw(t, path, `DROP TABLE notifications`)
	raw(t, path, `DROP TABLE webhook_events`)
	raw(t, path, `DROP TABLE webhook_repositories`)
	raw(t, path, `DROP INDEX deliveries_by_subject`)
	raw(t, path, `ALTER TABLE deliveries DROP COLUMN subject`)
	raw(t, path, `ALTER TABLE deliveries DROP COLUMN event`)
	raw(t, path, `ALTER TABLE comment_log DROP COLUMN about`)
	raw(t, path, `ALTER TABLE comment_log DROP COLUMN previous`)
	raw(t, path, `ALTER TABLE tasks DROP COLUMN assigned_on`)
	raw(t, path, `ALTER TABLE actions DROP COLUMN lane`)
	raw(t, path, `ALTER TABLE actions DROP COLUMN lasting`)
	raw(t, path, `ALTER TABLE reviews DROP COLUMN verdict`)
	for _, index := range []string{"tasks_to_trim", "actions_with_text", "audit_by_time", "tasks_by_state", "tasks_by_change", "tasks_ready", "actions_untried", "board_items_by_change", "board_items_by_state"} {
		raw(t, path, `DROP INDEX `+index)
	}
	raw(t, path, `ALTER TABLE tasks DROP COLUMN trimmed`)
	raw(t, path, `ALTER TABLE tasks DROP COLUMN kept_until`)
	raw(t, path, `ALTER TABLE tasks DROP COLUMN detail`)
	raw(t, path, `ALTER TABLE tasks DROP COLUMN hint`)
	raw(t, path, `DROP TABLE saved_links`)
	for _, table := range []string{"memory_notes", "memory_sources", "memory_pulls"} {
		raw(t, path, `DROP TABLE `+table)
	}
	raw(t, path, `ALTER TABLE general_pauses DROP COLUMN wanted_by`)
	raw(t, path, `DROP TABLE machine_users`)
	raw(t, path, `DROP TABLE review_shares`)
	raw(t, path, `DROP TABLE expected_users`)
	raw(t, path, `DROP INDEX questions_of_owner`)
	raw(t, path, `DROP INDEX reviews_of_question`)
	for _, column := range []string{"questions DROP COLUMN owner", "reviews DROP COLUMN state", "reviews DROP COLUMN cause", "reviews DROP COLUMN held_until", "reviews DROP COLUMN claim", "threads DROP COLUMN spoken"} {
		raw(t, path, `ALTER TABLE `+column)
	}
	raw(t, path, `ALTER TABLE tokens DROP COLUMN person`)
	raw(t, path, `DELETE FROM toryo_schema WHERE version_id >= 13`)
	s = opened(t, path)
	defer closed(t, s)
	for _, login := range []string{"éMILE", "bOB"} {
		if _, err := s.User(t.Context(), login); err != nil {
			t.Errorf("%s: %v", login, err)
		}
	}
	if _, err := s.User(t.Context(), "Émile"); task.CodeOf(err) != task.NotFound {
		t.Errorf("another login is found: %v", err)
	}
	for owner, want := range written {
		if found, err := s.Review(t.Context(), ids[owner]); err != nil || found.Owner != want {
			t.Errorf("what was %q's is %q's, %v", owner, found.Owner, err)
		}
	}
}

// What ended lately is found by its time, however much has ended: the index serves such a question.
func TestEndedTasksAreFoundByTime(t *testing.T) {
	t.Parallel()
	path := testkit.SQLite(t, Open)
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	var plan string
	var number, parent, unused int
	row := db.QueryRowContext(t.Context(), `EXPLAIN QUERY PLAN SELECT * FROM tasks WHERE state IN ('done', 'failed', 'stopped') AND updated_at >= 1 ORDER BY id`)
	if err := row.Scan(&number, &parent, &unused, &plan); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(plan, "tasks_by_state (state=? AND updated_at>?)") {
		t.Errorf("the plan is %s", plan)
	}
}
