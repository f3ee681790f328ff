package eval_test

import (
	"archive/tar"
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/toryo-dev/toryo/internal/eval"
	"github.com/toryo-dev/toryo/internal/eval/harbor"
	"github.com/toryo-dev/toryo/internal/eval/source"
	"github.com/toryo-dev/toryo/internal/eval/taskset"
	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/task"
)

// containers are an engine without any: what comes into a container decides how it ends.
type containers struct {
	sandbox.Containers

	solution leftFiles // what the solution leaves

	mu     sync.Mutex
	scores int
	down   bool // from the first score of an attempt on
}

const workFile = "answer.txt"

// Once implements sandbox.Containers.
func (c *containers) Once(ctx context.Context, once sandbox.Once) (sandbox.Ended, error) {
	var written bytes.Buffer
	archive := tar.NewWriter(&written)
	if err := once.Files(archive); err != nil {
		return sandbox.Ended{}, err
	}
	if err := archive.Close(); err != nil {
		return sandbox.Ended{}, err
	}
	files := written.String()
	if strings.Contains(files, "solution/solve.sh") {
		return sandbox.Ended{}, once.Read(ctx, c.solution)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.scores++
	if strings.Contains(files, "breaks") || c.down && c.scores > 3 {
		return sandbox.Ended{}, task.Errorf(task.Unavailable, "too many levels of links")
	}
	reward := "0"
	if strings.Contains(files, "42\n") {
		reward = "1"
	}
	return sandbox.Ended{}, once.Read(ctx, leftFiles{"reward.txt": reward})
}

// leftFiles are files that are left, by their names.
type leftFiles map[string]string

// Archive implements sandbox.Files.
func (l leftFiles) Archive(_ context.Context, path string) (io.ReadCloser, error) {
	if _, is := l[filepath.Base(path)]; !is && filepath.Base(path) != "." && filepath.Base(path) != "app" {
		return nil, task.Errorf(task.NotFound, "nothing is there")
	}
	var written bytes.Buffer
	archive := tar.NewWriter(&written)
	for name, text := range l {
		if err := archive.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(text))}); err != nil {
			return nil, err
		}
		if _, err := io.WriteString(archive, text); err != nil {
			return nil, err
		}
	}
	return io.NopCloser(&written), archive.Close()
}

// folderSet is a set with one task folder that is prepared.
func folderSet(t *testing.T, id string) taskset.Set {
	t.Helper()
	root := filepath.Join(t.TempDir(), id)
	for name, text := range map[string]string{
		"task.toml": "[agent]\ntimeout_sec = 60\n", "instruction.md": "Answer\n", "environment/Dockerfile": "FROM x\n", "tests/test.sh": "exit\n", "solution/solve.sh": "exit\n",
	} {
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
	archive, err := leftFiles{workFile: "41\n"}.Archive(t.Context(), workFile)
	if err != nil {
		t.Fatal(err)
	}
	made, err := source.FromArchive(t.Context(), archive, filepath.Join(t.TempDir(), "files.git"))
	if err != nil {
		t.Fatal(err)
	}
	one := &set.Tasks[0]
	one.Repository, one.Base, one.Container.Image, one.Container.Workdir = made.Dir, made.Base, "x", "/app"
	return set
}

// Work that makes the engine fail is work that has failed, if the solution can be scored. If it
// cannot, the engine is down.
func TestFolderWorkThatBreaksTheEngine(t *testing.T) {
	t.Parallel()
	for name, one := range map[string]struct {
		text string
		down bool
		want eval.Status
	}{
		"right":  {"42\n", false, eval.Resolved},
		"wrong":  {"43\n", false, eval.Unresolved},
		"breaks": {"breaks\n", false, eval.Unresolved},
		"down":   {"42\n", true, eval.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			worker := &hand{t: t, work: map[string]func(context.Context, project) error{name: writes(workFile, one.text)}}
			e := newEvaluation(t, folderSet(t, name), worker)
			e.Folders = harbor.Runner{Engine: &containers{down: one.down, solution: leftFiles{workFile: "42\n"}}, TestTimeout: e.Scorer.Timeout, WorkTimeout: e.Within}
			results := run(t, e)
			attempt := byTask(results)[name]
			if attempt.Status != one.want {
				t.Errorf("%+v, %+v", attempt, results.Checks)
			}
			if name == "breaks" && (!strings.Contains(attempt.Score.Note, "levels of links") || len(worker.jobs) != 1) {
				t.Errorf("the note is %q after %d runs", attempt.Score.Note, len(worker.jobs))
			}
		})
	}
}

// Files that a .gitignore leaves out are in no attempt, so that a task that needs them is left out.
func TestFolderTasksWithIgnoredFiles(t *testing.T) {
	t.Parallel()
	for name, one := range map[string]struct {
		left   leftFiles
		usable bool
	}{
		"needed": {leftFiles{".gitignore": "*.db\n", workFile: "41\n", "result.db": "42\n"}, false},
		"beside": {leftFiles{".gitignore": "*.db\n", workFile: "42\n", "result.db": "0\n"}, true},
	} {
		e := newEvaluation(t, folderSet(t, name), &hand{t: t})
		e.OnlyCheck, e.Folders = true, harbor.Runner{Engine: &containers{solution: one.left}, TestTimeout: e.Scorer.Timeout, WorkTimeout: e.Within}
		check := run(t, e).Checks[0]
		if check.Usable != one.usable || strings.Contains(check.Expected.Patch, "result.db") || !one.usable && !strings.Contains(check.Reason, ".gitignore") {
			t.Errorf("%s: %+v", name, check)
		}
	}
}
