package server

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/toryo-dev/toryo/internal/task"
)

// readyTimeout is how long the database has to answer for the server to count
// as ready.
const readyTimeout = 2 * time.Second

// health says that the process is alive. It asks nothing of anything else, so
// that a database that is down does not get the server restarted.
func (s *Server) health(w http.ResponseWriter, r *http.Request) { s.writeOK(w, r) }

// ready says whether requests should be sent here.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	select {
	case <-s.stopping:
		s.writeProblem(w, r, task.Errorf(task.NotReady, "the server is stopping"))
		return
	default:
	}
	ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
	defer cancel()
	if err := s.store.Ping(ctx); err != nil {
		s.writeProblem(w, r, task.Wrap(task.DatabaseDown, err, "the database does not answer"))
		return
	}
	s.writeOK(w, r)
}

func (s *Server) writeOK(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if _, err := io.WriteString(w, "ok\n"); err != nil {
		s.log.DebugContext(r.Context(), "client disconnected", "error", err)
	}
}
