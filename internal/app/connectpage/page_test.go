package connectpage_test

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/connect"
	"github.com/toryo-dev/toryo/internal/app/connectpage"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/server"
	"github.com/toryo-dev/toryo/internal/task"
)

func webhookOf(c config.Config) server.Webhook {
	return connect.KindOf(task.Gitea).Webhook(c.Gitea.WebhookSecret)
}

func (h *installation) forgeForm(change ...string) url.Values {
	form := url.Values{"forge": {"gitea"}, "url": {h.address}, "token": {token}, "repositories": {"team/app\nteam/web"}, "webhook": {"yes"}}
	for i := 0; i < len(change); i += 2 {
		form.Set(change[i], change[i+1])
	}
	return form
}

// An administrator connects a forge: the token is checked and goes to a file that nobody else
// can read, the configuration names it, labels and webhooks are there, one delivery has arrived
// at the running server, and the page says that the server has to be started again. After that
// it says nothing of it.
func TestConnectAForge(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	if _, page := h.get("/connect"); strings.Contains(page, "toryo up --config") {
		t.Error("the page wants a restart, and nothing has changed")
	}
	if _, page := h.get("/"); !strings.Contains(page, "No forge is connected") {
		t.Error("the home page does not say that no forge is connected")
	}
	status, page := h.post("/connect/forge", h.forgeForm())
	if status != http.StatusOK {
		t.Fatalf("the form answers %d: %s", status, page)
	}
	h.says(page, "toryo up --config "+h.file(), "Restart required", "<strong>"+bot+"</strong>", "gitea.owner: team", filepath.Join(h.data(), "secrets", "gitea-token"),
		"labels of team/app", "webhook of team/web", "it has arrived", "push branches", "All permissions granted")
	c := h.load()
	if c.Gitea.Token.Reveal() != token || c.Gitea.Owner != "team" || c.Gitea.BotName != bot || len(c.Gitea.WebhookSecret.Reveal()) != 64 {
		t.Errorf("the configuration says %+v", c.Gitea)
	}
	for _, name := range []string{"team/app", "team/web"} {
		if hooks := h.forge.HookURLs(name); len(hooks) != 1 || hooks[0] != h.url+"/webhooks/gitea" {
			t.Errorf("%s has the webhooks %v", name, hooks)
		}
	}
	h.onlyInSecrets(token, page)
	h.onlyInSecrets(c.Gitea.WebhookSecret.Reveal(), page)

	h.start() // again
	_, page = h.get("/connect")
	h.says(page, ">In use<", ">Receiving<")
	if strings.Contains(page, "toryo up --config") {
		t.Error("the page wants a restart after one")
	}
	if _, page := h.get("/"); strings.Contains(page, "No forge is connected") || !strings.Contains(page, "No model is connected") {
		t.Error("the home page does not say that only the model is missing")
	}
}

// The test looks at the forge as it is: whose token it is, and each right in each repository.
func TestLookAtAForge(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	if status, _ := h.post("/connect/forge/test", url.Values{"forge": {"gitea"}}); status != http.StatusNotFound {
		t.Errorf("a forge that is not connected answers %d", status)
	}
	if status, _ := h.post("/connect/forge", h.forgeForm()); status != http.StatusOK {
		t.Fatalf("the form answers %d", status)
	}
	h.start()
	h.forge.Missing[forge.Push] = true
	status, page := h.post("/connect/forge/test", url.Values{"forge": {"gitea"}})
	if status != http.StatusOK {
		t.Fatalf("the test answers %d", status)
	}
	h.says(page, "team/app", "team/web", "Missing permissions: 1", "the scope push", "the forge responded: 403 Forbidden", "Webhook: set up with every event.")
	h.forge.Token = "another"
	_, page = h.post("/connect/forge/test", url.Values{"forge": {"gitea"}})
	h.says(page, "does not accept the token", "/user/settings/applications")
	h.nowhere(token, page)
}

