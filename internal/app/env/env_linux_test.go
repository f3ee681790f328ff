package env_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/app/env"
	"github.com/toryo-dev/toryo/internal/sandbox/guest"
	"github.com/toryo-dev/toryo/internal/sandbox/landlock"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
)

func TestMain(m *testing.M) {
	guest.Main(map[string]guest.Confinement{landlock.Name: landlock.Confine})
	os.Exit(m.Run())
}

func run(t *testing.T, stdin string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, complaints bytes.Buffer
	command := env.Command(env.World{Stdin: strings.NewReader(stdin), Stdout: &out, Stderr: &complaints,
		Engines: env.Engines{Dir: t.TempDir(), DockerHost: "unix:///nowhere", Log: slog.New(slog.DiscardHandler)}})
	command.SetArgs(args)
	command.SilenceErrors, command.SilenceUsage = true, true
	err = command.ExecuteContext(t.Context())
	return out.String(), complaints.String(), err
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
	out, _, err := run(t, "", "detect", dir)
	if err != nil || !strings.Contains(out, "environment: go (go.mod exists)\n") || !strings.Contains(out, "set up: go mod download\n") {
		t.Errorf("%q, %v", out, err)
	}
	out, _, err = run(t, "", "detect", "--json", dir)
	var found map[string]any
	if err != nil || json.Unmarshal([]byte(out), &found) != nil || found["environment_type"] != "go" {
		t.Errorf("%q, %v", out, err)
	}
	for _, key := range []string{"detected_files", "environment_type", "dependencies", "setup_commands", "candidates", "package_manager", "language_version", "test_command", "warnings"} {
		if value, has := found[key]; !has || value == nil {
			t.Errorf("%s is missing", key)
		}
	}
	if _, _, err := run(t, "", "detect", dir+"/none"); task.CodeOf(err) != task.NotFound {
		t.Errorf("a folder that is not there: %v", err)
	}
}

func TestClassify(t *testing.T) {
	t.Parallel()
	out, _, err := run(t, "E: Unable to locate package foo\n", "classify", "--exit-code", "100", "--json")
	var found map[string]any
	if err != nil || json.Unmarshal([]byte(out), &found) != nil || found["class"] != "fixable" || found["kind"] != "package_not_found" || found["line"] != "E: Unable to locate package foo" {
		t.Errorf("%q, %v", out, err)
	}
	if out, _, err := run(t, "", "classify", "--exit-code", "137"); err != nil || !strings.HasPrefix(out, "fatal: resource\n") {
		t.Errorf("%q, %v", out, err)
	}
}

func TestSetup(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("bwrap"); err != nil {
		testkit.LeaveOut(t, "bubblewrap")
	}
	dir := folder(t, map[string]string{"plan.json": `{"selected_environment":{"name":"c","setup_commands":["cd /tmp","export WORD=ready","touch /workspace/made"],"verification":[{"command":"echo $WORD $PWD","expected_output":"ready /tmp"}]}}`,
		"bad.json": `{"selected_environment":{"name":"c","setup_commands":["echo E: Unable to locate package x; exit 100"]}}`, "broken.json": "{"})
	for _, engine := range []string{"bubblewrap", "landlock"} {
		plan := filepath.Join(dir, "plan.json")
		if engine == "landlock" {
			plan = filepath.Join(folder(t, map[string]string{"plan.json": `{"selected_environment":{"name":"c","setup_commands":["export WORD=ready"],"verification":[{"command":"echo $WORD","expected_output":"ready"}]}}`}), "plan.json")
		}
		out, complaints, err := run(t, "", "setup", dir, "--plan", plan, "--sandbox", engine, "--json")
		var found map[string]any
		if err != nil || json.Unmarshal([]byte(out), &found) != nil || found["overall_status"] != "success" {
			t.Fatalf("%s: %q, %q, %v", engine, out, complaints, err)
		}
		if handover, is := found["handover"].(map[string]any); !is || handover["environment_ready"] != true {
			t.Errorf("the handover is %v", found["handover"])
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "made")); err == nil {
		t.Error("the folder itself was changed")
	}
	out, _, err := run(t, "", "setup", dir, "--plan", filepath.Join(dir, "bad.json"), "--sandbox", "bubblewrap")
	if task.CodeOf(err) != task.NotReady || !strings.Contains(out, "fixable (package_not_found)") {
		t.Errorf("%q, %v", out, err)
	}
	for _, test := range []struct {
		code task.Code
		args []string
	}{
		{task.Invalid, []string{"--plan", filepath.Join(dir, "broken.json"), "--sandbox", "bubblewrap"}},
		{task.NotFound, []string{"--plan", filepath.Join(dir, "none.json")}},
		{task.NotReady, []string{"--sandbox", "docker"}},
		{task.Usage, []string{"--sandbox", "chroot"}},
		{task.Usage, []string{"--network", "some"}},
	} {
		if _, _, err := run(t, "", append([]string{"setup", dir}, test.args...)...); task.CodeOf(err) != test.code {
			t.Errorf("%v: %v, want %s", test.args, err, test.code)
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
