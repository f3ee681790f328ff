package phase

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toryo-dev/toryo/internal/environment"
	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/task"
)

const goodPlan = `{"phase": "planning",
 "goal_understanding": {"goal": "g", "ambiguities": [{"question": "q", "assumption": "a", "confidence": 0.5}]},
 "task_decomposition": {"subtasks": [{"id": "t1", "description": "d"}, {"id": "t2", "description": "d", "depends_on": ["t1"]}]},
 "action_plan": {"actions": [{"id": "a1", "subtask": "t2", "what": "w", "done": true}]},
 "selected_environment": {"name": "python", "reason": "r", "detected_files": ["x"], "setup_commands": ["c"], "verification": [{"command": "v", "expected_output": "o"}]}}`

// differing is a repository that differs from its base in some files.
type differing struct {
	Repository
	files []string
}

func (d differing) Diff(context.Context, string) (Diff, error) { return Diff{Files: d.files}, nil }
func (d differing) Below() string                              { return "c1" }

// What set-up is given is the project's own only if it is exactly what the base branch
// has: an environment that is kept of anything else is used for nothing else.
func TestWhoseFilesAreSetUp(t *testing.T) {
	t.Parallel()
	issue := task.Key{Forge: task.Gitea, Repository: "ours/app", Kind: task.Issue, Number: 7}
	pull := task.Key{Forge: task.Gitea, Repository: "ours/app", Kind: task.Pull, Number: 8}
	const project = "gitea forge.example:3000 ours/app"
	for name, c := range map[string]struct {
		work  Work
		files []string
		want  environment.Source
	}{
		"the base":               {work: Work{Item: issue}, want: environment.Source{Project: project}},
		"what a branch has":      {work: Work{Item: issue}, files: []string{"a"}, want: environment.Source{Project: project, Change: "task t1 c1"}},
		"what a run has done":    {work: Work{Item: issue, Past: []task.Event{{}}}, want: environment.Source{Project: project, Change: "task t1 c1"}},
		"a pull request":         {work: Work{Item: pull, Pull: &Pull{Commit: "c1"}}, want: environment.Source{Project: project, Change: pull.String() + " c1"}},
		"a pull request, unread": {work: Work{Item: pull}, want: environment.Source{Project: project, Change: "task t1 c1"}},
		"a folder":               {work: Work{Folder: "/here"}, want: environment.Source{Project: "/here"}},
	} {
		c.work.Task = "t1"
		if c.work.Item != (task.Key{}) {
			c.work.URL = "https://forge.example:3000/ours/app/issues/7"
		}
		r := &run{Job: Job{Work: c.work, Repository: differing{files: c.files}}}
		if got, err := r.source(t.Context()); err != nil || got != c.want {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, c.want)
		}
	}
}

func TestReadPlan(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ from, to, wrong string }{
		"good":                       {},
		"without an environment":     {from: `"selected_environment"`, to: `"other"`, wrong: "schema"},
		"verification is no list":    {from: `"verification": [`, to: `"verification": 7, "other": [`, wrong: "schema"},
		"another phase":              {from: `"planning"`, to: `"execution"`, wrong: "schema"},
		"too sure":                   {from: `0.5`, to: `1.5`, wrong: "schema"},
		"no actions":                 {from: `{"id": "a1", "subtask": "t2", "what": "w", "done": true}`, wrong: "schema"},
		"a circle":                   {from: `"description": "d"},`, to: `"description": "d", "depends_on": ["t2"]},`, wrong: "circle"},
		"an unknown dependency":      {from: `["t1"]`, to: `["t9"]`, wrong: `"t9", which is not there`},
		"a subtask twice":            {from: `"id": "t2"`, to: `"id": "t1"`, wrong: "used twice"},
		"an action of no subtask":    {from: `"subtask": "t2"`, to: `"subtask": "t9"`, wrong: `"t9", which is not there`},
		"an empty set-up command":    {from: `["c"]`, to: `["  "]`, wrong: "empty"},
		"a number for a command":     {from: `["c"]`, to: `[7]`, wrong: "schema"},
		"expected output is missing": {from: `, "expected_output": "o"`, wrong: "schema"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := goodPlan
			if c.from != "" {
				if text = strings.Replace(goodPlan, c.from, c.to, 1); text == goodPlan {
					t.Fatal("nothing was replaced")
				}
			}
			object, ok := findObject("Here: ```json\n" + text + "\n``` That is {it}.")
			if !ok {
				t.Fatal("the object was not found")
			}
			plan, err := readPlan(object)
			if c.wrong == "" {
				if err != nil || plan.Revision != 1 || plan.ActionPlan.Actions[0].Done || plan.SelectedEnvironment.Verification[0].ExpectedOutput != "o" {
					t.Fatalf("%+v, %v", plan, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("%v, want %q", err, c.wrong)
			}
		})
	}
}

func TestAPlanNeedNotSayHowTheEnvironmentIsMade(t *testing.T) {
	t.Parallel()
	head, _, _ := strings.Cut(goodPlan, `"selected_environment"`)
	sparse := head + `"selected_environment": {}}`
	object, _ := findObject(sparse)
	plan, err := readPlan(object)
	if err != nil {
		t.Fatal(err)
	}
	selected, _, _ := environment.BuiltIn().Complete(plan.SelectedEnvironment, environment.Detection{EnvironmentType: "python", SetupCommands: []string{"pip install -r requirements.txt"}})
	if selected.Name != "python" || len(selected.SetupCommands) != 1 || len(selected.Verification) == 0 {
		t.Errorf("%+v", selected)
	}
}

