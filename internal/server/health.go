package server

import (
	"io"
	"net/http"

	"github.com/toryo-dev/toryo/internal/task"
)

func (s *Server) registerHealth(mux *http.ServeMux) {
	mux.HandleFunc("GET /healthz", s.health)
	mux.HandleFunc("GET /readyz", s.ready)
}

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
	if err := s.readiness.err(r.Context()); err != nil {
		s.writeProblem(w, r, err)
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