// Labels and webhooks can be created later, in repositories that are worked on.
func TestPrepareRepositories(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	if status, _ := h.post("/connect/forge", h.forgeForm("repositories", "team/app", "webhook", "no")); status != http.StatusOK {
		t.Fatal("the forge is not connected")
	}
	if hooks := h.forge.HookURLs("team/app"); len(hooks) > 0 {
		t.Fatalf("webhooks that were not wanted: %v", hooks)
	}
	h.start()
	if status, page := h.post("/connect/forge/prepare", url.Values{"forge": {"gitea"}, "repositories": {"others/app"}}); status != http.StatusUnprocessableEntity || !strings.Contains(page, "gitea.owner: team") {
		t.Errorf("a repository of another owner answers %d", status)
	}
	status, page := h.post("/connect/forge/prepare", url.Values{"forge": {"gitea"}, "repositories": {"team/app\nteam/web"}})
	if status != http.StatusOK {
		t.Fatalf("the form answers %d: %s", status, page)
	}
	h.says(page, "webhook of team/web", "it has arrived", "toryo up --config")
	if labels, err := h.forge.As(token).Labels(t.Context(), "team/web"); err != nil || len(labels) != 7 {
		t.Errorf("the labels are %v, %v", labels, err)
	}
	h.load()
}

// What cannot be connected changes nothing, and says what to do.
func TestBadForges(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		form   []string
		spoil  func(*installation)
		status int
		says   string
	}{
		"a wrong token":          {[]string{"token", "wr0ng-wr0ng"}, nil, http.StatusUnauthorized, "does not accept the token"},
		"no token":               {[]string{"token", ""}, nil, http.StatusUnprocessableEntity, "give an access token"},
		"no repository":          {[]string{"repositories", " \n"}, nil, http.StatusUnprocessableEntity, "name a repository"},
		"a repository not there": {[]string{"repositories", "team/none"}, nil, http.StatusForbidden, "has no repository team/none"},
		"two owners":             {[]string{"repositories", "team/app others/app"}, nil, http.StatusUnprocessableEntity, "different owners"},
		"a right is missing":     {nil, func(h *installation) { h.forge.Missing[forge.Push] = true }, http.StatusForbidden, "it has no permission to push branches"},
		"another sort of forge":  {[]string{"forge", "gitlab"}, nil, http.StatusUnprocessableEntity, "Gitea or Forgejo, not GitLab"},
		"no forge":               {[]string{"forge", "board"}, nil, http.StatusUnprocessableEntity, "no such forge"},
		"not an address":         {[]string{"url", "ftp://x"}, nil, http.StatusUnprocessableEntity, "does not begin with http://"},
		"a password in it":       {[]string{"url", "http://ann:wr0ng-wr0ng@127.0.0.1"}, nil, http.StatusUnprocessableEntity, "user name or password"},
		"an address of a cloud":  {[]string{"url", "http://169.254.169.254"}, nil, http.StatusUnprocessableEntity, "answers machines about themselves"},
		"nothing answers":        {[]string{"url", "http://127.0.0.1:1"}, nil, http.StatusServiceUnavailable, "nothing listens there"},
		"the forge repeats it":   {nil, func(h *installation) { h.opened = task.Errorf(task.Unavailable, "bad token %s", token) }, http.StatusServiceUnavailable, "bad token"},
		"too many repositories":  {[]string{"repositories", strings.Repeat("team/app\n", 21)}, nil, http.StatusUnprocessableEntity, "can be connected at once"},
		"what is no configuration": {nil, func(h *installation) {
			h.start(func(o *connectpage.Options) { o.File = filepath.Join(h.folder, "no", "toryo.yaml") })
		}, http.StatusConflict, "the server cannot write to"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newInstallation(t)
			if test.spoil != nil {
				test.spoil(h)
			}
			if _, before := h.get("/connect"); test.status == http.StatusConflict {
				h.says(before, test.says) // also before the form is filled in
			}
			status, page := h.post("/connect/forge", h.forgeForm(test.form...))
			if status != test.status {
				t.Errorf("the form answers %d, want %d", status, test.status)
			}
			h.says(page, test.says)
			h.untouched()
			h.nowhere(token, page)
			h.nowhere("wr0ng-wr0ng", page)
		})
	}
}

