package broker

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// What is found together is told in the order in which it was done: an edit at the time of
// the edit, if the forge tells it.
func TestEditsAreToldWhenTheyWereMade(t *testing.T) {
	t.Parallel()
	at := func(second int64) time.Time { return time.Unix(second, 0) }
	known := []store.CommentEntry{{Comment: task.Comment{ID: "a", Body: "one", CreatedAt: at(1)}}, {Comment: task.Comment{ID: "b", Body: "one", CreatedAt: at(2)}}}
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

// Requests for changes are in the order in which they were made, also within a second, and
// the last verdict of each person counts.
func TestOpenRequestsAreInOrder(t *testing.T) {
	t.Parallel()
	at := time.Unix(1, 0)
	reviews := []forge.Review{
		{ID: "1", Author: "ann", Verdict: forge.RequestChanges, At: at}, {ID: "2", Author: "bob", Verdict: forge.RequestChanges, At: at},
		{ID: "3", Author: "cat", Verdict: forge.RequestChanges, At: at}, {ID: "4", Author: "Bob", Verdict: forge.Approve, At: at},
		{ID: "5", Author: "dan", Verdict: forge.RequestChanges, At: at}, {ID: "6", Author: "ann", Verdict: forge.Remark, At: at},
	}
	for range 20 { // it does not depend on chance
		var got []string
		for _, review := range openRequests(reviews) {
			got = append(got, review.ID)
		}
		if diff := cmp.Diff([]string{"1", "3", "5"}, got); diff != "" {
			t.Fatal(diff)
		}
	}
}
