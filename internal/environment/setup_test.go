package environment_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toryo-dev/toryo/internal/environment"
	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/task"
)

var plan = environment.Selection{Name: "python", SetupCommands: []string{"one", "two"},
	Verification: []environment.Check{{Command: "check", ExpectedOutput: "OK"}}}

const (
	networkLog = "curl: (6) Could not resolve host: example"
	serverLog  = "503 Service Unavailable"
	lockLog    = "E: Could not get lock /var/lib/dpkg/lock-frontend"
)

func seconds(numbers ...int) []time.Duration {
	var list []time.Duration
	for _, number := range numbers {
		list = append(list, time.Duration(number)*time.Second)
	}
	return list
}

func TestSetupSucceeds(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.engine.results["check"] = []any{printed("OK\n")}
	got := b.run(t, plan)
	if got.Result.OverallStatus != environment.Succeeded || !got.Result.VerificationResult.Passed || len(got.Result.Errors) != 0 || len(b.comments) != 0 {
		t.Errorf("got %+v", got.Result)
	}
	if diff := cmp.Diff(environment.Handover{EnvironmentReady: true, EnvironmentName: "python", SetupStatus: "success", Errors: []environment.Failure{}}, got.Handover); diff != "" {
		t.Error(diff)
	}
	if !b.has(environment.PhaseActive, task.EnvironmentSetup) || !b.has(environment.PhaseCompleted, task.EnvironmentSetup) {
		t.Errorf("steps were %v", b.steps)
	}
	if diff := cmp.Diff([]string{"one", "two", "check"}, b.engine.ran); diff != "" {
		t.Error(diff)
	}
	if b.engine.starts[0].Network != sandbox.Registries || !slices.Equal(b.engine.network, []sandbox.Policy{sandbox.NoNetwork}) {
		t.Errorf("network was %s, then %v", b.engine.starts[0].Network, b.engine.network)
	}
	if got.Sandbox == nil || b.engine.stops != 0 {
		t.Error("the sandbox did not go on to the execution phase")
	}
}

func TestRetriesWaitAsSpecified(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		log   string
		waits []time.Duration
	}{
		"network": {networkLog, seconds(5, 10, 20)},
		"server":  {serverLog, seconds(10, 10, 10)},
		"lock":    {lockLog, seconds(3, 3, 3, 3, 3)},
	}
	for name, test := range cases {
		t.Run(name+" ends well", func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			for range test.waits {
				b.engine.results["one"] = append(b.engine.results["one"], failedWith(1, test.log))
			}
			b.engine.results["one"] = append(b.engine.results["one"], printed(""))
			b.engine.results["check"] = []any{printed("OK")}
			got := b.run(t, plan)
			if got.Result.OverallStatus != environment.Succeeded || got.Result.SetupResult.Regenerations != 0 {
				t.Errorf("got %+v", got.Result)
			}
			if diff := cmp.Diff(test.waits, b.waited); diff != "" {
				t.Errorf("waits differ:\n%s", diff)
			}
			if want := map[bool]int{true: 3}[name == "network"]; got.Result.SetupResult.NetworkRetries != want {
				t.Errorf("counted %d network retries, want %d", got.Result.SetupResult.NetworkRetries, want)
			}
		})
		t.Run(name+" used up counts as fixable", func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.engine.results["one"] = []any{failedWith(1, test.log)}
			b.engine.results["check"] = []any{printed("OK")}
			b.repairer.answers = []any{environment.Repair{SetupCommands: []string{"other"}}}
			got := b.run(t, plan)
			if got.Result.OverallStatus != environment.Succeeded || got.Result.SetupResult.Regenerations != 1 {
				t.Errorf("got %+v", got.Result)
			}
			if diff := cmp.Diff(test.waits, b.waited); diff != "" {
				t.Errorf("waits differ:\n%s", diff)
			}
			if len(b.repairer.asked) != 1 || b.repairer.asked[0].Failure.Classification.Class != environment.Retryable {
				t.Errorf("asked were %+v", b.repairer.asked)
			}
		})
	}
}

func TestFixableIsRepairedAtMostThreeTimes(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.engine.results["one"] = []any{failedWith(1, "ERROR: No matching distribution found for nosuch")}
	b.repairer.answers = []any{environment.Repair{SetupCommands: []string{"one", "again"}}}
	got := b.run(t, plan)
	if got.Result.OverallStatus != environment.Failed || got.Result.SetupResult.Regenerations != 3 || len(b.repairer.asked) != 3 {
		t.Errorf("got %+v, asked %d times", got.Result.SetupResult, len(b.repairer.asked))
	}
	if diff := cmp.Diff([]string{"one", "one", "one", "one"}, b.engine.ran); diff != "" {
		t.Error(diff)
	}
	if len(b.comments) != 1 || got.Handover.EnvironmentReady || len(got.Handover.Errors) == 0 || got.Sandbox == nil {
		t.Errorf("comments %q, handover %+v", b.comments, got.Handover)
	}
	if b.has(environment.PhaseCompleted, task.EnvironmentSetup) {
		t.Error("a failed phase was called completed")
	}
	if b.repairer.asked[1].Attempt != 2 || b.repairer.asked[1].Failure.Classification.Kind != environment.PackageNotFound || !slices.Equal(b.repairer.asked[1].Commands, []string{"one", "again"}) {
		t.Errorf("the second time it was asked %+v", b.repairer.asked[1])
	}
}

