package broker_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/broker"
	"github.com/toryo-dev/toryo/internal/broker/assignment"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/outbox"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/store/postgres"
	"github.com/toryo-dev/toryo/internal/store/sqlite"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
)

// onBoth runs a test on both databases. Open may be called several times: on
// PostgreSQL each is a server of its own.
func onBoth(t *testing.T, test func(t *testing.T, open func() store.Store)) {
	t.Helper()
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		path := testkit.SQLite(t, sqlite.Open)
		test(t, func() store.Store { return opened(t, sqlite.Open, path) })
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		url := testkit.Postgres(t)
		test(t, func() store.Store { return opened(t, postgres.Open, url) })
	})
}

func opened(t *testing.T, open func(context.Context, string) (store.Store, error), address string) store.Store {
	t.Helper()
	s, err := open(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// looks counts how often the queue is looked at.
type looks struct {
	store.Leases
	count atomic.Int64
}

func (l *looks) HandOut(ctx context.Context, now time.Time, each int, choose func(store.Queue) []store.Claim, effects store.Effects) ([]task.Task, error) {
	l.count.Add(1)
	return l.Leases.HandOut(ctx, now, each, choose, effects)
}

func labels(task.Forge) task.LabelNames { return task.DefaultLabelNames() }

// handsOut starts a hand-out on a database. Change may change its options.
func handsOut(t *testing.T, s store.Store, change ...func(*broker.HandOutOptions)) (*broker.HandOut, *looks) {
	t.Helper()
	counted := &looks{Leases: s}
	options := broker.HandOutOptions{
		Leases: counted, Known: s, Tasks: s, Notices: s, Lease: time.Minute, Renew: 15 * time.Second, MaxAttempts: 3, Events: s, Labels: labels, Outbox: s,
		Token: func(id task.ID, generation int64) string { return fmt.Sprint(id, "/", generation) },
		Hash:  func(token string) []byte { return []byte(token) },
		Prepare: func(_ context.Context, given assignment.Assignment) (assignment.Assignment, error) {
			return given, nil
		},
		Now: time.Now,
	}
	for _, c := range change {
		c(&options)
	}
	h := broker.NewHandOut(options)
	h.Start(t.Context())
	t.Cleanup(h.Stop)
	return h, counted
}

var itemNumbers atomic.Int64

func assignTask(t *testing.T, s store.Store, change ...func(*store.NewTask)) task.Task {
	t.Helper()
	want := store.NewTask{
		Key:  task.Key{Forge: task.Board, Repository: "team/app", Kind: task.Issue, Number: itemNumbers.Add(1)},
		Type: task.Development, Title: "x", Reason: task.ReasonAssigned,
	}
	for _, c := range change {
		c(&want)
	}
	made, queued, err := s.Assign(t.Context(), want, nil)
	if err != nil || !queued {
		t.Fatalf("queued %v, %v", queued, err)
	}
	return made
}

// long is longer than any test waits.
const long = 5 * time.Minute

// asked is an agent that waits for a task.
type asked chan assignment.Assignment

func ask(t *testing.T, h *broker.HandOut, agent string) asked {
	t.Helper()
	given := make(asked, 1)
	go func() {
		made, found, err := h.Request(t.Context(), broker.Asker{Agent: agent}, long)
		if err != nil {
			t.Error(err)
		}
		if found {
			given <- *made
		}
	}()
	return given
}

func (a asked) get(t *testing.T) assignment.Assignment {
	t.Helper()
	select {
	case made := <-a:
		return made
	case <-time.After(5 * time.Minute):
		t.Fatal("the agent was given nothing")
		return assignment.Assignment{}
	}
}

// until waits until something is so.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for !is() {
		select {
		case <-ctx.Done():
			t.Fatalf("not within a minute: %s", what)
		case <-ticker.C:
		}
	}
}

