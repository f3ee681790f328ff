package harbor_test

import (
	"context"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/eval/harbor"
	"github.com/toryo-dev/toryo/internal/eval/source"
	"github.com/toryo-dev/toryo/internal/eval/taskset"
	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/sandbox/docker"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
)

type closedGate struct{}

func (closedGate) Serve(connection net.Conn) { _ = connection.Close() }
func (closedGate) SetPolicy(sandbox.Policy)  {}
func (closedGate) Close() error              { return nil }

const owner = "harbor-test"

var discard = slog.New(slog.DiscardHandler)

func noGate(sandbox.Policy) sandbox.Gate { return closedGate{} }

func keepNone(sandbox.Info) bool { return false }

// newRunner is a runner over a real engine.
func newRunner(t *testing.T) (harbor.Runner, *docker.Engine) {
	t.Helper()
	host := os.Getenv("TORYO_TEST_DOCKER")
	if host == "" || os.Getenv("TORYO_TEST_DOCKER_IMAGE") == "" {
		testkit.LeaveOut(t, "a Docker Engine (TORYO_TEST_DOCKER, TORYO_TEST_DOCKER_IMAGE)")
	}
	engine, err := docker.New(docker.Config{Host: host, Dir: t.TempDir(), Guest: testkit.Guest(), Log: discard, NewGate: noGate})
	if err != nil {
		t.Fatal(err)
	}
	if err := engine.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	return harbor.Runner{Engine: engine, Owner: owner, TestTimeout: time.Minute, WorkTimeout: time.Minute, Limits: sandbox.Limits{Memory: 512 << 20, Disk: 256 << 20}}, engine
}

// The image has a reward of its own, and the tests look for an answer.
const (
	toml   = "version = \"1.0\"\n[metadata]\nauthor_name = \"A\"\n[verifier]\ntimeout_sec = 30.0\nenv = { WANT = \"42\" }\n[agent]\ntimeout_sec = 60\n[environment]\ncpus = 1\nmemory_mb = 256\nallow_internet = false\n"
	tests  = "#!/bin/bash\nset -e\nif [ \"$(cat answer.txt)\" = \"$WANT\" ] && [ \"$PWD\" = /app ] && [ \"$(id -u)\" = 0 ]; then echo 1 > /logs/verifier/reward.txt; else echo 0 > /logs/verifier/reward.txt; fi\n"
	solves = "#!/bin/bash\nset -e\ncat /solution/answer > answer.txt\nrm old.txt\nmkdir made && echo x > made/new.sh && chmod +x made/new.sh\ntouch /elsewhere\n"
)