func TestRepairsAreCountedOverTheWholePhase(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.engine.results["one"] = []any{failedWith(1, "boom"), printed("")}
	b.engine.results["two"] = []any{failedWith(1, "bang"), printed("")}
	b.engine.results["check"] = []any{printed("no"), printed("OK")}
	b.repairer.answers = []any{environment.Repair{SetupCommands: []string{"one", "two"}}, environment.Repair{SetupCommands: []string{"one", "two"}},
		environment.Repair{Verification: []environment.Check{{Command: "check", ExpectedOutput: "no"}}}}
	got := b.run(t, plan)
	if got.Result.OverallStatus != environment.Failed || got.Result.SetupResult.Regenerations != 3 {
		t.Errorf("got %+v", got.Result)
	}
	if diff := cmp.Diff([]string{"one", "one", "two", "one", "two", "check", "one", "two", "check"}, b.engine.ran); diff != "" {
		t.Error(diff)
	}
}

func TestVerificationIsExact(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name   string
		result sandbox.Result
		want   bool
	}{
		{"exact", printed("OK"), true},
		{"one line break", printed("OK\n"), true},
		{"two line breaks", printed("OK\n\n"), false},
		{"carriage return", printed("OK\r\n"), false},
		{"space after", printed("OK \n"), false},
		{"space before", printed(" OK"), false},
		{"other case", printed("ok"), false},
		{"nothing", printed(""), false},
		{"more", printed("OK\nand more"), false},
		{"right but failed", sandbox.Result{Stdout: []byte("OK"), ExitCode: 1}, false},
		{"right but cut", sandbox.Result{Stdout: []byte("OK"), Cut: true}, false},
		{"right but too slow", sandbox.Result{Stdout: []byte("OK"), Exceeded: sandbox.TimeLimit}, false},
		{"on standard error", sandbox.Result{Log: []byte("OK")}, false},
	}
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.Repairer = nil
			b.engine.results["check"] = []any{test.result}
			got := b.run(t, plan)
			if passed := got.Result.VerificationResult.Passed; passed != test.want || (got.Result.OverallStatus == environment.Succeeded) != test.want {
				t.Errorf("passed: %v, want %v", passed, test.want)
			}
			if !test.want && got.Result.Errors[0].Classification.Class != environment.Fixable {
				t.Errorf("a mismatch is %s", got.Result.Errors[0].Classification.Class)
			}
		})
	}
}

func TestFatalGoesOnWithAWarning(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		result any
		kind   environment.Kind
		alive  bool
	}{
		"disk full":          {failedWith(1, "write: no space left on device"), environment.Resource, true},
		"memory limit":       {sandbox.Result{ExitCode: 137, Exceeded: sandbox.MemoryLimit}, environment.Resource, true},
		"process limit":      {sandbox.Result{ExitCode: 137, Exceeded: sandbox.ProcessesLimit}, environment.Resource, true},
		"disk limit":         {sandbox.Result{ExitCode: 137, Exceeded: sandbox.DiskLimit}, environment.Resource, true},
		"killed silently":    {failedWith(137, ""), environment.Resource, true},
		"engine dies":        {task.Errorf(task.Unavailable, "the sandbox died while a command ran"), environment.Container, false},
		"no container here":  {failedWith(1, "Cannot connect to the Docker daemon at unix:///x"), environment.Container, true},
		"engine has no room": {sandbox.Exhausted(task.Errorf(task.Unavailable, "no space left on device")), environment.Resource, false},
		"no memory":          {sandbox.OutOfMemory(errors.New("EOF")), environment.Resource, false},
		"host has no room":   {task.Wrap(task.Unavailable, &fs.PathError{Op: "mkdir", Path: "/x", Err: syscall.ENOSPC}, "the sandbox is gone"), environment.Resource, false},
		"only the words":     {task.Errorf(task.Unavailable, "no space left on device"), environment.Container, false},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.engine.results["one"] = []any{test.result}
			got := b.run(t, plan)
			last := got.Result.Errors[len(got.Result.Errors)-1]
			if got.Result.OverallStatus != environment.Failed || last.Classification.Class != environment.Fatal || last.Classification.Kind != test.kind {
				t.Errorf("got %+v", got.Result)
			}
			if len(b.comments) != 1 || len(b.repairer.asked) != 0 || len(b.waited) != 0 || (got.Sandbox != nil) != test.alive {
				t.Errorf("comments %q, repairs %d, waits %v, sandbox %v", b.comments, len(b.repairer.asked), b.waited, got.Sandbox)
			}
		})
	}
}

