package connectpage_test

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/connectpage"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

// with starts the server with an environment and a configuration.
func (h *installation) with(text string, environ ...string) {
	h.Helper()
	h.must(os.WriteFile(h.file(), []byte(text), 0o600))
	h.environ = environ
	h.start()
}

// A key that the environment has for one address is sent to no other that is typed on the page:
// neither when the model is connected, nor when it is tested after that.
func TestAKeyOfTheEnvironmentIsSentWhereItWas(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte(key), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, variable := range []string{"TORYO_LLM_API_KEY=" + key, "TORYO_LLM_API_KEY_FILE=" + file} {
		h := newInstallation(t)
		const before = "llm:\n  provider: openai\n  model: m\n"
		h.with(before, variable)
		name, _, _ := strings.Cut(variable, "=")
		status, page := h.post("/connect/model", url.Values{"provider": {"openai"}, "model": {"m"}, "base_url": {"http://127.0.0.1:1/v1"}})
		if status != http.StatusConflict || !strings.Contains(page, name) {
			t.Errorf("with %s another address answers %d", name, status)
		}
		h.post("/connect/model/test", url.Values{"provider": {"openai"}})
		if asked := h.asked; asked.BaseURL != "" || asked.APIKey.Reveal() != key {
			t.Errorf("with %s the model was asked as %+v", name, asked)
		}
		if text, err := os.ReadFile(h.file()); err != nil || string(text) != before {
			t.Errorf("the configuration says %s", text)
		}
	}
}

// A key that the environment has for one provider is sent to no other.
func TestAKeyOfTheEnvironmentIsOfOneProvider(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	h.with("llm:\n  provider: anthropic\n  model: m\n", "TORYO_LLM_API_KEY="+key)
	if status, page := h.post("/connect/model", url.Values{"provider": {"openai"}, "model": {"m"}}); status != http.StatusUnprocessableEntity || !strings.Contains(page, "give the key of the model") {
		t.Errorf("another provider without a key answers %d", status)
	}
	h.with("llm:\n  provider: anthropic\n  model: m\n", "TORYO_LLM_API_KEY="+key, "OPENAI_API_KEY=0pen-0pen-0pen")
	if status, page := h.post("/connect/model", url.Values{"provider": {"openai"}, "model": {"m"}}); status != http.StatusConflict || !strings.Contains(page, "TORYO_LLM_API_KEY") {
		t.Errorf("a variable that would go over that of the provider answers %d", status)
	}
	if asked := h.asked; asked.APIKey.Reveal() == key {
		t.Errorf("the model was asked as %+v", asked)
	}
	h.with("", "TORYO_LLM_API_KEY="+key) // whoever sets nothing but the key means the first model
	if status, page := h.post("/connect/model", url.Values{"provider": {"openai"}, "model": {"m"}}); status != http.StatusOK || h.asked.APIKey.Reveal() != key {
		t.Errorf("the first model answers %d: %s", status, page)
	}
}

// The key of a role that has no address of its own goes to that of the general model, and so
// not to another one that is typed on the page.
func TestKeysOfRolesStayWhereTheyAre(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	h.must(os.WriteFile(filepath.Join(h.folder, "r0le"), []byte("r0le-r0le-r0le"), 0o600))
	const role = "llm_overrides:\n  review:\n    model: big\n    api_key_file: r0le\n"
	h.with("llm:\n  provider: openai\n  model: m\n"+role, "OPENAI_API_KEY=0pen-0pen-0pen")
	form := url.Values{"provider": {"openai"}, "model": {"m"}, "base_url": {"http://127.0.0.1:1/v1"}, "key": {key}}
	status, page := h.post("/connect/model", form)
	if status != http.StatusConflict {
		t.Errorf("an address to which the key of a role would go answers %d", status)
	}
	h.says(page, "the key of the model for review would be sent to openai http://127.0.0.1:1/v1")
	h.with("llm:\n  provider: openai\n  model: m\n"+role+"    base_url: https://models.example.com\n", "OPENAI_API_KEY=0pen-0pen-0pen")
	if status, page := h.post("/connect/model", form); status != http.StatusOK {
		t.Errorf("a role with an address of its own answers %d: %s", status, page)
	}
}

// A token that the environment has for a GitHub of the company is not sent to the one of all.
func TestATokenOfTheEnvironmentIsSentWhereItWas(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	h.with("github:\n  url: https://github.example.com\n  owner: team\n  bot_name: toryo-bot\n", "TORYO_GITHUB_TOKEN="+token)
	h.start(func(o *connectpage.Options) {
		open := o.Open
		o.Open = func(c config.Config, of task.Forge, client *http.Client) (forge.Forge, error) {
			if c.GitHub.Token != "" {
				t.Errorf("a token is sent to %s", c.GitHub.URL)
			}
			return open(c, of, client)
		}
	})
	form := url.Values{"forge": {"github"}, "url": {"https://github.com"}, "token": {""}, "repositories": {"team/app"}}
	if status, page := h.post("/connect/forge", form); status != http.StatusUnprocessableEntity || !strings.Contains(page, "give an access token") {
		t.Errorf("the form answers %d", status)
	}
}

// Models are asked by the transport that looks at each address it dials, wherever a name leads
// at that moment.
func TestModelsAreAskedWhereForgesMayBe(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	if status, _ := h.post("/connect/model", url.Values{"provider": {"openai"}, "model": {"m"}, "base_url": {"http://127.0.0.1:1/v1"}}); status != http.StatusOK {
		t.Fatalf("the form answers %d", status)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://169.254.169.254/latest", http.NoBody)
	h.must(err)
	answer, err := h.through.RoundTrip(request)
	if err == nil {
		h.must(answer.Body.Close())
	}
	if err == nil || !strings.Contains(err.Error(), "answers machines about themselves") {
		t.Errorf("the address of a cloud: %v", err)
	}
}
