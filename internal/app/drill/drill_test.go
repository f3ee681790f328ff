package drill

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

func example() Drill {
	nothing := func(context.Context) error { return nil }
	return Drill{
		Servers: 3, Agents: 6, Parallel: 2, Tasks: 10, Lasts: time.Hour, Every: 3 * time.Second, SmallDisks: true, Seed: 1,
		CutDatabase: nothing, RestartDatabase: nothing, SetClock: func(context.Context, time.Duration) error { return nil },
	}
}

// A seed gives one schedule, another one another, and none kills who is to live.
func TestSchedule(t *testing.T) {
	t.Parallel()
	d := example()
	one, again := d.schedule(), d.schedule()
	if !slices.Equal(one, again) {
		t.Error("the same seed gives another schedule")
	}
	if len(one) < 1000 || len(one) > 1400 {
		t.Errorf("%d faults in an hour, every three seconds", len(one))
	}
	d.Seed = 2
	if slices.Equal(one, d.schedule()) {
		t.Error("another seed gives the same schedule")
	}
	if !slices.ContainsFunc(one, func(f fault) bool { return f.kind == databaseRestart && f.at == d.Lasts/2 }) {
		t.Error("the database is not restarted in the middle")
	}
	seen := map[kind]bool{}
	for i, f := range one {
		if off := (f.clock - ClockOff(1)).Abs(); f.kind == databaseClockSet && off > furthestStep {
			t.Errorf("the clock is set %s off", off)
		}
		seen[f.kind] = true
		if i > 0 && f.at < one[i-1].at || f.at >= d.Lasts {
			t.Errorf("fault %d is at %s", i, f.at)
		}
		killed := f.kind == agentKilled || f.kind == agentEnded || f.kind == serverKilled || f.kind == serverEnded
		if last := map[bool]int{true: 5, false: 2}[strings.Contains(string(f.kind), "agent")]; killed && f.target >= last {
			t.Errorf("the last one is killed: %+v", f)
		}
	}
	for _, c := range chances {
		if !seen[c.kind] {
			t.Errorf("there is no %s in an hour", c.kind)
		}
	}
	d.CutDatabase, d.RestartDatabase, d.SetClock, d.SmallDisks = nil, nil, nil, false
	for _, f := range d.schedule() {
		if slices.Contains([]kind{databaseCut, databaseRestart, databaseClockSet, agentDisk, serverDisk}, f.kind) {
			t.Errorf("%s is not possible, and planned", f.kind)
		}
	}
}

// right is an installation in which everything came out right.
func right(t *testing.T) findings {
	t.Helper()
	move := func(position, generation int64, to task.State) wire.Event {
		change := task.StateChange{To: to}
		if to == task.Queued {
			change.Trigger = task.Assigned
		}
		data, err := json.Marshal(change)
		if err != nil {
			t.Fatal(err)
		}
		return wire.Event{Position: position, Generation: generation, Kind: string(task.StateChanged), Data: data}
	}
	add, _ := task.DefaultLabelNames().Change(nil, task.Done)
	f := findings{journals: map[string][]wire.Event{}}
	for number := range int64(3) {
		id := fmt.Sprint("task", number)
		f.tasks = append(f.tasks, wire.Task{ID: id, Item: fmt.Sprint("#", number), State: string(task.Done)})
		f.journals[id] = []wire.Event{move(1, 1, task.Running), move(2, 2, task.Running), move(3, 2, task.Done)}
		f.forge.Issues = append(f.forge.Issues, Issue{Item: Item{"app", number}, Assigned: true, Labels: add, Comments: []string{"The work is done"}})
		branch := fmt.Sprint("toryo/", number)
		f.forge.Pulls = append(f.forge.Pulls, Pull{
			Item: Item{"app", 10 + number}, Branch: branch, Issues: []Item{{"app", number}}, Diff: fmt.Sprintf("--- /dev/null\n+++ b/done\n+task %d\n", number),
			Head: "first", Reviews: []string{"first"},
		})
		f.forge.Branches = append(f.forge.Branches, Branch{"app", branch})
	}
	f.forge.Branches = append(f.forge.Branches, Branch{"app", "main"})
	// The first pull request was reviewed, had another commit, and was reviewed again.
	f.forge.Pulls[0].Head, f.forge.Pulls[0].Reviews = "new", []string{"old", "new"}
	f.tasks = append(f.tasks, wire.Task{ID: "review", Item: "board:app!10", Type: string(task.Review), State: string(task.Done)})
	f.journals["review"] = []wire.Event{
		move(1, 1, task.Queued), move(2, 1, task.Running), move(3, 1, task.Done), move(4, 2, task.Queued), move(5, 2, task.Running), move(6, 2, task.Done),
	}
	return f
}

