package retention_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/mirror"
	"github.com/toryo-dev/toryo/internal/retention"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/store/sqlite"
	"github.com/toryo-dev/toryo/internal/task"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func database(t testing.TB) store.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "toryo.db"))
	must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func git(t testing.TB, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "HOME=/nonexistent",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org")
	output, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, output)
	}
}

// running makes a task on a repository that an agent holds.
func running(t testing.TB, s store.Store, in task.Repository, number int64) task.Task {
	t.Helper()
	made, _, err := s.Assign(t.Context(), store.NewTask{
		Key: task.Key{Forge: in.Forge, Repository: in.Name, Kind: task.Issue, Number: number}, Type: task.Development, Reason: task.ReasonAssigned,
	}, nil)
	must(t, err)
	held, err := s.Claim(t.Context(), []store.Claim{{Task: made.ID, Generation: made.Generation, Agent: "a", TokenHash: []byte{1}, ExpiresAt: time.Now().Add(time.Hour)}}, nil)
	must(t, err)
	return held[0]
}

func ended(t testing.TB, s store.Store, x task.Task) task.Task {
	t.Helper()
	after, err := s.Move(t.Context(), store.Change{Task: x.ID, Trigger: task.Finished, Reason: task.ReasonCompleted})
	must(t, err)
	return after
}

// What ended tasks have in a mirror goes when their time is over, and not before. What other
// tasks have stays: those that run, those of other repositories, and those that the database
// does not know.
func TestWorkOfEndedTasksGoes(t *testing.T) {
	t.Parallel()
	s, root := database(t), t.TempDir()
	origin := filepath.Join(t.TempDir(), "origin.git")
	git(t, "", "init", "--quiet", "--bare", "--initial-branch=main", origin)
	work := t.TempDir()
	git(t, "", "clone", "--quiet", origin, work)
	git(t, work, "commit", "--quiet", "--allow-empty", "-m", "one")
	git(t, work, "push", "--quiet", "origin", "HEAD:main")
	mirrors, err := mirror.Open(t.Context(), mirror.Options{Root: root, Remote: func(context.Context, task.Repository) (forge.Remote, error) {
		return forge.Remote{URL: origin}, nil
	}})
	must(t, err)
	t.Cleanup(mirrors.Stop)
	ours, theirs := task.Repository{Forge: task.Gitea, Name: "a/b"}, task.Repository{Forge: task.Gitea, Name: "c/d"}
	seed := func(in task.Repository, id task.ID) {
		must(t, mirrors.Fetch(t.Context(), in, time.Hour))
		must(t, mirrors.Seed(t.Context(), mirror.Seed{Repository: in, Task: id, Generation: 1, Base: "main"}))
	}
	old, runs, other, promised := running(t, s, ours, 1), running(t, s, ours, 2), running(t, s, theirs, 3), running(t, s, ours, 4)
	for _, x := range []task.Task{old, runs, other, promised} {
		seed(x.Key.Repo(), x.ID)
	}
	seed(ours, "unknown")
	old = ended(t, s, old)
	now := old.UpdatedAt
	// When people were told about this one, the period was longer.
	_, err = s.Move(t.Context(), store.Change{Task: promised.ID, Trigger: task.GaveUp, Reason: task.ReasonRunFailed, KeptUntil: now.Add(45 * 24 * time.Hour)})
	must(t, err)
	keeping := &retention.Mirrors{
		Mirrors: mirrors, Tasks: s, Git: 30 * 24 * time.Hour, Unused: 365 * 24 * time.Hour,
		Now: func() time.Time { return now }, Log: slog.New(slog.DiscardHandler),
	}
	tasksIn := func(in task.Repository) string {
		ids, err := mirrors.Tasks(t.Context(), in)
		must(t, err)
		return fmt.Sprint(ids)
	}
	before := tasksIn(ours)
	for _, step := range []struct {
		at   time.Duration
		want int
	}{{0, 0}, {30*24*time.Hour - time.Second, 0}, {30*24*time.Hour + time.Second, 1}, {45*24*time.Hour - time.Second, 0}, {45*24*time.Hour + time.Second, 1}, {60 * 24 * time.Hour, 0}} {
		now = old.UpdatedAt.Add(step.at)
		would, err := keeping.Prunable(t.Context())
		must(t, err)
		did, err := keeping.Prune(t.Context())
		if err != nil || would.Tasks != step.want || did.Tasks != step.want {
			t.Fatalf("after %s %d would go and %d went, %v; want %d", step.at, would.Tasks, did.Tasks, err, step.want)
		}
		if step.want == 0 && step.at < 30*24*time.Hour && tasksIn(ours) != before {
			t.Errorf("after %s there are %s", step.at, tasksIn(ours))
		}
	}
	if got := tasksIn(ours); strings.Contains(got, string(old.ID)) || !strings.Contains(got, string(runs.ID)) || !strings.Contains(got, "unknown") {
		t.Errorf("there are %s", got)
	}
	if got := tasksIn(theirs); got != fmt.Sprint([]task.ID{other.ID}) {
		t.Errorf("the other repository has %s", got)
	}
	// Nobody uses the other mirror, once nothing is in it but the work of ended tasks.
	for _, want := range []int{0, 1} {
		now = time.Now().Add(400 * 24 * time.Hour)
		would, err := keeping.Prunable(t.Context())
		must(t, err)
		did, err := keeping.Prune(t.Context())
		if err != nil || would.Mirrors != want || did.Mirrors != want {
			t.Errorf("%d mirrors would go and %d went, %v; want %d", would.Mirrors, did.Mirrors, err, want)
		}
		if want == 0 {
			ended(t, s, other)
		}
	}
}

