package doctor

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
)

// What cannot be told is a warning, with the command that tries it.
func TestNotifications(t *testing.T) {
	t.Parallel()
	reach := func(status int, err error) func(context.Context) (int, error) {
		return func(context.Context) (int, error) { return status, err }
	}
	unsent := func(count int, why string) func(context.Context) (int, string, error) {
		return func(context.Context) (int, string, error) { return count, why, nil }
	}
	found := Notifications(t.Context(), []NotificationAccess{
		{Name: "good", Format: "slack", Reach: reach(405, nil), Unsent: unsent(0, "")},
		{Name: "down", Format: "json", Reach: reach(0, syscall.ECONNREFUSED), Unsent: unsent(0, "")},
		{Name: "wrong", Format: "teams", Reach: reach(200, nil), Unsent: unsent(3, "the webhook wrong answers HTTP 404")},
		{Name: "deleted", Format: "discord", Reach: reach(404, nil), Unsent: unsent(0, "")},
		{Name: "only POST", Format: "json", Reach: reach(404, nil), Unsent: unsent(0, "")},
		{Name: "gone", Format: "json", Reach: reach(404, nil), Unsent: unsent(1, "the webhook gone answers HTTP 404")},
		{Name: "unread", Format: "json", Reach: reach(200, nil), Unsent: func(context.Context) (int, string, error) { return 0, "", errors.New("no database") }},
	})
	for i, want := range []struct {
		status Status
		text   string
	}{
		{OK, "good (slack): answers, HTTP 405"}, {Warning, "down (json): connection refused"}, {Warning, "wrong (teams): 3 things could not be told: the webhook wrong answers HTTP 404"}, {Warning, "deleted (discord): answers HTTP 404 to a request without a message, as if the webhook no longer existed"},
		{OK, "only POST (json): answers, HTTP 404"}, {Warning, "gone (json): 1 things could not be told"}, {OK, "unread (json)"},
	} {
		if found[i].Status != want.status || !strings.Contains(found[i].Found, want.text) || !strings.HasPrefix(found[i].Command, "toryo notify test ") {
			t.Errorf("found %+v", found[i])
		}
	}
}
