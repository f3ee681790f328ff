package comments

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toryo-dev/toryo/internal/task"
)

// What is found together is told in the order in which it was done: an edit at the time of
// the edit, if the forge tells it.
func TestEditsAreToldWhenTheyWereMade(t *testing.T) {
	t.Parallel()
	at := func(second int64) time.Time { return time.Unix(second, 0) }
	known := []task.CommentEntry{{Comment: task.Comment{ID: "a", Body: "one", CreatedAt: at(1)}}, {Comment: task.Comment{ID: "b", Body: "one", CreatedAt: at(2)}}}
	for name, c := range map[string]struct {
		edited time.Time
		want   []string
	}{
		"after the new one":    {at(9), []string{"new c", "edited a"}},
		"before the new one":   {at(4), []string{"edited a", "new c"}},
		"at the same time":     {at(5), []string{"edited a", "new c"}},
		"nobody knows when":    {time.Time{}, []string{"edited a", "new c"}},
		"as it was written":    {at(1), []string{"edited a", "new c"}},
		"long after the other": {at(99), []string{"new c", "edited a"}},
	} {
		changes, _ := compare(known, []task.Comment{
			{ID: "a", Body: "two", CreatedAt: at(1), UpdatedAt: c.edited}, {ID: "c", Body: "new", CreatedAt: at(5), UpdatedAt: at(5)},
		}, whatChanged)
		var got []string
		for _, change := range changes {
			got = append(got, string(change.kind)+" "+change.comment.ID)
		}
		if diff := cmp.Diff(append(c.want, "deleted b"), got); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}
