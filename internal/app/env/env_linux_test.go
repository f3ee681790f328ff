package env_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/env"
	"github.com/toryo-dev/toryo/internal/environment"
	"github.com/toryo-dev/toryo/internal/sandbox/guest"
	"github.com/toryo-dev/toryo/internal/sandbox/landlock"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
	"github.com/toryo-dev/toryo/internal/workdir"
)

func TestMain(m *testing.M) {
	guest.Main(map[string]guest.Confinement{landlock.Name: landlock.Confine})
	os.Exit(m.Run())
}

func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestDetect(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"go.mod": "module x\n\ngo 1.24\n"})
	var out bytes.Buffer
	detect := env.Detect{Stdout: &out, Table: environment.BuiltIn(), Dir: dir}
	if err := detect.Run(); err != nil || !strings.Contains(out.String(), "environment: go (go.mod exists)\n") || !strings.Contains(out.String(), "set up: go mod download\n") {
		t.Errorf("%q, %v", out.String(), err)
	}
	out.Reset()
	detect.JSON = true
	var found map[string]any
	if err := detect.Run(); err != nil || json.Unmarshal(out.Bytes(), &found) != nil || found["environment_type"] != "go" {
		t.Errorf("%q, %v", out.String(), err)
	}
	for _, key := range []string{"detected_files", "environment_type", "dependencies", "setup_commands", "candidates", "package_manager", "language_version", "test_command", "warnings"} {
		if value, has := found[key]; !has || value == nil {
			t.Errorf("%s is missing", key)
		}
	}
	detect.Dir = dir + "/none"
	if err := detect.Run(); task.CodeOf(err) != task.NotFound {
		t.Errorf("a folder that is not there: %v", err)
	}
}

func TestClassify(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	err := env.Classify{Stdin: strings.NewReader("E: Unable to locate package foo\n"), Stdout: &out, ExitCode: 100, JSON: true}.Run()
	var found map[string]any
	if err != nil || json.Unmarshal(out.Bytes(), &found) != nil || found["class"] != "fixable" || found["kind"] != "package_not_found" || found["line"] != "E: Unable to locate package foo" {
		t.Errorf("%q, %v", out.String(), err)
	}
	out.Reset()
	if err := (env.Classify{Stdin: strings.NewReader(""), Stdout: &out, ExitCode: 137}).Run(); err != nil || out.String() != "fatal: resource\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
}

// trial is a set-up with what it prints.
type trial struct {
	env.Setup
	out, progress bytes.Buffer
}

func newTrial(t *testing.T, engine, dir string) *trial {
	t.Helper()
	c := config.Default().Sandbox
	c.Kind, c.ContainerEngine = engine, "unix:///nowhere"
	data := t.TempDir()
	t.Cleanup(func() {
		if err := workdir.Remove(data); err != nil {
			t.Error(err)
		}
	})
	made := &trial{Setup: env.Setup{Log: slog.New(slog.DiscardHandler), Now: time.Now, Table: environment.BuiltIn(), Configuration: c, Data: data, Dir: dir, JSON: true}}
	made.Stdout, made.Stderr = &made.out, &made.progress
	return made
}

// run returns what was printed as JSON.
func (tr *trial) run(t *testing.T) (report map[string]any, err error) {
	t.Helper()
	tr.out.Reset()
	err = tr.Run(t.Context())
	if tr.JSON && tr.out.Len() > 0 {
		if err := json.Unmarshal(tr.out.Bytes(), &report); err != nil {
			t.Fatalf("%v in %q", err, tr.out.String())
		}
	}
	return report, err
}

func needBubblewrap(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("bwrap"); err != nil {
		testkit.LeaveOut(t, "bubblewrap")
	}
}

// goodPlan goes elsewhere on the way: each command starts in the folder all the same.
const goodPlan = `{"selected_environment":{"name":"c","setup_commands":["cd /tmp","cd /tmp && export WORD=ready","touch made"],"verification":[{"command":"ls made; echo $WORD","expected_output":"made\nready"}]}}`

