package program

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/git"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// versions is where the data of earlier versions is: for each a folder with database.sql, and
// with files.txtar for the context files and the repositories.
const versions = "testdata/versions"

var writeVersion = flag.String("write-version", "", "write what this version keeps to "+versions+", under this name")

// The issues of the data of a version, by the state of their tasks.
var issuesOf = map[task.State]int64{
	task.Done: 1, task.Paused: 3, task.Running: 4, task.Failed: 5, task.Stopped: 6, task.Queued: 7,
}

// keepForEver are the settings by which nothing is removed because of its age: the data of earlier
// versions becomes old.
var keepForEver = []string{
	"TORYO_PAUSE_RESUME_PAUSED_TASK_EXPIRY_DAYS=36500",
	"TORYO_RETENTION_JOURNALS=0", "TORYO_RETENTION_GIT=0", "TORYO_RETENTION_MIRRORS=0", "TORYO_RETENTION_CONTEXTS=0",
}

// Today's program opens what each earlier version has kept, lists the tasks, and goes on with one
// that was paused.
func TestVersions(t *testing.T) {
	t.Parallel()
	found, err := filepath.Glob(filepath.Join(versions, "*", "database.sql"))
	if err != nil || len(found) == 0 {
		t.Fatalf("there is no data of any version: %v", err)
	}
	for _, file := range found {
		dir := filepath.Dir(file)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			p := busyPlace(t, "sqlite").withModel(t, endingScript)
			p.environ = append(p.environ, keepForEver...)
			loadVersion(t, dir, p.data)
			journals, err := filepath.Glob(filepath.Join(p.data, "contexts", "paused", "*", "journal.jsonl"))
			if err != nil || len(journals) != 1 {
				t.Fatalf("the paused runs are %v, %v", journals, err)
			}
			before, err := os.ReadFile(journals[0])
			if err != nil {
				t.Fatal(err)
			}
			// A command that reads does not bring a database of another schema up to date: it may
			// be that of a server that runs.
			schema := schemaOf(t, p.data)
			if said, err := p.command(t, "tasks", "list").CombinedOutput(); err != nil && !strings.Contains(string(said), "start the server with this one, which brings the database up to date") {
				t.Errorf("toryo tasks list: %v: %s", err, said)
			}
			if now := schemaOf(t, p.data); now != schema {
				t.Errorf("toryo tasks list has changed the schema from %s to %s", schema, now)
			}
			database, _ := p.database(t)
			list := p.output(t, "tasks", "list")
			for state, number := range issuesOf {
				awaitTask(t, database, number, func(is task.Task) bool { return is.State == state })
				if !strings.Contains(list, fmt.Sprintf("team/app#%d ", number)) {
					t.Errorf("issue %d is not in the list: %s", number, list)
				}
			}
			if reviews, err := database.ListReviews(t.Context(), store.ReviewFilter{}); err != nil || len(reviews) != 1 {
				t.Errorf("the reviews are %v, %v", reviews, err)
			}

			server := p.start(t, "up")
			defer func() {
				if t.Failed() {
					t.Logf("%s\n%s", p.output(t, "tasks", "list"), p.output(t, "tasks", "next", "--explain"))
				}
			}()
			operator := server.client(strings.TrimSpace(p.output(t, "token", "create", "--role", "operator", "--name", "test")))
			paused := awaitTask(t, database, issuesOf[task.Paused], func(task.Task) bool { return true })
			if _, err := operator.ResumeTask(t.Context(), paused.ID); err != nil {
				t.Fatal(err)
			}
			done := awaitTask(t, database, issuesOf[task.Paused], func(is task.Task) bool { return is.State.Terminal() })
			if done.State != task.Done || done.Generation <= paused.Generation {
				t.Errorf("it ends as %s, %s, in generation %d after %d", done.State, done.Reason, done.Generation, paused.Generation)
			}
			server.stop(t)
			run := filepath.Base(filepath.Dir(journals[0]))
			after, err := os.ReadFile(filepath.Join(p.data, "contexts", "completed", run, "journal.jsonl"))
			if err != nil || !bytes.HasPrefix(after, before) || len(after) == len(before) {
				t.Errorf("the journal of the run does not go on from what was there: %v", err)
			}
		})
	}
}

