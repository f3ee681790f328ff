package server

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// A task is found by how people name it, by whoever may list tasks.
func TestFindTask(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	made := h.assign(t)
	viewer := h.client(h.token(t, access.Viewer))
	for _, name := range []string{
		"board:team/app#7", "team/app#7", "#7", string(made.ID), string(made.ID)[:13], h.web.URL + "/tasks/" + string(made.ID), h.web.URL + "/board/team/app/issues/7",
	} {
		if found, err := viewer.FindTask(t.Context(), name); err != nil || found.ID != string(made.ID) || found.Item != "board:team/app#7" {
			t.Errorf("%q is %+v, %v", name, found, err)
		}
	}
	if _, err := h.client(h.token(t, access.Agent)).FindTask(t.Context(), "#7"); task.CodeOf(err) != task.Forbidden {
		t.Errorf("an agent finds the tasks of others: %v", err)
	}
}

func TestNamesThatFindNoTask(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.assign(t)
	_, _, err := h.store.Assign(t.Context(), store.NewTask{
		Key: task.Key{Forge: task.Board, Repository: "team/lib", Kind: task.Issue, Number: 7}, Type: task.Development, Reason: task.ReasonAssigned,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	token := h.token(t, access.Viewer)
	for name, want := range map[string]struct {
		status int
		said   string
	}{
		"team/app#8":                {http.StatusNotFound, "there is no task"},
		"#7":                        {http.StatusUnprocessableEntity, "board:team/app#7"},
		"nonsense":                  {http.StatusBadRequest, "does not name a task"},
		"":                          {http.StatusUnprocessableEntity, "name"},
		strings.Repeat("a", 2001):   {http.StatusRequestEntityTooLarge, ""},
		"team/app#7' OR '1' = '1":   {http.StatusBadRequest, "does not name a task"},
		"<script>alert(1)</script>": {http.StatusBadRequest, "does not name a task"},
	} {
		status, _, body := h.get(t, "/v1/tasks/find?name="+url.QueryEscape(name), token)
		if status != want.status || !strings.Contains(body, want.said) {
			t.Errorf("%.30q answers %d %s, want %d with %q", name, status, body, want.status, want.said)
		}
	}
}

// What cannot be done with a task is said in words, with what to do instead.
func TestIllegalMovesSayWhatToDo(t *testing.T) {
	t.Parallel()
	w := onSQLite(t)
	made := w.issue(t, "Fix the gate")
	operator := w.client(w.token(t, access.Operator))
	if _, err := operator.StopTask(t.Context(), made.ID); err != nil {
		t.Fatal(err)
	}
	for want, do := range map[string]func() error{
		"the task was stopped and cannot be stopped; it has ended": func() error { return second(operator.StopTask(t.Context(), made.ID)) },
		"the task was stopped and cannot be paused; only a task":   func() error { return second(operator.PauseTask(t.Context(), made.ID)) },
		"the task was stopped and cannot be resumed; only a":       func() error { return second(operator.ResumeTask(t.Context(), made.ID)) },
	} {
		if err := do(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
