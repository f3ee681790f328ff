package server

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"

	"github.com/toryo-dev/toryo/internal/server/limit"
	"github.com/toryo-dev/toryo/internal/task"
)

// stopTimeout is how long requests that are under way have to finish when the
// server stops.
const stopTimeout = 20 * time.Second

// Listen takes the address. Its errors say what to do about them.
func Listen(ctx context.Context, address string) (net.Listener, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	switch {
	case err == nil:
		return listener, nil
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, task.Errorf(task.AddressInUse, "the address %s is in use", address).
			WithHint("stop what listens there, or choose another with --addr")
	case errors.Is(err, syscall.EACCES):
		return nil, task.Errorf(task.AddressInUse, "this user may not listen on %s", address).
			WithHint("choose a port above 1023 with --addr")
	default:
		return nil, task.Wrap(task.AddressInUse, err, "cannot listen on "+address).
			WithHint("give --addr as HOST:PORT, for example 127.0.0.1:8750")
	}
}

// idleTimeout is how long a connection may have nothing to do.
const idleTimeout = 2 * time.Minute

// Serve answers requests on the listeners until the context ends, or a listener fails.
// Then it stops taking new ones, lets those under way finish, and returns nil, or what
// failed. It may be called once. Only what comes in on the first listener is encrypted, if anything is.
func (s *Server) Serve(ctx context.Context, listeners ...net.Listener) error {
	strangers, back := limit.NewConnections(), newReturned(listeners[0].Addr())
	web := s.newHTTP()
	web.TLSConfig, web.ConnContext, web.ConnState = s.tls, strangers.Opened, strangers.Changed
	again := s.newHTTP() // for connections that were taken over
	again.ConnContext = back.opened
	noting, stopNoting := context.WithCancel(context.WithoutCancel(ctx))
	var noted sync.WaitGroup
	noted.Go(func() { s.seen.run(noting) })
	defer noted.Wait()
	defer stopNoting()
	failed := make(chan error, len(listeners)+1)
	for i, listener := range listeners {
		go func() { failed <- s.serveOn(web, listener, i == 0) }()
	}
	go func() { failed <- again.Serve(back) }()
	s.polls.start(back)
	running, failure := len(listeners)+1, error(nil)
	select {
	case failure = <-failed:
		failure = task.Wrap(task.Internal, failure, "the server stopped listening")
		running--
	case <-ctx.Done():
	}
	s.polls.stop()
	close(s.stopping)
	if s.handOut != nil {
		s.handOut.Drain()
	}
	if s.pages != nil {
		s.pages.Stop()
	}
	err := s.shutdown(ctx, web, again)
	for range running {
		<-failed
	}
	if failure != nil {
		return failure
	}
	if err != nil {
		return task.Wrap(task.Internal, err, "stop the server")
	}
	return nil
}

func (s *Server) newHTTP() *http.Server {
	return &http.Server{
		Handler: s, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: idleTimeout, MaxHeaderBytes: 32 << 10,
		// Anyone can fail to shake hands, and the log is not for everyone to fill.
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
}

// shutdown lets requests that are under way finish, for some time.
func (s *Server) shutdown(ctx context.Context, web, again *http.Server) error {
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	var ending sync.WaitGroup
	ends := make([]error, 3)
	ending.Go(func() { ends[0] = web.Shutdown(grace) })
	ending.Go(func() { ends[1] = again.Shutdown(grace) })
	ending.Go(func() { ends[2] = s.polls.finish(grace) })
	ending.Wait()
	err := errors.Join(ends...)
	if !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	s.log.WarnContext(ctx, "some requests did not finish in time and were canceled", "after", stopTimeout)
	return errors.Join(web.Close(), again.Close())
}

func (s *Server) serveOn(web *http.Server, listener net.Listener, first bool) error {
	if s.tls == nil || !first {
		return web.Serve(listener)
	}
	return web.ServeTLS(listener, "", "")
}
