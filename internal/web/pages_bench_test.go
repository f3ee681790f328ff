package web

import (
	"bufio"
	"context"
	"fmt"
	"io"
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
	"github.com/toryo-dev/toryo/internal/store"
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
// that rings when the database tells of something, alone and with 100 other pages open.
func BenchmarkEventToScreen(b *testing.B) {
	for name, way := range map[string]struct {
		notifies bool
		others   int
	}{"looking": {}, "notifier": {notifies: true}, "notifier-100-pages": {true, 100}} {
		b.Run(name, func(b *testing.B) {
			notifier := new(broker.Notifier)
			h := newHouse(b, func(o *Options) {
				o.LookEvery = 0
				if way.notifies {
					o.Listen, o.Happened = notifier.ListenToJournal, notifier.Counts
				}
			})
			b.Cleanup(notifier.Follow(h.store))
			one := h.runningTask(b, 1, "A run")
			run := h.journal(b, one)
			h.follow(b, way.others, "/tasks/"+string(one.ID)+"/live?since=2", "")
			h.measureScreen(b, "/tasks/"+string(one.ID), "#journal", func(text string) {
				run.add(task.NoteTaken, phase.Entry{Text: text})
			})
		})
	}
}

// measureScreen measures until a text is on a page. Cause makes it appear.
func (h *house) measureScreen(b *testing.B, path, part string, cause func(text string)) {
	b.Helper()
	vera := h.window(b, "vera")
	vera.Open(path)
	vera.IsLive()
	n := 0
	for b.Loop() {
		n++
		text := fmt.Sprintf("entry %d.", n)
		// Events that follow each other closely share looks and requests. This one is alone.
		b.StopTimer()
		<-time.After(time.Second)
		b.StartTimer()
		seen := make(chan error, 1)
		go func() {
			seen <- vera.Notices(fmt.Sprintf(`document.querySelector(%q).textContent.includes(%s)`, part, testkit.Quoted(text)))
		}()
		cause(text)
		must(b, <-seen)
	}
}

// asServed has the order of tasks and what they wait for from the parts that a server has.
func asServed(b *testing.B, notifier *broker.Notifier) with {
	b.Helper()
	return func(o *Options) {
		database, _ := o.Store.(store.Store) // newHouse puts it there
		hands := broker.NewHandOut(broker.HandOutOptions{
			Leases: database, Known: database, Tasks: database, Notices: database, Outbox: database, Now: o.Now, Lease: time.Minute, Renew: time.Second,
		})
		hands.Start(b.Context())
		b.Cleanup(hands.Stop)
		o.Needs = (&broker.Needs{Store: database, Now: o.Now, Waits: hands.Waits}).List
		o.Turns = func(ctx context.Context, active []task.Task) (turns []Turn, err error) {
			found, err := hands.TurnsOf(ctx, active)
			for _, one := range found {
				turns = append(turns, Turn(one))
			}
			return turns, err
		}
		o.Listen, o.Happened, o.LookEvery = notifier.ListenToJournal, notifier.Counts, 0
		b.Cleanup(notifier.Follow(database))
	}
}

// BenchmarkLists measures how long the pages with lists take with 2,000 tasks in the queue.
func BenchmarkLists(b *testing.B) {
	h := newHouse(b, asServed(b, new(broker.Notifier)))
	h.many(b, 2000)
	vera := h.visitor(b, "vera")
	for name, path := range map[string]string{"home": "/", "queue": "/queue", "search": "/queue?q=task+1999&sort=-title", "agents": "/agents"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if status, _ := vera.get(path); status != http.StatusOK {
					b.Fatal(status)
				}
			}
		})
	}
}

// BenchmarkOverviewToScreen measures from a new task to its title on the list of 2,000 tasks, alone
// and while 100 others have the same page open and fetch it again too.
func BenchmarkOverviewToScreen(b *testing.B) {
	for _, others := range []int{0, 100} {
		b.Run(fmt.Sprint(others, "-others"), func(b *testing.B) {
			h := newHouse(b, asServed(b, new(broker.Notifier)))
			h.many(b, 2000)
			h.follow(b, others, "/live/tasks", "/queue?q=entry")
			number := int64(100_000)
			h.measureScreen(b, "/queue?q=entry", "main", func(text string) {
				number++
				h.assignOne(b, number, text)
			})
		})
	}
}

// follow opens pages as browsers do: a live connection each, and with every event the page again,
// if it has an address.
func (h *house) follow(b *testing.B, pages int, live, page string) {
	b.Helper()
	ctx, stop := context.WithCancel(b.Context())
	vera := h.visitor(b, "vera")
	vera.client.Transport = &http.Transport{MaxConnsPerHost: 0, MaxIdleConnsPerHost: pages}
	fetch := func(address string) (*http.Response, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, h.web.URL+address, nil)
		if err != nil {
			return nil, err
		}
		return vera.client.Do(request)
	}
	var open, all sync.WaitGroup
	for range pages {
		open.Add(1)
		all.Go(func() {
			answer, err := fetch(live)
			open.Done()
			if err != nil {
				b.Error(err)
				return
			}
			defer func() { _ = answer.Body.Close() }()
			for scanner := bufio.NewScanner(answer.Body); scanner.Scan(); {
				if page == "" || !strings.HasPrefix(scanner.Text(), "id: ") {
					continue
				}
				again, err := fetch(page)
				if err != nil {
					return // the measure is over
				}
				_, _ = io.Copy(io.Discard, again.Body)
				_ = again.Body.Close()
			}
		})
	}
	open.Wait()
	b.Cleanup(func() { stop(); all.Wait() })
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