// folder writes a task folder.
func folder(t *testing.T, changes map[string]string) taskset.Task {
	t.Helper()
	root := filepath.Join(t.TempDir(), "answer")
	files := map[string]string{
		"task.toml": toml, "instruction.md": "Find the answer\n\nIt is a number.\n", "tests/test.sh": tests, "solution/solve.sh": solves, "solution/answer": "42\n",
		"environment/Dockerfile":     "FROM " + os.Getenv("TORYO_TEST_DOCKER_IMAGE") + "\nWORKDIR /app\nCOPY app/ /app/\nRUN mkdir -p /logs/verifier /app/.git && echo 1 > /logs/verifier/reward.txt && touch /app/.git/config\n",
		"environment/app/answer.txt": "41\n", "environment/app/old.txt": "old\n", "environment/app/folder/a.txt": "a\n",
	}
	maps.Copy(files, changes)
	for name, text := range files {
		if err := os.MkdirAll(filepath.Join(root, filepath.Dir(name)), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	set, err := taskset.Load(root, taskset.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return set.Tasks[0]
}

// prepare makes a task ready, and a copy of its repository as the work has it.
func prepare(t *testing.T, runner harbor.Runner, one taskset.Task) (taskset.Task, *source.Repository) {
	t.Helper()
	made, err := runner.Prepare(t.Context(), one, filepath.Join(t.TempDir(), "files.git"))
	if err != nil {
		t.Fatal(err)
	}
	from, err := source.Strip(t.Context(), made.Repository, made.Base, filepath.Join(t.TempDir(), "work.git"))
	if err != nil {
		t.Fatal(err)
	}
	return made, from
}

func file(name, text string) string {
	return "diff --git a/" + name + " b/" + name + "\nnew file mode 100644\n--- /dev/null\n+++ b/" + name + "\n@@ -0,0 +1 @@\n+" + text + "\n"
}

// noContainers says if something is left of the tests.
func noContainers(t *testing.T, engine *docker.Engine) {
	t.Helper()
	if left, err := engine.List(context.WithoutCancel(t.Context()), owner); err != nil || len(left) > 0 {
		t.Errorf("containers that are left: %v, %v", left, err)
	}
}

// The solution has the reward 1, and nothing else has: neither no change, nor rewards that the
// work or the image brings along.
//
//nolint:paralleltest // it lists the containers of all
func TestTaskFolder(t *testing.T) {
	runner, engine := newRunner(t)
	one, from := prepare(t, runner, folder(t, nil))
	if files, err := from.Files(t.Context(), from.Base); err != nil || strings.Join(files, " ") != "answer.txt folder/a.txt old.txt" {
		t.Errorf("the files to work on: %q, %v", files, err)
	}
	if !strings.Contains(one.Statement, "/app") || strings.Contains(one.Statement, "42") || !strings.HasPrefix(one.Container.Image, "sha256:") {
		t.Errorf("the task: %+v", one)
	}
	solved, err := runner.Solve(t.Context(), one, from)
	if err != nil {
		t.Fatal(err)
	}
	gold, err := from.Diff(t.Context(), from.Base, solved)
	if err != nil || !strings.Contains(gold, "+42") || !strings.Contains(gold, "new file mode 100755") || strings.Contains(gold, "elsewhere") {
		t.Errorf("the solution changes %s, %v", gold, err)
	}
	forged := file("reward.txt", "1") + file("logs/verifier/reward.txt", "1") + file("reward.json", `{"reward": 1}`)
	link := "diff --git a/folder/a.txt b/folder/a.txt\ndeleted file mode 100644\n--- a/folder/a.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n" +
		"diff --git a/folder b/folder\nnew file mode 120000\n--- /dev/null\n+++ b/folder\n@@ -0,0 +1 @@\n+/logs/verifier\n\\ No newline at end of file\n"
	for name, patch := range map[string]string{"nothing": "", "forged": forged, "a link": link, "gold": gold, "gold and a link": gold + link, "a name with a quote": file("it's $(touch x)", "x")} {
		commit := from.Base
		if patch != "" {
			if commit, err = from.Apply(t.Context(), from.Base, patch); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		want := 0.0
		if strings.HasPrefix(name, "gold") {
			want = 1
		}
		if result, err := runner.Score(t.Context(), one, from, commit); err != nil || result.Reward != want || result.Problem != "" {
			t.Errorf("%s: %+v, %v", name, result, err)
		}
	}
	noContainers(t, engine)
}

// Tests that leave no reward, or none that is a number from 0 to 1, resolve nothing, whatever
// lies around.
//
//nolint:paralleltest // it lists the containers of all
func TestNoReward(t *testing.T) {
	runner, engine := newRunner(t)
	const reward = "/logs/verifier/reward.txt"
	for name, one := range map[string]struct{ script, problem string }{
		"none":        {"exit 0", "left no reward"},
		"not found":   {"\x00\x01", ""},
		"a word":      {"echo yes > " + reward, "no number"},
		"too high":    {"echo 2 > " + reward, "not from 0 to 1"},
		"not any":     {"echo nan > " + reward, "not from 0 to 1"},
		"a link":      {"echo 1 > /tmp/one; ln -s /tmp/one " + reward, "no file"},
		"a folder":    {"mkdir " + reward, "no file"},
		"long":        {"head -c 100000 /dev/zero > " + reward, "more than"},
		"two":         {"echo 1 > " + reward + "; echo '{\"reward\": 0}' > /logs/verifier/reward.json", "different things"},
		"no object":   {"echo 1 > /logs/verifier/reward.json", "no number"},
		"hangs":       {"echo 1 > " + reward + "; sleep 1000 & wait", "limit of time"},
		"fills disks": {"echo 1 > " + reward + "; dd if=/dev/zero of=/big bs=1M count=400 2>/dev/null; sync; sleep 1000", "limit of "},
	} {
		settings := strings.Replace(toml, "timeout_sec = 30.0", "timeout_sec = 8.0", 1)
		made, from := prepare(t, runner, folder(t, map[string]string{"tests/test.sh": "#!/bin/bash\n" + one.script + "\n", "task.toml": settings}))
		commit, err := from.Apply(t.Context(), from.Base, file("reward.txt", "1"))
		if err != nil {
			t.Fatal(err)
		}
		result, err := runner.Score(t.Context(), made, from, commit)
		if err != nil || result.Reward != 0 || result.Problem == "" || !strings.Contains(result.Problem, one.problem) {
			t.Errorf("%s: %+v, %v", name, result, err)
		}
	}
	noContainers(t, engine)
}

// What is printed is kept from its end, and json is a reward too. A program that stays behind ends
// with the tests.
//
//nolint:paralleltest // it lists the containers of all
func TestLongOutput(t *testing.T) {
	runner, engine := newRunner(t)
	script := "#!/bin/bash\nhead -c 50000000 /dev/zero | tr '\\0' x\necho the end\n(trap '' TERM HUP; sleep 1; echo 0 > /logs/verifier/reward.json) &\necho '{\"reward\": 0.5}' > /logs/verifier/reward.json\n"
	one, from := prepare(t, runner, folder(t, map[string]string{"tests/test.sh": script}))
	result, err := runner.Score(t.Context(), one, from, from.Base)
	if err != nil || result.Reward != 0.5 || len(result.Output) > 64<<10 || !strings.HasSuffix(result.Output, "the end\n") {
		t.Errorf("%v, %q, %d bytes, %v", result.Reward, result.Problem, len(result.Output), err)
	}
	noContainers(t, engine)
}

// What cannot be used is said before anything is worked on.
//
//nolint:paralleltest // it lists the containers of all
func TestFoldersThatCannotBePrepared(t *testing.T) {
	runner, engine := newRunner(t)
	image := "FROM " + os.Getenv("TORYO_TEST_DOCKER_IMAGE") + "\n"
	for name, one := range map[string]struct {
		changes map[string]string
		says    string
	}{
		"a command fails":     {map[string]string{"environment/Dockerfile": image + "RUN echo why >&2; exit 3\n"}, "why"},
		"tests are not there": {map[string]string{"environment/Dockerfile": image + "WORKDIR /app\nCOPY tests /app/\n"}, "cannot be built"},
		"no file above":       {map[string]string{"environment/Dockerfile": image + "WORKDIR /app\nCOPY ../tests /app/\n"}, "cannot be built"},
		"it takes too long":   {map[string]string{"environment/Dockerfile": image + "RUN sleep 100\n", "task.toml": toml + "build_timeout_sec = 2\n"}, "longer than it may"},
		"no folder":           {map[string]string{"environment/Dockerfile": image}, "working directory"},
		"system folder":       {map[string]string{"environment/Dockerfile": image + "WORKDIR /logs/verifier\n"}, "working directory"},
		"no such image":       {map[string]string{"task.toml": toml + "docker_image = \"localhost:1/none\"\n", "environment/Dockerfile": "FROM localhost:1/none\n"}, "cannot be built"},
		"an address":          {map[string]string{"environment/Dockerfile": image + "A\\\nDD --chown=0:0 \\\n http://169.254.169.254/latest /app/\n"}, "--allow-network"},
		"little memory":       {map[string]string{"task.toml": strings.Replace(toml, "256", "1", 1)}, "no container less"},
		"fills the disk":      {map[string]string{"environment/Dockerfile": image + "# " + t.TempDir() + "\nRUN dd if=/dev/zero of=/big bs=1M count=400; sleep 50\n"}, "limit of disk"},
		"much memory":         {map[string]string{"task.toml": strings.Replace(toml, "256", "9999", 1)}, "sandbox.memory"},
	} {
		if _, err := runner.Prepare(t.Context(), folder(t, one.changes), filepath.Join(t.TempDir(), "files.git")); err == nil || !strings.Contains(err.Error(), one.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	noContainers(t, engine)
}

// A solution that takes too long, and one without its image.
//
//nolint:paralleltest // it lists the containers of all
func TestSolutionsThatFail(t *testing.T) {
	runner, engine := newRunner(t)
	one, from := prepare(t, runner, folder(t, map[string]string{"solution/solve.sh": "#!/bin/bash\nsleep 1000\n", "task.toml": strings.Replace(toml, "timeout_sec = 60", "timeout_sec = 1", 1)}))
	if _, err := runner.Solve(t.Context(), one, from); task.CodeOf(err) != task.Invalid {
		t.Errorf("a solution that hangs: %v", err)
	}
	gone := *one.Container
	gone.Image = "sha256:" + strings.Repeat("0", 64)
	one.Container = &gone
	if _, err := runner.Score(t.Context(), one, from, from.Base); err == nil {
		t.Error("an image that is gone has a score")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := runner.Solve(ended, one, from); err == nil {
		t.Error("it went on after its end")
	}
	noContainers(t, engine)
}
