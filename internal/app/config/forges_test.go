package config

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// privateKey makes a key in PEM.
func privateKey(t *testing.T) string {
	t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	data, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: data}))
}

func TestAGitHubApp(t *testing.T) {
	t.Parallel()
	key := privateKey(t)
	body := strings.Split(key, "\n")[1]
	const app = forge + "  app_id: 12\n"
	for name, test := range map[string]struct {
		config   string
		environ  []string
		hasKey   bool
		problems []string
		warnings []string
	}{
		"in full": {config: app + "  app_private_key_file: key.pem\n  app_installation_id: 34\n", hasKey: true},
		"with Windows line ends": {
			config: app + "  app_private_key_file: windows.pem\n", hasKey: true,
		},
		"with the key in a variable": {config: app, environ: []string{"TORYO_GITHUB_APP_PRIVATE_KEY=" + key}, hasKey: true},
		"without the key": {
			config:   app,
			warnings: []string{"FILE:1:1: github.app_private_key: a GitHub App is named, but its private key is missing; set TORYO_GITHUB_APP_PRIVATE_KEY or github.app_private_key_file"},
		},
		"with a token too": {
			config: app + "  app_private_key_file: key.pem\n", environ: []string{"TORYO_GITHUB_TOKEN=ghp_0123456789"}, hasKey: true,
			problems: []string{"FILE:4:3: github.app_id: a GitHub App and an access token are both set; remove one of the two"},
		},
		"without a number": {
			config: forge + "  app_private_key_file: key.pem\n", hasKey: true,
			problems: []string{"FILE:4:3: github.app_private_key_file: a GitHub App is described, but not named; set github.app_id"},
		},
		"with something else than a key": {
			config:   app + "  app_private_key_file: public.pem\n",
			problems: []string{`FILE:5:3: github.app_private_key_file: "DIR/public.pem": the value is not a private key in PEM; give the whole file, from -----BEGIN to the last -----`},
		},
		"with half a key": {
			config: app, environ: []string{"TORYO_GITHUB_APP_PRIVATE_KEY=" + key[:len(key)-10]},
			problems: []string{"TORYO_GITHUB_APP_PRIVATE_KEY: github.app_private_key: the value is not a private key in PEM; give the whole file, from -----BEGIN to the last -----"},
		},
		"with the key in the file": {
			config:   app + "  app_private_key: |\n    " + strings.ReplaceAll(key, "\n", "\n    ") + "\n",
			problems: []string{"FILE:5:3: github.app_private_key: a secret must not stand in the configuration file; use app_private_key_file or the variable TORYO_GITHUB_APP_PRIVATE_KEY"},
		},
		"with a number that is none": {
			config:   forge + "  app_id: Iv1.0123\n",
			problems: []string{`FILE:4:11: github.app_id: "Iv1.0123" is not a whole number; write it in plain digits, without quotes`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := folder(t, map[string]string{
				"toryo.yaml": test.config, "key.pem": key, "windows.pem": strings.ReplaceAll(key, "\n", "\r\n"),
				"public.pem": strings.ReplaceAll(key, "PRIVATE", "PUBLIC"),
			})
			file := filepath.Join(dir, "toryo.yaml")
			config, report := Load(file, test.environ, nil)
			here := func(texts []string) (all []string) {
				for _, text := range texts {
					all = append(all, strings.NewReplacer("FILE", file, "DIR", dir).Replace(text))
				}
				return all
			}
			problems, warnings := lines(report.Problems), lines(report.Warnings)
			if diff := cmp.Diff(map[string][]string{"problems": here(test.problems), "warnings": here(test.warnings)}, map[string][]string{"problems": problems, "warnings": warnings}); diff != "" {
				t.Errorf("report (-want +got):\n%s", diff)
			}
			block, _ := pem.Decode([]byte(config.GitHub.AppPrivateKey.Reveal()))
			if (block != nil) != test.hasKey {
				t.Errorf("the key is %q", config.GitHub.AppPrivateKey.Reveal())
			}
			var out strings.Builder
			if err := report.Print(&out, config); err != nil || strings.Contains(out.String()+strings.Join(problems, ""), body) {
				t.Errorf("%v: the key is printed", err)
			}
			if got := config.Redactor().String("1: " + body + "\n"); test.hasKey && got != "1: ••••\n" {
				t.Errorf("a line of the key is shown as %q", got)
			}
		})
	}
}

func TestHasCredentials(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		github GitHub
		want   bool
	}{
		"nothing":           {GitHub{}, false},
		"token":             {GitHub{Token: "t"}, true},
		"App":               {GitHub{AppID: 1, AppPrivateKey: "k"}, true},
		"App without key":   {GitHub{AppID: 1}, false},
		"key without App":   {GitHub{AppPrivateKey: "k"}, false},
		"webhook is no key": {GitHub{WebhookSecret: "w"}, false},
	} {
		if got := test.github.HasCredentials(); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestWebhookSecrets(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{
		"toryo.yaml": forge + "  webhook_secret_file: hook\ngitea:\n  url: http://h\n  owner: o\n  bot_name: b\n  webhook_secret: gitea-hook-secret\n", "hook": "github-hook-secret\n",
	})
	file := filepath.Join(dir, "toryo.yaml")
	config, report := Load(file, []string{"TORYO_GITHUB_TOKEN=ghp_0123456789", "TORYO_GITEA_TOKEN=0123456789", "TORYO_GITLAB_WEBHOOK_SECRET=gitlab-hook-secret"}, nil)
	want := []string{
		file + ":9:3: gitea.webhook_secret: a secret must not stand in the configuration file; use webhook_secret_file or the variable TORYO_GITEA_WEBHOOK_SECRET",
		file + ": gitlab.bot_name: gitlab is configured (TORYO_GITLAB_WEBHOOK_SECRET), but this key is missing; set it, or remove what else is set for gitlab",
		file + ": gitlab.projects: gitlab is configured (TORYO_GITLAB_WEBHOOK_SECRET), but this key is missing; set it, or remove what else is set for gitlab",
	}
	if diff := cmp.Diff(want, lines(report.Problems)); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	if config.GitHub.WebhookSecret != "github-hook-secret" || config.GitLab.WebhookSecret != "gitlab-hook-secret" {
		t.Errorf("the secrets are %q and %q", config.GitHub.WebhookSecret.Reveal(), config.GitLab.WebhookSecret.Reveal())
	}
	if got := config.Redactor().String("github-hook-secret gitlab-hook-secret"); got != "•••• ••••" {
		t.Errorf("masked to %q", got)
	}
}
