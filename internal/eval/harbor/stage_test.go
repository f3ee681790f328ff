package harbor_test

import (
	"archive/tar"
	"context"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/eval/harbor"
	"github.com/toryo-dev/toryo/internal/eval/source"
	"github.com/toryo-dev/toryo/internal/eval/taskset"
	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/task"
)

// listing is an engine that notes what comes into a container.
type listing struct {
	sandbox.Containers

	sizes map[string]int64
}

// Once implements sandbox.Containers.
func (l *listing) Once(ctx context.Context, once sandbox.Once) (sandbox.Ended, error) {
	reader, writer := io.Pipe()
	go func() {
		to := tar.NewWriter(writer)
		err := once.Files(to)
		if err == nil {
			err = to.Close()
		}
		_ = writer.CloseWithError(err) // always nil
	}()
	archive := tar.NewReader(reader)
	for {
		header, err := archive.Next()
		if err == io.EOF { //nolint:errorlint // it is never wrapped
			return sandbox.Ended{}, once.Read(ctx, nothing{})
		}
		if err != nil {
			return sandbox.Ended{}, err
		}
		if l.sizes[header.Name], err = io.Copy(io.Discard, archive); err != nil {
			return sandbox.Ended{}, err
		}
	}
}

type nothing struct{}

// Archive implements sandbox.Files.
func (nothing) Archive(context.Context, string) (io.ReadCloser, error) {
	return nil, task.Errorf(task.NotFound, "nothing is there")
}

// A file that is longer than a patch may be can be changed, as long as the disk has room for it.
func TestLargeFilesOfTheWork(t *testing.T) {
	t.Parallel()
	const size = source.MaxPatch + 1
	reader, writer := io.Pipe()
	go func() {
		archive := tar.NewWriter(writer)
		_ = archive.WriteHeader(&tar.Header{Name: "large.txt", Typeflag: tar.TypeReg, Mode: 0o644, Size: size}) // the reader says it
		_, _ = io.WriteString(archive, strings.Repeat("0123456\n", size/8)+"\n")
		_ = writer.CloseWithError(archive.Close()) // always nil
	}()
	from, err := source.FromArchive(t.Context(), reader, filepath.Join(t.TempDir(), "files.git"))
	if err != nil {
		t.Fatal(err)
	}
	longer, err := from.Blob(t.Context(), []byte(strings.Repeat("0123456\n", size/8)+"more\n"))
	if err != nil {
		t.Fatal(err)
	}
	commit, err := from.Put(t.Context(), from.Base, []source.Change{{Name: "large.txt", Mode: "100644", Hash: longer}})
	if err != nil {
		t.Fatal(err)
	}
	engine := &listing{sizes: map[string]int64{}}
	runner := harbor.Runner{Engine: engine, TestTimeout: time.Minute, WorkTimeout: time.Minute}
	one := folder(t, nil)
	one.Container = &taskset.Container{Folder: one.Container.Folder, Image: "x", Workdir: "/app"}
	if result, err := runner.Score(t.Context(), one, from, commit); err != nil || !strings.Contains(result.Problem, "left no reward") {
		t.Errorf("%+v, %v", result, err)
	}
	if got := engine.sizes["toryo-work/0"]; got != size+4 {
		t.Errorf("%d bytes came into the container: %v", got, engine.sizes)
	}
	runner.Limits.Disk = source.MaxPatch
	if result, err := runner.Score(t.Context(), one, from, commit); err != nil || !strings.Contains(result.Problem, "disk") {
		t.Errorf("without room: %+v, %v", result, err)
	}
}

// imaged is an engine with one image, of which nothing can be read.
type imaged struct {
	sandbox.Containers

	image sandbox.Image
}

// Image implements sandbox.Containers.
func (i imaged) Image(context.Context, string) (sandbox.Image, error) { return i.image, nil }

// Once implements sandbox.Containers.
func (imaged) Once(context.Context, sandbox.Once) (sandbox.Ended, error) {
	return sandbox.Ended{}, task.Errorf(task.Unavailable, "it is used")
}

// Some images cannot be used, whatever is in them.
func TestImagesThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	one := folder(t, map[string]string{"task.toml": toml + "docker_image = \"x\"\n"})
	for _, image := range []struct {
		folder  string
		volumes []string
		says    string
	}{
		{"/app", nil, "it is used"},
		{"/workspace", nil, "it is used"},
		{"/root", nil, "it is used"},
		{"/app", []string{"/data"}, "VOLUME at /data"},
		{"/workspace/app", nil, "working directory of its image is /workspace/app"},
		{"/root/app", nil, "working directory of its image is /root/app"},
	} {
		runner := harbor.Runner{Engine: imaged{image: sandbox.Image{Digest: "sha256:0", Folder: image.folder, Volumes: image.volumes}}}
		if _, err := runner.Prepare(t.Context(), one, t.TempDir()); err == nil || !strings.Contains(err.Error(), image.says) {
			t.Errorf("%v: %v", image, err)
		}
	}
}
