package storetest

import (
	"errors"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// Fresh makes an empty database for a test and returns how to open it. It may be
// opened several times. Whoever opens a store here closes it.
type Fresh func(t *testing.T) (open func() store.Store)

// check is one rule of the port.
type check struct {
	rule string
	hold func(t *testing.T, s store.Store)
}

// Run checks an adapter against the port, each rule on a database of its own.
func Run(t *testing.T, fresh Fresh) {
	areas := map[string][]check{
		"Runs": runChecks, "Halts": haltChecks, "CommentLog": commentChecks, "Notifications": notificationChecks,
		"Tasks":       taskChecks,
		"Find":        findChecks,
		"Queue":       queueChecks,
		"Servers":     serverChecks,
		"Leases":      leaseChecks,
		"Processes":   processChecks,
		"Restores":    restoreChecks,
		"Refs":        refsChecks,
		"Receipts":    receiptChecks,
		"Events":      eventChecks,
		"Outbox":      outboxChecks,
		"Coalescing":  coalesceChecks,
		"ForgeCache":  cacheChecks,
		"Deliveries":  deliveryChecks,
		"Webhooks":    webhookChecks,
		"Spending":    spendingChecks,
		"Reviews":     reviewChecks,
		"Threads":     threadChecks,
		"Board":       boardChecks,
		"BoardTalk":   boardTalkChecks,
		"BoardPeople": boardPeopleChecks,
		"Tokens":      tokenChecks,
		"Agents":      agentChecks,
		"Backlogs":    backlogChecks,
		"Users":       userChecks,
		"SavedLinks":  linkChecks,
		"People":      peopleChecks,
		"Retention":   retentionChecks,
		"Statistics":  statisticsChecks,
		"Memory":      memoryChecks,
		"Values":      valueChecks,
	}
	for area, checks := range areas {
		t.Run(area, func(t *testing.T) {
			t.Parallel()
			for _, c := range checks {
				t.Run(c.rule, func(t *testing.T) {
					t.Parallel()
					c.hold(t, opened(t, fresh(t)))
				})
			}
		})
	}
	t.Run("Reopen", func(t *testing.T) {
		t.Parallel()
		reopen(t, fresh(t))
	})
	t.Run("Overspend", func(t *testing.T) {
		t.Parallel()
		overspend(t, fresh(t))
	})
	t.Run("Walk", func(t *testing.T) {
		t.Parallel()
		walk(t, opened(t, fresh(t)))
	})
}

func opened(t *testing.T, open func() store.Store) store.Store {
	t.Helper()
	s := open()
	t.Cleanup(func() { must(t, s.Close()) })
	return s
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// got returns the value of a call that must not fail.
func got[T any](t testing.TB) func(T, error) T {
	t.Helper()
	return func(value T, err error) T {
		t.Helper()
		must(t, err)
		return value
	}
}

func wantCode(t testing.TB, err error, code task.Code) {
	t.Helper()
	if task.CodeOf(err) != code {
		t.Fatalf("error has the code %q, want %q: %v", task.CodeOf(err), code, err)
	}
}

func wantIllegal(t testing.TB, err error) {
	t.Helper()
	if _, illegal := errors.AsType[*task.IllegalMoveError](err); !illegal {
		t.Fatalf("error is %v, want an illegal move", err)
	}
}

func equal[T any](t testing.TB, is, want T) {
	t.Helper()
	if !reflect.DeepEqual(is, want) {
		t.Fatalf("is\n%+v\nwant\n%+v", is, want)
	}
}

// together calls do n times at once.
func together(n int, do func(i int)) {
	var all sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		all.Go(func() {
			<-start
			do(i)
		})
	}
	close(start)
	all.Wait()
}

// noon is a moment of no meaning.
var noon = time.Date(2031, 5, 6, 12, 0, 0, 0, time.UTC)

var numbers atomic.Int64

// newKey is the key of an item that no other test uses.
func newKey() task.Key {
	return task.Key{Forge: task.GitHub, Repository: "owner/name", Kind: task.Issue, Number: numbers.Add(1)}
}

func newTaskOn(key task.Key) store.NewTask {
	return store.NewTask{
		Key: key, Type: task.Development, Role: "BACKENDCODER", Title: "title", URL: "https://forge.example/1",
		Reason: task.ReasonAssigned,
	}
}

// assigned makes a task that is queued in generation 1.
func assigned(t testing.TB, s store.Store) task.Task {
	t.Helper()
	made, queued, err := s.Assign(t.Context(), newTaskOn(newKey()), nil)
	must(t, err)
	if !queued {
		t.Fatal("a new task was not queued")
	}
	return made
}

var tokenHash = []byte{0, 1, 2, 0xff}

func claimOf(x task.Task) store.Claim {
	return store.Claim{Task: x.ID, Generation: x.Generation, Agent: "agent", TokenHash: tokenHash, ExpiresAt: noon}
}

// running makes a task that an agent holds until noon.
func running(t testing.TB, s store.Store) task.Task {
	t.Helper()
	held, err := s.Claim(t.Context(), []store.Claim{claimOf(assigned(t, s))}, nil)
	must(t, err)
	if len(held) != 1 {
		t.Fatalf("claimed %d tasks, want 1", len(held))
	}
	return held[0]
}

func moved(t testing.TB, s store.Store, x task.Task, trigger task.Trigger) task.Task {
	t.Helper()
	after, err := s.Move(t.Context(), store.Change{Task: x.ID, Trigger: trigger, Reason: task.ReasonRetried})
	must(t, err)
	return after
}

func ids(tasks []task.Task) []task.ID {
	var all []task.ID
	for _, x := range tasks {
		all = append(all, x.ID)
	}
	return all
}
