package phasetest

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/agent/workspace"
	"github.com/toryo-dev/toryo/internal/environment"
	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/llm/script"
	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/sandbox/bubblewrap"
	"github.com/toryo-dev/toryo/internal/sandbox/egress"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
	"github.com/toryo-dev/toryo/internal/workdir"
)

// errCrash stands for a process that is gone.
var errCrash = errors.New("the process was killed")

// World is what outlasts the runs of a task: the repository, the people, the
// journal as the server has it.
type World struct {
	t        testing.TB
	scenario *Scenario
	origin   string
	main     string // the commit that main has to have
	start    string // what the branch of the task had at first
	theirs   string // the last commit that a person has pushed to the branch of the task
	engine   sandbox.Engine
	model    *script.Model
	forge    *fakeForge

	mu      sync.Mutex
	events  []task.Event
	fired   map[int]bool
	runs    int
	crashed bool
	cutAt   Cut
	// followed says of an entry, by its number, that it is durable only with a later one.
	followed map[int]bool
	noSave   int
	cancel   context.CancelCauseFunc
	// RefuseSignals makes so many signals fail to be written to the journal.
	RefuseSignals int
	// Adjust changes the options of a run before it begins; may be nil.
	Adjust func(options *phase.Options)
	// Around puts something between the run and the people; may be nil.
	Around func(forge phase.Forge) phase.Forge
	// FailExport is asked before files of a commit are written to a folder of their own; may be nil.
	FailExport func() error
	// Approval is what the next run is told about the approval of its plan.
	Approval task.PlanApproval
	// Outcomes are those of the runs so far.
	Outcomes []phase.Outcome
}

// Engine makes the sandbox engine that worlds share. Its sandboxes can read what Go has
// compiled, and cannot change it.
func Engine(t testing.TB) sandbox.Engine {
	t.Helper()
	if _, err := exec.LookPath("bwrap"); err != nil {
		testkit.LeaveOut(t, "bubblewrap")
	}
	list, err := egress.Registries()
	if err != nil {
		t.Fatal(err)
	}
	compiled, err := compiledFolder()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	t.Cleanup(func() {
		if err := workdir.Remove(dir); err != nil {
			t.Error(err)
		}
	})
	engine, err := bubblewrap.New(bubblewrap.Config{Dir: dir, Guest: testkit.Guest(), Toolchains: []string{compiled}, Log: slog.New(slog.DiscardHandler), NewGate: func(policy sandbox.Policy) sandbox.Gate {
		return egress.New(list, policy, slog.New(slog.DiscardHandler))
	}})
	if err != nil {
		t.Fatal(err)
	}
	return engine
}

// RunAll runs scenarios, each from an item to its end, and checks what they expect.
func RunAll(t *testing.T, files []string) {
	t.Helper()
	engine := Engine(t)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			scenario, err := Load(file)
			if err != nil {
				t.Fatal(err)
			}
			world := New(t, engine, scenario)
			for range max(scenario.Expect.Runs, 1) {
				if _, err := world.Run(t.Context()); err != nil && !Crashed(err) {
					t.Fatal(err)
				}
			}
			world.Check()
		})
	}
}

// New makes the world of a scenario.
func New(t testing.TB, engine sandbox.Engine, scenario *Scenario) *World {
	t.Helper()
	scenario.need(t)
	w := &World{t: t, scenario: scenario, engine: engine, fired: map[int]bool{}, followed: map[int]bool{},
		origin: filepath.Join(t.TempDir(), "origin.git"), forge: &fakeForge{said: map[string]string{}, replies: map[string]string{}},
		model: script.NewModel(scenario.Script, llm.Endpoint{ContextLength: 200_000, MaxTokens: 4000, Prices: llm.Prices{Input: llm.MoneyOf(1), Output: llm.MoneyOf(2)}})}
	w.forge.gone, w.forge.moved, w.forge.unreferenced = w.isGone, w.moved, scenario.Unreferenced
	for _, one := range scenario.References {
		w.forge.references = append(w.forge.references, phase.Reference{Kind: task.Issue, Number: one.Number, State: "open", Author: "ann", Title: one.Title, Body: one.Body})
	}
	for _, link := range scenario.Images {
		sum := sha256.Sum256([]byte(link))
		w.forge.images = append(w.forge.images, phase.Image{Link: link, Image: llm.Image{Hash: hex.EncodeToString(sum[:]), Type: "image/png", Data: []byte(link)}})
	}
	w.git("", "init", "--quiet", "--bare", "--initial-branch=main", w.origin)
	w.commit("main", scenario.Files)
	if len(scenario.Branch) > 0 {
		w.commit(branch, scenario.Branch)
		w.start = w.git(w.origin, "rev-parse", "refs/heads/"+branch)
	}
	return w
}

