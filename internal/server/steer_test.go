package server

import (
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// An operator who asks for what the state of a task does not allow is told what can be done.
func TestSteeringThatIsNotPossible(t *testing.T) {
	t.Parallel()
	w := onSQLite(t)
	made := w.issue(t, "Fix the sum")
	if _, err := w.store.Move(t.Context(), store.Change{Task: made.ID, Trigger: task.GaveUp, Reason: task.ReasonRunFailed}); err != nil {
		t.Fatal(err)
	}
	_, err := w.client(w.token(t, access.Operator)).StopTask(t.Context(), made.ID)
	coded, is := task.AsError(err)
	if !is || coded.Code != task.IllegalMove || !strings.Contains(coded.Message, "has failed") || !strings.Contains(coded.Message, "cannot be stopped") || !strings.Contains(coded.Hint, "retry") {
		t.Errorf("the operator is told %v", err)
	}
}