// Each thing that can be wrong is found.
func TestWhatIsWrongIsFound(t *testing.T) {
	t.Parallel()
	given := []Item{{"app", 0}, {"app", 1}, {"app", 2}}
	if wrong := right(t).check(given); len(wrong) > 0 {
		t.Errorf("nothing is wrong, and it says %q", wrong)
	}
	more := right(t)
	more.forge.Issues = append(more.forge.Issues, Issue{Item: Item{"app", 9}})
	if wrong := more.check(given); len(wrong) > 0 {
		t.Errorf("an issue that nobody gave to the bot is wrong: %q", wrong)
	}
	written := right(t)
	written.tasks[3].State, written.tasks[3].Reason = string(task.Stopped), string(task.ReasonReviewNotNeeded)
	if wrong := written.check(given); len(wrong) > 0 {
		t.Errorf("a review that was written by a run that is lost is wrong: %q", wrong)
	}
	for state, want := range map[task.State]bool{task.Queued: false, task.Done: false, task.Failed: true} {
		if got := endedInVain(wire.Task{Type: string(task.Review), State: string(state)}); got != want {
			t.Errorf("a review that is %s has ended in vain: %v", state, got)
		}
	}
	for want, spoil := range map[string]func(f *findings){
		"issue app#1 is lost":                 func(f *findings) { f.forge.Issues = slices.Delete(f.forge.Issues, 1, 2) },
		"3 issues for the bot, 2 tasks":       func(f *findings) { f.tasks = f.tasks[1:] },
		"#1 is failed":                        func(f *findings) { f.tasks[1].State = string(task.Failed) },
		"#1 has ended 2 times":                func(f *findings) { f.journals["task1"] = append(f.journals["task1"], again(f.journals["task1"][2])) },
		"generation 1 wrote entry 3":          func(f *findings) { f.journals["task1"][2].Generation = 1 },
		"has the position 7":                  func(f *findings) { f.journals["task1"][2].Position = 7 },
		"issue app#1 has the labels":          func(f *findings) { f.forge.Issues[1].Labels = nil },
		"issue app#1 was said to be done 2 t": func(f *findings) { f.forge.Issues[1].Comments = []string{"The work is done", "The work is done"} },
		"issue app#1 has 2 pull requests":     func(f *findings) { f.forge.Pulls[2].Issues = []Item{{"app", 1}, {"app", 2}} },
		"another change than was asked":       func(f *findings) { f.forge.Pulls[1].Diff += "+task 1\n" },
		"branch toryo/1 is of no pull":        func(f *findings) { f.forge.Pulls[1].Repository = "other" },
		"branch toryo/stray is of no pull":    func(f *findings) { f.forge.Branches = append(f.forge.Branches, Branch{"app", "toryo/stray"}) },
		"2 writes to the forge wait":          func(f *findings) { f.writes = 2 },
		"board:app!10 is stopped: unassigned": func(f *findings) {
			f.tasks[3].State, f.tasks[3].Reason = string(task.Stopped), string(task.ReasonUnassigned)
		},
		"board:app!10 has ended 3 times":   func(f *findings) { f.journals["review"] = append(f.journals["review"], again(f.journals["review"][5])) },
		"app#10 was reviewed twice at new": func(f *findings) { f.forge.Pulls[0].Reviews = []string{"old", "new", "new"} },
		"app#10 has no review of its last": func(f *findings) { f.forge.Pulls[0].Reviews = []string{"old"} },
		"app#11 has no review of its last": func(f *findings) { f.forge.Pulls[1].Reviews = nil },
	} {
		f := right(t)
		spoil(&f)
		if wrong := strings.Join(f.check(given), "\n"); !strings.Contains(wrong, want) {
			t.Errorf("want %q, got %q", want, wrong)
		}
	}
}

// A server that has had too many requests is asked again.
func TestTooManyRequests(t *testing.T) {
	t.Parallel()
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked++; asked == 1 {
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		_, _ = w.Write([]byte(`{"tasks":[{"id":"one"}]}`))
	}))
	t.Cleanup(server.Close)
	s := &site{client: &wire.Client{Server: server.URL, HTTP: server.Client()}}
	if tasks, err := s.tasks(t.Context()); err != nil || len(tasks) != 1 {
		t.Errorf("there are %v, %v", tasks, err)
	}
}

func again(event wire.Event) wire.Event {
	event.Position++
	return event
}

// What grows is found, and what levels off is not.
func TestGrowth(t *testing.T) {
	t.Parallel()
	d := example()
	for name, c := range map[string]struct {
		plot, of string
		value    func(at time.Duration) float64
		grows    bool
	}{
		"a leak":             {plotMemory, "server2", func(at time.Duration) float64 { return 50 + 100*at.Hours() }, true},
		"levelled off":       {plotMemory, "server2", func(at time.Duration) float64 { return 150 * min(1, 10*at.Hours()) }, false},
		"of one that ends":   {plotMemory, "server0", func(at time.Duration) float64 { return 1000 * at.Hours() }, false},
		"goroutines":         {plotGoroutines, "server2", func(at time.Duration) float64 { return 1000 * at.Hours() }, true},
		"descriptors":        {plotDescriptors, "agent5", func(at time.Duration) float64 { return 1000 * at.Hours() }, true},
		"disk of an agent":   {plotDisk, "agent0", func(at time.Duration) float64 { return 1000 * at.Hours() }, true},
		"disk of the server": {plotDisk, "server2", func(at time.Duration) float64 { return 1000 * at.Hours() }, false},
	} {
		u := newUsage(&site{drill: d}, time.Now())
		of := u.seriesOf(c.plot, c.of)
		for at := time.Duration(0); at < d.Lasts; at += time.Minute {
			of.Points = append(of.Points, point{at, c.value(at)})
		}
		if wrong := u.growth(d); (len(wrong) > 0) != c.grows {
			t.Errorf("%s: %q", name, wrong)
		}
	}
}

