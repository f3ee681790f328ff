package server

import (
	"bufio"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/toryo-dev/toryo/internal/metrics"
)

// newDurations makes the histogram of how long requests took.
func newDurations(registry *metrics.Registry) *metrics.Histogram {
	return registry.Histogram("toryo_http_request_seconds", "How long requests took, by route and status.",
		[]float64{.001, .005, .025, .1, .5, 2.5, 10, 30, 60}, "route", "status")
}

// observe counts and logs every request, and turns a panic into an error of the
// one request that caused it.
func (s *Server) observe(durations *metrics.Histogram, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begun := time.Now()
		answer := &observedWriter{ResponseWriter: w, timeout: s.writeTimeout}
		r, leave, refused := s.meet(answer, r)
		defer leave()
		defer func() {
			if fault := recover(); fault != nil {
				s.panicked(answer, r, fault)
			}
			if answer.taken {
				return // it is not over
			}
			took := time.Since(begun)
			durations.Observe(took.Seconds(), route(r), strconv.Itoa(answer.code()))
			s.log.DebugContext(r.Context(), "request", "method", r.Method, "path", r.URL.Path, "status", answer.code(), "took", took)
		}()
		if refused != nil {
			s.writeProblem(answer, r, refused)
			return
		}
		next.ServeHTTP(answer, r)
		if !answer.taken {
			answer.extend()
		}
	})
}

func (s *Server) panicked(answer *observedWriter, r *http.Request, fault any) {
	if fault == http.ErrAbortHandler { //nolint:errorlint,err113 // recovered values are compared as they are, as net/http does
		panic(fault)
	}
	err := panicError(fault)
	if answer.status != 0 {
		s.log.ErrorContext(r.Context(), "a request failed half-way", "error", err)
		return
	}
	s.writeProblem(answer, r, err)
}

// route is the pattern that the request matched, not its path: paths are
// without number, and would be as many metrics.
func route(r *http.Request) string {
	if r.Pattern == "" {
		return "none"
	}
	return r.Pattern
}

// defaultWriteTimeout is how long a caller may take to read what one write sends it.
// Answers have no time limit as a whole: some wait for something to happen.
const defaultWriteTimeout = time.Minute

// observedWriter remembers the status of the answer, and gives up a caller who
// does not read it.
type observedWriter struct {
	http.ResponseWriter
	status  int
	timeout time.Duration
	taken   bool // somebody else has the connection now, and nothing is sent here
}

// takeOver takes the connection from net/http.
func (w *observedWriter) takeOver() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(w.ResponseWriter).Hijack()
	w.taken = err == nil
	return conn, buffered, err
}

// extend gives the caller time to read what is written next.
func (w *observedWriter) extend() {
	// Where there is no connection, as in some tests, nobody can hold it up.
	_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(w.timeout))
}

func (w *observedWriter) WriteHeader(status int) {
	if w.taken {
		return
	}
	if w.status == 0 {
		w.status = status
	}
	w.extend()
	w.ResponseWriter.WriteHeader(status)
}

func (w *observedWriter) Write(body []byte) (int, error) {
	if w.taken {
		return 0, http.ErrHijacked
	}
	if w.status == 0 {
		w.status = http.StatusOK
	}
	w.extend()
	return w.ResponseWriter.Write(body)
}

// Unwrap lets http.ResponseController reach the connection.
func (w *observedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *observedWriter) code() int {
	if w.status == 0 {
		return http.StatusOK
	}
	return w.status
}