func TestSetup(t *testing.T) {
	t.Parallel()
	needBubblewrap(t)
	for _, engine := range []string{"bubblewrap", "landlock"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			dir := folder(t, map[string]string{"plan.json": goodPlan})
			setup := newTrial(t, engine, dir)
			setup.Plan = filepath.Join(dir, "plan.json")
			got, err := setup.run(t)
			if err != nil || got["overall_status"] != "success" {
				t.Fatalf("%q, %q, %v", setup.out.String(), setup.progress.String(), err)
			}
			if handover, is := got["handover"].(map[string]any); !is || handover["environment_ready"] != true {
				t.Errorf("the handover is %v", got["handover"])
			}
			if !strings.Contains(setup.progress.String(), "$ cd /tmp && export WORD=ready\n") {
				t.Errorf("the progress is %q", setup.progress.String())
			}
			if weak := strings.Contains(setup.progress.String(), "only confined with Landlock"); weak != (engine == "landlock") {
				t.Errorf("the progress is %q", setup.progress.String())
			}
			if _, err := os.Stat(filepath.Join(dir, "made")); err == nil {
				t.Error("the folder itself was changed")
			}
			if left, err := os.ReadDir(filepath.Join(setup.Data, "sandbox", "workspaces")); err != nil || len(left) != 0 {
				t.Errorf("left are %v, %v", left, err)
			}
		})
	}
}

// What one folder's script has put into its environment is not in that of another folder
// with the same manifest and the same commands.
func TestOneFoldersEnvironmentIsNotAnothers(t *testing.T) {
	t.Parallel()
	needBubblewrap(t)
	const plan = `{"selected_environment":{"name":"c","setup_commands":["sh setup.sh"],"verification":[{"command":"test -s \"$HOME/tool\" && echo OK","expected_output":"OK"}]}}`
	theirs := folder(t, map[string]string{"plan.json": plan, "Makefile": "all:\n", "setup.sh": "echo a poisoned tool > \"$HOME/tool\"\n"})
	ours := folder(t, map[string]string{"plan.json": plan, "Makefile": "all:\n", "setup.sh": "echo our tool > \"$HOME/tool\"\n"})
	setup := newTrial(t, "bubblewrap", theirs)
	from := func(dir string) (snapshot any, ran bool) {
		t.Helper()
		setup.Dir, setup.Plan = dir, filepath.Join(dir, "plan.json")
		got, err := setup.run(t)
		result, is := got["setup_result"].(map[string]any)
		if err != nil || got["overall_status"] != "success" || !is {
			t.Fatalf("%q, %q, %v", setup.out.String(), setup.progress.String(), err)
		}
		commands, _ := result["commands"].([]any)
		return result["from_snapshot"], len(commands) == 1
	}
	for _, dir := range []string{theirs, ours} {
		if snapshot, ran := from(dir); snapshot != "" || !ran {
			t.Errorf("the first time in %s starts from the snapshot %v; its own script ran: %v", dir, snapshot, ran)
		}
	}
	if snapshot, ran := from(ours); snapshot == "" || ran {
		t.Errorf("the second time in the same folder starts from the snapshot %v; its script ran: %v", snapshot, ran)
	}
}

// A failure that a model could repair says that there is none.
func TestSetupWithoutAModel(t *testing.T) {
	t.Parallel()
	needBubblewrap(t)
	dir := folder(t, map[string]string{"plan.json": `{"selected_environment":{"name":"c","setup_commands":["echo E: Unable to locate package x; exit 100"]}}`})
	setup := newTrial(t, "bubblewrap", dir)
	setup.Plan, setup.JSON = filepath.Join(dir, "plan.json"), false
	_, err := setup.run(t)
	if task.CodeOf(err) != task.NotReady || !strings.Contains(setup.out.String(), "fixable (package_not_found)") {
		t.Errorf("%q, %v", setup.out.String(), err)
	}
	if !strings.Contains(setup.progress.String(), "not repaired: no model is configured") {
		t.Errorf("the progress is %q", setup.progress.String())
	}
}

