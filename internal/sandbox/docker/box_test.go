package docker

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/task"
)

// TestStandardErrorWithoutResources: what the guest printed before it ended tells a lack of
// resources.
func TestStandardErrorWithoutResources(t *testing.T) {
	t.Parallel()
	for printed, exhausted := range map[string]bool{
		"fork/exec /bin/sh: No space left on device\n": true, "exec format error\n": false, "": false,
	} {
		var made box
		if _, err := made.stderr.Write([]byte(printed)); err != nil {
			t.Fatal(err)
		}
		err := made.explain(task.Errorf(task.Unavailable, "the sandbox did not begin"))
		if task.CodeOf(err) != task.Unavailable || sandbox.IsExhausted(err) != exhausted {
			t.Errorf("%q: %v, a lack of resources: %t", printed, err, sandbox.IsExhausted(err))
		}
	}
}

// images is an engine that can only make and remove images of containers.
type images struct {
	t     *testing.T
	full  bool // no image can be made
	has   func(key string) bool
	count atomic.Int64
}

const testKey = "key-of-a-test"

func (i *images) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	status, body := http.StatusNotFound, `{"message":"there is none"}`
	switch isCommit := strings.HasSuffix(r.URL.Path, "/commit"); {
	case r.URL.Path == "/_ping":
		w.Header().Set("Api-Version", "1.50")
		return
	case isCommit && !i.has(testKey):
		i.t.Error("an image is made, and there is no folder")
	case isCommit && i.full:
		status, body = http.StatusInternalServerError, `{"message":"no space left on device"}`
	case isCommit:
		i.count.Add(1)
		status, body = http.StatusCreated, `{"Id":"sha256:1"}`
	case r.Method == http.MethodDelete && i.count.Load() > 0:
		i.count.Add(-1)
		status, body = http.StatusOK, "[]"
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body) // the client may be gone
}

// TestNoImageWithoutAFolder: an image of a snapshot is made only when its folder is there, so that
// whatever ends the agent meanwhile, no image stays that nobody finds. If there is no image, the
// folder goes too.
func TestNoImageWithoutAFolder(t *testing.T) {
	t.Parallel()
	for what, fails := range map[string]struct{ folder, image bool }{
		"both can be kept": {}, "no folder": {folder: true}, "no image": {image: true},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			images := &images{t: t, full: fails.image}
			server := httptest.NewServer(images)
			t.Cleanup(server.Close)
			engine, err := New(Config{Host: "tcp://" + server.Listener.Addr().String(), Dir: t.TempDir(), Guest: "unused", Log: slog.New(slog.DiscardHandler),
				NewGate: func(sandbox.Policy) sandbox.Gate { return nil }})
			if err != nil {
				t.Fatal(err)
			}
			images.has = engine.store.Has
			workspace := t.TempDir()
			if fails.folder { // there is nothing to make one of
				workspace = filepath.Join(workspace, "gone")
			}
			made := &box{engine: engine, info: sandbox.Info{ID: "c1"}, spec: sandbox.Spec{Workspace: workspace, Limits: sandbox.Defaults}}
			_, err = made.Snapshot(t.Context(), testKey, nil)
			good := !fails.folder && !fails.image
			if (err == nil) != good || (images.count.Load() == 1) != good || engine.store.Has(testKey) != good {
				t.Errorf("it gave %v; %d images, a folder: %t", err, images.count.Load(), engine.store.Has(testKey))
			}
		})
	}
}
