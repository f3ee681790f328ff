package doctor_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toryo-dev/toryo/internal/app/doctor"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/github"
	"github.com/toryo-dev/toryo/internal/items"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

func TestWebhooks(t *testing.T) {
	t.Parallel()
	now := time.Date(2031, 5, 6, 12, 0, 0, 0, time.UTC)
	known := []store.WebhookEvent{
		{Forge: task.GitHub, Repository: "team/app", Event: "issue_comment", Delivered: 40, Trusted: 40, LastAt: now.Add(-time.Hour)},
		{
			Forge: task.GitHub, Repository: "team/app", Event: "issues", Delivered: 7, LastAt: now.Add(-2 * time.Hour),
			MissedAt: now.Add(-time.Hour), Missed: "github:team/app#3",
		},
		{Forge: task.GitHub, Repository: "team/quiet"},
		{Forge: task.Gitea, Repository: "team/without"}, // its webhooks are not taken
	}
	events := map[task.Forge]forge.WebhookEvents{task.GitHub: github.WebhookEvents}
	look := func(context.Context) ([]items.WebhookReport, error) {
		return items.ReportWebhooks(known, events, items.DefaultAges, now), nil
	}
	want := []doctor.Finding{
		{
			Name: "webhooks", Status: doctor.Warning,
			Found: "github:team/app: issues are polled every 30s, pull requests every 30s; " +
				"issues: 7 delivered, last 2031-05-06 10:00 UTC, every 30s, not reported by a webhook: github:team/app#3 at 2031-05-06 11:00 UTC; " +
				"issue_comment: 40 delivered, last 2031-05-06 11:00 UTC, every 15m0s; " +
				"none yet: Pull requests, Pull request reviews, Pull request review comments, Check runs, Statuses",
			Hint: "enable Issues, Pull requests, Pull request reviews, Pull request review comments, Check runs, Statuses in the webhook, and look there whether its deliveries arrive", Command: "toryo init",
		},
		{
			Name: "webhooks", Status: doctor.OK, Found: "none yet from github:team/quiet, polled every 30s",
			Hint: "add a webhook to these repositories for fewer requests and quicker reactions (see docs/forges.md); this creates them:", Command: "toryo init",
		},
	}
	if diff := cmp.Diff(want, doctor.Webhooks(t.Context(), look, false)); diff != "" {
		t.Error(diff)
	}
	for _, finding := range doctor.Webhooks(t.Context(), look, true) { // a GitHub App has its own
		if finding.Command != "" {
			t.Errorf("with an App the command is %q: %s", finding.Command, finding.Found)
		}
	}
	known = nil
	if got := doctor.Webhooks(t.Context(), look, false); got != nil {
		t.Errorf("without repositories: %+v", got)
	}
	for i := range 1000 {
		known = append(known, store.WebhookEvent{Forge: task.GitHub, Repository: fmt.Sprint("team/", i), Event: "issues", Delivered: 1, Trusted: 1, LastAt: now})
	}
	if got := doctor.Webhooks(t.Context(), look, false); len(got) != 21 || !strings.Contains(got[20].Found, "980 more") {
		t.Errorf("of 1000 repositories there are %d findings", len(got))
	}
	broken := func(context.Context) ([]items.WebhookReport, error) { return nil, errors.New("no connection") }
	if got := doctor.Webhooks(t.Context(), broken, false); len(got) != 1 || got[0].Status != doctor.Warning || !strings.Contains(got[0].Found, "no connection") {
		t.Errorf("without a database: %+v", got)
	}
}
