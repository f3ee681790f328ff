package agent_test

import (
	"context"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/agent"
	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/sandbox/bubblewrap"
	"github.com/toryo-dev/toryo/internal/sandbox/egress"
	"github.com/toryo-dev/toryo/internal/sandbox/guest"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
	"github.com/toryo-dev/toryo/internal/wire"
)

// The test binary is the inside of the sandboxes too.
func TestMain(m *testing.M) {
	guest.Main(map[string]guest.Confinement{})
	os.Exit(m.Run())
}

// folder is a repository that is only files: it knows what changed since it was
// made.
type folder struct {
	phase.Repository // what is not below is not called
	dir              string

	mutex   sync.Mutex
	before  map[string]string
	saved   int
	commits int
	// unchanged says that there is nothing to save.
	unchanged bool
	lost      phase.Lost
}

func (f *folder) Workspace() string { return f.dir }

func (f *folder) files() map[string]string {
	found := map[string]string{}
	entries, _ := os.ReadDir(f.dir)
	for _, entry := range entries {
		text, _ := os.ReadFile(filepath.Join(f.dir, entry.Name()))
		found[entry.Name()] = string(text)
	}
	return found
}

func (f *folder) Save(ctx context.Context, _ string) (string, error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.saved++
	if f.unchanged {
		return "", ctx.Err()
	}
	return "wip", ctx.Err()
}

func (f *folder) Commit(ctx context.Context, _, _ string) (string, bool, error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	now := f.files()
	for name, text := range now {
		if f.before[name] != text {
			f.commits++
			return "commit", true, ctx.Err()
		}
	}
	return "", len(now) != len(f.before), ctx.Err()
}

func (f *folder) Diff(context.Context, string) (phase.Diff, error) { return phase.Diff{}, nil }
func (f *folder) Changed(context.Context, string) (bool, error)    { return true, nil }
func (f *folder) Lost(context.Context, string) (phase.Lost, error) { return f.lost, nil }
func (f *folder) Below() string                                    { return "below" }
func (f *folder) Export(context.Context, string) (phase.Export, error) {
	return nil, task.Errorf(task.Unsupported, "no")
}

func (f *folder) Preserve(ctx context.Context, do func(context.Context) error) (phase.Preserved, error) {
	return phase.Preserved{}, do(ctx)
}
func (f *folder) ExcludeUnchanged(context.Context, map[string]string) error { return nil }
func (f *folder) Base(context.Context, string) ([]byte, error) {
	return nil, task.Errorf(task.NotFound, "no")
}
func (f *folder) BaseFiles(context.Context) ([]string, error)           { return nil, nil }
func (f *folder) Exclude(context.Context, []string) error               { return nil }
func (f *folder) Merge(context.Context) (conflicts []string, err error) { return nil, nil }
func (f *folder) Fits(context.Context) error                            { return nil }
func (f *folder) Remarks() []string                                     { return nil }

// shop is an agent with the command executor, in real sandboxes.
type shop struct {
	agent.Agent
	folder *folder
	tidied chan struct{} // has one for each workspace that was removed
}

// await waits until a workspace was removed.
func (s *shop) await(t *testing.T) {
	t.Helper()
	select {
	case <-s.tidied:
	case <-t.Context().Done():
		t.Fatal("the workspace was not removed")
	}
}

