package mirror_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/mirror"
	"github.com/toryo-dev/toryo/internal/task"
)

// A fetch that fails does not remove the unfinished pack of another fetch of the same
// mirror.
func TestAFailedFetchLeavesTheOthersAlone(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.begin(t, "task0")
	backend := s.origin.Config.Handler
	s.origin.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// What git writes while it receives.
		pack, err := os.CreateTemp(filepath.Join(s.dir(), "objects", "pack"), "tmp_pack_")
		if err != nil {
			t.Error(err)
			return
		}
		_ = pack.Close()
		answer := httptest.NewRecorder()
		backend.ServeHTTP(answer, r)
		if _, err := os.Stat(pack.Name()); err != nil {
			t.Errorf("while something is fetched: %v", err)
		}
		maps.Copy(w.Header(), answer.Header())
		w.WriteHeader(answer.Code)
		_, _ = answer.Body.WriteTo(w)
	})
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			err := s.Seed(t.Context(), mirror.Seed{
				Repository: repository, Task: task.ID(fmt.Sprint("task", n)), Generation: 1, Base: "main",
				Branches: []string{"gone"}, Commits: map[string]string{"refs/heads/gone": strings.Repeat(fmt.Sprint(n+1), 40)},
			})
			wantNoCommit(t, err, strings.Repeat(fmt.Sprint(n+1), 40))
		})
	}
	all.Wait()
}

// Whoever waits for another fetch of the mirror stops when the context ends.
func TestWaitingForAFetchEndsWithTheContext(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.begin(t, "task1")
	arrived, let := make(chan struct{}), make(chan struct{})
	var once sync.Once
	s.origin.watch = func(*http.Request) {
		once.Do(func() { close(arrived) })
		<-let
	}
	done := make(chan error, 1)
	go func() { done <- s.Fetch(t.Context(), repository, 0) }()
	<-arrived
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	err := s.Seed(ctx, mirror.Seed{Repository: repository, Task: "task1", Generation: 1, Base: "main", Refs: []string{"refs/heads/main"}})
	if err == nil || ctx.Err() == nil {
		t.Errorf("it ended with %v, %v", err, ctx.Err())
	}
	close(let)
	must(t, <-done)
}
