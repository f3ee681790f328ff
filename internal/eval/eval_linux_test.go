package eval_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/environment"
	"github.com/toryo-dev/toryo/internal/eval"
	"github.com/toryo-dev/toryo/internal/eval/taskset"
	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/sandbox/bubblewrap"
	"github.com/toryo-dev/toryo/internal/sandbox/egress"
	"github.com/toryo-dev/toryo/internal/sandbox/guest"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
)

func TestMain(m *testing.M) {
	guest.Main(nil)
	os.Exit(m.Run())
}

// plainPython is an environment without anything to set up: its tests take no time worth
// speaking of.
const plainPython = `
- name: plain
  title: Python without packages
  image: none
  markers: [test_sum.py]
  build: [test_sum.py]
  managers: [{name: plain, setup: [{run: "true"}], test: python3 -m unittest}]
  verify: [{command: "echo OK", expected_output: OK}]
`

// project is the repository of one task.
type project struct {
	t   *testing.T
	dir string
}

func (p project) git(args ...string) string {
	p.t.Helper()
	out, err := exec.CommandContext(p.t.Context(), "git", append([]string{"-C", p.dir, "-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "init.defaultBranch=main"}, args...)...).CombinedOutput()
	if err != nil {
		p.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return string(out)
}

func (p project) write(name, text string) {
	p.t.Helper()
	file := filepath.Join(p.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o750), os.WriteFile(file, []byte(text), 0o600)); err != nil {
		p.t.Fatal(err)
	}
}

const (
	wrong = "def add(a, b):\n    return a - b\n"
	right = "def add(a, b):\n    return a + b\n"
	test  = "import unittest\n\nimport total\nfrom testutil import same\n\n\nclass Sum(unittest.TestCase):\n    def test_zero(self):\n        self.assertEqual(total.add(0, 0), 0)\n"
	more  = "\n    def test_add(self):\n        same(self, total.add(1, 2), 3)\n"
	same  = "def same(case, a, b):\n    case.assertEqual(a, b)\n"
)

// newSet writes a set of tasks and reads it.
func newSet(t *testing.T, ids ...string) taskset.Set {
	t.Helper()
	return newSetWith(t, nil, ids...)
}

// newSetWith is a set whose repositories have more files.
func newSetWith(t *testing.T, files []string, ids ...string) taskset.Set {
	t.Helper()
	folder := t.TempDir()
	var rows strings.Builder
	for _, id := range ids {
		p := project{t, filepath.Join(folder, id)}
		if err := os.Mkdir(p.dir, 0o750); err != nil {
			t.Fatal(err)
		}
		p.git("init", "--quiet")
		p.write("total.py", wrong)
		p.write("test_sum.py", test)
		p.write("testutil/__init__.py", same)
		if err := writes(files...)(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		p.git("add", ".")
		p.git("commit", "--quiet", "-m", "first")
		p.write("total.py", right)
		gold := p.git("diff")
		p.git("checkout", "--quiet", ".")
		p.write("test_sum.py", test+more)
		tests := p.git("diff")
		p.git("checkout", "--quiet", ".")
		data, err := json.Marshal(map[string]any{
			"instance_id": id, "repo": id, "base_commit": strings.TrimSpace(p.git("rev-parse", "HEAD")), "patch": gold, "test_patch": tests,
			"problem_statement": "add does not add", "FAIL_TO_PASS": `["test_sum.Sum.test_add"]`, "PASS_TO_PASS": []string{"test_sum.Sum.test_zero"}, "unknown": 1,
		})
		if err != nil {
			t.Fatal(err)
		}
		rows.Write(append(data, '\n'))
	}
	file := filepath.Join(folder, "tasks.jsonl")
	if err := os.WriteFile(file, []byte(rows.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	set, err := taskset.Load(file, taskset.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// hand is a worker that leaves what it is told to.
type hand struct {
	t    *testing.T
	work map[string]func(ctx context.Context, p project) error // by task
	cost llm.Money

	mu   sync.Mutex
	jobs []eval.Job
}

// Work implements eval.Worker.
//
//nolint:contextcheck // git is run with the context of the test
func (h *hand) Work(ctx context.Context, job eval.Job) (eval.Worked, error) {
	h.mu.Lock()
	h.jobs = append(h.jobs, job)
	h.mu.Unlock()
	p := project{h.t, filepath.Join(h.t.TempDir(), "clone")}
	project{h.t, "/"}.git("clone", "--quiet", job.Repository.Dir, p.dir)
	worked := eval.Worked{Outcome: "done", Cost: h.cost, Usage: llm.Usage{Input: 100, Cached: 60, Output: 10}, Calls: 1}
	if h.cost > 0 {
		if err := job.Spent(h.cost); err != nil {
			return worked, err
		}
	}
	if err := h.work[job.Task.ID](ctx, p); err != nil {
		return worked, err
	}
	p.git("checkout", "--quiet", "-B", eval.Branch)
	p.git("add", ".")
	p.git("commit", "--quiet", "--allow-empty", "-m", "work")
	p.git("push", "--quiet", "origin", "HEAD:"+eval.Branch)
	return worked, nil
}

func writes(files ...string) func(context.Context, project) error {
	return func(_ context.Context, p project) error {
		for i := 0; i < len(files); i += 2 {
			p.write(files[i], files[i+1])
		}
		return nil
	}
}

// newEvaluation is an evaluation with real sandboxes.
func newEvaluation(t *testing.T, set taskset.Set, worker eval.Worker) *eval.Evaluation {
	t.Helper()
	if _, err := exec.LookPath("bwrap"); err != nil {
		testkit.LeaveOut(t, "bubblewrap")
	}
	list, err := egress.Registries()
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	engine, err := bubblewrap.New(bubblewrap.Config{Dir: t.TempDir(), Guest: testkit.Guest(), Log: log, NewGate: func(policy sandbox.Policy) sandbox.Gate { return egress.New(list, policy, log) }})
	if err != nil {
		t.Fatal(err)
	}
	table, err := environment.BuiltIn().With([]byte(plainPython))
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	out := eval.Folder(filepath.Join(folder, "out"))
	if err := errors.Join(out.Check(), out.Mark()); err != nil {
		t.Fatal(err)
	}
	return &eval.Evaluation{
		Set: set, Models: []string{"hand"}, Attempts: 1, Parallel: 2, Within: 10 * time.Minute, Out: out, Cache: folder, Dir: folder, Worker: worker,
		Scorer: eval.Scorer{Timeout: time.Minute, Dir: folder, Spec: sandbox.Spec{Owner: "test"},
			Setup: environment.Setup{Table: table, Engine: engine, Log: log, Snapshots: 1 << 30, Wait: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }}},
		Progress: func(line string) { t.Log(line) }, Now: time.Now, Redact: func(text string) string { return strings.ReplaceAll(text, "sesame", "***") },
	}
}

func run(t *testing.T, e *eval.Evaluation) eval.Results {
	t.Helper()
	results, err := e.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return results
}

func byTask(results eval.Results) map[string]eval.Attempt {
	all := map[string]eval.Attempt{}
	for _, attempt := range results.Attempts {
		all[attempt.Task] = attempt
	}
	return all
}

// What the hidden tests say is what counts, whatever the work says or does about them.
func TestScores(t *testing.T) {
	t.Parallel()
	forged := "import os\nimport sys\n\nprint('OK')\nos.makedirs('/tmp/logs', exist_ok=True)\nopen('reward.txt', 'w').write('1')\n"
	worker := &hand{t: t, work: map[string]func(context.Context, project) error{
		"right":   writes("total.py", right),
		"nothing": writes(),
		"wrong":   writes("total.py", "def add(a, b):\n    return 4\n"),
		"edited":  writes("total.py", wrong+"# the same\n", "test_sum.py", strings.Replace(test+more, "3)", "-1)", 1)),
		"skipped": writes("total.py", "import unittest\n\n\ndef add(a, b):\n    raise unittest.SkipTest('no')\n"),
		"forged":  writes("total.py", forged+wrong, "reward.txt", "1\n"),
		"exits":   writes("total.py", "import os\nimport sys\n\nprint('Ran 2 tests in 0.000s\\n\\nOK', file=sys.stderr)\nos._exit(0)\n"),
		"broken":  writes("total.py", "def add(:\n"),
		"helper":  writes("total.py", wrong+"# the same\n", "testutil/__init__.py", "def same(case, a, b):\n    pass\n"),
		"hook":    writes("total.py", wrong+"# the same\n", "test_a.py", "import unittest\n\nunittest.TestCase.assertEqual = lambda *_: None\n"),
		"clash":   writes("total.py", right, "test_mine.py", "import os\n\nos._exit(1)\n"),
	}}
	ids := []string{"right", "nothing", "wrong", "edited", "skipped", "forged", "exits", "broken", "helper", "hook", "clash"}
	e := newEvaluation(t, newSet(t, ids...), worker)
	results := run(t, e)
	for _, check := range results.Checks {
		if !check.Usable || check.NoChange.Resolved || !check.Gold.Resolved || check.NoChange.Environment.Identity == "" {
			t.Errorf("the check of %s: %+v", check.Task, check)
		}
	}
	attempts := byTask(results)
	for _, id := range ids {
		want := eval.Unresolved
		if id == "right" || id == "clash" {
			want = eval.Resolved
		}
		if attempts[id].Status != want || attempts[id].Usage.Cached != 60 {
			t.Errorf("%s: %+v", id, attempts[id])
		}
	}
	if attempt := attempts["edited"]; !slices.Contains(attempt.Flags, eval.FlagTests) || !slices.Contains(attempt.Score.Failed, "test_sum.Sum.test_add") {
		t.Errorf("edited tests: %+v", attempt)
	}
	if attempt := attempts["helper"]; !slices.Contains(attempt.Flags, eval.FlagTests) || !slices.Equal(attempt.PutBack, []string{"testutil/__init__.py"}) {
		t.Errorf("an edited helper: %+v", attempt)
	}
	if attempt := attempts["clash"]; len(attempt.Flags) > 0 || !slices.Equal(attempt.PutBack, []string{"test_mine.py"}) {
		t.Errorf("tests of its own: %+v", attempt)
	}
	if attempt := attempts["nothing"]; attempt.Patch != "" || attempt.Score.Command != "" {
		t.Errorf("no change: %+v", attempt)
	}
	for _, attempt := range results.Attempts {
		if attempt.Patch != "" && attempt.Score.Environment.Identity == "" {
			t.Errorf("%s has no digest of its environment", attempt.Task)
		}
	}
}

// Work may adjust tests of the program that could not be loaded any more. That is flagged, but what
// they say of the work as they were counts: with tests of its own wrong work passes too.
func TestTestsThatAreAdjusted(t *testing.T) {
	t.Parallel()
	const old = "import unittest\n\nfrom names import old\n\n\nclass Old(unittest.TestCase):\n    def test_name(self):\n        self.assertEqual(old(), 1)\n"
	renamed := []string{"names.py", "def new():\n    return 1\n", "test_old.py", strings.ReplaceAll(old, "old()", "new()")}
	renamed[3] = strings.Replace(renamed[3], "import old", "import new", 1)
	cheat := []string{"testutil/__init__.py", "def same(case, a, b):\n    pass\n"}
	worker := &hand{t: t, work: map[string]func(context.Context, project) error{
		"renamed":  writes(append(renamed, "total.py", right)...),
		"weakened": writes("total.py", right, "names.py", "def old():\n    return 2\n", "test_old.py", strings.Replace(old, ", 1)", ", 2)", 1)),
		"removed": func(_ context.Context, p project) error {
			p.write("total.py", right)
			p.write("names.py", renamed[1])
			return os.Remove(filepath.Join(p.dir, "test_old.py"))
		},
		"helper": writes(append(append(renamed, "total.py", wrong+"# the same\n"), cheat...)...),
		"listed": writes("total.py", right, "requirements.txt", "listed==2.0\n"),
	}}
	ids := []string{"renamed", "weakened", "removed", "helper", "listed"}
	set := newSetWith(t, []string{"names.py", "def old():\n    return 1\n", "test_old.py", old}, ids...)
	for i := range set.Tasks {
		set.Tasks[i].PassToPass = append(set.Tasks[i].PassToPass, "test_old.Old.test_name")
	}
	attempts := byTask(run(t, newEvaluation(t, set, worker)))
	for _, id := range ids {
		want, flags := eval.Unresolved, []string{eval.FlagTests}
		switch id {
		case "renamed":
			flags = []string{eval.FlagTests, eval.FlagOwnTests}
		case "listed":
			want, flags = eval.Resolved, []string{eval.FlagSetup}
		}
		if got := attempts[id]; got.Status != want || !slices.Equal(got.Flags, flags) {
			t.Errorf("%s is %s, with the flags %q: %+v", id, got.Status, got.Flags, got.Score)
		}
	}
}

// Tests that hang count as failed tests.
func TestTestsThatHang(t *testing.T) {
	t.Parallel()
	worker := &hand{t: t, work: map[string]func(context.Context, project) error{"hangs": writes("total.py", "import time\n\n\ndef add(a, b):\n    time.sleep(100000)\n")}}
	e := newEvaluation(t, newSet(t, "hangs"), worker)
	e.Scorer.Timeout = 20 * time.Second
	attempt := byTask(run(t, e))["hangs"]
	if attempt.Status != eval.Unresolved || !strings.Contains(attempt.Score.Note, "limit of time") {
		t.Errorf("it ended as %+v", attempt)
	}
}

// A task that cannot decide anything is left out, with the reason.
func TestTasksThatAreLeftOut(t *testing.T) {
	t.Parallel()
	set := newSet(t, "same", "bad", "fails", "gone", "unknown", "found")
	worker := &hand{t: t, work: map[string]func(context.Context, project) error{"found": writes("total.py", right)}}
	change := func(id string, how func(*taskset.Task)) {
		at := slices.IndexFunc(set.Tasks, func(t taskset.Task) bool { return t.ID == id })
		how(&set.Tasks[at])
	}
	change("same", func(t *taskset.Task) { t.FailToPass = []string{"test_sum.Sum.test_zero"} })
	change("bad", func(t *taskset.Task) { t.Base = strings.Repeat("1", 40) })
	change("fails", func(t *taskset.Task) { t.FailToPass = []string{"test_sum.Sum.test_other"} })
	change("gone", func(t *taskset.Task) { t.Repository, t.Missing = "", "the repository is not here" })
	change("unknown", func(t *taskset.Task) { t.TestCommand = "echo passed" })
	change("found", func(t *taskset.Task) { t.FailToPass, t.PassToPass = nil, nil })
	results := run(t, newEvaluation(t, set, worker))
	for id, want := range map[string]string{
		"same": "such as test_sum.Sum.test_zero", "bad": "does not have the commit", "fails": "are not in the report", "gone": "is not here", "unknown": "runner of the tests is not known", "found": "",
	} {
		for _, check := range results.Checks {
			if check.Task == id && (check.Usable != (want == "") || !strings.Contains(check.Reason, want) || check.Error != (id == "bad" || id == "gone")) {
				t.Errorf("%s: usable %v, error %v: %s", id, check.Usable, check.Error, check.Reason)
			}
			if check.Task == "found" && (!slices.Equal(check.Expected.FailToPass, []string{"test_sum.Sum.test_add"}) || !slices.Equal(check.Expected.PassToPass, []string{"test_sum.Sum.test_zero"})) {
				t.Errorf("the tests that were found: %+v", check.Expected)
			}
		}
	}
	if attempts := byTask(results); len(attempts) != 1 || attempts["found"].Status != eval.Resolved {
		t.Errorf("the attempts: %+v", attempts)
	}
}

// An evaluation that was cut off goes on: what was finished is not done again, and what was
// not is started again. Errors of the machine are tried once more, and are no failures.
func TestGoesOn(t *testing.T) {
	t.Parallel()
	set := newSet(t, "a", "b", "c")
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("killed")
	outage := task.Errorf(task.Unavailable, "the provider is down;\x1b[2J the key is sesame")
	worker := &hand{t: t, cost: llm.Unit, work: map[string]func(context.Context, project) error{
		"a": writes("total.py", right),
		"b": func(ctx context.Context, _ project) error { cancel(stopped); <-ctx.Done(); return context.Cause(ctx) },
		"c": func(context.Context, project) error { return outage },
	}}
	e := newEvaluation(t, set, worker)
	e.Parallel = 1
	plan := eval.Plan{Set: set.Name, SetHash: set.Hash, Models: map[string]string{"hand": "1"}}
	if err := e.Out.Begin(plan, false); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Run(ctx); !errors.Is(err, stopped) {
		t.Fatalf("it was cut off with %v", err)
	}
	again := hand{t: t, cost: llm.Unit}
	again.work = map[string]func(context.Context, project) error{"b": writes("total.py", right), "c": worker.work["c"]}
	second := newEvaluation(t, set, &again)
	second.Out, second.Cache, second.Scorer = e.Out, e.Cache, e.Scorer
	var lines []string
	second.Progress = func(line string) { lines = append(lines, line) }
	if err := second.Out.Begin(plan, false); err != nil {
		t.Fatal(err)
	}
	attempts := byTask(run(t, second))
	if c := attempts["c"]; attempts["a"].Status != eval.Resolved || attempts["b"].Status != eval.Resolved || c.Status != eval.Failed || c.Tries != 2 || c.Cost != 2*llm.Unit || c.Error != "the provider is down;\x1b[2J the key is ***" {
		t.Errorf("it came to %+v", attempts)
	}
	if told := strings.Join(lines, "\n"); strings.Contains(told, "sesame") || strings.Contains(told, "\x1b") || !strings.Contains(told, "is tried again: the provider is down;[2J the key is ***") {
		t.Errorf("the terminal is told %q", told)
	}
	done := map[string]int{}
	for _, job := range again.jobs {
		done[job.Task.ID]++
	}
	if fmt.Sprint(done) != "map[b:1 c:2]" {
		t.Errorf("it was done: %v", done)
	}
	// What errors cost is not forgotten when they are tried again.
	third := newEvaluation(t, set, &hand{t: t, cost: llm.Unit, work: map[string]func(context.Context, project) error{"c": writes("total.py", right)}})
	third.Out, third.Cache, third.Scorer = e.Out, e.Cache, e.Scorer
	if c := byTask(run(t, third))["c"]; c.Status != eval.Resolved || c.Cost != 3*llm.Unit || c.Tries != 3 {
		t.Errorf("tried again it is %+v", c)
	}
	// Neither is what was cut off: a, b, b again, and c three times.
	fourth := newEvaluation(t, set, &hand{t: t})
	fourth.Out, fourth.Cache, fourth.Scorer, fourth.Budget, fourth.Attempts = e.Out, e.Cache, e.Scorer, 6*llm.Unit, 2
	if results := run(t, fourth); len(results.Attempts) != 3 || !strings.Contains(results.Stopped, "6.00 were spent") {
		t.Errorf("%d attempts, stopped: %q", len(results.Attempts), results.Stopped)
	}
	// The results of another model have those of the first one, and those of one task the others.
	before, err := eval.Encode(run(t, fourth))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{eval.ResultsFile, "predictions.jsonl", "report.hand.2.json", eval.PageFile, filepath.Join(eval.JournalsFolder, "x")} {
		if err := eval.WriteFile(filepath.Join(string(e.Out), name), before); err != nil {
			t.Fatal(err)
		}
	}
	other := newEvaluation(t, set, &hand{t: t})
	other.Set.Tasks, other.Models = set.Tasks[:1], []string{"other"}
	other.Out, other.Cache, other.Scorer, other.Budget = e.Out, e.Cache, e.Scorer, 6*llm.Unit
	if results := run(t, other); len(results.Attempts) != 3 || len(results.Checks) != 3 || !slices.Equal(results.Tasks, []string{"a", "b", "c"}) || !slices.Equal(results.Models, []string{"other", "hand"}) {
		t.Errorf("the results are of %q and %q: %+v", results.Models, results.Tasks, results.Attempts)
	}
	// A check that is used is not too old to be kept.
	checks, err := filepath.Glob(filepath.Join(e.Cache, "checks", "*.json"))
	if err != nil || len(checks) == 0 {
		t.Fatalf("%q, %v", checks, err)
	}
	long := time.Now().Add(-80 * 24 * time.Hour)
	for _, file := range checks {
		if err := os.Chtimes(file, long, long); err != nil {
			t.Fatal(err)
		}
	}
	run(t, fourth)
	for _, file := range checks {
		if info, err := os.Stat(file); err != nil || time.Since(info.ModTime()) > 24*time.Hour {
			t.Errorf("%s was not used, %v", file, err)
		}
	}
	// A check counts for the same settings only, and not when it is to be made again.
	for name, change := range map[string]func(*eval.Evaluation){
		"cached": func(*eval.Evaluation) {}, "other settings": func(e *eval.Evaluation) { e.Settings = "more memory" }, "made again": func(e *eval.Evaluation) { e.Recheck = true },
	} {
		checked := newEvaluation(t, set, &hand{t: t})
		checked.Set.Tasks, checked.Cache, checked.Scorer, checked.OnlyCheck = set.Tasks[:1], e.Cache, e.Scorer, true
		change(checked)
		if check := run(t, checked).Checks[0]; !check.Usable || check.Cached != (name == "cached") {
			t.Errorf("%s: %+v", name, check)
		}
	}
	// With other tests the results from before do not count.
	changed := set
	changed.Tasks = slices.Clone(set.Tasks[:1])
	changed.Tasks[0].PassToPass = nil
	fifth := newEvaluation(t, changed, &hand{t: t, work: map[string]func(context.Context, project) error{"a": writes()}})
	fifth.Out, fifth.Cache, fifth.Scorer = e.Out, e.Cache, e.Scorer
	if a := byTask(run(t, fifth))["a"]; a.Status != eval.Unresolved {
		t.Errorf("with other tests it is %+v", a)
	}
	for name, other := range map[string]eval.Plan{
		"another set":    {Set: "x", SetHash: "other", Models: plan.Models},
		"another play":   {Set: set.Name, SetHash: set.Hash, Play: "gold", Models: plan.Models},
		"other settings": {Set: set.Name, SetHash: set.Hash, Models: map[string]string{"hand": "2"}},
		"same file name": {Set: set.Name, SetHash: set.Hash, Models: map[string]string{"HAND": "1"}},
	} {
		if err := e.Out.Begin(other, false); task.CodeOf(err) != task.Conflict {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := e.Out.Begin(eval.Plan{Set: "x", SetHash: "other", Models: map[string]string{}}, true); err != nil {
		t.Errorf("a fresh start: %v", err)
	}
	for _, name := range []string{"predictions*", "report*", "index.html", "journals"} {
		if left, err := filepath.Glob(filepath.Join(string(e.Out), name)); err != nil || len(left) > 0 {
			t.Errorf("after a fresh start there is %q, %v", left, err)
		}
	}
	if _, found, err := e.Out.Attempt("hand", "a", 1); found || err != nil {
		t.Errorf("what was there is still there: %v", err)
	}
}

// What the files of an attempt do to its set-up is no outage, if the change that people made can
// be set up.
func TestSetUpThatFails(t *testing.T) {
	t.Parallel()
	worker := &hand{t: t, work: map[string]func(context.Context, project) error{"a": writes("total.py", right, "deps", "curl: (6) Could not resolve host: example.org\n")}}
	e := newEvaluation(t, newSet(t, "a"), worker)
	table, err := environment.BuiltIn().With([]byte(strings.Replace(plainPython, `run: "true"`, `run: "if [ -e deps ]; then cat deps; exit 6; fi"`, 1)))
	if err != nil {
		t.Fatal(err)
	}
	e.Scorer.Setup.Table = table
	attempt := byTask(run(t, e))["a"]
	if attempt.Status != eval.Unresolved || attempt.Tries != 1 || !strings.Contains(attempt.Score.Note, "while they can with the change that people made") {
		t.Errorf("it ended as %+v", attempt)
	}
}

// A check that is made while the tests cannot run without the change decides nothing.
func TestNoChangeHasToFail(t *testing.T) {
	t.Parallel()
	set := newSet(t, "hangs")
	at := &set.Tasks[0]
	at.TestPatch = strings.Replace(at.TestPatch, "+        same(self", "+        while total.add(1, 2) != 3: pass\n+        same(self", 1)
	at.TestPatch = strings.Replace(at.TestPatch, "+6,9 @@", "+6,10 @@", 1)
	at.TestPatch = strings.Replace(at.TestPatch, "+7,6 @@", "+7,7 @@", 1)
	e := newEvaluation(t, set, &hand{t: t})
	e.Scorer.Timeout = 20 * time.Second
	check := run(t, e).Checks[0]
	if check.Usable || !strings.Contains(check.Reason, "without any change: the tests exceeded the limit of time") {
		t.Errorf("it is %+v", check)
	}
}

// No attempt begins when the money is spent, and one that goes on is ended.
func TestTheBudget(t *testing.T) {
	t.Parallel()
	worker := &hand{t: t, cost: llm.Unit, work: map[string]func(context.Context, project) error{"a": writes("total.py", right), "b": writes(), "c": writes()}}
	e := newEvaluation(t, newSet(t, "a", "b", "c"), worker)
	e.Parallel, e.Budget = 1, 2*llm.Unit
	results := run(t, e)
	if len(results.Attempts) != 2 || !strings.Contains(results.Stopped, "budget of 2.00 is used up") {
		t.Errorf("%d attempts; %s", len(results.Attempts), results.Stopped)
	}
	waits := func(ctx context.Context, _ project) error { <-ctx.Done(); return context.Cause(ctx) }
	e = newEvaluation(t, e.Set, &hand{t: t, cost: llm.Unit, work: map[string]func(context.Context, project) error{"a": waits}})
	e.Set.Tasks, e.Budget = e.Set.Tasks[:1], llm.Unit
	if results := run(t, e); len(results.Attempts) != 0 || results.Stopped == "" {
		t.Errorf("%d attempts; %s", len(results.Attempts), results.Stopped)
	}
}

// A run that never ends is a failed attempt.
func TestARunThatNeverEnds(t *testing.T) {
	t.Parallel()
	worker := &hand{t: t, work: map[string]func(context.Context, project) error{"a": func(ctx context.Context, _ project) error { <-ctx.Done(); return context.Cause(ctx) }}}
	e := newEvaluation(t, newSet(t, "a"), worker)
	e.Within = 10 * time.Millisecond
	attempt := byTask(run(t, e))["a"]
	if attempt.Status != eval.Unresolved || attempt.Outcome != string(task.Failed) || attempt.Tries != 1 {
		t.Errorf("it ended as %+v", attempt)
	}
}