// broken is a database in which one kind cannot be removed.
type broken struct {
	store.Store
	kind store.Kept
	err  error
}

func (b broken) Prune(ctx context.Context, what store.Kept, before time.Time, limit int) (int, bool, error) {
	if what == b.kind {
		return 0, false, b.err
	}
	return b.Store.Prune(ctx, what, before, limit)
}

// What cannot be removed of one kind is said, and the other kinds are removed.
func TestOneKindFails(t *testing.T) {
	t.Parallel()
	for _, kind := range store.AllKept {
		s := database(t)
		now := time.Now()
		if kind != store.KeptAudit {
			_, err := s.AddAudit(t.Context(), store.AuditEntry{At: now.AddDate(-2, 0, 0), Actor: "alice", Action: "task.stop", Subject: "x"})
			must(t, err)
		}
		if kind != store.KeptJournals {
			x := running(t, s, task.Repository{Forge: task.Gitea, Name: "a/b"}, 1)
			kept(t, s, x)
			ended(t, s, x)
		}
		full := errors.New("the disk is full")
		aged := retention.Database{
			Store: broken{s, kind, full}, Now: func() time.Time { return now.AddDate(1, 0, 0) }, Log: slog.New(slog.DiscardHandler),
			Periods: retention.Periods{store.KeptJournals: time.Hour, store.KeptAudit: time.Hour, kind: time.Hour},
		}
		removed, err := aged.Prune(t.Context())
		if !errors.Is(err, full) {
			t.Errorf("%s: the error is %v", kind, err)
		}
		if kind != store.KeptAudit && removed[store.KeptAudit] != 1 || kind != store.KeptJournals && removed[store.KeptJournals] < 300 {
			t.Errorf("%s fails, and %v went", kind, removed)
		}
		ctx, end := context.WithCancel(t.Context())
		end()
		if removed, err := aged.Prune(ctx); !errors.Is(err, context.Canceled) || errors.Is(err, full) {
			t.Errorf("after its end %v went, %v", removed, err)
		}
	}
}

// kept fills a task as the run of docs/scale.md does.
func kept(t testing.TB, s store.Store, x task.Task) {
	t.Helper()
	text := strings.Repeat("a line of what the model said\\n", 68)
	var events []task.Event
	for i := range int64(300) {
		events = append(events, task.Event{
			Task: x.ID, Generation: x.Generation, Source: task.FromAgent, Sequence: i + 1, Kind: task.MessageSent, Data: json.RawMessage(`{"text": "` + text + `"}`),
		})
	}
	_, err := s.Append(t.Context(), events)
	must(t, err)
	var entries []task.CommentEntry
	for i := range 10 {
		entries = append(entries, task.CommentEntry{Change: task.CommentNew, Comment: task.Comment{ID: fmt.Sprint(i), Kind: task.ItemComment, Author: "alice", Body: text[:500]}})
	}
	must(t, s.AppendComments(t.Context(), x.ID, 0, 0, entries))
	for i, kind := range strings.Fields(strings.Repeat("progress comment progress state_label ", 8)) {
		said := text[:1000]
		if kind == "state_label" {
			said = strings.Repeat("l", 60)
		}
		put, _, err := s.Put(t.Context(), store.Action{
			Item: x.Key, Task: x.ID, Generation: x.Generation, IdempotencyKey: fmt.Sprint(x.ID, i), Kind: kind, Payload: json.RawMessage(`{"text": "` + said + `"}`),
		})
		must(t, err)
		must(t, s.Deliver(t.Context(), put.ID, json.RawMessage(`{"id": "1"}`)))
	}
}

// BenchmarkBytesPerTask says what a task takes in the database right after its end, and when
// each time is over.
func BenchmarkBytesPerTask(b *testing.B) {
	const tasks = 40
	for b.Loop() {
		s := database(b)
		in := task.Repository{Forge: task.Gitea, Name: "a/b"}
		bytes := func() (all int64) {
			sizes, err := s.TableSizes(b.Context())
			must(b, err)
			for _, one := range sizes {
				all += one.Bytes
			}
			return all
		}
		empty := bytes()
		var last task.Task
		for i := range int64(tasks) {
			x := running(b, s, in, i+1)
			kept(b, s, x)
			pack := []byte(strings.Repeat("p", 20<<10))
			_, err := s.KeepRefs(b.Context(), store.KeptRefs{Task: x.ID, Generation: x.Generation, Refs: map[string]string{"refs/toryo/wip": "c"}, Pack: pack}, 0)
			must(b, err)
			last = ended(b, s, x)
		}
		b.ReportMetric(float64(bytes()-empty)/tasks, "B/task-at-its-end")
		now := last.UpdatedAt
		aged := retention.Database{Store: s, Now: func() time.Time { return now }, Log: slog.New(slog.DiscardHandler), Periods: retention.Periods{
			store.KeptGit: 30 * 24 * time.Hour, store.KeptJournals: 90 * 24 * time.Hour,
		}}
		for _, days := range []int{31, 91} {
			now = last.UpdatedAt.AddDate(0, 0, days)
			_, err := aged.Prune(b.Context())
			must(b, err)
			b.ReportMetric(float64(bytes()-empty)/tasks, fmt.Sprintf("B/task-after-%d-days", days))
		}
	}
}
