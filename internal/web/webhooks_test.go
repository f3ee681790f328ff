package web

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/task"
)

// The page of webhooks says what each repository delivers, how often it is polled
// therefore, what was missed and which events to enable.
func TestWebhooksPage(t *testing.T) {
	t.Parallel()
	at := time.Date(2031, 5, 6, 12, 0, 0, 0, time.UTC)
	repositories := []WebhookRepository{{
		Forge: task.Gitea, Name: "team/<app>", IssuesEvery: 30 * time.Second, PullsEvery: 15 * time.Minute,
		Events: []WebhookEvent{
			{Name: "issue_comment", Title: "Issue Comment", State: "trusted", Delivered: 41, LastAt: at, Every: 15 * time.Minute},
			{Name: "issue_assign", Title: "Issue Assigned", State: "missed", Delivered: 2, LastAt: at, MissedAt: at.Add(time.Hour), Missed: "gitea:team/app#3", Every: 30 * time.Second},
			{Name: "issue_label", Title: "Issue Labeled", State: "none", Every: 30 * time.Second},
		},
	}}
	for i := range rowsPerPage {
		repositories = append(repositories, WebhookRepository{Forge: task.Gitea, Name: fmt.Sprintf("team/number-%02d", i)})
	}
	h := newHouse(t, func(o *Options) {
		o.Settings.Webhooks = func(context.Context) ([]WebhookRepository, error) { return repositories, nil }
	})
	vera := h.visitor(t, "vera")
	for language, wanted := range map[string][]string{
		"en": {
			"gitea:team/&lt;app&gt;", "Issues are polled every 30s, pull requests every 15m0s.", "<td>41</td>", "2031-05-06 12:00",
			"not reported by a webhook: gitea:team/app#3", "2031-05-06 13:00", ">Trusted<", ">None yet<",
			"Events without a trusted webhook: Issue Assigned, Issue Labeled.", "number-48",
		},
		"ja": {"受信漏れ", "未受信", "Webhook で通知されなかった変更: gitea:team/app#3", "リポジトリの Webhook 設定で有効に"},
	} {
		vera.header.Set("Accept-Language", language)
		status, page := vera.get("/settings/webhooks")
		if status != 200 {
			t.Fatalf("the page answers %d", status)
		}
		for _, text := range wanted {
			if !strings.Contains(page, text) {
				t.Errorf("%s: %q is not on the page", language, text)
			}
		}
		if strings.Contains(page, "<h2>gitea:team/number-49") {
			t.Errorf("%s: all repositories are on one page", language)
		}
	}
	if _, page := vera.get("/settings/webhooks?page=2"); !strings.Contains(page, "<h2>gitea:team/number-49") || strings.Contains(page, "number-48") {
		t.Error("the next page does not begin where the last one ended")
	}
	for path, want := range map[string]string{
		"?q=NUMBER-07": "team/number-07", "?state=missed": "team/&lt;app&gt;", "?sort=-last": "team/&lt;app&gt;", "?q=none-such": "",
	} {
		_, page := vera.get("/settings/webhooks" + path)
		_, first, _ := strings.Cut(page, "<h2>gitea:")
		if !strings.HasPrefix(first, want) || want == "" && first != "" {
			t.Errorf("%s begins with %.40q", path, first)
		}
	}
}