func TestInspect(t *testing.T) {
	t.Parallel()
	diff := `diff --git a/main.go b/main.go
--- a/main.go
+++ b/main.go
@@ -1,4 +1,9 @@
-	// TODO: was here before
+		// TODO: was here before
+	// FIXME later
+	panic("not implemented")
+	// rest of the code
+	autodoTODOs := 1
+<<<<<<< ours
+=======
+>>>>>>> theirs
diff --git a/README.md b/README.md
--- a/README.md
+++ b/README.md
@@ -1 +1,2 @@
+TODO list: an application
`
	conflicts, left := inspect(diff)
	if want := []string{"main.go"}; !cmp.Equal(conflicts, want) {
		t.Errorf("conflicts: %v", conflicts)
	}
	want := []string{"main.go: // FIXME later", `main.go: panic("not implemented")`, "main.go: // rest of the code"}
	if diff := cmp.Diff(want, left); diff != "" {
		t.Error(diff)
	}
}

func TestCompareWithTheBaseline(t *testing.T) {
	t.Parallel()
	ran := func(code int, failing ...string) environment.Baseline {
		return environment.Baseline{Command: "c", ExitCode: code, Failing: failing, Readable: code == 0 || len(failing) > 0}
	}
	late := ran(137)
	late.Exceeded = sandbox.TimeLimit
	for name, c := range map[string]struct {
		before *environment.Baseline
		now    environment.Baseline
		worse  bool
		fresh  []string
	}{
		"passes":                          {before: new(ran(0)), now: ran(0)},
		"fails now":                       {before: new(ran(0)), now: ran(1, "a"), worse: true, fresh: []string{"a"}},
		"fails now without a name":        {before: new(ran(0)), now: ran(1), worse: true},
		"fails as before":                 {before: new(ran(1, "a")), now: ran(1, "a")},
		"fails as before and one more":    {before: new(ran(1, "a")), now: ran(1, "a", "b"), worse: true, fresh: []string{"b"}},
		"fails as before without a name":  {before: new(ran(1)), now: ran(1)},
		"does not build any more":         {before: new(ran(1, "a")), now: ran(2), worse: true},
		"does not end":                    {before: new(ran(0)), now: late, worse: true},
		"nothing to compare with, passes": {now: ran(0)},
		"nothing to compare with, fails":  {now: ran(1, "a"), worse: true, fresh: []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			outcome := compare(c.before, c.now)
			if outcome.Worse != c.worse || strings.Join(outcome.New, " ") != strings.Join(c.fresh, " ") || outcome.Compared != (c.before != nil) {
				t.Errorf("%+v", outcome)
			}
		})
	}
}

func TestPromptsAreThere(t *testing.T) {
	t.Parallel()
	for _, phase := range task.Phases {
		if _, err := embedded.ReadFile("prompts/" + string(phase) + ".md"); err != nil {
			t.Errorf("there is no prompt for %s: %v", phase, err)
		}
	}
}

func TestNamesOnOneLine(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"a b.go": "a b.go", "日本.txt": "日本.txt", "a\nb": `"a\nb"`, "a\x1b[31m": `"a\x1b[31m"`, "\xff": `"\xff"`} {
		if got := plainName(name); got != want {
			t.Errorf("%q is shown as %s", name, got)
		}
	}
}

func TestRemarksOnACommand(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		ran        sandbox.Result
		has, hasNo string
	}{
		{sandbox.Result{ExitCode: 1}, "", "["},
		{sandbox.Result{ExitCode: 137, Exceeded: sandbox.TimeLimit}, "", "["},
		{sandbox.Result{ExitCode: 137, Exceeded: sandbox.MemoryLimit}, "[killed: it exceeded the limit of memory]", "stay"},
		{sandbox.Result{Exceeded: sandbox.DiskLimit, Left: 3}, "[3 paths", "killed"},
		{sandbox.Result{Exceeded: sandbox.DiskLimit}, "limit of disk is exceeded", "killed"},
		{sandbox.Result{Left: 1}, "[1 paths", "exceeded"},
	} {
		if text := remarks(test.ran); !strings.Contains(text, test.has) || strings.Contains(text, test.hasNo) {
			t.Errorf("%+v gives %q", test.ran, text)
		}
	}
}

// A run that goes on reads what another version has written.
func TestTheCompletionInTheJournal(t *testing.T) {
	t.Parallel()
	written, err := json.Marshal(completion{
		State: task.Done, Reason: task.ReasonCompleted,
		Text: pullRequestText{CommitMessage: "m", Title: "t", Summary: "s", Replies: []ThreadReply{{Thread: "1", Text: "r"}}},
	})
	const want = `{"state":"done","reason":"completed","letter":{"commit_message":"m","title":"t","summary":"s","replies":[{"thread":"1","text":"r"}]}}`
	if err != nil || string(written) != want {
		t.Errorf("it is %s, %v, want %s", written, err, want)
	}
}
