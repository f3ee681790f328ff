package postgres

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/toryo-dev/toryo/internal/lifecycle"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/store/relational"
)

// channel is the one that all notices go through.
const channel = "toryo"

const (
	// shortestPause and longestPause are how long it takes between two attempts
	// to listen again after the connection was lost.
	shortestPause = 100 * time.Millisecond
	longestPause  = 5 * time.Second
	// quietTime is how long we wait for a notice before we see whether the
	// connection still stands.
	quietTime = 30 * time.Second
)

// listeningStore is the store with a connection of its own for notices of other
// processes. It is made when somebody listens first.
type listeningStore struct {
	*relational.Store
	url string

	mu      sync.Mutex
	cancel  context.CancelFunc
	stopped chan struct{}
	closed  bool
}

func listening(s *relational.Store, url string) *listeningStore {
	return &listeningStore{Store: s, url: url}
}

var _ store.Store = (*listeningStore)(nil)

// Listen implements store.Notices.
func (s *listeningStore) Listen(hear func(store.Notice)) (stop func()) {
	s.mu.Lock()
	if s.cancel == nil && !s.closed {
		ctx, cancel := context.WithCancel(context.Background())
		s.cancel, s.stopped = cancel, make(chan struct{})
		go s.listen(ctx)
	}
	s.mu.Unlock()
	return s.Store.Listen(hear)
}

// Close ends all connections.
func (s *listeningStore) Close() error {
	s.mu.Lock()
	s.closed = true
	cancel, stopped := s.cancel, s.stopped
	s.mu.Unlock()
	if cancel != nil {
		cancel()
		<-stopped
	}
	return s.Store.Close()
}

// listen passes on what other processes send until the context ends. While there
// is no connection nothing comes; when there is one again, whoever listens is told
// that anything may have happened.
func (s *listeningStore) listen(ctx context.Context) {
	defer close(s.stopped)
	pause := shortestPause
	for ctx.Err() == nil {
		heard := s.listenOnce(ctx)
		if heard {
			pause = shortestPause
		}
		_ = lifecycle.Sleep(ctx, pause) // the loop looks whether the context has ended
		pause = min(2*pause, longestPause)
	}
}

// listenOnce listens on one connection until it breaks, and reports whether there was one.
func (s *listeningStore) listenOnce(ctx context.Context) (stood bool) {
	config, err := parse(s.url)
	if err != nil {
		return false // it was parsed before
	}
	connection, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return false // every other call says so too, with its error
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = connection.Close(ctx) // it is of no more use either way
	}()
	if _, err := connection.Exec(ctx, `LISTEN `+channel); err != nil {
		return false
	}
	s.Received("")
	for {
		if err := s.wait(ctx, connection); err != nil {
			return true
		}
	}
}

// wait passes on one notice, or sees that the connection still stands.
func (s *listeningStore) wait(ctx context.Context, connection *pgx.Conn) error {
	quiet, cancel := context.WithTimeout(ctx, quietTime)
	defer cancel()
	notice, err := connection.WaitForNotification(quiet)
	switch {
	case err == nil:
		s.Received(notice.Payload)
		return nil
	case ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) && !connection.IsClosed():
		return connection.Ping(ctx)
	default:
		return err
	}
}
