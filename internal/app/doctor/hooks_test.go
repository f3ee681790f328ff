package doctor_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/app/doctor"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/gitea"
	"github.com/toryo-dev/toryo/internal/forge/github"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// hooked is where webhooks of repositories are to deliver to.
const hooked = "https://toryo.example.com/webhooks/"

// withHooks is a forge whose repositories have these webhooks.
func withHooks(hooks map[string][]forge.Hook, delivered map[string]forge.HookDelivery) prepared {
	return prepared{
		rights: func(string) ([]forge.RightCheck, error) { return nil, nil },
		hooks: func(repository string) ([]forge.Hook, error) {
			switch repository {
			case "team/hidden":
				return nil, task.Errorf(task.Forbidden, "only for administrators")
			case "team/away":
				return nil, errors.New("the connection broke")
			}
			return hooks[repository], nil
		},
		delivered: delivered,
	}
}

// A forge that tells of deliveries is believed.
func TestHooksOfRepositories(t *testing.T) {
	t.Parallel()
	all := github.WebhookEvents.Names()
	at := time.Date(2031, 5, 6, 12, 0, 0, 0, time.UTC)
	const ours = hooked + "github"
	good := []forge.Hook{{URL: "https://ci.example.com"}, {URL: ours + "/", Events: all, Active: true}}
	hooks := map[string][]forge.Hook{
		"team/good":    good,
		"team/new":     good,
		"team/lost":    good,
		"team/secret":  good,
		"team/nowhere": good,
		"team/none":    {{URL: "https://ci.example.com"}},
		"team/old":     {{URL: "https://chat.example.com/hooks/hunter2"}, {URL: "https://me:hunter2@old.example.com/webhooks/github?token=hunter2", Events: all, Active: true}},
		"team/off":     {{URL: ours, Events: all}},
		"team/events":  {{URL: ours, Events: all[1:], Active: true}},
	}
	names := []string{"team/hidden", "team/away"}
	for name := range hooks {
		names = append(names, name)
	}
	setup := withHooks(hooks, map[string]forge.HookDelivery{
		"team/good": {At: at, Status: 204}, "team/lost": {At: at}, "team/secret": {At: at, Status: 401}, "team/nowhere": {At: at, Status: 404},
	})
	there := giteaAt(t, "bot", names...)
	got := look{gitHub: true, url: there, owner: "team", setup: setup, secret: true}.findings(t)
	want(t, got, "github webhook", doctor.OK, "delivers to "+ours, "2031-05-06", "team/good")
	want(t, got, "github webhook", doctor.OK, "team/new: is set up for "+ours, "tells of no delivery yet")
	want(t, got, "github webhook", doctor.Warning, "team/none: none for "+ours, "polled")
	want(t, got, "github webhook", doctor.Warning, "team/old", "https://old.example.com/webhooks/github", "server.public_url")
	want(t, got, "github webhook", doctor.Warning, "team/off", "switched off")
	want(t, got, "github webhook", doctor.Warning, "team/events", "does not tell of "+github.WebhookEvents[0].Title)
	want(t, got, "github webhook", doctor.Warning, "team/lost", "did not arrive", "firewall")
	want(t, got, "github webhook", doctor.Warning, "team/secret", "401", "github.webhook_secret")
	want(t, got, "github webhook", doctor.Warning, "team/nowhere", "404", "server.public_url")
	want(t, got, "github webhook", doctor.OK, "team/hidden", "administrators")
	want(t, got, "github webhook", doctor.Warning, "team/away", "the connection broke")
	for _, finding := range got {
		if strings.Contains(fmt.Sprint(finding), "hunter2") {
			t.Errorf("the address of a webhook of others may be a secret: %+v", finding)
		}
		if strings.Contains(finding.Hint, "old.example.com") {
			t.Errorf("what somebody else entered is proposed as a setting: %+v", finding)
		}
		if finding.Name == "github webhook" && finding.Status == doctor.Missing {
			t.Errorf("Toryo works without webhooks, but %+v", finding)
		}
	}
	want(t, look{gitHub: true, url: there, owner: "team", setup: setup}.findings(t), "github webhook", doctor.OK, "github.webhook_secret is not set")
}

