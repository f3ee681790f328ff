package server_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/broker"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/github"
	"github.com/toryo-dev/toryo/internal/forge/transport"
	"github.com/toryo-dev/toryo/internal/items"
	"github.com/toryo-dev/toryo/internal/mirror"
	"github.com/toryo-dev/toryo/internal/task"
)

// busyHour is an hour of running tasks on a forge that knows ETags, in a time of
// its own.
type busyHour struct {
	mu       sync.Mutex
	now      time.Time
	comments map[int64][]time.Time // by issue: when someone commented
}

func (h *busyHour) Now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

func (h *busyHour) Wait(_ context.Context, d time.Duration) error {
	h.pass(d)
	return nil
}

func (h *busyHour) pass(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = h.now.Add(d)
}

func (h *busyHour) addComment(number int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.comments[number] = append(h.comments[number], h.now)
}

// ServeHTTP answers as GitHub does to the two requests that a snapshot needs.
func (h *busyHour) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/repos/o/n/issues/"), "/")
	number, err := strconv.ParseInt(parts[0], 10, 64)
	if err != nil {
		http.NotFound(w, r)
		return
	}
	const form = "2006-01-02T15:04:05Z"
	said := h.comments[number]
	updated := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	if len(said) > 0 {
		updated = said[len(said)-1]
	}
	body := fmt.Sprintf(`{"number":%d,"state":"open","title":"x","user":{"login":"alice"},"created_at":"2030-01-01T00:00:00Z","updated_at":%q}`, number, updated.Format(form))
	if len(parts) > 1 {
		var all []string
		for i, at := range said {
			all = append(all, fmt.Sprintf(`{"id":%d,"body":"x","user":{"login":"alice"},"created_at":"%[2]s","updated_at":"%[2]s"}`, i+1, at.Format(form)))
		}
		body = "[" + strings.Join(all, ",") + "]"
	}
	sum := sha256.Sum256([]byte(body))
	tag := `"` + hex.EncodeToString(sum[:8]) + `"`
	w.Header().Set("ETag", tag)
	w.Header().Set("Content-Type", "application/json")
	if r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	_, _ = w.Write([]byte(body))
}

// BenchmarkRequestsPerTaskHour counts what a running task costs the forge in an
// hour in which its agent looks at the item every ten seconds and a person
// comments three times.
func BenchmarkRequestsPerTaskHour(b *testing.B) {
	for name, webhooks := range map[string]bool{"polling": false, "webhooks": true} {
		b.Run(name, func(b *testing.B) {
			const tasks = 20
			var total transport.Counts
			for range b.N {
				hour := &busyHour{now: time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC), comments: map[int64][]time.Time{}}
				total = add(total, hour.run(b, tasks, webhooks))
			}
			each := float64(b.N * tasks)
			b.ReportMetric(float64(total.Requests)/each, "requests/task-hour")
			b.ReportMetric(float64(total.NotModified)/each, "304s/task-hour")
			b.ReportMetric(float64(total.Requests-total.NotModified)/each, "paid/task-hour")
		})
	}
}

func add(a, b transport.Counts) transport.Counts {
	a.Requests += b.Requests
	a.NotModified += b.NotModified
	return a
}

func (h *busyHour) run(b *testing.B, tasks int64, webhooks bool) transport.Counts {
	b.Helper()
	served := httptest.NewServer(h)
	defer served.Close()
	way := transport.New(transport.Options{Name: "github", Cache: broker.Answers{Store: openStore(b)}, Clock: h})
	on, err := github.New(github.Options{URL: served.URL + "/", Token: "x", HTTP: forge.HTTPClient(way)})
	must(b, err)
	snapshots := items.NewSnapshots(map[task.Forge]forge.Reader{task.GitHub: on}, items.DefaultAges, h.Now)
	defer snapshots.Stop()
	if webhooks {
		snapshots.TrustWebhooks(trusted(b, h.Now, task.GitHub, github.WebhookEvents, "o/n"))
	}
	for second := 0; second < 3600; second += 10 {
		for number := range tasks {
			key := task.Key{Forge: task.GitHub, Repository: "o/n", Kind: task.Issue, Number: number + 1}
			if second%1200 == 600 {
				h.addComment(key.Number)
				if webhooks {
					snapshots.Changed(key)
				}
			}
			got, err := snapshots.Get(b.Context(), key, snapshots.MaxAge(key))
			must(b, err)
			if webhooks && len(got.Comments) != (second+600)/1200 {
				b.Fatalf("after %d seconds the agent sees %d comments", second, len(got.Comments))
			}
		}
		h.pass(10 * time.Second)
	}
	return way.Counts()
}

// BenchmarkClone compares a clone from a real Gitea with one from the mirror of
// it, and counts the fetches that tasks on one repository cost.
func BenchmarkClone(b *testing.B) {
	p := newPlant(b)
	p.fill(b)
	key, run := p.issue(b)
	remote, err := p.forge.Remote(b.Context(), key.Repository)
	must(b, err)
	theirs := strings.Replace(remote.URL, "http://", "http://"+remote.Username+":"+remote.Password+"@", 1)
	must(b, p.mirrors.Fetch(b.Context(), p.holder.Repository, time.Minute))
	must(b, p.mirrors.Seed(b.Context(), mirror.Seed{Repository: p.holder.Repository, Task: run.ID, Base: "main"}))
	for name, address := range map[string]string{"forge": theirs, "mirror": p.address(run.ID)} {
		for _, depth := range []string{"--no-local", "--depth=1"} {
			b.Run(name+"/"+depth, func(b *testing.B) {
				for range b.N {
					git(b, "", "clone", "--quiet", "--bare", depth, address, b.TempDir())
				}
			})
		}
	}
	b.Run("fetches for 20 tasks", func(b *testing.B) {
		before := p.mirrors.Fetches()
		for range b.N {
			p.mirrors.Changed(p.holder.Repository)
			var all sync.WaitGroup
			for range 20 {
				all.Go(func() {
					if err := p.mirrors.Fetch(b.Context(), p.holder.Repository, time.Minute); err != nil {
						b.Error(err)
					}
				})
			}
			all.Wait()
		}
		b.ReportMetric(float64(p.mirrors.Fetches()-before)/float64(b.N), "fetches/op")
	})
}

// fill gives the repository some hundred files and commits.
func (p *plant) fill(t testing.TB) {
	t.Helper()
	work := t.TempDir()
	remote, err := p.forge.Remote(t.Context(), p.repository.FullName)
	must(t, err)
	git(t, "", "clone", "--quiet", strings.Replace(remote.URL, "http://", "http://"+remote.Username+":"+remote.Password+"@", 1), work)
	for i := range 300 {
		for j := range 5 {
			text := strings.Repeat(fmt.Sprintf("line %d of %d in a file that is neither small nor large\n", i*j, i), 200)
			must(t, os.WriteFile(filepath.Join(work, fmt.Sprintf("file%d.txt", (i*7+j)%400)), []byte(text), 0o600))
		}
		git(t, work, "add", "-A")
		git(t, work, "commit", "--quiet", "-m", fmt.Sprint("change ", i))
	}
	git(t, work, "push", "--quiet", "origin", "main")
}