func TestATaskReachesWhoWaits(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func() store.Store) {
		t.Helper()
		s := open()
		h, counted := handsOut(t, s)
		waiting := ask(t, h, "a")
		until(t, "the agent waits, and the queue was looked at for it", func() bool { return h.Waiting() == 1 && counted.count.Load() >= 1 })
		x := assignTask(t, s)
		made := waiting.get(t)
		if made.Task.ID != x.ID || made.Task.Generation != 1 || made.Task.Lease.Agent != "a" || made.Was != task.ReasonAssigned {
			t.Errorf("given %+v", made)
		}
		held, err := s.Task(t.Context(), x.ID)
		if err != nil || held.State != task.Running {
			t.Errorf("the task is %s, %v", held.State, err)
		}
		if err := s.Holds(t.Context(), x.ID, 1, []byte(made.Token)); err != nil {
			t.Errorf("the token does not hold it: %v", err)
		}
		pending, err := s.PendingActions(t.Context(), x.Key)
		if err != nil || len(pending) != 1 || pending[0].Kind != (outbox.StateLabel{}).Kind() {
			t.Errorf("the label is %+v, %v", pending, err)
		}
		// Without anything that happens nobody looks: the only looks are those of
		// the listening that began, of the agent that came and of the task.
		if count := counted.count.Load(); count > 5 {
			t.Errorf("the queue was looked at %d times", count)
		}
	})
}

func TestTheWaitEnds(t *testing.T) {
	t.Parallel()
	s := opened(t, sqlite.Open, testkit.SQLite(t, sqlite.Open))
	h, _ := handsOut(t, s)
	if _, found, err := h.Request(t.Context(), broker.Asker{Agent: "a"}, time.Millisecond); found || err != nil {
		t.Errorf("found %v, %v", found, err)
	}
	ended := make(chan bool)
	go func() {
		_, found, _ := h.Request(t.Context(), broker.Asker{Agent: "a"}, long)
		ended <- found
	}()
	until(t, "the agent waits", func() bool { return h.Waiting() == 1 })
	h.Drain()
	if <-ended {
		t.Error("a task was found")
	}
	h.Drain() // twice is once
	if h.Waiting() != 0 {
		t.Errorf("%d agents wait", h.Waiting())
	}
}

// Many agents and many tasks: each task is given once, each agent gets one.
func TestManyWait(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func() store.Store) {
		t.Helper()
		const agents, tasks = 400, 300
		s := open()
		h, _ := handsOut(t, s)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var mu sync.Mutex
		given := map[task.ID]string{}
		var all sync.WaitGroup
		for i := range agents {
			all.Go(func() {
				made, found, err := h.Request(ctx, broker.Asker{Agent: fmt.Sprint("agent ", i)}, long)
				if err != nil {
					t.Error(err)
				}
				if !found {
					return
				}
				mu.Lock()
				defer mu.Unlock()
				if other := given[made.Task.ID]; other != "" {
					t.Errorf("given to %s and to %s", other, made.Task.Lease.Agent)
				}
				given[made.Task.ID] = made.Task.Lease.Agent
				if len(given) == tasks {
					cancel() // the others would wait on
				}
			})
		}
		for i := range tasks {
			assignTask(t, s, func(w *store.NewTask) { w.Key.Repository = fmt.Sprint("team/", i%7) })
		}
		all.Wait()
		if len(given) != tasks {
			t.Errorf("%d of %d tasks were given", len(given), tasks)
		}
		holders := map[string]bool{}
		for _, agent := range given {
			holders[agent] = true
		}
		if len(holders) != tasks {
			t.Errorf("%d agents have %d tasks", len(holders), tasks)
		}
	})
}

// Agents that come while there is nothing to do cost no query, and get what comes.
func TestNothingToDoCostsNothing(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func() store.Store) {
		t.Helper()
		const agents = 200
		s := open()
		h, looks := handsOut(t, s)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		given := make(chan assignment.Assignment, agents)
		var all sync.WaitGroup
		wait := func() {
			before := h.Waiting()
			all.Go(func() {
				if made, found, err := h.Request(ctx, broker.Asker{Agent: "agent"}, long); found && err == nil {
					given <- *made
				}
			})
			until(t, "it waits", func() bool { return h.Waiting() > before })
		}
		wait()
		until(t, "the queue was looked at", func() bool { return looks.count.Load() > 0 })
		for range agents - 1 {
			wait()
		}
		if looked := looks.count.Load(); looked > agents/2 {
			t.Errorf("%d looks at an empty queue for %d agents", looked, agents)
		}
		x := assignTask(t, s)
		if made := <-given; made.Task.ID != x.ID {
			t.Errorf("given %s, want %s", made.Task.ID, x.ID)
		}
		cancel()
		all.Wait()
	})
}

