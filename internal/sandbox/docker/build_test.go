package docker_test

import (
	"archive/tar"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/task"
)

const (
	firstOfBuild  = "aaaaaaaaaaaa"
	secondOfBuild = "bbbbbbbbbbbb"
	ofNobody      = "cccccccccccc"
	ofSomebody    = "dddddddddddd"
	nameOfOne     = "deadbeefcafe"
)

// builder is an engine that builds an image of two commands. Of the first it says what a test has it
// print; the last that begins writes without end.
type builder struct {
	mutex   sync.Mutex
	running map[string]bool
	writes  string // the container that does
	made    map[string]time.Time
	updated []string
	prints  func(say func(string))
}

func (b *builder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/") // after the version
	switch {
	case r.URL.Path == "/_ping":
		w.Header().Set("Api-Version", "1.50")
	case parts[1] == "build":
		b.build(w, r)
	case parts[1] == "containers":
		b.container(w, parts[2], parts[3])
	default:
		w.WriteHeader(http.StatusNotFound) // there are no images
		_, _ = w.Write([]byte(`{"message": "none"}`))
	}
}

func (b *builder) build(w http.ResponseWriter, r *http.Request) {
	say := func(text string) {
		_, _ = fmt.Fprintf(w, "{\"stream\": %q}\n", text) // the client may be gone
		_ = http.NewResponseController(w).Flush()
	}
	begin := func(id string) {
		b.set(id, true)
		say(" ---> Running in " + id + "\n")
	}
	begin(firstOfBuild)
	b.prints(say)
	if b.writes == secondOfBuild {
		b.set(firstOfBuild, false)
		begin(secondOfBuild)
	}
	<-r.Context().Done()
}

func (b *builder) set(id string, running bool) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.running[id] = running
}

func (b *builder) container(w http.ResponseWriter, id, what string) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	made, known := b.made[id]
	running := b.running[id]
	switch {
	case !known:
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"message": "none"}`)) // the client may be gone
	case what == "update":
		b.updated = append(b.updated, id)
		_, _ = w.Write([]byte("{}"))
	case what == "changes":
		_, _ = w.Write([]byte("[]"))
	default:
		size := 0
		if running && id == b.writes {
			size = 2 << 30
		}
		of := map[bool]string{true: ofNobody, false: id}[id == nameOfOne]
		_, _ = fmt.Fprintf(w, `{"Id": "%s", "Created": "%s", "SizeRw": %d, "State": {"Running": %t, "Status": "%s"}}`,
			of+strings.Repeat("0", 52), made.Format(time.RFC3339Nano), size, running, map[bool]string{true: "running", false: "exited"}[running])
	}
}

// A command of a build can print what the builder prints of the next one. That keeps no limit from those
// that come after it, and reaches no container that was there before.
func TestACommandOfABuildThatNamesAnother(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		named  string
		made   time.Time
		ended  bool   // when it names the other
		writes string // who does
	}{
		"none":                            {"", noon, false, secondOfBuild},
		"one that is not there":           {ofNobody, noon, false, firstOfBuild},
		"one that is not there at end":    {ofNobody, noon, true, secondOfBuild},
		"an older one":                    {ofSomebody, noon.Add(-time.Hour), false, firstOfBuild},
		"an older one, at its end":        {ofSomebody, noon.Add(-time.Hour), true, secondOfBuild},
		"a newer one":                     {ofSomebody, noon.Add(time.Hour), false, firstOfBuild},
		"a newer one, at its end":         {ofSomebody, noon.Add(time.Hour), true, secondOfBuild},
		"the name of one, and not its ID": {nameOfOne, noon, true, secondOfBuild},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &builder{writes: test.writes, running: map[string]bool{ofSomebody: true, nameOfOne: true}, made: map[string]time.Time{
				firstOfBuild: noon, secondOfBuild: noon.Add(time.Second), ofSomebody: test.made, nameOfOne: noon.Add(time.Second)}}
			b.prints = func(say func(string)) {
				if test.named != "" {
					b.set(firstOfBuild, !test.ended)
					say(" ---> Running in " + test.named + "\n")
				}
			}
			server := httptest.NewServer(b)
			t.Cleanup(server.Close)
			engine := newEngine(t, "tcp://"+server.Listener.Addr().String(), t.TempDir(), noGate)
			_, err := engine.Build(t.Context(), sandbox.Build{Name: "x", Network: true, Timeout: 20 * time.Second, Limits: sandbox.Limits{Disk: 1 << 30}, Files: func(*tar.Writer) error { return nil }})
			if task.CodeOf(err) != task.Invalid || !strings.Contains(err.Error(), "exceeded the limit of "+string(sandbox.DiskLimit)) {
				t.Errorf("the build ended with %v", err)
			}
			b.mutex.Lock()
			defer b.mutex.Unlock()
			if !slices.Contains(b.updated, firstOfBuild) || !slices.Contains(b.updated, test.writes) {
				t.Errorf("only %v were limited", b.updated)
			}
			if slices.Contains(b.updated, nameOfOne) || slices.Contains(b.updated, ofSomebody) && test.made.Before(noon) {
				t.Errorf("limited were %v, also one of somebody else", b.updated)
			}
		})
	}
}
