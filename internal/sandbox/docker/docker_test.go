package docker_test

import (
	"archive/tar"
	"context"
	"encoding/json"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/moby/moby/client"

	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/sandbox/docker"
	"github.com/toryo-dev/toryo/internal/sandbox/guest"
	"github.com/toryo-dev/toryo/internal/sandbox/sandboxtest"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
)

// The engine and the image that the tests use; scripts start and make them.
const (
	hostVariable  = "TORYO_TEST_DOCKER"
	imageVariable = "TORYO_TEST_DOCKER_IMAGE"
)

func TestMain(m *testing.M) {
	sandboxtest.Probe()
	guest.Main(nil)
	if err := os.Setenv(sandboxtest.SecretVariable, "not for the inside"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

func host(t testing.TB) string {
	t.Helper()
	if os.Getenv(hostVariable) == "" || os.Getenv(imageVariable) == "" {
		testkit.LeaveOut(t, "a Docker Engine with an image ("+hostVariable+", "+imageVariable+")")
	}
	return os.Getenv(hostVariable)
}

func newEngine(t *testing.T, host, dir string, gate sandbox.NewGate) *docker.Engine {
	t.Helper()
	engine, err := docker.New(docker.Config{Host: host, Dir: dir, Guest: testkit.Guest(), NewGate: gate, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return engine
}

type closedGate struct{}

func (closedGate) Serve(connection net.Conn) { _ = connection.Close() }
func (closedGate) SetPolicy(sandbox.Policy)  {}
func (closedGate) Close() error              { return nil }

func noGate(sandbox.Policy) sandbox.Gate { return closedGate{} }

var harness = sandboxtest.Harness{Image: os.Getenv(imageVariable), New: func(t *testing.T, dir string, gate sandbox.NewGate) sandbox.Engine {
	t.Helper()
	engine := newEngine(t, host(t), dir, gate)
	if err := engine.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	return engine
}}

//nolint:paralleltest // it measures limits, and would disturb others
func TestSuite(t *testing.T) {
	host(t)
	sandboxtest.Run(t, harness)
}

//nolint:paralleltest // it measures limits, and would disturb others
func TestChild(t *testing.T) { sandboxtest.Child(t, harness) }

func TestEngineThatIsNotThere(t *testing.T) {
	t.Parallel()
	engine := newEngine(t, "unix://"+filepath.Join(t.TempDir(), "none.sock"), t.TempDir(), noGate)
	if err := engine.Check(t.Context()); task.CodeOf(err) != task.NotReady {
		t.Errorf("check: %v", err)
	}
	if _, err := engine.Start(t.Context(), sandbox.Spec{Owner: "x", Image: "x", Workspace: t.TempDir()}); task.CodeOf(err) != task.NotReady {
		t.Errorf("start: %v", err)
	}
	if _, err := engine.List(t.Context(), "x"); task.CodeOf(err) != task.NotReady {
		t.Errorf("list: %v", err)
	}
}

// TestEngineWithoutResources: the engine passes errors of its operating system on as text.
func TestEngineWithoutResources(t *testing.T) {
	t.Parallel()
	for message, exhausted := range map[string]bool{
		"failed to create rwlayer: mkdir /var/lib/docker/overlay2/x: no space left on device": true,
		"failed to start shim: fork/exec /usr/bin/shim: cannot allocate memory":               true,
		"OCI runtime create failed: container init was OOM-killed (memory limit too low?)":    true,
		"invalid mount config": false,
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/_ping" {
				w.Header().Set("Api-Version", "1.50")
				return
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusInternalServerError)
			_ = json.NewEncoder(w).Encode(map[string]string{"message": message}) // the client may be gone
		}))
		t.Cleanup(server.Close)
		engine := newEngine(t, "tcp://"+server.Listener.Addr().String(), t.TempDir(), noGate)
		_, err := engine.Start(t.Context(), sandbox.Spec{Owner: "x", Image: "x", Workspace: t.TempDir()})
		if err == nil || !strings.Contains(err.Error(), message) || sandbox.IsExhausted(err) != exhausted {
			t.Errorf("%s: the start gave %v, a lack of resources: %t", message, err, sandbox.IsExhausted(err))
		}
	}
}