func TestEngineThatDoesNotStartIsFatal(t *testing.T) {
	t.Parallel()
	for _, err := range []error{task.Errorf(task.Unavailable, "the engine died"), task.Errorf(task.NotFound, "manifest unknown"), errors.New("no space left on device")} {
		b := newBench(t)
		b.engine.startErrs = []error{err}
		got := b.run(t, plan)
		if got.Result.OverallStatus != environment.Failed || got.Sandbox != nil || got.Result.Errors[0].Classification.Class != environment.Fatal || len(b.comments) != 1 || len(b.engine.ran) != 0 {
			t.Errorf("%v: got %+v", err, got)
		}
	}
}

// A machine without sandboxes, or without room for one, says nothing about the project: there is no
// outcome and no comment, and the error says so.
func TestMachineWithoutSandboxesIsNoOutcome(t *testing.T) {
	t.Parallel()
	for _, met := range []error{
		task.Errorf(task.NotReady, "docker is not there"),
		sandbox.Exhausted(task.Errorf(task.Unavailable, "the container cannot be made: no space left on device")),
		task.Wrap(task.Unavailable, &fs.PathError{Op: "mkdir", Path: "/x", Err: syscall.ENOSPC}, "the files cannot be copied"),
	} {
		b := newBench(t)
		b.engine.startErrs = []error{met}
		_, err := b.Run(t.Context(), environment.Request{Plan: plan, Spec: sandbox.Spec{Owner: "test", Workspace: b.dir}})
		unusable, is := errors.AsType[*sandbox.UnusableError](err)
		if !is || !strings.Contains(unusable.Error(), met.Error()) || len(b.comments) != 0 {
			t.Errorf("%v: got %v, with comments %q", met, err, b.comments)
		}
	}
}

func TestCommandThatDoesNotEndIsFixable(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.engine.results["one"] = []any{sandbox.Result{ExitCode: 137, Exceeded: sandbox.TimeLimit, Log: []byte("still going")}}
	b.engine.results["check"] = []any{printed("OK")}
	b.repairer.answers = []any{environment.Repair{SetupCommands: []string{"two"}}}
	got := b.run(t, plan)
	if got.Result.OverallStatus != environment.Succeeded || !strings.Contains(got.Result.Errors[0].Message, "time limit") {
		t.Errorf("got %+v", got.Result)
	}
}

func TestRepairsThatAreNoneUseUpAttempts(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.engine.results["one"] = []any{failedWith(1, "boom")}
	b.engine.results["check"] = []any{printed("OK")}
	b.repairer.answers = []any{errors.New("the model is away"), environment.Repair{SetupCommands: []string{strings.Repeat("x", 10<<20)}}, environment.Repair{SetupCommands: []string{"two"}}}
	got := b.run(t, plan)
	if got.Result.OverallStatus != environment.Succeeded || got.Result.SetupResult.Regenerations != 3 || len(b.repairer.asked) != 3 {
		t.Errorf("got %+v", got.Result)
	}
}

func TestPlanIsFilledIn(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	got := b.run(t, environment.Selection{Name: "fortran"})
	if got.Result.SetupResult.Environment != "python" || len(got.Result.Warnings) != 3 {
		t.Errorf("got %+v", got.Result)
	}
	if diff := cmp.Diff([]string{"python3 -m venv .venv", ". .venv/bin/activate", "pip install -r requirements.txt"}, b.engine.ran[:3]); diff != "" {
		t.Error(diff)
	}
	if b.engine.starts[0].Image != "python:3.11" || b.engine.starts[0].Env["PIP_NO_INPUT"] != "1" {
		t.Errorf("started with %+v", b.engine.starts[0])
	}
}