// A queue of blocked tasks is as good as empty, until one of them is blocked no more.
func TestUnblockedTaskIsGiven(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func() store.Store) {
		t.Helper()
		s := open()
		h, looks := handsOut(t, s)
		x := assignTask(t, s, func(w *store.NewTask) { w.BlockedBy = task.KeysOf(w.Key) })
		waiting := ask(t, h, "agent")
		until(t, "the queue was looked at", func() bool { return looks.count.Load() > 0 })
		if err := s.Describe(t.Context(), x.ID, store.Description{Role: x.Role, Title: x.Title, URL: x.URL}); err != nil {
			t.Fatal(err)
		}
		if made := waiting.get(t); made.Task.ID != x.ID {
			t.Errorf("given %s, want %s", made.Task.ID, x.ID)
		}
	})
}

// A queue that was seen empty is not taken for empty any more when the time of its tasks has come, and
// fewer agents than tasks were waiting.
func TestMoreThanOneComesReady(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func() store.Store) {
		t.Helper()
		s := open()
		h, looks := handsOut(t, s)
		ready := time.Now().Add(500 * time.Millisecond)
		for range 2 {
			assignTask(t, s, func(w *store.NewTask) { w.ReadyAt = ready })
		}
		first := ask(t, h, "first")
		until(t, "the queue was looked at", func() bool { return looks.count.Load() > 0 })
		given := first.get(t).Task.ID
		if other := ask(t, h, "second").get(t).Task.ID; other == given {
			t.Errorf("%s is given twice", given)
		}
	})
}