//nolint:paralleltest // it measures limits, and would disturb others
func TestImageThatIsNotThere(t *testing.T) {
	engine := newEngine(t, host(t), t.TempDir(), noGate)
	var told []string
	_, err := engine.Start(t.Context(), sandbox.Spec{Owner: "x", Image: "localhost:1/no/such:image", Workspace: t.TempDir(),
		Progress: func(message string) { told = append(told, message) }})
	// The registry does not answer: another machine may reach it.
	if task.CodeOf(err) != task.NotReady || !strings.Contains(err.Error(), "localhost:1/no/such:image") {
		t.Errorf("start: %v", err)
	}
	if len(told) == 0 || !strings.Contains(told[0], "pulling") {
		t.Errorf("told were %q", told)
	}
}

// TestEngineDiesMidCommand cuts every connection to the engine while a command
// runs, which is all that an engine's death is to this side.
//
//nolint:paralleltest // it measures limits, and would disturb others
func TestEngineDiesMidCommand(t *testing.T) {
	socket := strings.TrimPrefix(host(t), "unix://")
	between, cut := relay(t, socket)
	engine := newEngine(t, "unix://"+between, t.TempDir(), noGate)
	box, err := engine.Start(t.Context(), sandbox.Spec{Owner: "dying", Image: os.Getenv(imageVariable), Workspace: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	_, err = box.Run(t.Context(), sandbox.Command{Text: "echo begun; sleep 3600", Output: func(sandbox.Stream, []byte) { cut() }})
	if task.CodeOf(err) != task.Unavailable {
		t.Errorf("run: %v", err)
	}
	if err := box.Stop(t.Context()); task.CodeOf(err) != task.NotReady {
		t.Errorf("stop: %v", err)
	}
	// Another process comes later and finds what was left.
	later := newEngine(t, "unix://"+socket, t.TempDir(), noGate)
	if _, err := later.Reap(t.Context(), "dying", func(sandbox.Info) bool { return false }); err != nil {
		t.Errorf("reap: %v", err)
	}
	if left, err := later.List(t.Context(), "dying"); err != nil || len(left) != 0 {
		t.Errorf("left are %v, %v", left, err)
	}
}

// relay passes connections on to a socket until they are cut.
func relay(t *testing.T, to string) (address string, cut func()) {
	t.Helper()
	dir, err := os.MkdirTemp("", "relay") //nolint:usetesting // a socket's path has to be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	listener, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	context.AfterFunc(ctx, func() { _ = listener.Close() })
	var passing sync.WaitGroup
	t.Cleanup(passing.Wait)
	t.Cleanup(cancel)
	passing.Go(func() {
		for {
			inside, err := listener.Accept()
			if err != nil {
				return
			}
			outside, err := net.Dial("unix", to)
			if err != nil {
				_ = inside.Close()
				continue
			}
			stop := func() {
				_ = inside.Close()
				_ = outside.Close()
			}
			context.AfterFunc(ctx, stop)
			passing.Go(func() { _, _ = io.Copy(outside, inside); stop() })
			passing.Go(func() { _, _ = io.Copy(inside, outside); stop() })
		}
	})
	return listener.Addr().String(), cancel
}

func BenchmarkSandbox(b *testing.B) {
	address := host(b)
	sandboxtest.Benchmark(b, func(b *testing.B) sandbox.Engine {
		b.Helper()
		engine, err := docker.New(docker.Config{Host: address, Dir: b.TempDir(), NewGate: noGate, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			b.Fatal(err)
		}
		return engine
	}, os.Getenv(imageVariable))
}

// The volumes of versions that are gone do not pile up in the engine; those of
// versions that may be running stay.
//
//nolint:paralleltest // it removes volumes that another test may be making
func TestVolumesOfOtherVersionsGo(t *testing.T) {
	address := host(t)
	api, err := client.New(client.WithHost(address))
	if err != nil {
		t.Fatal(err)
	}
	const prefix = "toryo-guest-test"
	create := func(name string) {
		t.Helper()
		if _, err := api.VolumeCreate(t.Context(), client.VolumeCreateOptions{Name: name}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_, _ = api.VolumeRemove(context.WithoutCancel(t.Context()), name, client.VolumeRemoveOptions{Force: true})
		})
	}
	there := func(name string) bool {
		_, err := api.VolumeInspect(t.Context(), name, client.VolumeInspectOptions{})
		return err == nil
	}
	create(prefix + "-old")
	create("not-" + prefix)
	for _, days := range []int{0, 2} {
		engine, err := docker.New(docker.Config{Host: address, Dir: t.TempDir(), NewGate: noGate, Log: slog.New(slog.DiscardHandler),
			Now: func() time.Time { return time.Now().AddDate(0, 0, days) }})
		if err != nil {
			t.Fatal(err)
		}
		box, err := engine.Start(t.Context(), sandbox.Spec{Owner: "volumes", Image: os.Getenv(imageVariable), Workspace: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		if err := box.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got, want := there(prefix+"-old"), days == 0; got != want {
			t.Errorf("after %d days the volume is there: %v, want %v", days, got, want)
		}
	}
	if !there("not-" + prefix) {
		t.Error("a volume of somebody else was removed")
	}
}

// Agents that begin at the same time with a new version of the program, as after an upgrade,
// do not write over the program that another agent has written: containers may be about to
// run it, and who writes may be killed.
func TestAgentsBeginAtOnce(t *testing.T) {
	t.Parallel()
	address := host(t)
	version := newVersion(t)
	start := func(host string) error {
		engine, err := docker.New(docker.Config{Host: host, Dir: t.TempDir(), NewGate: noGate, Log: slog.New(slog.DiscardHandler), Guest: version})
		if err != nil {
			return err
		}
		box, err := engine.Start(t.Context(), sandbox.Spec{Owner: "upgraded", Image: os.Getenv(imageVariable), Workspace: t.TempDir()})
		if err != nil {
			return err
		}
		return box.Stop(t.Context())
	}
	late, reached, goOn := lateCopy(t, address)
	var other sync.WaitGroup
	other.Go(func() {
		if err := start(late); err == nil {
			t.Error("an agent that was cut off while it copied has begun")
		}
	})
	<-reached
	if err := start(address); err != nil {
		t.Errorf("the first agent: %v", err)
	}
	close(goOn)
	other.Wait()
	if err := start(address); err != nil {
		t.Errorf("an agent after one that was cut off: %v", err)
	}
}

// What an image has where the guest's program comes gets into no volume, which sandboxes of other
// images have too.
func TestAnImageWithAGuestOfItsOwn(t *testing.T) {
	t.Parallel()
	address := host(t)
	engine, err := docker.New(docker.Config{Host: address, Dir: t.TempDir(), Guest: newVersion(t), NewGate: noGate, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	const name = "toryo-test-guest:latest"
	lines := "FROM " + os.Getenv(imageVariable) + "\nUSER 0\nRUN mkdir -p /.toryo && touch /.toryo/whole /.toryo/more && printf '#!/bin/sh\\nexit 1\\n' > /.toryo/guest && chmod 755 /.toryo/guest\n"
	image, err := engine.Build(t.Context(), sandbox.Build{Name: name, Timeout: time.Minute, Files: func(to *tar.Writer) error {
		if err := to.WriteHeader(&tar.Header{Name: "Dockerfile", Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(lines))}); err != nil {
			return err
		}
		_, err := io.WriteString(to, lines)
		return err
	}})
	if err != nil {
		t.Fatal(err)
	}
	box, err := engine.Start(t.Context(), sandbox.Spec{Owner: "guests", Image: image, Workspace: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	result, err := box.Run(t.Context(), sandbox.Command{Text: "ls /.toryo"})
	if err != nil || strings.TrimSpace(string(result.Stdout)) != "guest\nwhole" {
		t.Errorf("the folder of the guest has %q, %v", result.Stdout, err)
	}
	if err := box.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}

// newVersion is this program in a version that no engine has seen.
func newVersion(t *testing.T) string {
	t.Helper()
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(own)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "guest")
	if err := os.WriteFile(path, append(program, path...), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// lateCopy passes requests on to an engine. The first copy of a file to a container waits
// until it may go on, and is cut off in the middle.
func lateCopy(t *testing.T, to string) (address string, reached, goOn chan struct{}) {
	t.Helper()
	reached, goOn = make(chan struct{}), make(chan struct{})
	network, place, _ := strings.Cut(to, "://")
	engine := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: "engine"}) },
		Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, place)
		}},
		ErrorLog: log.New(io.Discard, "", 0),
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			close(reached)
			<-goOn
			r.Body = io.NopCloser(io.MultiReader(io.LimitReader(r.Body, 1<<20), iotest.ErrReader(io.ErrUnexpectedEOF)))
		}
		engine.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return "tcp://" + server.Listener.Addr().String(), reached, goOn
}