// A webhook of the organisation, group or system is not among those of a repository, but delivers:
// a second one would only double that.
func TestWebhooksElsewhere(t *testing.T) {
	t.Parallel()
	long := time.Now().AddDate(-1, 0, 0)
	counted := []store.WebhookEvent{
		{Forge: task.Gitea, Repository: "team/busy", Event: "issues", Delivered: 3, Trusted: 3, LastAt: time.Now()},
		{Forge: task.Gitea, Repository: "team/hidden", Event: "issues", Delivered: 3, Trusted: 3, LastAt: time.Now()},
		{Forge: task.Gitea, Repository: "team/over", Event: "issues", Delivered: 3, Trusted: 3, LastAt: long},
	}
	there := giteaAt(t, "bot", "team/busy", "team/hidden", "team/over", "team/none")
	got := look{url: there, owner: "team", setup: withHooks(nil, nil), secret: true, counted: counted}.findings(t)
	want(t, got, "gitea webhook", doctor.OK, "team/busy: delivered by a webhook elsewhere (organisation, group or system), last on ")
	want(t, got, "gitea webhook", doctor.OK, "team/hidden: bot is not shown its webhooks", "deliveries arrive, last on ")
	want(t, got, "gitea webhook", doctor.Warning, "team/none, team/over: none for "+hooked+"gitea", "if a webhook of the organisation, group or system is to deliver")
	for _, finding := range got {
		if finding.Status == doctor.OK && finding.Command != "" {
			t.Errorf("nothing is to be done about %+v", finding)
		}
	}
}

// Gitea tells nothing of deliveries: what has arrived here counts, and a webhook from which nothing
// has ever arrived is not well.
func TestHooksOfAForgeThatTellsNoDeliveries(t *testing.T) {
	t.Parallel()
	const ours = hooked + "gitea"
	good := []forge.Hook{{URL: ours, Events: gitea.WebhookEvents.Names(), Active: true}}
	hooks := map[string][]forge.Hook{"team/good": good, "team/quiet": good, "team/lost": good, "team/tested": good, "team/new": good}
	at := time.Date(2031, 5, 6, 12, 0, 0, 0, time.UTC)
	counted := []store.WebhookEvent{
		{Forge: task.Gitea, Repository: "team/good", Event: "issues", Delivered: 3, Trusted: 3, LastAt: time.Now()},
		{Forge: task.Gitea, Repository: "team/quiet", Event: "issues", Delivered: 3, Trusted: 3, LastAt: at.AddDate(-10, 0, 0)},
		{Forge: task.Gitea, Repository: "team/lost"},
		{Forge: task.Gitea, Repository: "team/tested"},
		{Forge: task.GitHub, Repository: "team/new", Event: "issues", Delivered: 3, Trusted: 3, LastAt: at},
	}
	setup := withHooks(hooks, nil)
	there := giteaAt(t, "bot", "team/good", "team/quiet", "team/lost", "team/tested", "team/new")
	last := []store.Received{{Forge: task.Gitea, Repository: "team/tested", Event: "push", Status: 204, At: at}}
	asked := look{url: there, owner: "team", setup: setup, secret: true, counted: counted, last: last}
	got := asked.findings(t)
	want(t, got, "gitea webhook", doctor.OK, "team/good: is set up for "+ours, "does not say how deliveries go", "the last one arrived on")
	want(t, got, "gitea webhook", doctor.OK, "team/quiet: is set up for "+ours, "the last one arrived on 2021-05-06")
	want(t, got, "gitea webhook", doctor.Warning, "team/lost: is set up for "+ours, "does not say how deliveries go, and none has arrived here", "ALLOWED_HOST_LIST")
	want(t, got, "gitea webhook", doctor.OK, "team/new: is set up for "+ours, "when the server has worked on it")
	want(t, got, "gitea webhook", doctor.OK, "team/tested: is set up for "+ours, "the last one arrived on 2031-05-06")
	if said := fmt.Sprint(got); strings.Contains(said, "delivers to") {
		t.Errorf("nobody knows that it delivers: %s", said)
	}
	// What arrives and is refused has arrived.
	asked.last = append([]store.Received{{Forge: task.Gitea, Status: 401, Problem: "the signature is wrong", At: at.AddDate(0, 0, 1)}}, last...)
	want(t, asked.findings(t), "gitea webhook", doctor.Warning, "team/lost: ", "none was accepted here", "2031-05-07 was refused with status 401", "gitea.webhook_secret")
}
