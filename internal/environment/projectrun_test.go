package environment_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toryo-dev/toryo/internal/environment"
	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/task"
)

// inFolders is a bench whose workspace has the files, and nothing else.
func inFolders(t *testing.T, files map[string]string) *bench {
	t.Helper()
	b := newBench(t)
	if err := os.Remove(filepath.Join(b.dir, "requirements.txt")); err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(b.dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(b.dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b.engine.results["check"] = []any{printed("OK")}
	return b
}

func (b *bench) measured(t *testing.T, plan environment.Selection) environment.Outcome {
	t.Helper()
	outcome, err := b.Run(t.Context(), environment.Request{Plan: plan, Source: environment.Source{Project: "ours"}, Baseline: true, Spec: sandbox.Spec{Owner: "test", Workspace: b.dir}})
	if err != nil {
		t.Fatal(err)
	}
	return outcome
}

var goCheck = []environment.Check{{Command: "check", ExpectedOutput: "OK"}}

// Whatever a plan writes to go to its folder, and wherever it thinks it is, each
// command starts in the folder that is meant.
func TestEveryCommandStartsInItsFolder(t *testing.T) {
	t.Parallel()
	files := map[string]string{"backend/go.mod": goMod, "backend/sub dir/x": "", "other/x": ""}
	cases := map[string]struct {
		plan environment.Selection
		want []string
	}{
		"no folder is named":     {environment.Selection{SetupCommands: []string{"one", "two"}}, []string{"backend: one", "backend: two", "backend: check"}},
		"the folder is named":    {environment.Selection{Directory: "./backend/", SetupCommands: []string{"one"}}, []string{"backend: one", "backend: check"}},
		"a line that goes there": {environment.Selection{SetupCommands: []string{"cd backend", "one", "cd backend", "two"}}, []string{"backend: one", "backend: two", "backend: check"}},
		"a line for a deeper folder": {environment.Selection{SetupCommands: []string{"cd 'sub dir';", "one", "cd ..", "two", "cd -- /workspace/other", "three"}},
			[]string{"backend/sub dir: one", "backend: two", "other: three", "backend: check"}},
		"a command that goes there": {environment.Selection{SetupCommands: []string{"cd backend && one", "(cd \"backend\" ; two)", "cd 'sub dir' && three"}},
			[]string{".: cd backend && one", ".: (cd \"backend\" ; two)", "backend: cd 'sub dir' && three", "backend: check"}},
		"a folder that is not there": {environment.Selection{Directory: "nowhere", SetupCommands: []string{"one"}}, []string{"backend: one", "backend: check"}},
		"a folder outside":           {environment.Selection{Directory: "../..", SetupCommands: []string{"cd ../..", "one"}}, []string{"backend: cd ../..", "backend: one", "backend: check"}},
		"what is only alike":         {environment.Selection{SetupCommands: []string{"cd", "cd -", "cd $HOME", "cdx backend"}}, []string{"backend: cd", "backend: cd -", "backend: cd $HOME", "backend: cdx backend", "backend: check"}},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := inFolders(t, files)
			test.plan.Name, test.plan.Verification = "go", goCheck
			got := b.run(t, test.plan)
			if diff := cmp.Diff(test.want, b.engine.where); diff != "" || got.Result.OverallStatus != environment.Succeeded {
				t.Errorf("%s\n%+v", diff, got.Result)
			}
			if named := test.plan.Directory; strings.Contains(named, "where") || strings.Contains(named, "..") {
				if len(got.Result.Remarks) != 1 || !strings.Contains(got.Result.Remarks[0], "which is not there") {
					t.Errorf("remarks are %q", got.Result.Remarks)
				}
			}
		})
	}
}

// A repair is told where its commands start, and they start there.
func TestARepairStaysInItsFolder(t *testing.T) {
	t.Parallel()
	b := inFolders(t, map[string]string{"backend/go.mod": goMod})
	b.engine.results["one"] = []any{failedWith(1, "boom")}
	b.engine.results["again"] = []any{printed("OK")}
	b.repairer.answers = []any{environment.Repair{SetupCommands: []string{"cd backend", "two"}, Verification: []environment.Check{{Command: "again", ExpectedOutput: "OK"}}}}
	got := b.run(t, environment.Selection{Name: "go", SetupCommands: []string{"cd backend", "one"}, Verification: goCheck})
	if diff := cmp.Diff([]string{"backend: one", "backend: two", "backend: again"}, b.engine.where); diff != "" || got.Result.OverallStatus != environment.Succeeded {
		t.Errorf("%s\n%+v", diff, got.Result)
	}
	if b.repairer.asked[0].Directory != "backend" || b.repairer.asked[0].Failure.Directory != "backend" {
		t.Errorf("it was asked %+v", b.repairer.asked[0])
	}
	if diff := cmp.Diff([]string{"cd backend", "two"}, got.Receipt.SetupCommands); diff != "" {
		t.Error(diff)
	}
}

var twoProjects = map[string]string{"backend/go.mod": goMod, "frontend/package.json": testedPackage}