// The report has what happened, and what is untrusted in it does nothing.
func TestReport(t *testing.T) {
	t.Parallel()
	d := example()
	u := newUsage(&site{drill: d}, time.Now())
	u.add(plotMemory, "server0", 12)
	u.add(plotMemory, "server0", 24)
	done := new(tally)
	done.add(fault{at: time.Second, kind: agentDisk, target: 3, lasts: 2 * time.Second})
	r := &Result{Wrong: []string{"pull request 1 has another change: <script>alert(1)</script>"}, drill: d, tally: done, usage: u, found: right(t)}
	var page bytes.Buffer
	if err := r.WriteHTML(&page); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"seed 1", "Not right: 1", "&lt;script&gt;", "<polyline", "disk of an agent full for a while", "agent3", "4 done", "Memory (MiB)"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the report lacks %q", want)
		}
	}
	r.Wrong = nil
	for checked, want := range map[bool]string{false: "The drill was cut short.", true: "Everything came out right."} {
		r.Checked = checked
		page.Reset()
		if err := r.WriteHTML(&page); err != nil || !strings.Contains(page.String(), want) {
			t.Errorf("the report lacks %q, %v", want, err)
		}
		if says := strings.Contains(page.String(), "Everything came out right."); says != checked {
			t.Errorf("checked %v: it says that everything is right: %v", checked, says)
		}
	}
	if strings.Contains(page.String(), "<script>") || strings.Contains(page.String(), "ZgotmplZ") {
		t.Errorf("the report has something that it should not have: %s", page.String())
	}
}

// A request that is held back goes on when a later one has got through; one that is sent once
// more has the same content, and the agent hears of the first only.
func TestLineOutOfOrder(t *testing.T) {
	t.Parallel()
	l := &line{passed: make(chan struct{}), closed: make(chan struct{}), random: rand.New(rand.NewPCG(1, 1))}
	var mu sync.Mutex
	var arrived []string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		arrived = append(arrived, string(body))
	}))
	t.Cleanup(server.Close)
	address, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	l.servers = []*url.URL{address}
	request := func(text string) *http.Request {
		return httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/tasks/x/events", strings.NewReader(text))
	}
	held := make(chan struct{})
	go func() {
		defer close(held)
		l.letPass(request("held"))
	}()
	select {
	case <-held:
		t.Error("nothing has passed, and it goes on")
	case <-time.After(50 * time.Millisecond):
	}
	l.calm.Store(true) // nothing happens to this one
	l.ServeHTTP(httptest.NewRecorder(), request("later"))
	<-held
	l.repeatAfter(l.copied(request("again")), 0)
	l.late.Wait()
	if want := []string{"later", "again"}; !slices.Equal(arrived, want) {
		t.Errorf("there came %q, want %q", arrived, want)
	}
}

// Each fault happens to requests, and an agent's request for a task comes once.
func TestLine(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var arrived []string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		arrived = append(arrived, r.URL.Path+" "+string(body))
	}))
	t.Cleanup(server.Close)
	address, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	l, err := newLine([]*url.URL{address}, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	const requests = 1000 // so many that each fault happens
	var group errgroup.Group
	group.SetLimit(30)
	for i := range requests {
		group.Go(func() error {
			path := "/v1/tasks/x/events"
			if i%2 == 1 {
				path = "/v1/tasks/request"
			}
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, l.url()+path, strings.NewReader(fmt.Sprint(i)))
			if err != nil {
				return err
			}
			if answer, err := new(http.Client).Do(request); err == nil { // some are refused
				_ = answer.Body.Close()
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	f := &l.faults
	if f.requests.Load() < requests || f.refused.Load() == 0 || f.lost.Load() == 0 || f.delayed.Load() == 0 || f.overtaken.Load() == 0 || f.doubled.Load() == 0 || f.repeated.Load() == 0 {
		t.Errorf("something did not happen: %+v", f)
	}
	if err := l.close(); err != nil {
		t.Error(err)
	}
	mu.Lock()
	defer mu.Unlock()
	times := map[string]int{}
	for _, one := range arrived {
		times[one]++
	}
	twice := 0
	for one, count := range times {
		if count > 1 {
			twice++
		}
		if strings.HasPrefix(one, "/v1/tasks/request") && count > 1 {
			t.Errorf("a request for a task came %d times", count)
		}
	}
	if twice == 0 {
		t.Error("nothing came twice")
	}
}
