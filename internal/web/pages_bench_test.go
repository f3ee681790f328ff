package web

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"

	"github.com/toryo-dev/toryo/internal/broker"
	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
)

// weigh adds up what the page that is open has cost: bytes with headers, requests
// without the live connection, and the time to its first byte.
const weigh = `(() => {
	const all = [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")].filter(e => !e.name.includes("/live"));
	return [all.reduce((sum, e) => sum + e.transferSize, 0), all.length, performance.getEntriesByType("navigation")[0].responseStart];
})()`

// BenchmarkPageWeight loads every page with an empty cache.
func BenchmarkPageWeight(b *testing.B) {
	h, paths := furnished(b)
	root := h.window(b, "root")
	root.Allowed = []string{"404"}
	root.Run("empty the cache", network.Enable(), network.SetCacheDisabled(true))
	for _, name := range slices.Sorted(maps.Keys(paths)) {
		b.Run(name, func(b *testing.B) {
			var bytes, requests, first float64
			for b.Loop() {
				root.Open(paths[name])
				weight := get[[]float64](root, weigh)
				bytes, requests, first = weight[0], weight[1], weight[2]
			}
			b.ReportMetric(bytes/1000, "kB")
			b.ReportMetric(requests, "requests")
			b.ReportMetric(first, "first-byte-ms")
		})
	}
}

// BenchmarkEventToScreen measures from an entry in the database to an entry on the
// screen: with the interval of looking that installations have, and with the notifier
// that rings when the database tells of something.
func BenchmarkEventToScreen(b *testing.B) {
	for _, way := range []string{"looking", "notifier"} {
		b.Run(way, func(b *testing.B) {
			notifier := new(broker.Notifier)
			h := newHouse(b, func(o *Options) {
				o.LookEvery = 0
				if way == "notifier" {
					o.Listen = notifier.ListenToJournal
				}
			})
			b.Cleanup(notifier.Follow(h.store))
			measureScreen(b, h)
		})
	}
}

func measureScreen(b *testing.B, h *house) {
	b.Helper()
	one := h.runningTask(b, 1, "A run")
	run := h.journal(b, one)
	vera := h.window(b, "vera")
	vera.Open("/tasks/" + string(one.ID))
	vera.IsLive()
	n := 0
	for b.Loop() {
		n++
		text := fmt.Sprintf("entry %d.", n)
		seen := make(chan error, 1)
		go func() {
			seen <- vera.Notices(fmt.Sprintf(`document.querySelector("#journal").textContent.includes(%s)`, testkit.Quoted(text)))
		}()
		run.add(task.NoteTaken, phase.Entry{Text: text})
		must(b, <-seen)
	}
}

// BenchmarkLivePages measures how long an entry takes to reach 500 open pages.
func BenchmarkLivePages(b *testing.B) {
	const pages = 500
	h := newHouse(b, func(o *Options) { o.LookEvery = 0 })
	one := h.runningTask(b, 1, "A run")
	run := h.journal(b, one)
	ctx, stop := context.WithCancel(b.Context())
	defer stop()
	vera := h.visitor(b, "vera")
	vera.client.Transport = &http.Transport{MaxConnsPerHost: 0}
	lines := make(chan string, pages)
	var open sync.WaitGroup
	for range pages {
		open.Add(1)
		go func() {
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, h.web.URL+"/tasks/"+string(one.ID)+"/live?since=2", nil)
			if err != nil {
				b.Error(err)
			}
			answer, err := vera.client.Do(request)
			open.Done()
			if err != nil {
				b.Error(err)
				return
			}
			defer func() { _ = answer.Body.Close() }()
			for scanner := bufio.NewScanner(answer.Body); scanner.Scan(); {
				if text := scanner.Text(); strings.HasPrefix(text, "id: ") {
					select {
					case lines <- text:
					case <-ctx.Done():
					}
				}
			}
		}()
	}
	open.Wait()
	var longest time.Duration
	for b.Loop() {
		begun := time.Now()
		run.add(task.NoteTaken, phase.Entry{Text: "news"})
		for range pages {
			<-lines
		}
		longest = max(longest, time.Since(begun))
	}
	b.ReportMetric(float64(longest.Milliseconds()), "slowest-ms")
}
