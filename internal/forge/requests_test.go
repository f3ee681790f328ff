package forge

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Requests for changes are in the order in which they were made, also within a second, and
// the last verdict of each person counts.
func TestOpenRequestsAreInOrder(t *testing.T) {
	t.Parallel()
	at := time.Unix(1, 0)
	reviews := []Review{
		{ID: "1", Author: "ann", Verdict: RequestChanges, At: at}, {ID: "2", Author: "bob", Verdict: RequestChanges, At: at},
		{ID: "3", Author: "cat", Verdict: RequestChanges, At: at}, {ID: "4", Author: "Bob", Verdict: Approve, At: at},
		{ID: "5", Author: "dan", Verdict: RequestChanges, At: at}, {ID: "6", Author: "ann", Verdict: Remark, At: at},
	}
	for range 20 { // it does not depend on chance
		var got []string
		for _, review := range OpenRequests(reviews) {
			got = append(got, review.ID)
		}
		if diff := cmp.Diff([]string{"1", "3", "5"}, got); diff != "" {
			t.Fatal(diff)
		}
	}
}

// The Kelvin sign is no k: an approval takes back the request of the same person only, in
// whichever case the login is written.
func TestOpenRequestsTellPeopleApart(t *testing.T) {
	t.Parallel()
	at := time.Date(2031, 5, 6, 12, 0, 0, 0, time.UTC)
	open := OpenRequests([]Review{
		{ID: "1", Author: "kim", Verdict: RequestChanges, At: at},
		{ID: "2", Author: "\u212Aim", Verdict: Approve, At: at.Add(time.Minute)},
		{ID: "3", Author: "ann", Verdict: RequestChanges, At: at},
		{ID: "4", Author: "Ann", Verdict: Approve, At: at.Add(time.Minute)},
	})
	if len(open) != 1 || open[0].ID != "1" {
		t.Errorf("the open requests are %+v", open)
	}
}