const branch = "toryo/7"

// git runs git as a person would.
func (w *World) git(dir string, args ...string) string {
	w.t.Helper()
	command := exec.Command("git", args...) //nolint:noctx // a test's own
	command.Dir = dir
	command.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org",
	}
	output, err := command.CombinedOutput()
	if err != nil {
		w.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, output)
	}
	return strings.TrimSpace(string(output))
}

// LinkTo begins the text of a file that is a link.
const LinkTo = "link to "

// commit puts files on a branch, from main if it is new.
func (w *World) commit(name string, files map[string]string) {
	w.t.Helper()
	dir := w.t.TempDir()
	w.git("", "clone", "--quiet", w.origin, dir)
	if _, err := os.Stat(filepath.Join(w.origin, "refs", "heads", name)); name != "main" && err == nil {
		w.git(dir, "checkout", "--quiet", name)
	} else if name != "main" {
		w.git(dir, "checkout", "--quiet", "-B", name)
	}
	for path, text := range files {
		full := filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			w.t.Fatal(err)
		}
		err := os.WriteFile(full, []byte(text), 0o644)
		if target, link := strings.CutPrefix(text, LinkTo); link {
			err = errors.Join(os.Remove(full), os.Symlink(target, full))
		}
		if err != nil {
			w.t.Fatal(err)
		}
	}
	w.git(dir, "add", "--all", "--force")
	w.git(dir, "commit", "--quiet", "--allow-empty", "-m", "files")
	w.git(dir, "push", "--quiet", "origin", "HEAD:refs/heads/"+name)
	if name == "main" {
		w.main = w.git(dir, "rev-parse", "HEAD")
	}
}

// Push puts files of a person on the branch of the task, as it is on the forge. Scenarios have
// no server: what a run pushes to the branch stands for what the server keeps for the task, and
// that the forge has something else shows when the work is to be published.
func (w *World) Push(files map[string]string) {
	w.t.Helper()
	w.git(w.origin, "update-ref", "refs/heads/"+branch, cmp.Or(w.theirs, w.start, w.main))
	w.commit(branch, files)
	w.theirs = w.git(w.origin, "rev-parse", "refs/heads/"+branch)
}

// moved is the commit of a person that the published one would throw away, if there is one.
// The task sees it as its branch then.
func (w *World) moved(published string) string {
	if w.theirs == "" || w.git(w.origin, "merge-base", w.theirs, published) == w.theirs {
		return ""
	}
	w.git(w.origin, "update-ref", "refs/heads/"+branch, w.theirs)
	return w.theirs
}

func (w *World) isGone() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.crashed
}

// Append implements [phase.Journal].
func (w *World) Append(_ context.Context, kind task.EventKind, entry phase.Entry) error {
	data, err := json.Marshal(entry)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.crashed {
		return errCrash
	}
	if kind == task.SignalTaken && w.RefuseSignals > 0 {
		w.RefuseSignals--
		return task.Errorf(task.Unavailable, "the disk is busy")
	}
	w.events = append(w.events, task.Event{Task: "task1", Generation: int64(w.runs), Source: task.FromAgent,
		Position: int64(len(w.events) + 1), Kind: kind, Data: data, At: time.Now()})
	number := len(w.events)
	w.followed[number] = entry.Followed
	if number == w.cutAt.Entry {
		w.cut()
	}
	for i, event := range w.scenario.Events {
		if !w.fired[i] && event.When.Fits(w.runs, number, kind, entry) {
			w.fired[i] = true
			w.happen(event)
		}
	}
	return nil
}