func engine(t *testing.T) sandbox.Engine {
	t.Helper()
	if _, err := exec.LookPath("bwrap"); err != nil {
		testkit.LeaveOut(t, "bubblewrap")
	}
	list, err := egress.Registries()
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	made, err := bubblewrap.New(bubblewrap.Config{
		Dir: t.TempDir(), Guest: testkit.Guest(), Log: log, NewGate: func(policy sandbox.Policy) sandbox.Gate { return egress.New(list, policy, log) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func newShop(t *testing.T, server string, words ...string) *shop {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "work")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "README"), []byte("old\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	s := &shop{folder: &folder{dir: dir}, tidied: make(chan struct{}, 10)}
	s.folder.before = s.folder.files()
	command := agent.Command{
		Words: words, Engine: engine(t), Owner: "shop", Timeout: 10 * time.Minute,
		Network: func(task.Role) sandbox.Policy { return sandbox.NoNetwork },
	}
	s.Client = &wire.Client{Server: server, Token: "toryo_x", HTTP: new(http.Client)}
	s.Name, s.Owner, s.Sandboxes = "shop", "shop", command.Engine
	s.Executors = map[task.Type]agent.Executor{task.Development: command, task.Review: command}
	s.Prepare = func(context.Context, wire.Assignment) (phase.Repository, func() error, error) {
		return s.folder, func() error { s.tidied <- struct{}{}; return nil }, nil
	}
	s.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	return s
}

// open begins to work and returns how to end that.
func (s *shop) open(t *testing.T) (closing func() error) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Work(ctx) }()
	return func() error { stop(); return <-ended }
}

func assignment() wire.Assignment {
	return wire.Assignment{
		TaskID: "t1", Generation: 3, TaskType: "development", RequiredRole: "BACKENDCODER", Forge: "board", Repository: "team/app",
		Kind: "issue", Number: 4, Title: "Say hello", Body: "please", Prompt: "Write 'hello'; $(rm -rf /) \"now\"", Branch: "toryo/4", Base: "main",
	}
}

func (h *house) text(kind task.EventKind) string {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	var text strings.Builder
	for _, entry := range h.entries {
		if entry.Kind == string(kind) {
			text.Write(entry.Data)
		}
	}
	return text.String()
}

// What the command changes becomes the branch and a pull request; what it writes
// is in the journal.
func TestCommandMakesAPullRequest(t *testing.T) {
	t.Parallel()
	server := newHouse(t, assignment())
	s := newShop(t, server.URL, "sh", "-c", `echo working on it; printf %s "$1" >prompt; echo hello >README`, "x", "{{.Prompt}}")
	closing := s.open(t)
	server.await(t, "a result", func() bool { return len(server.results) == 1 })
	if err := closing(); err != nil {
		t.Errorf("at its end: %v", err)
	}
	result := server.results[0]
	if result.Outcome != "done" || result.Pull == nil || result.Pull.Number != 7 || !strings.Contains(result.Comment, "http://board/7") {
		t.Errorf("the result is %+v", result)
	}
	if len(server.pulls) != 1 || server.pulls[0].Branch != "toryo/4" || server.pulls[0].Base != "main" || !strings.Contains(server.pulls[0].Body, "#4") {
		t.Errorf("the pull requests are %+v", server.pulls)
	}
	if got := s.folder.files()["prompt"]; got != assignment().Prompt {
		t.Errorf("the command was given %q", got)
	}
	if !strings.Contains(server.text(task.NoteTaken), "working on it") {
		t.Errorf("the journal has %s", server.text(task.NoteTaken))
	}
	if got := server.firstAsked(); got != `{"agent_id":"shop"}` {
		t.Errorf("it asked with %s", got)
	}
	s.await(t)
}

// A program whose work is withheld is started once more with what was found in its
// prompt. A secret that it leaves is not published.
func TestWithheldWorkOfACommand(t *testing.T) {
	t.Parallel()
	for kind, want := range map[task.FindingKind]struct{ outcome, reason string }{
		task.FindingProtected: {"done", string(task.ReasonCompleted)}, task.FindingSecret: {"failed", string(task.ReasonUnsafeChange)},
	} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			server := newHouse(t, assignment())
			server.withhold = []task.Finding{{Kind: kind, Path: "ci.yml", Line: 3}}
			s := newShop(t, server.URL, "sh", "-c", `printf x >>runs; printf %s "$1" >prompt`, "x", "{{.Prompt}}")
			closing := s.open(t)
			server.await(t, "a result", func() bool { return len(server.results) == 1 })
			if err := closing(); err != nil {
				t.Errorf("at its end: %v", err)
			}
			files := s.folder.files()
			if files["runs"] != "xx" || !strings.HasPrefix(files["prompt"], assignment().Prompt) || !strings.Contains(files["prompt"], "- ci.yml:3: ") {
				t.Errorf("it ran %q with the prompt %q", files["runs"], files["prompt"])
			}
			if len(server.pulls) != 2 || server.pulls[0].Again || !server.pulls[1].Again {
				t.Errorf("it was offered as %+v", server.pulls)
			}
			if result := server.results[0]; string(result.Outcome) != want.outcome || result.Reason != want.reason {
				t.Errorf("the result is %+v", result)
			}
			s.await(t)
		})
	}
}

