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
	size    int64  // how much it writes; the first has written as much if half is set
	half    bool
	seen    chan struct{} // closed when the first was measured
	made    map[string]time.Time
	updated []string
	prints  func(say func(string))
}

func (b *builder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if parts[0] == "containers" { // asked without the client, and without a version
		parts = append([]string{""}, parts...)
	}
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
	if b.half { // the second names the first
		say(" ---> Running in " + firstOfBuild + "\n")
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
		if id == firstOfBuild && b.seen != nil {
			close(b.seen)
			b.seen = nil
		}
	default:
		size := int64(0)
		if running && id == b.writes || b.half && id == firstOfBuild {
			size = b.size
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
			b := &builder{writes: test.writes, size: 2 << 30, running: map[string]bool{ofSomebody: true, nameOfOne: true}, made: map[string]time.Time{
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

// What the containers of a build have written counts together, also that of those that have ended, and
// that of one that is named twice counts once.
func TestCommandsOfABuildThatWriteTooMuchTogether(t *testing.T) {
	t.Parallel()
	for megabytes, tooMuch := range map[int64]bool{600: true, 400: false} {
		t.Run(fmt.Sprint(megabytes), func(t *testing.T) {
			t.Parallel()
			noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
			seen := make(chan struct{})
			b := &builder{writes: secondOfBuild, size: megabytes << 20, half: true, seen: seen, running: map[string]bool{}, made: map[string]time.Time{
				firstOfBuild: noon, secondOfBuild: noon.Add(time.Second)}}
			b.prints = func(func(string)) {
				<-seen
				b.set(firstOfBuild, false)
			}
			server := httptest.NewServer(b)
			t.Cleanup(server.Close)
			engine := newEngine(t, "tcp://"+server.Listener.Addr().String(), t.TempDir(), noGate)
			_, err := engine.Build(t.Context(), sandbox.Build{Name: "x", Network: true, Timeout: 10 * time.Second, Limits: sandbox.Limits{Disk: 1 << 30}, Files: func(*tar.Writer) error { return nil }})
			if exceeded := err != nil && strings.Contains(err.Error(), "exceeded the limit of "+string(sandbox.DiskLimit)); err == nil || exceeded != tooMuch {
				t.Errorf("the build ended with %v", err)
			}
		})
	}
}
