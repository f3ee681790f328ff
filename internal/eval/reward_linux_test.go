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
		return sandbox.Ended{}, once.Read(ctx, oneFile{workFile, "42\n"})
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
	return sandbox.Ended{}, once.Read(ctx, oneFile{"reward.txt", reward})
}

// oneFile are files of which there is one.
type oneFile struct{ name, text string }

// Archive implements sandbox.Files.
func (o oneFile) Archive(_ context.Context, path string) (io.ReadCloser, error) {
	if base := filepath.Base(path); base != o.name && base != "." && base != "app" {
		return nil, task.Errorf(task.NotFound, "nothing is there")
	}
	var written bytes.Buffer
	archive := tar.NewWriter(&written)
	if err := archive.WriteHeader(&tar.Header{Name: o.name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(o.text))}); err != nil {
		return nil, err
	}
	if _, err := io.WriteString(archive, o.text); err != nil {
		return nil, err
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
	archive, err := oneFile{workFile, "41\n"}.Archive(t.Context(), workFile)
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
			e.Folders = harbor.Runner{Engine: &containers{down: one.down}, TestTimeout: e.Scorer.Timeout, WorkTimeout: e.Within}
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
