package connect_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/connect"
	"github.com/toryo-dev/toryo/internal/task"
)

// write puts a file into the installation.
func (h *installation) write(name, content string) {
	h.Helper()
	path := filepath.Join(h.folder, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		h.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		h.Fatal(err)
	}
}

// load reads the configuration as a server does.
func (h *installation) load() config.Config {
	h.Helper()
	c, report := config.Load(h.file(), nil, nil)
	if err := report.Err(); err != nil {
		h.Fatal(err)
	}
	return c
}

// A token takes the place of a GitHub App: a configuration with both does not load. Undone, the App
// is there again.
func TestATokenInPlaceOfAnApp(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	const before = "github:\n  owner: team\n  bot_name: old[bot]\n  app_id: 7 # ours\n  app_installation_id: 8\n  app_private_key_file: key.pem\n"
	h.write("toryo.yaml", before)
	h.write("key.pem", "the key of the App\n")
	answers := h.answers()
	answers.Forge, answers.URL, answers.Webhook = task.GitHub, "https://github.com", false
	if err := h.installer().Apply(t.Context(), answers); err != nil {
		t.Fatal(err)
	}
	if c := h.load(); c.GitHub.UsesApp() || c.GitHub.Token.Reveal() != token {
		t.Errorf("the configuration says %+v", c.GitHub)
	}
	if err := h.installer().Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := h.content()["toryo.yaml"]; got != "-rw-------\n"+before {
		t.Errorf("the file is %s", got)
	}
}

// A variable goes over the file. Where it says something else than what was checked, nothing is
// written, and the error names it.
func TestApplyRefusesWhatAVariableGoesOver(t *testing.T) {
	t.Parallel()
	for variable, refused := range map[string]bool{
		"TORYO_GITEA_TOKEN=expired-t0k3n":               true,
		"TORYO_GITEA_TOKEN=" + token:                    false,
		"TORYO_GITEA_TOKEN_FILE=/nonexistent/token":     true,
		"TORYO_GITEA_OWNER=others":                      true,
		"TORYO_GITEA_OWNER=team":                        false,
		"TORYO_GITEA_WEBHOOK_SECRET=s3cr3t-s3cr3t":      false, // webhooks get it
		"TORYO_LLM_API_KEY=another-k3y":                 true,
		"TORYO_LLM_BASE_URL=http://127.0.0.1:1/v1":      true, // the answers have none
		"TORYO_SERVER_PUBLIC_URL=https://t.example.com": true,
		"TORYO_LOG_LEVEL=warn":                          false,
	} {
		t.Run(variable, func(t *testing.T) {
			t.Parallel()
			h := newInstallation(t)
			installer := h.installer()
			installer.Environ = []string{variable}
			err := installer.Apply(t.Context(), h.answers())
			name, _, _ := strings.Cut(variable, "=")
			switch {
			case !refused && err != nil:
				t.Error(err)
			case refused && (task.CodeOf(err) != task.Conflict || !strings.Contains(err.Error(), name)):
				t.Errorf("the error is %v", err)
			case refused && len(h.content())+len(h.forge.Written()) > 0:
				t.Errorf("written: %v, %v", h.content(), h.forge.Written())
			}
			if err != nil && strings.Contains(err.Error(), "expired-t0k3n") {
				t.Errorf("the error has the secret in it: %v", err)
			}
		})
	}
}

// A file of the user's own is never written over, wherever it lies, and stays when all is undone.
func TestFilesOfOthersStay(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	const mine, ignore = "data/secrets/gitea-token", "data/secrets/.gitignore"
	h.write(mine, "mine\n")
	h.write(ignore, "*.key\n")
	h.apply()
	if got := h.load().Gitea.Token.Reveal(); got != token {
		t.Errorf("the token is %q", got)
	}
	before := h.content()
	h.apply()
	if diff := cmp.Diff(before, h.content()); diff != "" {
		t.Errorf("the second run changed %s", diff)
	}
	if err := h.installer().Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"data": "drwx------", "data/secrets": "drwx------", mine: "-rw-------\nmine\n", ignore: "-rw-------\n*.key\n"}
	if diff := cmp.Diff(want, h.content()); diff != "" {
		t.Error(diff)
	}
}

// What a run that was killed has left of a file with a secret is removed by the next, be it to
// go on or to undo.
func TestDraftsOfSecretsAreRemoved(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	const draft, mine = "data/secrets/.toryo-init-123.tmp", ".toryo-notes"
	h.write(draft, token)
	h.write(mine, "mine")
	h.apply()
	if _, left := h.content()[draft]; left {
		t.Error("Apply leaves it")
	}
	h.write(draft, token)
	if err := h.installer().Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"data": "drwx------", mine: "-rw-------\nmine"}, h.content()); diff != "" {
		t.Error(diff)
	}
}

// The next run offers the repositories that were chosen last, and no others.
func TestRepositoriesThatWereChosen(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	h.apply()
	answers := h.answers()
	answers.Repositories = []string{"team/web"}
	if err := h.installer().Apply(t.Context(), answers); err != nil {
		t.Fatal(err)
	}
	if got := h.installer().Repositories(task.Gitea, answers.URL); len(got) != 1 || got[0] != "team/web" {
		t.Errorf("offered are %v", got)
	}
}

// The projects of one GitLab are not those of another.
func TestAnotherGitLab(t *testing.T) {
	t.Parallel()
	for address, want := range map[string][]string{
		"https://gitlab.com":         {"old/app", "team/app"},
		"https://gitlab.example.com": {"team/app"},
	} {
		h := newInstallation(t)
		h.write("toryo.yaml", "gitlab:\n  projects: [old/app]\n  bot_name: toryo-bot\n")
		answers := h.answers()
		answers.Forge, answers.URL, answers.Webhook, answers.Repositories = task.GitLab, address, false, []string{"team/app"}
		if err := h.installer().Apply(t.Context(), answers); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, h.load().GitLab.Projects); diff != "" {
			t.Errorf("%s: %s", address, diff)
		}
	}
}

// The file of a secret that is named and not there is said before anything is written.
func TestAConfigurationThatWouldNotLoad(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	answers := h.answers()
	answers.Token = connect.Secret{Value: token, File: filepath.Join(h.folder, "gone")}
	err := h.installer().Apply(t.Context(), answers)
	if task.CodeOf(err) != task.BadConfig || len(h.content())+len(h.forge.Written()) > 0 {
		t.Errorf("%v; written: %v, %v", err, h.content(), h.forge.Written())
	}
}