// TestWriteVersion writes the data of this version, when it is asked to; CONTRIBUTING.md says
// when.
func TestWriteVersion(t *testing.T) {
	t.Parallel()
	if *writeVersion == "" {
		return
	}
	p := busyPlace(t, "sqlite")
	ending, writing := p.withModel(t, endingScript), p.withModel(t, writingScript)

	server := ending.start(t, "up")
	giveIssue(t, p)
	database, _ := p.database(t)
	awaitTask(t, database, issuesOf[task.Done], func(is task.Task) bool { return is.State == task.Done })
	server.stop(t)

	server = writing.start(t, "up")
	operator := server.client(strings.TrimSpace(p.output(t, "token", "create", "--role", "operator", "--name", "test")))
	begun := func(state task.State) task.Task {
		number := assignIssue(t, p, string(state), issuesOf[state])
		return awaitTask(t, database, number, func(is task.Task) bool {
			saved, err := database.EventsOf(t.Context(), is.ID, task.Saved)
			return err == nil && len(saved) > 1
		})
	}
	paused := begun(task.Paused)
	if _, err := operator.PauseTask(t.Context(), paused.ID); err != nil {
		t.Fatal(err)
	}
	awaitTask(t, database, issuesOf[task.Paused], func(is task.Task) bool { return is.State == task.Paused })
	begun(task.Running)
	server.kill(t)
	for state, trigger := range map[task.State]task.Trigger{task.Failed: task.GaveUp, task.Stopped: task.Withdrawn, task.Queued: ""} {
		addTask(t, p, database, state, trigger)
	}
	addReview(t, database)

	dir := filepath.Join(versions, *writeVersion)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	clean := strings.NewReplacer(p.data, "/data", " on "+host, " on host")
	_, raw := p.database(t)
	for name, text := range map[string]string{"database.sql": dump(t, raw), "files.txtar": string(txtar.Format(filesOf(t, p.data)))} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(clean.Replace(text)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// assignIssue makes an issue of which the number is known, and assigns it to the bot.
func assignIssue(t *testing.T, p place, title string, number int64) int64 {
	t.Helper()
	p.output(t, "board", "issue", "create", "--repo", "team/app", "--title", title, "--body", "please")
	p.output(t, "board", "issue", "assign", fmt.Sprintf("team/app#%d", number), "toryo")
	return number
}

// addTask makes a task of which no run is known.
func addTask(t *testing.T, p place, in store.Store, state task.State, trigger task.Trigger) {
	t.Helper()
	// The numbers of issues are given in order.
	for number := issuesOf[task.Failed]; number <= issuesOf[task.Queued]; number++ {
		key := task.Key{Forge: task.Board, Repository: "team/app", Kind: task.Issue, Number: number}
		if _, err := in.BoardItem(t.Context(), "team/app", number); err != nil {
			p.output(t, "board", "issue", "create", "--repo", "team/app", "--title", fmt.Sprint("issue ", number))
		}
		if number != issuesOf[state] {
			continue
		}
		made, _, err := in.Assign(t.Context(), store.NewTask{Key: key, Type: task.Development, Role: "CODER", Title: string(state), Reason: task.ReasonAssigned}, nil)
		if err == nil && trigger != "" {
			_, err = in.Move(t.Context(), store.Change{Task: made.ID, Trigger: trigger, Reason: task.ReasonRunFailed})
		}
		if err == nil {
			_, _, err = in.Put(t.Context(), store.Action{Item: key, IdempotencyKey: "later " + key.String(), Kind: "comment", Payload: json.RawMessage(`{"text": "later"}`), DueAt: made.CreatedAt.AddDate(100, 0, 0)})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func addReview(t *testing.T, in store.Store) {
	t.Helper()
	if _, err := in.AddReview(t.Context(), store.Review{Owner: "ann", CustomQuestionText: "Why?", AnswerText: "Because."}); err != nil {
		t.Fatal(err)
	}
}

// dump is a SQLite database as statements.
func dump(t *testing.T, db *sql.DB) string {
	t.Helper()
	var out strings.Builder
	tables := rows(t, db, `SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\_%' ESCAPE '\' ORDER BY name`)
	for _, table := range tables {
		fmt.Fprintf(&out, "%s;\n", table[1])
		var columns []string
		for _, column := range rows(t, db, `SELECT name, type FROM pragma_table_info('`+table[0]+`') ORDER BY cid`) {
			columns = append(columns, "quote("+column[0]+")")
		}
		for _, row := range rows(t, db, `SELECT `+strings.Join(columns, ` || ', ' || `)+`, '' FROM `+table[0]+` ORDER BY 1`) {
			fmt.Fprintf(&out, "INSERT INTO %s VALUES (%s);\n", table[0], row[0])
		}
	}
	for _, index := range rows(t, db, `SELECT sql, name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL ORDER BY name`) {
		fmt.Fprintf(&out, "%s;\n", index[0])
	}
	return out.String()
}

// rows returns the rows of a query with two columns of text.
func rows(t *testing.T, db *sql.DB, query string) (all [][2]string) {
	t.Helper()
	found, err := db.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer func() { _ = found.Close() }()
	for found.Next() {
		var row [2]string
		if err := found.Scan(&row[0], &row[1]); err != nil {
			t.Fatal(err)
		}
		all = append(all, row)
	}
	if err := found.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// keptRefs are all refs of a repository that counts.
var keptRefs = []string{"refs/"}

// filesOf are the context files, and the repositories as what git can import.
func filesOf(t *testing.T, data string) *txtar.Archive {
	t.Helper()
	archive := new(txtar.Archive)
	add := func(name string, content []byte) {
		archive.Files = append(archive.Files, txtar.File{Name: name, Data: content})
	}
	contexts := os.DirFS(data)
	err := fs.WalkDir(contexts, "contexts", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(contexts, path)
		add(path, content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	program, err := git.Find()
	if err != nil {
		t.Fatal(err)
	}
	repositories, err := fs.Glob(contexts, "*/*/*.git")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range repositories {
		dir := filepath.Join(data, path)
		refs, err := program.Export(t.Context(), dir, keptRefs, new(bytes.Buffer))
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.MarshalIndent(refs, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		stream, err := program.Run(t.Context(), git.Command{Dir: dir, Args: []string{"fast-export", "--all", "--reencode=no"}})
		if err != nil {
			t.Fatal(err)
		}
		add(path+".json", append(text, '\n'))
		add(path+".export", []byte(stream))
	}
	return archive
}

// schemaOf is how the tables of a database are made.
func schemaOf(t *testing.T, data string) (schema string) {
	t.Helper()
	database, err := sql.Open("sqlite", filepath.Join(data, site.DatabaseFile))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = database.Close() }()
	if err := database.QueryRowContext(t.Context(), `SELECT COALESCE(group_concat(sql, ';'), '') FROM sqlite_master`).Scan(&schema); err != nil {
		t.Fatal(err)
	}
	return schema
}

// loadVersion makes a data directory of the data of a version.
func loadVersion(t *testing.T, version, data string) {
	t.Helper()
	archive, err := txtar.ParseFile(filepath.Join(version, "files.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	program, err := git.Find()
	if err != nil {
		t.Fatal(err)
	}
	refs := map[string]git.Refs{}
	for _, file := range archive.Files {
		path := filepath.Join(data, filepath.FromSlash(file.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		switch repository, export := strings.CutSuffix(path, ".git.export"); {
		case strings.HasSuffix(path, ".git.json"):
			var of git.Refs
			if err := json.Unmarshal(file.Data, &of); err != nil {
				t.Fatal(err)
			}
			refs[strings.TrimSuffix(path, ".git.json")] = of
		case export:
			loadRepository(t, program, repository+".git", refs[repository], file.Data)
		default:
			if err := os.WriteFile(path, file.Data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	statements, err := os.ReadFile(filepath.Join(version, "database.sql"))
	if err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", filepath.Join(data, site.DatabaseFile))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if _, err := db.ExecContext(t.Context(), string(statements)); err != nil {
		t.Fatal(err)
	}
}

// loadRepository makes a repository of what git has exported. Its commits have the hashes that
// they had: journals and tasks name them.
func loadRepository(t *testing.T, program *git.Program, dir string, refs git.Refs, stream []byte) {
	t.Helper()
	if err := program.Init(t.Context(), dir, refs.Format); err != nil {
		t.Fatal(err)
	}
	if _, err := program.Run(t.Context(), git.Command{Dir: dir, Args: []string{"fast-import", "--quiet", "--force"}, Input: bytes.NewReader(stream)}); err != nil {
		t.Fatal(err)
	}
	for name, target := range refs.Symbolic {
		if _, err := program.Run(t.Context(), git.Command{Dir: dir, Args: []string{"symbolic-ref", name, target}}); err != nil {
			t.Fatal(err)
		}
	}
	var pack bytes.Buffer
	if is, err := program.Export(t.Context(), dir, keptRefs, &pack); err != nil || !slices.Equal(sorted(is.Objects), sorted(refs.Objects)) {
		t.Fatalf("%s is %v, want %v: %v", dir, is.Objects, refs.Objects, err)
	}
}

func sorted(refs map[string]string) (all []string) {
	for name, hash := range refs {
		all = append(all, name+" "+hash)
	}
	slices.Sort(all)
	return all
}
