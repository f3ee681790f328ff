package server

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// Who may look at tasks sees the statistics, of all repositories or of one.
func TestStatisticsOverHTTP(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	made := h.assign(t)
	if _, err := h.store.Claim(t.Context(), []store.Claim{{Task: made.ID, Generation: made.Generation, Agent: "mill", TokenHash: []byte{1}, ExpiresAt: time.Now().Add(time.Hour)}}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := h.store.Move(t.Context(), store.Change{Task: made.ID, Trigger: task.Finished, Reason: task.ReasonCompleted}); err != nil {
		t.Fatal(err)
	}
	viewer := h.client(h.token(t, access.Viewer))
	for repository, want := range map[string]int64{"": 1, "team/app": 1, "board:team/app": 1, "gitea:team/app": 0, "no/such": 0, "' OR 1=1 --": 0} {
		found, err := viewer.Statistics(t.Context(), 7, repository)
		if err != nil || found.Total.Runs.Done != want || found.Total.FirstAttempts.Right != want || found.Total.Waits.Count != want || len(found.Days) != 7 || found.Repository != repository {
			t.Errorf("%q has %+v, %v", repository, found.Total, err)
		}
	}
	if _, err := h.client(h.token(t, access.Agent)).Statistics(t.Context(), 7, ""); task.CodeOf(err) != task.Forbidden {
		t.Errorf("an agent sees statistics: %v", err)
	}
	token := h.token(t, access.Viewer)
	for path, want := range map[string]int{
		"": http.StatusOK, "?days=90": http.StatusOK, "?days=8": http.StatusUnprocessableEntity, "?days=all": http.StatusUnprocessableEntity,
		"?repository=%00": http.StatusUnprocessableEntity, "?repository=" + strings.Repeat("a", 2001): http.StatusRequestEntityTooLarge,
	} {
		if status, _, body := h.get(t, "/v1/statistics"+path, token); status != want {
			t.Errorf("%.40q answers %d, want %d: %.300s", path, status, want, body)
		}
	}
}