// What the configuration says of sandboxes holds for the commands in them.
func TestConfigurationHolds(t *testing.T) {
	t.Parallel()
	needBubblewrap(t)
	run := func(t *testing.T, command string, change func(*config.Sandbox)) (map[string]any, *trial) {
		t.Helper()
		plan, err := json.Marshal(map[string]any{"selected_environment": map[string]any{"name": "c", "setup_commands": []string{command},
			"verification": []map[string]string{{"command": "true", "expected_output": ""}}}})
		if err != nil {
			t.Fatal(err)
		}
		dir := folder(t, map[string]string{"plan.json": string(plan)})
		setup := newTrial(t, "bubblewrap", dir)
		setup.Plan = filepath.Join(dir, "plan.json")
		change(&setup.Configuration)
		got, _ := setup.run(t) // the result tells
		ran := got["setup_result"].(map[string]any)["commands"].([]any)
		return ran[0].(map[string]any), setup
	}
	for name, c := range map[string]struct {
		command  string
		change   func(*config.Sandbox)
		exceeded string
	}{
		"command_timeout": {"sleep 3600", func(c *config.Sandbox) { c.CommandTimeout = time.Second }, "time"},
		"memory":          {"x=$(head -c 200M /dev/zero | tr '\\0' x); sleep 3600", func(c *config.Sandbox) { c.Memory = 64 * config.MiB }, "memory"},
		"pids":            {"for i in $(seq 40); do sleep 3600 & done; wait", func(c *config.Sandbox) { c.PIDs = 16 }, "processes"},
		"disk":            {"for i in $(seq 400); do head -c 1M /dev/zero >f$i; sleep 0.02; done; sleep 3600", func(c *config.Sandbox) { c.Disk = 64 * config.MiB }, "disk"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, setup := run(t, c.command, c.change); got["exceeded"] != c.exceeded {
				t.Errorf("%v; %s", got, setup.progress.String())
			}
		})
	}
	t.Run("output_limit", func(t *testing.T) {
		t.Parallel()
		got, _ := run(t, "head -c 100000 /dev/zero | tr '\\0' x", func(c *config.Sandbox) { c.OutputLimit = config.KiB })
		if output := got["output"].(string); len(output) > 2048 || got["exit_code"] != 0.0 {
			t.Errorf("%d bytes, exit code %v", len(output), got["exit_code"])
		}
	})
	t.Run("network", func(t *testing.T) {
		t.Parallel()
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("reached")) }))
		t.Cleanup(server.Close)
		fetch := "exec 3<>/dev/tcp/127.0.0.1/3128; printf 'GET " + server.URL + "/ HTTP/1.0\\r\\n\\r\\n' >&3; cat <&3"
		host := strings.TrimPrefix(server.URL, "http://")
		for _, hosts := range [][]string{nil, {host}} {
			got, _ := run(t, fetch, func(c *config.Sandbox) { c.Network.Hosts = hosts })
			if reached := strings.Contains(got["output"].(string), "reached"); reached != (hosts != nil) {
				t.Errorf("with the hosts %v: %v", hosts, got)
			}
		}
		got, _ := run(t, fetch, func(c *config.Sandbox) { c.Network.Hosts, c.Network.Setup = []string{host}, "none" })
		if strings.Contains(got["output"].(string), "reached") {
			t.Errorf("without a network: %v", got)
		}
	})
}

// Snapshots are kept in the data directory, unless they are switched off, and the
// data directory does not come into the sandbox even if it is in the project.
func TestSnapshotsAreInTheDataDirectory(t *testing.T) {
	t.Parallel()
	needBubblewrap(t)
	dir := folder(t, map[string]string{"plan.json": `{"selected_environment":{"name":"c","setup_commands":["test ! -e kept"],"verification":[{"command":"true","expected_output":""}]}}`})
	setup := newTrial(t, "bubblewrap", dir)
	setup.Data, setup.Plan = filepath.Join(dir, "kept"), filepath.Join(dir, "plan.json")
	from := func() any {
		got, err := setup.run(t)
		if err != nil {
			t.Fatalf("%s, %v", setup.progress.String(), err)
		}
		return got["setup_result"].(map[string]any)["from_snapshot"]
	}
	setup.Configuration.Snapshots.Enabled = false
	if first, second := from(), from(); first != "" || second != "" {
		t.Errorf("switched off, but from %v and %v", first, second)
	}
	setup.Configuration.Snapshots.Enabled = true
	if first, second := from(), from(); first != "" || second == "" {
		t.Errorf("from %v and then %v", first, second)
	}
	kept, err := filepath.Glob(filepath.Join(setup.Data, "sandbox", "bubblewrap", "snapshots", "env-*"))
	if err != nil || len(kept) != 1 {
		t.Errorf("kept are %v, %v", kept, err)
	}
}

