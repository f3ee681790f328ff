package doctor_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/doctor"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/github"
	"github.com/toryo-dev/toryo/internal/forge/gitlab"
	"github.com/toryo-dev/toryo/internal/redact"
	"github.com/toryo-dev/toryo/internal/task"
)

// A page is no API, also where the client of the forge does not say with which status it came.
func TestPageInPlaceOfAnAPI(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{"<html>Please log in</html>", "{}", "[1]"} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer) }))
		t.Cleanup(server.Close)
		c := config.Default()
		c.GitHub.URL, c.GitHub.Token, c.GitHub.BotName, c.GitHub.Owner = server.URL, "good-token", "bot", "team"
		c.GitLab.URL, c.GitLab.Token, c.GitLab.BotName, c.GitLab.Projects = server.URL, "good-token", "bot", []string{"team/app"}
		access := doctor.ForgeAccess{Connect: func(name task.Forge) (forge.Reader, forge.Setup, error) {
			if name == task.GitLab {
				connected, err := gitlab.New(gitlab.Options{URL: server.URL, Token: "good-token"})
				return connected, connected, err
			}
			connected, err := github.New(github.Options{URL: server.URL, Token: "good-token"})
			return connected, connected, err
		}}
		got := doctor.Explore(t.Context(), doctor.Forges(c, access))
		for _, name := range []string{"github", "gitlab"} {
			want(t, got, name, doctor.Missing, "something answers at "+server.URL+", but not the API of "+name, name+".url", "proxy")
		}
		if len(got) != 2 || strings.Contains(got[0].Found+got[1].Found, "does not answer") {
			t.Errorf("for %s it says %+v", answer, got)
		}
	}
}

// appAt is what doctor says about a GitHub App that gets these answers.
func appAt(t *testing.T, paths map[string]http.HandlerFunc) []doctor.Finding {
	t.Helper()
	const installation = 12
	mux := http.NewServeMux()
	for path, answer := range paths {
		mux.HandleFunc(path, answer)
	}
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	c := config.Default()
	c.GitHub.URL, c.GitHub.BotName, c.GitHub.Owner = server.URL, "toryo-app[bot]", "team"
	c.GitHub.AppID, c.GitHub.AppInstallationID, c.GitHub.AppPrivateKey = 4711, installation, redact.Secret(text)
	return doctor.Explore(t.Context(), doctor.Forges(c, doctor.ForgeAccess{
		Connect: func(task.Forge) (forge.Reader, forge.Setup, error) {
			connected, err := github.New(github.Options{
				URL: server.URL, App: &github.App{ID: fmt.Sprint(c.GitHub.AppID), InstallationID: installation, PrivateKey: string(text)},
			})
			return connected, connected, err
		},
		Scope: func(task.Forge, string) bool { return true },
	}))
}

// An App has no token: whoever set it up is told of its number, its installation and its key.
func TestAppThatGitHubRefuses(t *testing.T) {
	t.Parallel()
	fail := func(status int, message string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_, _ = fmt.Fprintf(w, `{"message":%q}`, message)
		}
	}
	itself := func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"id":4711,"slug":"toryo-app"}`)
	}
	for name, c := range map[string]struct {
		paths   map[string]http.HandlerFunc
		finding string
		says    []string
	}{
		"another key": {
			map[string]http.HandlerFunc{"/": fail(http.StatusUnauthorized, "A JSON web token could not be decoded")}, "github",
			[]string{"GitHub App 4711", "401", "could not be decoded", "github.app_id", "github.app_private_key_file", "clock"},
		},
		"suspended": {
			map[string]http.HandlerFunc{"/": fail(http.StatusForbidden, "This installation has been suspended")}, "github",
			[]string{"GitHub App 4711", "403", "has been suspended", "installation with the number 12 (github.app_installation_id)"},
		},
		"no such App": {
			map[string]http.HandlerFunc{"/": fail(http.StatusNotFound, "Integration not found")}, "github",
			[]string{"knows no GitHub App 4711", "github.app_id", "github.url"},
		},
		"no such installation": {
			map[string]http.HandlerFunc{"/": fail(http.StatusNotFound, "Not Found"), "/app": itself}, "github repositories",
			[]string{"installation with the number 12 (github.app_installation_id)", "an App needs"},
		},
		"too many requests": {
			map[string]http.HandlerFunc{"/": fail(http.StatusTooManyRequests, "slow down")}, "github", []string{"allows no more requests"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := appAt(t, c.paths)
			want(t, got, c.finding, doctor.Missing, c.says...)
			for _, finding := range got {
				if said := finding.Found + finding.Hint; strings.Contains(finding.Hint+finding.Command, "token") || strings.Contains(said, "the token") || strings.Contains(said, "PRIVATE KEY-") {
					t.Errorf("it says %+v", finding)
				}
			}
		})
	}
}

// An App cannot be assigned. Whoever named it as the bot would wait for ever.
func TestAppThatIsToBeAssigned(t *testing.T) {
	t.Parallel()
	got := appAt(t, map[string]http.HandlerFunc{"/app": func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"id":4711,"slug":"toryo-app"}`)
	}})
	want(t, got, "github", doctor.Warning, "bot_name is toryo-app[bot]", "lets nobody assign an App", "github.app_name to toryo-app")
}

// What is missing of an App is said in its own terms too.
func TestAppThatIsNotFullyConfigured(t *testing.T) {
	t.Parallel()
	c := config.Default()
	c.GitHub.Owner, c.GitHub.AppInstallationID = "team", 12
	find := func() []doctor.Finding { return doctor.Explore(t.Context(), doctor.Forges(c, doctor.ForgeAccess{})) }
	want(t, find(), "github", doctor.Missing, "a GitHub App is described", "github.app_id")
	c.GitHub.AppID = 4711
	want(t, find(), "github", doctor.Missing, "the GitHub App 4711 has no private key", "github.app_private_key_file")
	c.GitHub.AppPrivateKey, c.GitHub.AppInstallationID, c.GitHub.Owner = "hunter2hunter2", 0, ""
	want(t, find(), "github", doctor.Missing, "where the GitHub App 4711 is installed", "github.owner")
	c.GitHub.Owner = "team" // its installation is found by that
	got := find()
	want(t, got, "github", doctor.Missing, "not whom people assign", "github.bot_name", "no App can be assigned")
	if strings.Contains(fmt.Sprint(got), "hunter2") {
		t.Errorf("the key is in %+v", got)
	}
}