// All projects are set up, and their tests run, each in its folder and its session.
func TestAllProjectsAreSetUp(t *testing.T) {
	t.Parallel()
	b := inFolders(t, twoProjects)
	b.engine.results["node -e 'console.log(\"OK\")'"] = []any{printed("OK")}
	b.engine.results["npm test"] = []any{failedWith(1, "not ok 1 - greets\n")}
	got := b.measured(t, environment.Selection{Name: "go", SetupCommands: []string{"one"}, Verification: goCheck})
	want := []string{"backend: one", "frontend: npm install", "backend: check", "frontend: node -e 'console.log(\"OK\")'", "backend: go test ./...", "frontend: npm test"}
	if diff := cmp.Diff(want, b.engine.where); diff != "" || got.Result.OverallStatus != environment.Succeeded || len(got.Result.Remarks) > 0 {
		t.Errorf("%s\n%+v", diff, got.Result)
	}
	other := b.engine.sessions[1]
	if diff := cmp.Diff([]string{"", other, "", other, "", other}, b.engine.sessions); diff != "" || other == "" {
		t.Errorf("sessions differ:\n%s", diff)
	}
	projects := got.Receipt.Projects
	if len(projects) != 2 || !projects[1].Ready || projects[1].Directory != "frontend" || !slices.Equal(projects[1].Baseline.Failing, []string{"greets"}) || projects[1].Baseline.Line() != "cd frontend && npm test" {
		t.Errorf("projects are %+v", projects)
	}
	if got.Receipt.Baseline == nil || got.Receipt.Baseline.Line() != "cd backend && go test ./..." || b.engine.starts[0].Env["npm_config_fund"] != "false" || b.engine.starts[0].Env["GOTOOLCHAIN"] != "local" {
		t.Errorf("baseline %+v, environment %v", got.Receipt.Baseline, b.engine.starts[0].Env)
	}

	// The receipt sets up the same again, also when there is something else by then.
	ran := b.engine.where[:4]
	b.engine.where = nil
	if err := os.Rename(filepath.Join(b.dir, "backend", "go.mod"), filepath.Join(b.dir, "frontend", "go.mod")); err != nil {
		t.Fatal(err)
	}
	b.run(t, got.Receipt.Selection())
	if diff := cmp.Diff(ran, b.engine.where); diff != "" {
		t.Errorf("by the receipt:\n%s", diff)
	}
}

// A plan may name another project than the first that was detected; that one is the
// main one then, with its tests.
func TestAPlanMayChooseAnotherProject(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		files map[string]string
		plan  environment.Selection
		want  string
	}{
		"another project":          {twoProjects, environment.Selection{Name: "node"}, "cd frontend && npm test"},
		"another by its language":  {twoProjects, environment.Selection{Name: "TypeScript"}, "cd frontend && npm test"},
		"two in one folder":        {map[string]string{"go.mod": goMod, "a.go": "", "package.json": testedPackage, "x.js": ""}, environment.Selection{Name: "node"}, "npm test"},
		"not detected, with files": {map[string]string{"go.mod": goMod, "docs/package.json": testedPackage}, environment.Selection{Name: "node", Directory: "docs"}, "cd docs && npm test"},
		"sources only":             {map[string]string{"go.mod": goMod, "x.py": ""}, environment.Selection{Name: "python"}, "python -m unittest discover"},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := inFolders(t, test.files)
			test.plan.SetupCommands, test.plan.Verification = []string{"one"}, goCheck
			got := b.measured(t, test.plan)
			if got.Receipt.Baseline == nil || got.Receipt.Baseline.Line() != test.want || got.Handover.EnvironmentName != got.Receipt.Main().EnvironmentType {
				t.Errorf("the baseline is %+v of %+v", got.Receipt.Baseline, got.Receipt.Projects)
			}
		})
	}
}

// Where sandboxes come from images, only projects of the same image can be set up.
func TestAnImageForOneLanguage(t *testing.T) {
	t.Parallel()
	plan := environment.Selection{Name: "go", SetupCommands: []string{"one"}, Verification: goCheck}
	for name, test := range map[string]struct {
		images map[string]string
		given  string
		all    bool
	}{"their own": {nil, "", false}, "one for both": {map[string]string{"go": "ours", "node": "ours"}, "", true}, "one that was given": {nil, "ours", false}} {
		b := inFolders(t, map[string]string{"backend/go.mod": goMod, "tool/go.mod": goMod, "frontend/package.json": testedPackage})
		b.engine.images, b.Table = true, b.Table.WithImages(test.images)
		b.engine.results["go version | grep -q 'go version' && echo 'OK'"] = []any{printed("OK")}
		b.engine.results["node -e 'console.log(\"OK\")'"] = []any{printed("OK")}
		got, err := b.Run(t.Context(), environment.Request{Plan: plan, Spec: sandbox.Spec{Owner: "test", Workspace: b.dir, Image: test.given}})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(b.engine.where, "tool: go mod download") || slices.Contains(b.engine.where, "frontend: npm install") != test.all {
			t.Errorf("%s: ran %q", name, b.engine.where)
		}
		if said := strings.Join(got.Result.Remarks, "\n"); strings.Contains(said, "were not set up: node in `frontend`") == test.all {
			t.Errorf("%s: remarks are %q", name, said)
		}
		without := []string{}
		for _, p := range got.Receipt.LeftOut {
			without = append(without, p.Directory+": "+p.TestCommand)
		}
		if want := map[bool][]string{true: {}, false: {"frontend: npm test"}}[test.all]; !slices.Equal(without, want) {
			t.Errorf("%s: %q have tests and were left out", name, without)
		}
	}
}