// What a killed run left goes with the next.
func TestAbandonedWorkspacesGo(t *testing.T) {
	t.Parallel()
	needBubblewrap(t)
	dir := folder(t, map[string]string{"plan.json": goodPlan})
	setup := newTrial(t, "bubblewrap", dir)
	setup.Plan = filepath.Join(dir, "plan.json")
	dead := exec.CommandContext(t.Context(), "true")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	abandoned := filepath.Join(setup.Data, "sandbox", "workspaces", fmt.Sprint(dead.Process.Pid)+"-1")
	alive := filepath.Join(setup.Data, "sandbox", "workspaces", fmt.Sprint(os.Getpid())+"-1")
	if err := errors.Join(os.MkdirAll(abandoned, 0o700), os.MkdirAll(alive, 0o700)); err != nil {
		t.Fatal(err)
	}
	if _, err := setup.run(t); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(abandoned); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what a dead process left: %v", err)
	}
	if _, err := os.Stat(alive); err != nil {
		t.Errorf("what a living one has: %v", err)
	}
}

func TestSetupRefusesNonsense(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"file": "", "broken.json": "{", "types.json": `{"selected_environment":{"setup_commands":"pip"}}`,
		"blank.json": `{"selected_environment":{"setup_commands":[" "]}}`,
		"large.json": `{"selected_environment":{"setup_commands":["` + strings.Repeat("x", 10<<20) + `"]}}`})
	for _, c := range []struct {
		code              task.Code
		dir, plan, engine string
	}{
		{task.Invalid, dir, "broken.json", "auto"},
		{task.Invalid, dir, "types.json", "auto"},
		{task.Invalid, dir, "blank.json", "auto"},
		{task.TooLarge, dir, "large.json", "auto"},
		{task.NotFound, dir, "none.json", "auto"},
		{task.NotFound, filepath.Join(dir, "none"), "", "auto"},
		{task.NotFound, filepath.Join(dir, "none"), "broken.json", "auto"},
		{task.NotFound, filepath.Join(dir, "file"), "", "auto"},
		{task.NotFound, filepath.Join(dir, "file"), "broken.json", "auto"},
		{task.NotReady, dir, "", "docker"},
	} {
		setup := newTrial(t, c.engine, c.dir)
		if c.plan != "" {
			setup.Plan = filepath.Join(dir, c.plan)
		}
		_, err := setup.run(t)
		if task.CodeOf(err) != c.code || len(err.Error()) > 500 || strings.Contains(err.Error(), "\n") {
			t.Errorf("%+v: %.600v", c, err)
		}
		if setup.out.Len() > 0 {
			t.Errorf("%+v: printed %q", c, setup.out.String())
		}
	}
}

func TestWeakEngineIsNeverChosenSilently(t *testing.T) {
	t.Setenv("PATH", t.TempDir()) // no bubblewrap
	engines := env.Engines{Dir: t.TempDir(), DockerHost: "unix:///nowhere", Log: slog.New(slog.DiscardHandler)}
	if engine, _, err := engines.Choose(t.Context(), env.Automatic); task.CodeOf(err) != task.NotReady {
		t.Errorf("chose %v, %v", engine, err)
	}
	engines.AllowWeak = true
	engine, warning, err := engines.Choose(t.Context(), env.Automatic)
	if err != nil || engine.Name() != "landlock" || warning == "" {
		t.Errorf("chose %v with the warning %q, %v", engine, warning, err)
	}
}
