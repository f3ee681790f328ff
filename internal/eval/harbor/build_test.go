package harbor_test

import (
	"archive/tar"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/sandbox/docker"
)

// built makes an image of a Dockerfile, with the engine's network.
func built(t *testing.T, engine *docker.Engine, name, lines string) {
	t.Helper()
	_, err := engine.Build(t.Context(), sandbox.Build{Name: name, Network: true, Timeout: time.Minute, Files: func(to *tar.Writer) error {
		if err := to.WriteHeader(&tar.Header{Name: "Dockerfile", Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(lines))}); err != nil {
			return err
		}
		_, err := io.WriteString(to, lines)
		return err
	}})
	if err != nil {
		t.Fatal(err)
	}
}

// Without network nothing is fetched for the instructions of a base image, of whichever stage.
//
//nolint:paralleltest // it lists the containers of all
func TestBaseImagesThatFetch(t *testing.T) {
	runner, engine := newRunner(t)
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests.Add(1) }))
	t.Cleanup(server.Close)
	image := os.Getenv("TORYO_TEST_DOCKER_IMAGE")
	name := "toryo-test-onbuild:" + strings.NewReplacer(":", "-", ".", "-").Replace(server.Listener.Addr().String())
	built(t, engine, name, "FROM "+image+"\nONBUILD ADD "+server.URL+"/secret /x\n")
	for what, dockerfile := range map[string]string{
		"the base":      "FROM " + name + "\nWORKDIR /app\nCOPY app/ /app/\n",
		"a later stage": "FROM " + image + " AS one\nWORKDIR /app\nFROM " + name + "\nCOPY --from=one /app /app/\n",
		"a variable":    "ARG BASE=" + name + "\nFROM $BASE\nWORKDIR /app\n",
		"two lines":     "FROM " + image + "\nRUN true \\\nfrom x as y\nFROM \\\n" + name + "\nWORKDIR /app\n",
	} {
		one := folder(t, map[string]string{"environment/Dockerfile": "# " + name + "\n" + dockerfile})
		if _, err := runner.Prepare(t.Context(), one, filepath.Join(t.TempDir(), "files.git")); err == nil || !strings.Contains(err.Error(), "ONBUILD") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if requests.Load() > 0 {
		t.Errorf("the engine has fetched %d times", requests.Load())
	}
	// The builder would get another image than the one that was looked at.
	one := folder(t, map[string]string{"environment/Dockerfile": "# " + name + "\nFROM --platform=linux/mips64 " + image + "\nWORKDIR /app\n"})
	if _, err := runner.Prepare(t.Context(), one, filepath.Join(t.TempDir(), "files.git")); err == nil || !strings.Contains(err.Error(), "linux/mips64") {
		t.Errorf("another platform: %v", err)
	}
	noContainers(t, engine)
}

// A build ends with the time for work.
//
//nolint:paralleltest // it lists the containers of all
func TestLimitsOfABuild(t *testing.T) {
	runner, engine := newRunner(t)
	runner.WorkTimeout = 3 * time.Second
	for what, one := range map[string]struct{ command, says string }{
		"time": {"sleep 1000", "longer than it may"},
	} {
		made := folder(t, map[string]string{"environment/Dockerfile": "# " + t.TempDir() + "\nFROM " + os.Getenv("TORYO_TEST_DOCKER_IMAGE") + "\nWORKDIR /app\nRUN " + one.command + "\n"})
		if _, err := runner.Prepare(t.Context(), made, filepath.Join(t.TempDir(), "files.git")); err == nil || !strings.Contains(err.Error(), one.says) {
			t.Errorf("%s: %v", what, err)
		}
	}
	noContainers(t, engine)
}

// Files take of the disk, however empty.
//
//nolint:paralleltest // it lists the containers of all
func TestEmptyFiles(t *testing.T) {
	runner, engine := newRunner(t)
	runner.Limits.Disk = 40 << 20
	made, from := prepare(t, runner, folder(t, map[string]string{"tests/test.sh": "#!/bin/bash\nmkdir /many; cd /many; seq 20000 | xargs touch; echo 1 > /logs/verifier/reward.txt; sleep 1000\n"}))
	if result, err := runner.Score(t.Context(), made, from, from.Base); err != nil || !strings.Contains(result.Problem, "limit of disk") {
		t.Errorf("%+v, %v", result, err)
	}
	noContainers(t, engine)
}