// That another project cannot be set up is no failure of the main one.
func TestAnotherProjectThatFailsIsAWarning(t *testing.T) {
	t.Parallel()
	plan := environment.Selection{Name: "go", SetupCommands: []string{"one"}, Verification: goCheck}
	for name, test := range map[string]struct {
		result  sandbox.Result
		repairs int
	}{"it fails": {failedWith(1, "npm error code ERESOLVE"), 3}, "there is no npm": {failedWith(127, "npm: command not found"), 0}} {
		b := inFolders(t, twoProjects)
		b.Snapshots = 1 << 30
		b.engine.results["npm install"] = []any{test.result}
		b.repairer.answers = []any{environment.Repair{SetupCommands: []string{"npm install"}}}
		got := b.measured(t, plan)
		if got.Result.OverallStatus != environment.Succeeded || !got.Handover.EnvironmentReady || len(b.comments) > 0 || len(b.repairer.asked) != test.repairs || len(b.engine.kept) > 0 {
			t.Errorf("%s: %+v, %d repairs, kept %v", name, got.Result, len(b.repairer.asked), b.engine.kept)
		}
		if last := got.Receipt.Projects[1]; last.Ready || last.Problem == "" || last.Baseline != nil || got.Receipt.Baseline == nil {
			t.Errorf("%s: projects are %+v", name, got.Receipt.Projects)
		}
		if len(got.Result.Remarks) != 1 || !strings.Contains(got.Result.Remarks[0], "node in `frontend` could not be set up: `") {
			t.Errorf("%s: remarks are %q", name, got.Result.Remarks)
		}
	}
	b := inFolders(t, twoProjects)
	b.engine.results["npm install"] = []any{task.Errorf(task.Unavailable, "the sandbox died while a command ran")}
	if got := b.measured(t, plan); got.Result.OverallStatus != environment.Failed || got.Sandbox != nil || len(b.comments) != 1 {
		t.Errorf("without a sandbox: %+v", got.Result)
	}
}

// A member of a workspace is set up with the workspace, before it is verified.
func TestAMemberIsSetUpWithItsWorkspace(t *testing.T) {
	t.Parallel()
	b := inFolders(t, map[string]string{"package.json": `{"workspaces":["packages/*"]}`, "package-lock.json": "{}", "packages/a/package.json": testedPackage, "packages/b/package.json": testedPackage})
	b.engine.results["node -e 'console.log(\"OK\")'"] = []any{printed("OK")}
	got := b.measured(t, environment.Selection{Name: "node", Directory: "packages/a", Verification: goCheck})
	want := []string{".: npm ci", ".: node -e 'console.log(\"OK\")'", "packages/a: check", "packages/a: npm test", ".: npm test --workspaces --if-present"}
	if diff := cmp.Diff(want, b.engine.where); diff != "" || slices.ContainsFunc(b.engine.sessions, func(s string) bool { return s != "" }) {
		t.Errorf("%s\n%q\n%+v", diff, b.engine.sessions, got.Result)
	}
}

func TestAGuessIsSaidToPeopleAndToTheModel(t *testing.T) {
	t.Parallel()
	b := inFolders(t, map[string]string{"src/x.gleam": ""})
	b.Repairer = nil
	b.engine.results["one"] = []any{failedWith(1, "boom")}
	got := b.run(t, environment.Selection{Name: "python", SetupCommands: []string{"one"}})
	if len(got.Result.Remarks) != 1 || !strings.Contains(got.Result.Remarks[0], "python is a guess: no manifest") || !strings.Contains(b.comments[0], "**環境**: python（推測: no manifest") ||
		!strings.Contains(got.Result.Comment(task.English), "**Environment**: python (a guess: no manifest") {
		t.Errorf("remarks are %q, the comment is %s", got.Result.Remarks, b.comments)
	}
	detected, err := environment.BuiltIn().Detect(os.DirFS(b.dir), "")
	if err != nil {
		t.Fatal(err)
	}
	prompt, err := environment.BuiltIn().SelectionPrompt(detected)
	if err != nil || !strings.Contains(prompt, "The environment python is only a guess: no manifest") || !strings.Contains(prompt, ".gleam") {
		t.Errorf("the prompt is %s, %v", prompt, err)
	}
	if named := b.run(t, environment.Selection{Name: "elixir", SetupCommands: []string{"two"}, Verification: goCheck}); len(named.Result.Remarks) > 0 {
		t.Errorf("what the plan names is called a guess: %q", named.Result.Remarks)
	}
}
