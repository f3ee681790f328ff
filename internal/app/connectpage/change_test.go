package connectpage_test

import (
	"bytes"
	"context"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/redact"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/web"
)

// The repositories of another owner do not take the place of those that are worked on.
func TestAnotherOwnerIsRefused(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	if status, _ := h.post("/connect/forge", h.forgeForm("webhook", "no")); status != http.StatusOK {
		t.Fatal("the forge is not connected")
	}
	before, err := os.ReadFile(h.file())
	h.must(err)
	status, page := h.post("/connect/forge", h.forgeForm("repositories", "others/tool", "token", ""))
	if status != http.StatusConflict {
		t.Errorf("repositories of another owner answer %d", status)
	}
	h.says(page, "the repositories of team are worked on, and these are of others", "set gitea.owner in "+h.file())
	if now, err := os.ReadFile(h.file()); err != nil || !bytes.Equal(now, before) {
		t.Errorf("the configuration says %s", now)
	}
}

// A well-known GitHub has one address, however it is typed: what goes there goes encrypted, and
// to its API. What is no GitHub is found before an App is registered.
func TestTheAddressOfAnApp(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	for _, address := range []string{"https://GitHub.com", "http://www.github.com/", "https://github.com/acme"} {
		status, page := h.post("/connect/github/app", url.Values{"url": {address}, "owner": {"team"}, "account": {"toryo-bot"}})
		found := toGitHub.FindStringSubmatch(page)
		if status != http.StatusOK || found == nil || found[1] != "https://github.com/settings/apps/new" {
			t.Errorf("for %s the form answers %d, and leads to %v", address, status, found)
		}
	}
	if status, page := h.post("/connect/github/app", url.Values{"url": {h.address}, "owner": {"team"}, "account": {"toryo-bot"}}); status != http.StatusUnprocessableEntity || !strings.Contains(page, "not GitHub") {
		t.Errorf("for a Gitea the form answers %d", status)
	}
	h.untouched()
}

// While GitHub is connected, no App takes its place: the webhooks of its repositories would be
// signed with a secret that is gone.
func TestAnAppBesideAToken(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	github := newGitHub(h)
	back, _ := github.begin()
	h.must(os.WriteFile(h.file(), []byte("github:\n  url: "+github.URL+"\n  owner: team\n  bot_name: b\n  token_file: toryo.token\n"), 0o600))
	h.must(os.WriteFile(h.folder+"/toryo.token", []byte(token), 0o600))
	for path, form := range map[string]url.Values{"/connect/github/app": {"url": {github.URL}, "owner": {"team"}, "account": {"toryo-bot"}}, back: nil} {
		method := http.MethodGet
		if form != nil {
			method = http.MethodPost
		}
		if status, page := h.do(method, path, form); status != http.StatusConflict || !strings.Contains(page, "GitHub is connected already") {
			t.Errorf("%s %s answers %d", method, path, status)
		}
	}
	if c := h.load(); c.GitHub.UsesApp() {
		t.Errorf("the configuration says %+v", c.GitHub)
	}
	h.must(os.Remove(h.file()))
	if status, _ := h.get(back); status != http.StatusOK {
		t.Errorf("without the token the way back answers %d", status)
	}
}

// A list of projects that a variable has cannot be made longer here: nothing is changed on the
// forge, and the variable is named.
func TestProjectsOfAVariable(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	h.with("gitlab:\n  url: https://gitlab.example.com\n  bot_name: "+bot+"\n", "TORYO_GITLAB_PROJECTS=team/app", "TORYO_GITLAB_TOKEN="+token)
	status, page := h.post("/connect/forge/prepare", url.Values{"forge": {"gitlab"}, "repositories": {"team/web"}})
	if status != http.StatusConflict || len(h.forge.Written()) > 0 {
		t.Errorf("another project answers %d, and written is %v", status, h.forge.Written())
	}
	h.says(page, "TORYO_GITLAB_PROJECTS")
	h.with("gitlab:\n  url: https://gitlab.example.com\n  bot_name: "+bot+"\n", "TORYO_GITLAB_PROJECTS=team/app,team/web", "TORYO_GITLAB_TOKEN="+token)
	if status, page := h.post("/connect/forge/prepare", url.Values{"forge": {"gitlab"}, "repositories": {"team/web"}}); status != http.StatusOK {
		t.Errorf("one of its projects answers %d: %s", status, page)
	}
}

// A secret that was made for webhooks is not shown, also if the forge repeats it.
func TestAForgeRepeatsTheWebhookSecret(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	var made string
	h.forge.After = func(_ int, what string) error {
		if !strings.HasPrefix(what, "create webhook") {
			return nil
		}
		for _, secret := range append(h.forge.HookSecrets("team/app"), h.forge.HookSecrets("team/web")...) {
			made = secret
		}
		return task.Errorf(task.Invalid, "the secret %s is not nice", made)
	}
	status, page := h.post("/connect/forge", h.forgeForm())
	if status != http.StatusOK || made == "" || !strings.Contains(page, "is not nice") {
		t.Errorf("the form answers %d: %s", status, page)
	}
	h.nowhere(made, page)
}

// What has begun is done to the end, also if the browser goes away; and what went wrong is
// shown with what was done.
func TestTheBrowserGoesAway(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	ctx, leave := context.WithCancel(t.Context())
	h.forge.After = func(number int, _ string) error {
		if number == 3 {
			leave()
		}
		return nil
	}
	form := web.ForgeForm{Forge: task.Gitea, URL: h.address, Token: redact.Secret(token), Repositories: []string{"team/app", "team/web"}, Webhook: true}
	h.must(h.page.ConnectForge(ctx, form))
	for _, name := range form.Repositories {
		if hooks := h.forge.HookURLs(name); len(hooks) != 1 {
			t.Errorf("%s has the webhooks %v", name, hooks)
		}
	}
	other := newInstallation(t)
	other.forge.After = func(int, string) error { return task.Errorf(task.DataDir, "the disk is full") }
	if status, _ := other.post("/connect/forge", other.forgeForm()); status < http.StatusBadRequest {
		t.Errorf("with a full disk the form answers %d", status)
	}
	_, page := other.get("/connect")
	other.says(page, "the rest was not done", "the disk is full")
}
