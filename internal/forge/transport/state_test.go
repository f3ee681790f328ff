package transport_test

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// The state says what the forge has left for us and what it has refused last, without the
// query and the credential of the request.
func TestState(t *testing.T) {
	t.Parallel()
	w := newTestTransport(t, nil, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-RateLimit-Remaining", "77")
		w.Header().Set("X-RateLimit-Reset", "60")
		switch r.URL.Path {
		case "/refused":
			w.WriteHeader(http.StatusForbidden)
		case "/missing":
			w.WriteHeader(http.StatusNotFound)
		}
	})
	if got := w.State(); got.Remaining != -1 || got.Failure != "" || !got.PausedUntil.IsZero() {
		t.Errorf("before the first request: %+v", got)
	}
	w.get(t, "/missing", http.StatusNotFound, "")
	if got := w.State(); got.Remaining != 77 || got.Reset.Sub(w.clock.Now()) != time.Minute || got.Failure != "" {
		t.Errorf("what is not there is no failure: %+v", got)
	}
	w.get(t, "/refused?secret=squeak", http.StatusForbidden, "")
	got := w.State()
	if !strings.Contains(got.Failure, "GET /refused: status 403") || strings.Contains(got.Failure, "squeak") || !got.FailedAt.Equal(w.clock.Now()) {
		t.Errorf("after a refusal: %+v", got)
	}
	_ = w.clock.Wait(t.Context(), time.Hour)
	if got := w.State(); got.Remaining != -1 {
		t.Errorf("a quota whose time is over: %+v", got)
	}
}