func TestReadPlanRefusesNonsense(t *testing.T) {
	t.Parallel()
	for text, code := range map[string]task.Code{
		"not json": task.Invalid, "[]": task.Invalid, `{"selected_environment":{"setup_commands":"pip"}}`: task.Invalid,
		`{"selected_environment":{"setup_commands":[1]}}`:                                      task.Invalid,
		`{"selected_environment":{"setup_commands":[""]}}`:                                     task.Invalid,
		`{"selected_environment":{"verification":["x"]}}`:                                      task.Invalid,
		`{"selected_environment":{"setup_commands":["` + strings.Repeat("x", 10<<20) + `"]}}`:  task.TooLarge,
		`{"selected_environment":{"setup_commands":[` + strings.Repeat(`"x",`, 500) + `"x"]}}`: task.Invalid,
		`{"selected_environment":{"setup_commands":["a\u0000b"]}}`:                             task.Invalid,
		`{"x":"` + strings.Repeat("y", 33<<20) + `"}`:                                          task.TooLarge,
	} {
		if _, err := environment.ReadPlan(strings.NewReader(text)); task.CodeOf(err) != code {
			t.Errorf("%.60q: %.200v, want %s", text, err, code)
		}
	}
	for _, text := range []string{"{}", `{"selected_environment":null}`, `{"selected_environment":{"setup_commands":[]}}`, "\ufeff{}"} {
		if got, err := environment.ReadPlan(strings.NewReader(text)); err != nil || len(got.SetupCommands) != 0 {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	got, err := environment.ReadPlan(strings.NewReader(`{"phase":"planning","selected_environment":{"name":"go","reason":"r","detected_files":["go.mod"],"setup_commands":["a"],"verification":[{"command":"b","expected_output":"c"}]}}`))
	want := environment.Selection{Name: "go", Reason: "r", DetectedFiles: []string{"go.mod"}, SetupCommands: []string{"a"}, Verification: []environment.Check{{Command: "b", ExpectedOutput: "c"}}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

func TestReadRepair(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{
		`{"setup_commands":["a"],"verification":[]}`,
		"Here you are:\n```json\n{\"setup_commands\": [\"a\"]}\n```\nGood luck {x}",
		`I use {braces}. {"thoughts":"x"} {"setup_commands":["a"]}`,
	} {
		if got, err := environment.ReadRepair(answer); err != nil || !slices.Equal(got.SetupCommands, []string{"a"}) {
			t.Errorf("%q: %+v, %v", answer, got, err)
		}
	}
	for _, answer := range []string{"", "no", "{}", `{"setup_commands":"a"}`, `{"setup_commands":[]}`, `{"setup_commands":[" "]}`} {
		if got, err := environment.ReadRepair(answer); err == nil {
			t.Errorf("%q gave %+v", answer, got)
		}
	}
}

func TestChatRepairerAsksInTheSpecifiedForm(t *testing.T) {
	t.Parallel()
	var asked string
	chat := environment.ChatRepairer{Ask: func(_ context.Context, prompt string) (string, error) {
		asked = prompt
		return `{"setup_commands":["pip install x"]}`, nil
	}}
	got, err := chat.Repair(t.Context(), environment.Broken{Commands: []string{"pip install y"}, Failure: environment.Failure{Message: "it broke {{commands}}", Command: "pip install y", ExitCode: 1, Log: "the log"}})
	if err != nil || !slices.Equal(got.SetupCommands, []string{"pip install x"}) {
		t.Fatalf("got %+v, %v", got, err)
	}
	for _, text := range []string{"An error occurred during environment setup:", "it broke {{commands}}", "the log", "Original setup commands:", `"pip install y"`, "exact expected output"} {
		if !strings.Contains(asked, text) {
			t.Errorf("the prompt lacks %q:\n%s", text, asked)
		}
	}
}

func TestCommentHasTheSpecifiedContent(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.engine.results["one"] = []any{failedWith(1, networkLog)}
	b.engine.results["x"] = []any{failedWith(1, "ERROR: No matching distribution found for ```nosuch````")}
	b.repairer.answers = []any{environment.Repair{SetupCommands: []string{"x"}}}
	got := b.run(t, plan)
	for _, text := range []string{"## 環境構築失敗", "**ステータス**: 警告付きで失敗 ⚠", "**環境**: python", "環境構築中にエラーが発生しました。制限付きで実行フェーズに進みます。",
		"**エラー詳細**:\n`````\n", "nosuch````\n`````\n", "- ネットワークリトライ回数: 3\n", "- LLM再生成回数: 3/3\n", "- エラー分類: fixable (package_not_found)\n",
		"実行フェーズに進みますが、環境構築が不完全なため一部機能が利用できない可能性があります。"} {
		if !strings.Contains(b.comments[0], text) {
			t.Errorf("the comment lacks %q:\n%s", text, b.comments[0])
		}
	}
	english := got.Result.Comment(task.English)
	for _, text := range []string{"Network retries: 3", "3/3", "fixable (package_not_found)", "**Environment**: python"} {
		if !strings.Contains(english, text) {
			t.Errorf("the English comment lacks %q:\n%s", text, english)
		}
	}
}

func TestCommentThatCannotBePostedIsAWarning(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Repairer = nil
	b.Post = func(context.Context, string) error { return errors.New("the forge is away") }
	b.engine.results["one"] = []any{failedWith(1, "boom")}
	got := b.run(t, plan)
	if got.Result.OverallStatus != environment.Failed || !strings.Contains(strings.Join(got.Result.Warnings, "\n"), "the forge is away") {
		t.Errorf("got %+v", got.Result)
	}
}

// Without a model nothing is asked, and the result says so plainly.
func TestWithoutAModelNothingIsRepaired(t *testing.T) {
	t.Parallel()
	for log, warned := range map[string]bool{"E: Unable to locate package x": true, "no space left on device": false} {
		b := newBench(t)
		b.Repairer = nil
		b.engine.results["one"] = []any{failedWith(1, log)}
		got := b.run(t, plan)
		said := strings.Contains(strings.Join(got.Result.Warnings, "\n"), "no model is configured")
		if got.Result.OverallStatus != environment.Failed || got.Result.SetupResult.Regenerations != 0 || said != warned {
			t.Errorf("%s: %+v", log, got.Result)
		}
	}
}

func TestContextThatEndsLeavesNoSandbox(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx, cancel := context.WithCancel(t.Context())
	b.engine.results["one"] = []any{failedWith(1, networkLog)}
	b.Wait = func(ctx context.Context, _ time.Duration) error {
		cancel()
		return ctx.Err()
	}
	got, err := b.Run(ctx, environment.Request{Plan: plan, Spec: sandbox.Spec{Owner: "test", Workspace: b.dir}})
	if !errors.Is(err, context.Canceled) || got.Sandbox != nil || b.engine.stops != 1 || len(b.comments) != 0 {
		t.Errorf("got %+v, %v, %d stops", got, err, b.engine.stops)
	}
}

func TestCloneIsDoneOnceAndItsFailureIsFatal(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	clones := 0
	request := environment.Request{Plan: plan, Spec: sandbox.Spec{Owner: "test", Workspace: b.dir}, Clone: func(_ context.Context, dir string) error {
		clones++
		return os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module x\n"), 0o600)
	}}
	b.engine.results["one"] = []any{failedWith(1, "boom"), printed("")}
	b.engine.results["check"] = []any{printed("OK")}
	b.repairer.answers = []any{environment.Repair{SetupCommands: []string{"one"}}}
	if got, err := b.Run(t.Context(), request); err != nil || got.Result.OverallStatus != environment.Succeeded || clones != 1 || len(b.engine.starts) != 1 {
		t.Errorf("got %+v, %v; %d clones, %d starts", got.Result, err, clones, len(b.engine.starts))
	}
	request.Clone = func(context.Context, string) error { return errors.New("repository not found") }
	if got, err := b.Run(t.Context(), request); err != nil || got.Result.OverallStatus != environment.Failed || len(b.comments) != 1 {
		t.Errorf("got %+v, %v", got.Result, err)
	}
}

func TestSnapshotsAreKeptAndUsed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Snapshots = 1 << 30
	b.engine.results["check"] = []any{printed("OK")}
	b.run(t, plan)
	if len(b.engine.kept) != 1 {
		t.Fatalf("kept were %v", b.engine.kept)
	}
	key := b.engine.kept[0]
	b.engine.snapshots = []sandbox.Snapshot{{Key: key}}
	b.engine.ran = nil
	warm := b.run(t, plan)
	if warm.Result.SetupResult.FromSnapshot != key || !slices.Equal(b.engine.ran, []string{"check"}) || warm.Receipt.SnapshotKey != key || len(b.engine.kept) != 1 {
		t.Errorf("warm: %+v, ran %v, kept %v", warm.Result, b.engine.ran, b.engine.kept)
	}

	b.engine.ran, b.engine.results["check"] = nil, []any{printed("stale"), printed("OK")}
	stale := b.run(t, plan)
	if stale.Result.OverallStatus != environment.Succeeded || stale.Result.SetupResult.FromSnapshot != "" || stale.Receipt.SnapshotKey != "" || !slices.Equal(b.engine.removed, []string{key}) || !slices.Equal(b.engine.kept, []string{key}) || !slices.Equal(b.engine.ran, []string{"check", "one", "two", "check"}) {
		t.Errorf("stale: %+v, ran %v, kept %v, removed %v", stale.Result, b.engine.ran, b.engine.kept, b.engine.removed)
	}

	b.engine.results["check"] = []any{printed("OK")}
	if err := os.WriteFile(filepath.Join(b.dir, "notes.txt"), []byte("not a manifest\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if same := b.run(t, plan); same.Result.SetupResult.FromSnapshot != key {
		t.Error("a file that is no manifest made the snapshot useless")
	}
	b.engine.ran = nil
	if err := os.WriteFile(filepath.Join(b.dir, "requirements.txt"), []byte("flask\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if changed := b.run(t, plan); changed.Result.SetupResult.FromSnapshot != "" {
		t.Error("another manifest used the same snapshot")
	}
	other := plan
	other.SetupCommands = []string{"three"}
	if changed := b.run(t, other); changed.Result.SetupResult.FromSnapshot != "" {
		t.Error("other commands used the same snapshot")
	}
	checked := plan
	checked.Verification = []environment.Check{{Command: "another check", ExpectedOutput: "OK"}}
	b.engine.results["another check"] = []any{printed("OK")}
	b.engine.snapshots, b.engine.ran = []sandbox.Snapshot{{Key: b.engine.kept[len(b.engine.kept)-2]}}, nil
	if got := b.run(t, checked); got.Result.SetupResult.FromSnapshot == "" || !slices.Equal(b.engine.ran, []string{"another check"}) {
		t.Errorf("a plan with another verification only did not use the snapshot: ran %v", b.engine.ran)
	}
}

// What a start from a snapshot has put into the workspace when it fails does not stay: the next one would
// take it for the project's.
func TestAFailedStartLeavesNothing(t *testing.T) {
	t.Parallel()
	failed := errors.New("the snapshot was removed while it was copied")
	half := func(workspace string) error { return os.WriteFile(filepath.Join(workspace, "half"), nil, 0o600) }
	began := func(t *testing.T, b *bench) {
		t.Helper()
		if last := b.engine.starts[len(b.engine.starts)-1]; last.Snapshot != "" {
			t.Errorf("the last start was from %s", last.Snapshot)
		}
		if _, err := os.Stat(filepath.Join(b.dir, "half")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a part of the snapshot is in the workspace: %v", err)
		}
	}
	t.Run("of the project", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		b.Snapshots = 1 << 30
		b.engine.results["check"] = []any{printed("OK")}
		b.run(t, plan)
		b.engine.snapshots = []sandbox.Snapshot{{Key: b.engine.kept[0]}}
		b.engine.restores, b.engine.startErrs = half, []error{failed}
		if got := b.run(t, plan); got.Result.OverallStatus != environment.Succeeded || len(got.Result.Warnings) == 0 {
			t.Errorf("got %+v", got.Result)
		}
		began(t, b)
	})
	t.Run("of the toolchain", func(t *testing.T) {
		t.Parallel()
		b := newGoBench(t)
		b.engine.restores, b.engine.startErrs = half, []error{nil, failed}
		b.runFor(t, environment.Source{Project: "ours"}, goPlan)
		if len(b.engine.starts) != 3 {
			t.Errorf("%d starts", len(b.engine.starts))
		}
		began(t, b)
	})
}

// Where that cannot be removed, no other sandbox is started with it.
func TestAFailedStartThatCannotBeCleaned(t *testing.T) {
	t.Parallel()
	b := newGoBench(t)
	b.engine.restores, b.engine.startErrs = os.RemoveAll, []error{nil, errors.New("the disk is gone")}
	got := b.run(t, goPlan)
	if got.Result.OverallStatus != environment.Failed || len(b.engine.starts) != 2 || !strings.Contains(got.Result.Errors[0].Message, "the workspace could not be cleaned") {
		t.Errorf("got %+v after %d starts", got.Result, len(b.engine.starts))
	}
}

// Plans with the same set-up share a snapshot whatever their verification is, which is no part
// of it: it is made before. So one plan's wrong verification does not remove what is of all.
func TestVerificationIsNotInTheSnapshot(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Snapshots = 1 << 30
	var keptBefore bool
	b.engine.results["check"] = []any{func() (sandbox.Result, error) { keptBefore = len(b.engine.kept) == 1; return printed("OK"), nil }}
	if got := b.run(t, plan); !keptBefore || got.Result.SetupResult.SnapshotKey == "" || len(b.engine.removed) != 0 {
		t.Errorf("kept before verification: %t; removed %v, got %+v", keptBefore, b.engine.removed, got.Result)
	}

	b.engine.kept, b.engine.results["check"] = nil, []any{printed("no"), printed("OK")}
	b.repairer.answers = []any{environment.Repair{SetupCommands: []string{"three"}}}
	got := b.run(t, plan)
	if got.Result.OverallStatus != environment.Succeeded || got.Result.SetupResult.SnapshotKey != "" || got.Receipt.SnapshotKey != "" || len(b.engine.kept) != 1 || len(b.engine.removed) != 0 {
		t.Errorf("got %+v; kept %v, removed %v", got.Result, b.engine.kept, b.engine.removed)
	}

	b.engine.snapshots, b.engine.kept, b.engine.results["check"] = []sandbox.Snapshot{{Key: b.engine.kept[0]}}, nil, []any{printed("no")}
	b.Repairer = nil
	got = b.run(t, plan)
	if got.Result.OverallStatus != environment.Failed || len(b.engine.kept) != 0 || len(b.engine.removed) != 0 {
		t.Errorf("with a verification that is wrong: got %+v; kept %v, removed %v", got.Result, b.engine.kept, b.engine.removed)
	}
}

// A run that is stopped while it verifies says nothing about the snapshot.
func TestAStoppedRunLeavesTheSnapshot(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Snapshots = 1 << 30
	ctx, cancel := context.WithCancel(t.Context())
	b.engine.results["check"] = []any{func() (sandbox.Result, error) { cancel(); return sandbox.Result{}, ctx.Err() }}
	_, err := b.Run(ctx, environment.Request{Plan: plan, Source: environment.Source{Project: "ours"}, Spec: sandbox.Spec{Owner: "test", Workspace: b.dir}})
	if !errors.Is(err, context.Canceled) || len(b.engine.kept) != 1 || len(b.engine.removed) != 0 {
		t.Errorf("%v; kept %v, removed %v", err, b.engine.kept, b.engine.removed)
	}
}

// What was repaired also has what the commands did that failed, and the next plan does
// not name those.
func TestWhatWasRepairedIsNotKept(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Snapshots = 1 << 30
	b.engine.results["one"] = []any{failedWith(1, "boom"), printed("")}
	b.engine.results["check"] = []any{printed("OK")}
	b.repairer.answers = []any{environment.Repair{SetupCommands: []string{"one"}}}
	if got := b.run(t, plan); got.Result.OverallStatus != environment.Succeeded || len(b.engine.kept) != 0 {
		t.Errorf("got %+v, kept %v", got.Result, b.engine.kept)
	}
}

// What a project's files did in set-up is in the environment, and its manifests do not
// show it. So what was kept is for the same project only, and what was kept of a change
// for that change only.
func TestSnapshotsAreNotShared(t *testing.T) {
	t.Parallel()
	ours := environment.Source{Project: "gitea forge.example ours/app"}
	change := func(name string) environment.Source { return environment.Source{Project: ours.Project, Change: name} }
	for name, c := range map[string]struct {
		kept, next environment.Source
		used       bool
	}{
		"the same project":                  {ours, ours, true},
		"another project":                   {ours, environment.Source{Project: "gitea forge.example theirs/app"}, false},
		"the same name elsewhere":           {ours, environment.Source{Project: "gitea other.example ours/app"}, false},
		"a change from its project":         {ours, change("gitea:ours/app!7 c1"), true},
		"the project from a change":         {change("gitea:ours/app!7 c1"), ours, false},
		"the same change":                   {change("gitea:ours/app!7 c1"), change("gitea:ours/app!7 c1"), true},
		"another commit of the same change": {change("gitea:ours/app!7 c1"), change("gitea:ours/app!7 c2"), false},
		"another change":                    {change("gitea:ours/app!7 c1"), change("gitea:ours/app!8 c1"), false},
		"of nobody":                         {ours, environment.Source{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.Snapshots = 1 << 30
			b.engine.results["check"] = []any{printed("OK")}
			run := func(source environment.Source) environment.Outcome {
				t.Helper()
				request := environment.Request{Plan: plan, Source: source, Spec: sandbox.Spec{Owner: "test", Workspace: b.dir}}
				outcome, err := b.Run(t.Context(), request)
				if err != nil {
					t.Fatal(err)
				}
				return outcome
			}
			run(c.kept)
			if len(b.engine.kept) != 1 {
				t.Fatalf("kept were %v", b.engine.kept)
			}
			b.engine.snapshots = []sandbox.Snapshot{{Key: b.engine.kept[0]}}
			b.engine.ran = nil
			from := run(c.next).Result.SetupResult.FromSnapshot
			if used := from != ""; used != c.used || used == slices.Contains(b.engine.ran, "one") {
				t.Errorf("from the snapshot %q, ran %v", from, b.engine.ran)
			}
			if c.next.Project == "" && len(b.engine.kept) != 1 {
				t.Error("what is nobody's was kept")
			}
		})
	}
}

// A change, or work on the files, that does not get on with what was kept of the project leaves
// it alone.
func TestAChangeDoesNotRemoveWhatIsItsProjects(t *testing.T) {
	t.Parallel()
	for name, request := range map[string]environment.Request{
		"a change": {Source: environment.Source{Project: "ours", Change: "7"}},
		"work":     {Source: environment.Source{Project: "ours"}, Again: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.Snapshots = 1 << 30
			b.engine.results["check"] = []any{printed("OK")}
			b.run(t, plan)
			b.engine.snapshots = []sandbox.Snapshot{{Key: b.engine.kept[0]}}
			b.engine.results["check"] = []any{printed("stale"), printed("OK")}
			request.Plan, request.Spec = plan, sandbox.Spec{Owner: "test", Workspace: b.dir}
			outcome, err := b.Run(t.Context(), request)
			if err != nil || outcome.Result.OverallStatus != environment.Succeeded || len(b.engine.starts) != 3 || len(b.engine.removed) != 0 || len(b.engine.kept) != 1 {
				t.Errorf("got %+v, %v; removed %v, kept %v", outcome.Result, err, b.engine.removed, b.engine.kept)
			}
		})
	}
}

func TestReceiptHasTheBaseline(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.engine.results["check"] = []any{printed("OK")}
	b.engine.results["python -m unittest discover"] = []any{failedWith(1, "FAIL: test_one (pkg.Case)\nok\nERROR: test_two (pkg.Case)\n")}
	got, err := b.Run(t.Context(), environment.Request{Plan: plan, Baseline: true, Spec: sandbox.Spec{Owner: "test", Workspace: b.dir}})
	if err != nil || got.Receipt.Baseline == nil {
		t.Fatalf("got %+v, %v", got.Receipt, err)
	}
	if diff := cmp.Diff([]string{"test_one (pkg.Case)", "test_two (pkg.Case)"}, got.Receipt.Baseline.Failing); diff != "" {
		t.Error(diff)
	}
	later := environment.Baseline{Failing: []string{"test_two (pkg.Case)", "test_three (pkg.Case)"}}
	if diff := cmp.Diff([]string{"test_three (pkg.Case)"}, got.Receipt.Baseline.NewFailures(later)); diff != "" {
		t.Error(diff)
	}
	if len(b.engine.network) != 1 || b.engine.network[0] != sandbox.NoNetwork {
		t.Errorf("the tests ran with the network at %v", b.engine.network)
	}
}

// Numbers before lines mean tests only in the output of mocha.
func TestFailingTestsOfMocha(t *testing.T) {
	t.Parallel()
	const listed = "  calc\n    1) adds\n    2) divides\n"
	if got := environment.FailingTests([]byte(listed)); len(got) != 0 {
		t.Errorf("a list was taken for %v", got)
	}
	got := environment.FailingTests([]byte(listed + "\n  3 passing (5ms)\n  2 failing\n\n  1) calc\n       adds:\n"))
	if !slices.Equal(got, []string{"adds", "divides", "calc"}) {
		t.Errorf("failing are %v", got)
	}
}

// The tests of one language are not run in the environment of another.
func TestNoBaselineOfAnotherEnvironment(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.engine.results["check"] = []any{printed("OK")}
	other := plan
	other.Name = "go"
	got, err := b.Run(t.Context(), environment.Request{Plan: other, Baseline: true, Spec: sandbox.Spec{Owner: "test", Workspace: b.dir}})
	if err != nil || got.Receipt.Baseline != nil || slices.Contains(b.engine.ran, "python -m unittest discover") {
		t.Errorf("got %+v, ran %v, %v", got.Receipt, b.engine.ran, err)
	}
}

func TestFailingTestsOfEachRunner(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"--- FAIL: TestAdd (0.00s)": "TestAdd", "    --- FAIL: TestAdd/one (0.00s)": "TestAdd/one",
		"FAIL\texample.com/x [build failed]":                    "example.com/x",
		"FAILED tests/test_a.py::test_b - assert 1 == 2":        "tests/test_a.py::test_b",
		"FAIL: test_x (tests.Case.test_x)":                      "test_x (tests.Case.test_x)",
		"  ● math › adds":                                       "math › adds",
		"  ✕ adds numbers (3 ms)":                               "adds numbers",
		"not ok 3 - adds numbers":                               "adds numbers",
		"✖ adds numbers (1.2345ms)":                             "adds numbers",
		"[ERROR]   CalcTest.adds:12 expected: <3> but was: <4>": "CalcTest.adds",
		"CalcTest > adds FAILED":                                "CalcTest > adds",
		"test tests::adds ... FAILED":                           "tests::adds",
		"rspec ./spec/calc_spec.rb:4 # Calc adds":               "./spec/calc_spec.rb:4",
		"1) App\\Tests\\CalcTest::testAdds":                     "App\\Tests\\CalcTest::testAdds",
		"  1) test adds (CalcTest)":                             "adds (CalcTest)",
		"  Failed Calc.Tests.Adds [3 ms]":                       "Calc.Tests.Adds",
		"CalcTest#test_adds [test/calc_test.rb:4]:":             "CalcTest#test_adds",
		"(fail) calc > adds [1.20ms]":                           "calc > adds",
		"adds numbers ... FAILED (3ms)":                         "adds numbers",
		"\t  3 - calc_test (Failed)":                            "calc_test",
		"   FAILED  Tests\\Unit\\CalcTest > it adds":            "Tests\\Unit\\CalcTest > it adds",
	} {
		if got := environment.FailingTests([]byte("noise\n" + line + "\nok\n")); !slices.Equal(got, []string{want}) {
			t.Errorf("%q names %q, want %q", line, got, want)
		}
	}
}

func TestResultIsTheSpecifiedJSON(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.engine.results["check"] = []any{printed("OK")}
	got := b.run(t, plan)
	for what, keys := range map[string][]string{"result": {"overall_status", "setup_result", "verification_result", "errors"},
		"handover": {"environment_ready", "environment_name", "setup_status", "errors"}} {
		var value any = got.Result
		if what == "handover" {
			value = got.Handover
		}
		text, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		var fields map[string]any
		if err := json.Unmarshal(text, &fields); err != nil {
			t.Fatal(err)
		}
		for _, key := range keys {
			if value, has := fields[key]; !has || value == nil {
				t.Errorf("the %s lacks %s: %s", what, key, text)
			}
		}
	}
}

func TestPrompts(t *testing.T) {
	t.Parallel()
	detected, err := environment.BuiltIn().Detect(project(map[string]string{"go.mod": goMod}), "")
	if err != nil {
		t.Fatal(err)
	}
	text, err := environment.BuiltIn().SelectionPrompt(detected)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"- miniforge: Miniforge", `"environment_type": "go"`, "select python", "exact expected output for complete match"} {
		if !strings.Contains(text, want) {
			t.Errorf("the prompt lacks %q", want)
		}
	}
	failed := environment.Handover{EnvironmentName: "go", SetupStatus: environment.Failed, Errors: []environment.Failure{{Message: "it broke"}}}.Prompt()
	if !strings.Contains(failed, "**Setup status**: failed") || !strings.Contains(failed, "- it broke") || strings.Contains(failed, "{{") {
		t.Errorf("the prompt is %q", failed)
	}
	if good := (environment.Handover{EnvironmentName: "go", SetupStatus: environment.Succeeded}).Prompt(); strings.Contains(good, "Warning") {
		t.Errorf("the prompt is %q", good)
	}
}