// Nothing is called a success that is none.
func TestCommandsThatComeToNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ script, comment string }{
		"nothing changed": {"echo done", "without changing anything"},
		"it failed":       {"echo half >README; echo why it broke >&2; exit 3", "exit code 3"},
		"it says why":     {"echo why it broke >&2; exit 3", "why it broke"},
		"a signal":        {"kill -KILL $$", "exit code 137"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := newHouse(t, assignment())
			s := newShop(t, server.URL, "sh", "-c", c.script)
			closing := s.open(t)
			server.await(t, "a result", func() bool { return len(server.results) == 1 })
			if err := closing(); err != nil {
				t.Errorf("at its end: %v", err)
			}
			if result := server.results[0]; result.Outcome != "failed" || !strings.Contains(result.Comment, c.comment) || len(server.pulls) > 0 {
				t.Errorf("the result is %+v, the pull requests are %+v", result, server.pulls)
			}
		})
	}
}

// A comment may ask for nothing: what the command prints answers it then, where it was made.
func TestACommandAnswersAComment(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		occasion, script string
		want             task.Outcome
		said, replied    string
	}{
		"in the conversation":  {"2026-11-16T09:30:00Z comment 5", "echo you are welcome", task.OutcomeDone, "you are welcome", ""},
		"in a thread":          {"2026-11-16T09:30:00Z comment 6", "echo you are welcome", task.OutcomeDone, "", "you are welcome"},
		"opened again":         {"2026-11-16T09:30:00Z comment 6 reopened 2026-11-16T10:00:00.5Z", "echo you are welcome", task.OutcomeDone, "", "you are welcome"},
		"the text of a review": {"2026-11-16T09:30:00Z body 6", "echo you are welcome", task.OutcomeDone, "you are welcome", ""},
		"without a word":       {"2026-11-16T09:30:00Z comment 5", "true", task.OutcomeFailed, "without changing anything", ""},
		"a review that stands": {"2026-11-16T09:30:00Z review 5", "echo you are welcome", task.OutcomeFailed, "without changing anything", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			given := assignment()
			given.Kind, given.Cause, given.Occasion = "pull", string(task.ReasonChangesRequested), c.occasion
			given.PullRequest = &wire.PullRequest{Threads: []wire.ReviewThread{{ID: "T1", Comments: []task.CommentEntry{{Comment: task.Comment{ID: "6", Body: "thanks!"}}}}}}
			server := newHouse(t, given)
			s := newShop(t, server.URL, "sh", "-c", c.script)
			closing := s.open(t)
			server.await(t, "a result", func() bool { return len(server.results) == 1 })
			if err := closing(); err != nil {
				t.Errorf("at its end: %v", err)
			}
			result := server.results[0]
			if result.Outcome != c.want || !strings.Contains(result.Comment, c.said) || c.said == "" && result.Comment != "" || len(server.pulls) > 0 {
				t.Errorf("the result is %+v, the pull requests are %+v", result, server.pulls)
			}
			replied := ""
			for _, reply := range server.said {
				replied += reply.Text
				if reply.Thread != "T1" || reply.Resolved {
					t.Errorf("it said %+v", reply)
				}
			}
			if !strings.Contains(replied, c.replied) || c.replied == "" && replied != "" {
				t.Errorf("it said %+v", server.said)
			}
			s.await(t)
		})
	}
}

// What loses work of others is not published.
func TestACommandThatLosesWork(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lost phase.Lost
		want task.Outcome
	}{
		"lines of a push":        {phase.Lost{Pushed: []string{"NOTES"}}, task.OutcomeFailed},
		"tests in a conflict":    {phase.Lost{Tests: []string{"NOTES: TestA"}}, task.OutcomeFailed},
		"what is asked to do so": {phase.Lost{Merge: []string{"NOTES"}}, task.OutcomeDone},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := newHouse(t, assignment())
			s := newShop(t, server.URL, "sh", "-c", "echo hello >README")
			s.folder.lost = c.lost
			closing := s.open(t)
			server.await(t, "a result", func() bool { return len(server.results) == 1 })
			if err := closing(); err != nil {
				t.Errorf("at its end: %v", err)
			}
			result := server.results[0]
			if result.Outcome != c.want || c.want == task.OutcomeFailed &&
				(result.Reason != string(task.ReasonWorkLost) || !strings.Contains(result.Comment, "NOTES") || len(server.pulls) > 0) {
				t.Errorf("the result is %+v, the pull requests are %+v", result, server.pulls)
			}
			s.await(t)
		})
	}
}
