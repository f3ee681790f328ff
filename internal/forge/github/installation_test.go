package github_test

import (
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/forge/github"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit/forgeworld"
)

// newAppAt makes a fixture whose adapter knows the owner at which the App is installed, and not
// the number of the installation.
func newAppAt(t testing.TB, s *server, owner string, installations map[string]int64) *forgeworld.Fixture {
	t.Helper()
	fixture := newApp(t, s, s.URL, time.Minute) // each request gets a token of its own
	s.app.installations = installations
	options := appOptions(s.URL)
	options.App.InstallationID, options.App.Owner = 0, owner
	made, err := github.New(options)
	if err != nil {
		t.Fatal(err)
	}
	fixture.Adapter = made
	return fixture
}

// Without the number of an installation it is the one at the owner, an organisation or a user.
// GitHub is asked for it once.
func TestInstallationIsFoundByTheOwner(t *testing.T) {
	t.Parallel()
	for at, asked := range map[string]int{"orgs/team": 1, "users/team": 2} {
		s := newServer(t)
		fixture := newAppAt(t, s, "team", map[string]int64{at: 99, "orgs/others": 98})
		name := fixture.Repository(t)
		for range 3 {
			if _, err := fixture.Forge().Repository(t.Context(), name); err != nil {
				t.Fatalf("installed at %s: %v", at, err)
			}
		}
		if len(s.app.issued) < 3 || s.app.asked != asked {
			t.Errorf("installed at %s: %d tokens, and %d questions for the installation, want %d", at, len(s.app.issued), s.app.asked, asked)
		}
	}
}

// An App that is not installed at the owner says where to install it, and works as soon as it is.
func TestAppIsNotInstalled(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	fixture := newAppAt(t, s, "team", map[string]int64{"orgs/others": 98})
	name := fixture.Repository(t)
	_, err := fixture.Forge().Repositories(t.Context())
	coded, found := task.AsError(err)
	if !found || coded.Code != task.Unavailable || !strings.Contains(coded.Message, "is not installed at team") ||
		!strings.Contains(coded.Hint, "install the App at team: "+s.URL+"/github-apps/toryo-app/installations/new") {
		t.Errorf("an App that is not installed: %v", err)
	}
	if login, err := fixture.Forge().Self(t.Context()); err != nil || login != "toryo-app[bot]" {
		t.Errorf("who it is can be said before: %q, %v", login, err)
	}
	s.world.Lock()
	s.app.installations["orgs/team"] = 99
	s.world.Unlock()
	if _, err := fixture.Forge().Repository(t.Context(), name); err != nil {
		t.Errorf("after it was installed: %v", err)
	}
}

// An App that was removed and installed again has another number.
func TestAppIsInstalledAgain(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	fixture := newAppAt(t, s, "team", map[string]int64{"orgs/team": 99})
	name := fixture.Repository(t)
	if _, err := fixture.Forge().Repository(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	s.world.Lock()
	s.app.installations["orgs/team"] = 100
	s.world.Unlock()
	if _, err := fixture.Forge().Repository(t.Context(), name); task.CodeOf(err) != task.NotFound {
		t.Errorf("with the number of the installation that is gone: %v", err)
	}
	if _, err := fixture.Forge().Repository(t.Context(), name); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}