// crash ends the process of the run: nothing that it does from here on has an
// effect. The caller holds the lock.
func (w *World) crash() {
	w.crashed = true
	w.cancel(errCrash)
}

// Fits reports whether this is the entry, with its number in the journal, that
// the run with the number has just written.
func (when When) Fits(run, number int, kind task.EventKind, entry phase.Entry) bool {
	switch {
	case when.Start, when.Over, when.Asked != "", when.Entry != 0 && when.Entry != number, when.Run != 0 && when.Run != run, when.Kind != "" && when.Kind != kind,
		when.Phase != "" && when.Phase != entry.Phase, when.Status != "" && when.Status != entry.Status,
		when.Step != 0 && when.Step != entry.Step,
		when.Tool != "" && (entry.Call == nil || entry.Call.Name != when.Tool || when.Begun != (entry.Result == nil)):
		return false
	}
	return true
}

// happen makes an event so. The caller holds the lock.
func (w *World) happen(event Event) {
	w.forge.add(event.Comments)
	w.forge.hold(event.Unheard)
	w.forge.mu.Lock()
	w.forge.fail += event.Deaf
	w.forge.mu.Unlock()
	w.noSave += event.NoSaving
	if len(event.Base) > 0 {
		w.commit("main", event.Base)
	}
	if len(event.Push) > 0 {
		w.Push(event.Push)
	}
	if event.Crash {
		w.crash()
	}
	if event.Signal != "" {
		reason := task.ReasonUnassigned
		if event.Signal == task.SignalPause {
			reason = task.ReasonPauseRequested
		}
		w.cancel(&phase.Halt{Signal: event.Signal, Reason: reason, Since: time.Now()})
	}
}

// Cancel ends the run that is going on, for the cause.
func (w *World) Cancel(cause error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cancel(cause)
}

// Entries is how many entries the journal has.
func (w *World) Entries() int { return len(w.events) }

// Run runs the task once, or carries it on, on a machine of its own.
func (w *World) Run(ctx context.Context) (phase.Outcome, error) {
	w.t.Helper()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w.mu.Lock()
	w.runs++
	w.crashed, w.cancel = false, cancel
	for i, event := range w.scenario.Events {
		if event.When.Start && !w.fired[i] && (event.When.Run == 0 || event.When.Run == w.runs) {
			w.fired[i] = true
			w.happen(event)
		}
	}
	w.mu.Unlock()
	repository, err := w.checkOut(ctx)
	if err != nil {
		return phase.Outcome{}, err
	}
	defer func() {
		if err := repository.Remove(); err != nil {
			w.t.Error(err)
		}
	}()
	options, people := w.options(), phase.Forge(w.forge)
	if w.Adjust != nil {
		w.Adjust(&options)
	}
	if w.Around != nil {
		people = w.Around(people)
	}
	runner, err := phase.NewRunner(options)
	if err != nil {
		return phase.Outcome{}, err
	}
	outcome, err := runner.Run(ctx, phase.Job{Work: w.work(), Forge: people, Journal: w, Repository: &mortal{repository, w}})
	w.Outcomes = append(w.Outcomes, outcome)
	return outcome, err
}

func (w *World) checkOut(ctx context.Context) (*workspace.Workspace, error) {
	options := workspace.Options{Dir: filepath.Join(w.t.TempDir(), "run"), URL: w.origin, Base: "main", Branch: branch}
	if phase.HasSaved(w.events) { // as an agent does
		options.WIP = task.WIPRef
	}
	return workspace.Prepare(context.WithoutCancel(ctx), options)
}

