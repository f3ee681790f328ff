package taskset_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toryo-dev/toryo/internal/eval/taskset"
	"github.com/toryo-dev/toryo/internal/task"
)

const folderToml = `version = "1.0"
[metadata]
difficulty = "easy"
[verifier]
timeout_sec = 120.5
env = { A = "1" }
[agent]
timeout_sec = 900
[environment]
build_timeout_sec = 60.0
memory = "2G"
storage_mb = 1024
cpus = 2
unknown = [1]
`

// taskFolder writes a task folder below a set. A file without a text is not there.
func taskFolder(t *testing.T, set, id string, changes map[string]string) string {
	t.Helper()
	files := map[string]string{"task.toml": folderToml, "instruction.md": "Do it\n", "environment/Dockerfile": "FROM x\n", "tests/test.sh": "#!/bin/sh\n", "solution/solve.sh": "#!/bin/sh\n"}
	maps.Copy(files, changes)
	for name, text := range files {
		at := filepath.Join(set, id, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o750); err != nil {
			t.Fatal(err)
		}
		if text != "" {
			if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	return filepath.Join(set, id)
}

func TestTaskFolders(t *testing.T) {
	t.Parallel()
	set := t.TempDir()
	first := taskFolder(t, set, "first", nil)
	taskFolder(t, set, "second", map[string]string{"task.toml": "[environment]\nallow_internet = false\ndocker_image = \"registry.test/x:1\"\n", "environment/Dockerfile": ""})
	if err := os.Mkdir(filepath.Join(set, "no task"), 0o750); err != nil {
		t.Fatal(err)
	}
	loaded, err := taskset.Load(set, taskset.Options{})
	if err != nil || len(loaded.Tasks) != 2 {
		t.Fatalf("%d tasks, %v", len(loaded.Tasks), err)
	}
	one, two := loaded.Tasks[0], loaded.Tasks[1]
	want := taskset.Container{Folder: first, Hash: one.Container.Hash, Dockerfile: true, TestEnv: map[string]string{"A": "1"}, BuildTimeout: time.Minute, WorkTimeout: 15 * time.Minute,
		TestTimeout: 120500 * time.Millisecond, CPUs: 2, Memory: 2 << 30, Disk: 1 << 30, Network: true}
	if diff := cmp.Diff(want, *one.Container); diff != "" || one.ID != "first" || one.Statement != "Do it\n" || one.Missing != "" {
		t.Errorf("the first: %s, %+v", diff, one)
	}
	if two.Container.Network || two.Container.Image != "registry.test/x:1" || two.Container.Dockerfile || two.Container.TestTimeout == 0 || two.Missing != "" {
		t.Errorf("the second: %+v", two.Container)
	}
	alone, err := taskset.Load(first, taskset.Options{})
	if err != nil || len(alone.Tasks) != 1 || alone.Tasks[0].Hash() != one.Hash() || alone.Hash == loaded.Hash {
		t.Errorf("one alone: %+v, %v", alone, err)
	}
	// Another test is another task.
	taskFolder(t, set, "first", map[string]string{"tests/test.sh": "#!/bin/sh\nexit 1\n"})
	if again, err := taskset.Load(first, taskset.Options{}); err != nil || again.Tasks[0].Hash() == one.Hash() || again.Hash == alone.Hash {
		t.Errorf("with another test: %v", err)
	}
}

// What is wrong is refused, and what this program cannot do is said of the task alone.
func TestBadTaskFolders(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 2<<20)
	for name, one := range map[string]struct {
		changes map[string]string
		missing string // of one that is left out; others are errors
	}{
		"no toml":        {map[string]string{"task.toml": "version = \n"}, ""},
		"wrong type":     {map[string]string{"task.toml": "[verifier]\ntimeout_sec = 'long'\n"}, ""},
		"negative":       {map[string]string{"task.toml": "[verifier]\ntimeout_sec = -1\n"}, ""},
		"not a number":   {map[string]string{"task.toml": "[agent]\ntimeout_sec = nan\n"}, ""},
		"endless":        {map[string]string{"task.toml": "[agent]\ntimeout_sec = inf\n"}, ""},
		"memory":         {map[string]string{"task.toml": "[environment]\nmemory_mb = 9223372036854775807\n"}, ""},
		"size":           {map[string]string{"task.toml": "[environment]\nmemory = 'much'\n"}, ""},
		"image":          {map[string]string{"task.toml": "[environment]\ndocker_image = '--help'\n"}, ""},
		"workdir":        {map[string]string{"task.toml": "[environment]\nworkdir = 'app/../..'\n"}, ""},
		"variable":       {map[string]string{"task.toml": "[environment]\nenv = { 'A=B' = '1' }\n"}, ""},
		"long toml":      {map[string]string{"task.toml": "# " + long}, ""},
		"long text":      {map[string]string{"instruction.md": long}, ""},
		"no instruction": {map[string]string{"instruction.md": ""}, ""},
		"empty":          {map[string]string{"instruction.md": " \n"}, ""},
		"no tests":       {map[string]string{"tests/test.sh": ""}, ""},
		"no Dockerfile":  {map[string]string{"environment/Dockerfile": ""}, ""},
		"no solution":    {map[string]string{"solution/solve.sh": ""}, "cannot be checked"},
		"compose":        {map[string]string{"environment/docker-compose.yaml": "services: {}\n"}, "several containers"},
		"steps":          {map[string]string{"task.toml": "[[steps]]\nname = 'a'\n"}, "several steps"},
		"separate":       {map[string]string{"task.toml": "[verifier]\nenvironment_mode = 'separate'\n"}, "container of their own"},
		"user":           {map[string]string{"task.toml": "[verifier]\nuser = 1000\n"}, "another user"},
		"gpu":            {map[string]string{"task.toml": "[environment]\ngpus = 1\n"}, "GPU"},
		"hosts":          {map[string]string{"task.toml": "[environment]\nnetwork_mode = 'allowlist'\n"}, "some hosts"},
		"host's keys":    {map[string]string{"task.toml": "[verifier]\nenv = { KEY = '${OPENAI_API_KEY}' }\n"}, "variables of this machine"},
	} {
		set, err := taskset.Load(taskFolder(t, t.TempDir(), "one", one.changes), taskset.Options{})
		if one.missing == "" && task.CodeOf(err) != task.Invalid {
			t.Errorf("%s: %v", name, err)
		}
		if one.missing != "" && (err != nil || !strings.Contains(set.Tasks[0].Missing, one.missing)) {
			t.Errorf("%s: %+v, %v", name, set.Tasks, err)
		}
	}
	if _, err := taskset.Load(filepath.Dir(write(t, "task.yaml", "x: 1\n")), taskset.Options{}); task.CodeOf(err) != task.Unsupported {
		t.Errorf("the first Terminal-Bench: %v", err)
	}
}

// One folder that cannot be used does not keep the others from it.
func TestOneBadTaskFolder(t *testing.T) {
	t.Parallel()
	set := t.TempDir()
	taskFolder(t, set, "bad", map[string]string{"instruction.md": ""})
	taskFolder(t, set, "good", nil)
	loaded, err := taskset.Load(set, taskset.Options{})
	if err != nil || len(loaded.Tasks) != 2 {
		t.Fatalf("%d tasks, %v", len(loaded.Tasks), err)
	}
	if bad := loaded.Tasks[0]; bad.ID != "bad" || !strings.Contains(bad.Missing, "instruction.md") {
		t.Errorf("the bad one: %+v", bad)
	}
	if good := loaded.Tasks[1]; good.ID != "good" || good.Missing != "" || good.Container == nil {
		t.Errorf("the good one: %+v", good)
	}
	taskFolder(t, set, "bad", map[string]string{"instruction.md": "Do it\n"})
	if repaired, err := taskset.Load(set, taskset.Options{}); err != nil || repaired.Tasks[0].Missing != "" || repaired.Hash == loaded.Hash {
		t.Errorf("repaired: %+v, %v", repaired, err)
	}
}

// Nothing outside of a task folder becomes a part of it, neither by links nor by other kinds of
// files.
func TestLinksInTaskFolders(t *testing.T) {
	t.Parallel()
	secret := write(t, "secret", "private\n")
	for _, place := range []string{"environment/secret", "tests/secret", "instruction.md", "task.toml", "tests/test.sh"} {
		folder := taskFolder(t, t.TempDir(), "one", nil)
		at := filepath.Join(folder, place)
		if err := os.Remove(at); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		if err := os.Symlink(secret, at); err != nil {
			t.Fatal(err)
		}
		if _, err := taskset.Load(folder, taskset.Options{}); task.CodeOf(err) != task.Invalid {
			t.Errorf("a link at %s: %v", place, err)
		}
	}
	folder := taskFolder(t, t.TempDir(), "one", map[string]string{"environment/app/a.txt": "a\n"})
	if err := os.Symlink("../Dockerfile", filepath.Join(folder, "environment", "app", "inside")); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	archive := tar.NewWriter(&out)
	if err := errors.Join(taskset.Archive(folder, taskset.FolderEnvironment, "", archive), archive.Close()); err != nil {
		t.Fatal(err)
	}
	var names []string
	for reader := tar.NewReader(&out); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, header.Name)
	}
	if got := strings.Join(names, " "); got != "Dockerfile app/ app/a.txt app/inside" {
		t.Errorf("what an image is built from: %s", got)
	}
	// A link from the environment to the tests would put them into the image.
	if err := os.Symlink("../tests", filepath.Join(folder, "environment", "tests")); err != nil {
		t.Fatal(err)
	}
	if err := taskset.Archive(folder, taskset.FolderEnvironment, "", tar.NewWriter(io.Discard)); task.CodeOf(err) != task.Invalid {
		t.Errorf("a link to the tests: %v", err)
	}
}