// Several servers on one database: a task that came in at one reaches an agent that
// waits at another, and no limit is passed between them.
func TestTwoServers(t *testing.T) {
	t.Parallel()
	url := testkit.Postgres(t)
	one, two := opened(t, postgres.Open, url), opened(t, postgres.Open, url)
	limit := func(o *broker.HandOutOptions) { o.Limits = broker.Limits{PerRepository: 2} }
	first, _ := handsOut(t, one, limit)
	second, _ := handsOut(t, two, limit)
	waiting := ask(t, second, "far")
	until(t, "the agent waits", func() bool { return second.Waiting() == 1 })
	x := assignTask(t, one, func(w *store.NewTask) { w.Key.Repository = "team/far" })
	if made := waiting.get(t); made.Task.ID != x.ID {
		t.Fatalf("given %s", made.Task.ID)
	}

	var agents []asked
	for i := range 6 {
		agents = append(agents, ask(t, first, fmt.Sprint("one ", i)), ask(t, second, fmt.Sprint("two ", i)))
	}
	for range 8 {
		assignTask(t, one)
	}
	running := func() []task.Task {
		found, err := one.ListTasks(t.Context(), store.TaskFilter{States: []task.State{task.Running}, Repository: "team/app"})
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	given := map[task.ID]bool{}
	for len(given) < 8 {
		until(t, "two tasks run", func() bool { return len(running()) == 2 || len(given) >= 7 })
		for _, a := range agents {
			select {
			case made := <-a:
				if now := running(); len(now) > 2 {
					t.Fatalf("%d tasks run together", len(now))
				}
				given[made.Task.ID] = true
				if _, err := two.Move(t.Context(), store.Change{Task: made.Task.ID, Trigger: task.Finished, Reason: task.ReasonCompleted}); err != nil {
					t.Fatal(err)
				}
			default:
			}
		}
	}
}

func TestWhatCannotBePreparedGoesBack(t *testing.T) {
	t.Parallel()
	s := opened(t, sqlite.Open, testkit.SQLite(t, sqlite.Open))
	bad := assignTask(t, s, func(w *store.NewTask) { w.Priority = 5 })
	down := assignTask(t, s, func(w *store.NewTask) { w.Priority = 4 })
	good := assignTask(t, s)
	prepare := func(_ context.Context, given assignment.Assignment) (assignment.Assignment, error) {
		switch given.Task.ID {
		case bad.ID:
			return assignment.Assignment{}, task.Errorf(task.Forbidden, "no")
		case down.ID:
			return assignment.Assignment{}, &forge.Error{Err: task.Errorf(task.Unavailable, "down")}
		}
		return given, nil
	}
	h, _ := handsOut(t, s, func(o *broker.HandOutOptions) { o.Prepare = prepare })
	if made := ask(t, h, "a").get(t); made.Task.ID != good.ID {
		t.Errorf("given %s", made.Task.ID)
	}
	const wait = 30 * time.Second
	for _, id := range []task.ID{bad.ID, down.ID} {
		back, err := s.Task(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if back.State != task.Queued || back.Generation != 2 || back.Reason != task.ReasonNotPrepared || back.Attempts != 0 ||
			time.Until(back.ReadyAt) > wait || time.Until(back.ReadyAt) < 0 {
			t.Errorf("it is %+v", back)
		}
	}
	// What fails again for a reason that a person may have to deal with waits longer.
	h.Stop()
	assignTask(t, s)
	later := func() time.Time { return time.Now().Add(time.Minute) }
	h, _ = handsOut(t, s, func(o *broker.HandOutOptions) { o.Prepare, o.Now = prepare, later })
	ask(t, h, "b").get(t)
	for id, wait := range map[task.ID]time.Duration{bad.ID: 2 * time.Minute, down.ID: 30 * time.Second} {
		back, err := s.Task(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if waits := back.ReadyAt.Sub(later()); back.Generation != 3 || waits > wait || waits < wait/2 {
			t.Errorf("it waits %s: %+v", waits, back)
		}
	}
}

// A server that cannot write takes no task that it could not prepare. When it can, it goes on.
func TestServerThatCannotWrite(t *testing.T) {
	t.Parallel()
	s := opened(t, sqlite.Open, testkit.SQLite(t, sqlite.Open))
	x := assignTask(t, s)
	var tests, prepared atomic.Int64
	hangs := make(chan struct{})
	h, _ := handsOut(t, s, func(o *broker.HandOutOptions) {
		o.Able = func() error {
			switch tests.Add(1) {
			case 1:
				return errors.New("no space left on device")
			case 2:
				<-hangs
				return nil
			}
			return nil
		}
		o.Prepare = func(_ context.Context, given assignment.Assignment) (assignment.Assignment, error) {
			prepared.Add(1)
			return given, nil
		}
	})
	waiting := ask(t, h, "a")
	until(t, "the test hangs", func() bool { return tests.Load() == 2 })
	stopped := broker.NewHandOut(broker.HandOutOptions{Leases: s, Notices: s, Now: time.Now, Able: func() error { <-hangs; return nil }})
	stopped.Start(t.Context())
	_, _, _ = stopped.Request(t.Context(), broker.Asker{Agent: "b"}, time.Second) // it is given nothing
	stopped.Stop()                                                                // although the test hangs
	if prepared.Load() > 0 {
		t.Error("a task was prepared while the disk hangs")
	}
	close(hangs)
	if made := waiting.get(t); made.Task.ID != x.ID || made.Task.Generation != 1 {
		t.Errorf("given %+v after %d tests", made.Task, tests.Load())
	}
}

// An agent that is gone before it has its task does not keep it.
func TestAnAgentThatIsGone(t *testing.T) {
	t.Parallel()
	s := opened(t, sqlite.Open, testkit.SQLite(t, sqlite.Open))
	ctx, gone := context.WithCancel(t.Context())
	h, _ := handsOut(t, s, func(o *broker.HandOutOptions) {
		o.Prepare = func(ctx context.Context, given assignment.Assignment) (assignment.Assignment, error) {
			if given.Task.Lease.Agent == "gone" {
				gone()
				<-ctx.Done()
				return assignment.Assignment{}, ctx.Err()
			}
			return given, nil
		}
	})
	x := assignTask(t, s)
	if _, found, _ := h.Request(ctx, broker.Asker{Agent: "gone"}, long); found {
		t.Error("it has the task")
	}
	made := ask(t, h, "there").get(t)
	// The one that is gone may be given the task once more before it is known to be.
	if made.Task.ID != x.ID || made.Task.Generation < 2 || made.Task.Generation > 3 || made.Was != task.ReasonAgentGone || made.Task.Attempts != 1 {
		t.Errorf("given %+v", made)
	}
}

// While a task is prepared its lease does not run out, and the agent gets a whole
// one; and when the task is taken away meanwhile, the agent does not get it.
func TestTheLeaseIsKeptDuringPreparation(t *testing.T) {
	t.Parallel()
	s := opened(t, sqlite.Open, testkit.SQLite(t, sqlite.Open))
	const lease = 6 * time.Second
	prepare := make(chan func(assignment.Assignment) error, 1)
	h, _ := handsOut(t, s, func(o *broker.HandOutOptions) {
		o.Lease = lease
		o.Prepare = func(_ context.Context, given assignment.Assignment) (assignment.Assignment, error) {
			return given, (<-prepare)(given)
		}
	})
	x := assignTask(t, s)
	waiting := ask(t, h, "a")
	prepare <- func(assignment.Assignment) error {
		first, err := s.Task(t.Context(), x.ID)
		until(t, "the lease is renewed twice", func() bool {
			now, failed := s.Task(t.Context(), x.ID)
			return failed != nil || now.Lease.ExpiresAt.After(first.Lease.ExpiresAt.Add(lease/2))
		})
		return err
	}
	if made := waiting.get(t); made.Task.ID != x.ID || time.Until(made.Task.Lease.ExpiresAt) <= 0 {
		t.Errorf("given %+v", made)
	}

	y := assignTask(t, s)
	other := ask(t, h, "b")
	prepare <- func(assignment.Assignment) error {
		_, err := s.Move(t.Context(), store.Change{Task: y.ID, Trigger: task.Withdrawn, Reason: task.ReasonUnassigned})
		return err
	}
	z := assignTask(t, s)
	prepare <- func(assignment.Assignment) error { return nil }
	if made := other.get(t); made.Task.ID != z.ID {
		t.Errorf("given %s, which was taken away", made.Task.ID)
	}
}

// A database that fails for a while does not end the waiting.
func TestTheDatabaseFailsForAWhile(t *testing.T) {
	t.Parallel()
	s := opened(t, sqlite.Open, testkit.SQLite(t, sqlite.Open))
	var failures atomic.Int64
	h, _ := handsOut(t, s, func(o *broker.HandOutOptions) { o.Leases = failing{o.Leases, &failures} })
	waiting := ask(t, h, "a")
	x := assignTask(t, s)
	if made := waiting.get(t); made.Task.ID != x.ID || failures.Load() < 2 {
		t.Errorf("given %s after %d failures", made.Task.ID, failures.Load())
	}
}

type failing struct {
	store.Leases
	times *atomic.Int64
}

func (f failing) HandOut(ctx context.Context, now time.Time, each int, choose func(store.Queue) []store.Claim, effects store.Effects) ([]task.Task, error) {
	if f.times.Add(1) <= 2 {
		return nil, errors.New("down")
	}
	return f.Leases.HandOut(ctx, now, each, choose, effects)
}

// A task whose time comes while agents wait is handed out then.
func TestATaskWhoseTimeComes(t *testing.T) {
	t.Parallel()
	s := opened(t, sqlite.Open, testkit.SQLite(t, sqlite.Open))
	h, counted := handsOut(t, s)
	x := assignTask(t, s, func(w *store.NewTask) { w.ReadyAt = time.Now().Add(200 * time.Millisecond) })
	if made := ask(t, h, "a").get(t); made.Task.ID != x.ID || time.Now().Before(x.ReadyAt) {
		t.Errorf("given %s at %s", made.Task.ID, time.Now())
	}
	if count := counted.count.Load(); count > 6 {
		t.Errorf("the queue was looked at %d times", count)
	}
}
