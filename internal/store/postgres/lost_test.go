package postgres

import (
	"io"
	"net"
	"net/url"
	"sync"
	"testing"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
)

// relay stands between a store and the real server, and can cut them apart.
type relay struct {
	server string
	guard  sync.Mutex
	down   bool
	open   []net.Conn
	all    sync.WaitGroup
}

// newRelay returns a relay to the server of a database URL, and the URL through it.
func newRelay(t *testing.T, address string) (*relay, string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{}
	through := changed(t, address, func(u *url.URL) {
		r.server = u.Host
		u.Host = listener.Addr().String()
	})
	r.all.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			r.join(client)
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		r.set(true)
		r.all.Wait()
	})
	return r, through
}

func (r *relay) join(client net.Conn) {
	server, err := net.Dial("tcp", r.server)
	if err != nil {
		_ = client.Close()
		return
	}
	r.guard.Lock()
	r.open = append(r.open, client, server)
	down := r.down
	r.guard.Unlock()
	if down {
		r.set(true)
	}
	pass := func(to, from net.Conn) {
		_, _ = io.Copy(to, from)
		_ = to.Close()
	}
	r.all.Go(func() { pass(server, client) })
	r.all.Go(func() { pass(client, server) })
}

// set cuts every connection and all that come, or lets them be again.
func (r *relay) set(down bool) {
	r.guard.Lock()
	defer r.guard.Unlock()
	r.down = down
	if down {
		for _, connection := range r.open {
			_ = connection.Close()
		}
		r.open = nil
	}
}

// TestDatabaseDies: calls fail with DatabaseDown while the database is away, and
// succeed when it is back, on the same store.
func TestDatabaseDies(t *testing.T) {
	t.Parallel()
	r, through := newRelay(t, testkit.Postgres(t))
	s := opened(t, through)
	defer closed(t, s)
	question, err := s.AddQuestion(t.Context(), store.Question{Text: "before"})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		r.set(true)
		for range 2 {
			_, err := s.Question(t.Context(), question.ID)
			wantDown(t, err)
			_, err = s.AddQuestion(t.Context(), store.Question{Text: "lost"})
			wantDown(t, err)
			_, err = s.ListBoardItems(t.Context(), store.BoardFilter{})
			wantDown(t, err)
			wantDown(t, s.Ping(t.Context()))
		}
		r.set(false)
		if _, err := s.AddQuestion(t.Context(), store.Question{Text: "after"}); err != nil {
			t.Fatal(err)
		}
	}
	all, err := s.ListQuestions(t.Context(), store.QuestionFilter{})
	if err != nil || len(all) != 4 {
		t.Errorf("%d questions: %v", len(all), err)
	}
}

func wantDown(t *testing.T, err error) {
	t.Helper()
	if task.CodeOf(err) != task.DatabaseDown {
		t.Errorf("error has the code %q, want %q: %v", task.CodeOf(err), task.DatabaseDown, err)
		return
	}
	checkMessage(t, err)
}

// TestConnectionLostInside: a connection that breaks in the middle of a
// transaction leaves nothing of it.
func TestConnectionLostInside(t *testing.T) {
	t.Parallel()
	r, through := newRelay(t, testkit.Postgres(t))
	s := opened(t, through)
	defer closed(t, s)
	want := store.NewTask{Key: task.Key{Forge: task.Board, Repository: "a/b", Kind: task.Issue, Number: 1}, Type: task.Development}
	made, _, err := s.Assign(t.Context(), want, nil)
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	_, err = s.Move(t.Context(), store.Change{Task: made.ID, Trigger: task.Withdrawn, Effects: func(task.Task, task.Task) []store.Action {
		calls++
		r.set(true)
		return []store.Action{{Item: made.Key, IdempotencyKey: "k", Kind: "label"}}
	}})
	wantDown(t, err)
	if calls != 1 {
		t.Errorf("a transaction of unknown outcome was tried %d times", calls)
	}
	r.set(false)
	after, err := s.Task(t.Context(), made.ID)
	if err != nil || after != made {
		t.Errorf("after is %+v: %v", after, err)
	}
}

// TestServerEndsConnections: what an administrator's restart does to connections
// that lie in the pool is not seen by callers.
func TestServerEndsConnections(t *testing.T) {
	t.Parallel()
	address := testkit.Postgres(t)
	s := opened(t, address)
	defer closed(t, s)
	// Each transaction waits in its middle for all others: the pool is full.
	var all, inside sync.WaitGroup
	inside.Add(connections)
	for n := range connections {
		all.Go(func() {
			key := task.Key{Forge: task.Board, Repository: "a/b", Kind: task.Issue, Number: int64(n + 1)}
			_, _, err := s.Assign(t.Context(), store.NewTask{Key: key, Type: task.Development}, func(task.Task, task.Task) []store.Action {
				inside.Done()
				inside.Wait()
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	execute(t, address, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
	for range 8 {
		if _, err := s.AddQuestion(t.Context(), store.Question{}); err != nil {
			t.Error(err)
		}
	}
}