// A model is tried before it is written down; its key goes to a file.
func TestConnectAModel(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	form := url.Values{"provider": {"anthropic"}, "model": {"some-model"}, "key": {key}, "base_url": {""}}
	h.answer = task.Errorf(task.Unauthorized, "the key %s is rejected", key).WithHint("make another")
	status, page := h.post("/connect/model", form)
	if status != http.StatusUnprocessableEntity {
		t.Errorf("a key that is rejected answers %d", status)
	}
	h.says(page, "the model does not work", "make another", `value="some-model"`)
	h.untouched()
	h.nowhere(key, page)
	h.answer = nil
	if status, page = h.post("/connect/model", form); status != http.StatusOK {
		t.Fatalf("the form answers %d: %s", status, page)
	}
	h.says(page, "some-model", filepath.Join(h.data(), "secrets", "llm-api-key"), ">Working<", "toryo up --config")
	if c := h.load(); c.LLM.Provider != "anthropic" || c.LLM.Model != "some-model" || c.LLM.APIKey.Reveal() != key {
		t.Errorf("the configuration says %+v", c.LLM)
	}
	h.onlyInSecrets(key, page)
	h.start()
	h.answer = task.Errorf(task.Unavailable, "overloaded")
	_, page = h.post("/connect/model/test", url.Values{"provider": {"anthropic"}})
	h.says(page, "Not working", "overloaded")
	for name, change := range map[string][2]string{"no provider": {"provider", "script"}, "no model": {"model", " "}, "an address of a cloud": {"base_url", "http://169.254.169.254"}} {
		spoiled := url.Values{"provider": {"openai"}, "model": {"m"}, "key": {key}, "base_url": {""}}
		spoiled.Set(change[0], change[1])
		if status, _ := h.post("/connect/model", spoiled); status != http.StatusUnprocessableEntity {
			t.Errorf("%s answers %d", name, status)
		}
	}
	h.answer = nil
	if status, _ := h.post("/connect/model", url.Values{"provider": {"anthropic"}, "model": {"another"}, "key": {""}, "base_url": {""}}); status != http.StatusOK {
		t.Errorf("another model with the key that is there answers %d", status)
	}
	if c := h.load(); c.LLM.Model != "another" || c.LLM.APIKey.Reveal() != key {
		t.Errorf("the configuration says %+v", c.LLM)
	}
}

// A secret of the environment goes to no address that was typed on the page, and one that goes
// over what was typed is named.
func TestSecretsOfTheEnvironmentStayThere(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	h.start(func(o *connectpage.Options) {
		o.Environ = []string{"GITEA_TOKEN=" + token, "OPENAI_API_KEY=" + key, "TORYO_GITEA_BOT_NAME=another"}
	})
	if status, page := h.post("/connect/forge", h.forgeForm("token", "")); status != http.StatusUnprocessableEntity || !strings.Contains(page, "give an access token") {
		t.Errorf("a token of the environment is used: %d", status)
	}
	if status, _ := h.post("/connect/model", url.Values{"provider": {"openai"}, "model": {"m"}, "base_url": {"http://127.0.0.1:1/v1"}}); status != http.StatusOK {
		t.Errorf("a model at another address, which needs no key, answers %d", status)
	}
	if asked := h.asked; asked.APIKey != "" || asked.BaseURL != "http://127.0.0.1:1/v1" {
		t.Errorf("the model was asked as %+v", asked)
	}
	if status, page := h.post("/connect/forge", h.forgeForm()); status != http.StatusConflict || !strings.Contains(page, "TORYO_GITEA_BOT_NAME") {
		t.Errorf("a variable that goes over the form answers %d", status)
	}
}

// A configuration that cannot be read is shown as such, and nothing is written over it.
func TestABrokenConfiguration(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	const broken = "gitea: [\n"
	h.must(os.WriteFile(h.file(), []byte(broken), 0o600))
	_, page := h.get("/connect")
	h.says(page, "The configuration file has a problem")
	if status, _ := h.post("/connect/forge", h.forgeForm()); status < http.StatusBadRequest {
		t.Errorf("the form answers %d", status)
	}
	text, err := os.ReadFile(h.file())
	h.must(err)
	if string(text) != broken {
		t.Errorf("the file is %q now", text)
	}
}