func (w *World) options() phase.Options {
	w.t.Helper()
	options := phase.Options{
		Model: func(task.Phase) llm.Model {
			if len(w.scenario.Images) == 0 {
				return w.model
			}
			return llm.Wrap(w.model, llm.Layers{Images: true, Retry: llm.RetryPolicy{Tries: 1}})
		}, Summarizer: w.model,
		Setup:    environment.Setup{Table: environment.BuiltIn(), Engine: w.engine, Log: slog.New(slog.DiscardHandler), CommandTimeout: 10 * time.Minute},
		Spec:     sandbox.Spec{Owner: "scenario"},
		Progress: func() string { return "progress" },
		Log:      slog.New(slog.DiscardHandler),
	}
	if err := w.scenario.Apply(&options); err != nil {
		w.t.Fatal(err)
	}
	if w.scenario.Compiled {
		folder, err := compileOnce()
		if err != nil {
			w.t.Fatal(err)
		}
		options.Spec.Env["GOCACHE"] = folder
		options.Spec.Env["GODEBUG"] = "goindex=0" // an index would be written to the cache, which cannot be
	}
	return options
}

func (w *World) work() phase.Work {
	s := w.scenario
	work := phase.Work{Task: "task1", Generation: int64(w.runs), Type: task.Development, Role: task.DefaultRole, Cause: s.Cause, Occasion: s.Occasion, Title: s.Title, Body: s.Body,
		Item: task.Key{Forge: task.Gitea, Repository: "owner/name", Kind: task.Issue, Number: 7}, Author: s.Author, Labels: s.Labels,
		Branch: branch, Base: "main", Earlier: s.Earlier, Approval: w.Approval, Past: w.events}
	for i, c := range s.Comments {
		work.Comments = append(work.Comments, task.CommentEntry{Comment: task.Comment{ID: fmt.Sprint("start", i), Author: c.Author, Body: c.Body},
			Access: c.Access, Refused: c.Refused})
	}
	if s.Pull != nil {
		work.Item.Kind = task.Pull
		work.Pull = &phase.Pull{Number: 7, Title: s.Pull.Title, Body: s.Pull.Body, Author: "alice", Head: branch, Base: "main"}
		for _, thread := range s.Pull.Threads {
			work.Pull.Threads = append(work.Pull.Threads, phase.Thread{ID: thread.ID, Path: thread.Path, Line: thread.Line,
				Comments: []task.CommentEntry{{Comment: task.Comment{ID: thread.ID + "-1", Author: thread.Author, Body: thread.Body}, Access: "write"}}})
		}
	}
	return work
}

// mortal is a repository that a dead process cannot reach any more.
type mortal struct {
	phase.Repository
	world *World
}

func (m *mortal) Save(ctx context.Context, message string) (string, error) {
	if m.world.isGone() {
		return "", errCrash
	}
	m.world.mu.Lock()
	failing := m.world.noSave > 0
	m.world.noSave--
	m.world.mu.Unlock()
	if failing {
		return "", task.Errorf(task.Unavailable, "the server does not answer")
	}
	return m.Repository.Save(ctx, message)
}

func (m *mortal) Export(ctx context.Context, commit string) (phase.Export, error) {
	if m.world.FailExport != nil {
		if err := m.world.FailExport(); err != nil {
			return nil, err
		}
	}
	return m.Repository.Export(ctx, commit)
}

func (m *mortal) Commit(ctx context.Context, message, saved string) (string, bool, error) {
	if m.world.isGone() {
		return "", false, errCrash
	}
	return m.Repository.Commit(ctx, message, saved)
}

// Crashed reports whether a run ended because its process was gone.
func Crashed(err error) bool { return errors.Is(err, errCrash) }

// Crash makes the process of the run that is going on go away.
func (w *World) Crash() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.crash()
}

// LoseSavedWork takes away the work in progress that runs have pushed.
func (w *World) LoseSavedWork() { w.git(w.origin, "update-ref", "-d", task.WIPRef) }

// Rewrite replaces a text in the journal, and reports whether it was there.
func (w *World) Rewrite(before, after string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	found := false
	for i := range w.events {
		found = found || strings.Contains(string(w.events[i].Data), before)
		w.events[i].Data = []byte(strings.ReplaceAll(string(w.events[i].Data), before, after))
	}
	return found
}

// AddComment adds a comment that somebody makes.
func (w *World) AddComment(comment Comment) { w.forge.add([]Comment{comment}) }

// FailCommentChecks makes the next so many calls of Comments fail.
func (w *World) FailCommentChecks(looks int) {
	w.forge.mu.Lock()
	defer w.forge.mu.Unlock()
	w.forge.fail += looks
}
