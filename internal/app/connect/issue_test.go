package connect_test

import (
	"testing"

	"github.com/toryo-dev/toryo/internal/app/connect"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

// An issue that the forge has not assigned is opened once, however often that is tried, and is
// the first issue once somebody has assigned it.
func TestFirstIssueThatIsNotAssigned(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	h.forge.Unassigned = true
	f := h.forge.As(token)
	suggested := connect.Suggestion{Title: "Write a short README", Body: "x"}
	first := func() (forge.Item, bool, error) {
		return h.installer().FirstIssue(t.Context(), f, task.Gitea, "team/app", bot, suggested)
	}
	for try := range 3 {
		item, opened, err := first()
		if task.CodeOf(err) != task.Forbidden || opened != (try == 0) || item.Key.Number != 1 {
			t.Errorf("try %d: %+v, %t, %v", try, item.Key, opened, err)
		}
	}
	if written := h.forge.Written(); len(written) != 1 {
		t.Errorf("written: %v", written)
	}
	h.forge.Change(task.Key{Forge: task.Gitea, Repository: "team/app", Kind: task.Issue, Number: 1}, func(item *forge.Item) { item.Assignees = []string{bot} })
	if item, opened, err := first(); err != nil || opened || item.Key.Number != 1 {
		t.Errorf("after it was assigned: %+v, %t, %v", item.Key, opened, err)
	}
}

// An issue of somebody else with the same title is not ours.
func TestFirstIssueBesideOthers(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	h.forge.AddItem("team/app", task.Issue, "ann", "Write a short README")
	for try := range 2 {
		item, opened, err := h.installer().FirstIssue(t.Context(), h.forge.As(token), task.Gitea, "team/app", bot, connect.Suggestion{Title: "Write a short README", Body: "x"})
		if err != nil || opened != (try == 0) || item.Key.Number != 2 {
			t.Errorf("got %+v, %t, %v", item.Key, opened, err)
		}
	}
}
