package gitea_test

import (
	"testing"

	"github.com/toryo-dev/toryo/internal/forge/forgetest"
	"github.com/toryo-dev/toryo/internal/forge/gitea"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
)

// TestOnGitea runs everything that needs the server against one instance.
func TestOnGitea(t *testing.T) {
	t.Parallel()
	server := testkit.Gitea(t)
	t.Run("Conformance", func(t *testing.T) {
		t.Parallel()
		forgetest.Run(t, newFixture(t, server, server.URL), forgetest.Options{})
	})
	t.Run("Faults", func(t *testing.T) {
		t.Parallel()
		proxy := testkit.Faults(t, server.URL)
		forgetest.RunFaults(t, newFixture(t, server, proxy.URL), proxy, forgetest.Faults{
			Answer: testkit.Answer, FailAfter: testkit.FailAfter, CutBefore: testkit.CutBefore, CutAfter: testkit.CutAfter,
			CutWithin: testkit.CutWithin, HalfJSON: testkit.HalfJSON, Hang: testkit.Hang,
		}, forgetest.Paths{Item: "/issues/", Comments: "/comments", Pulls: "/pulls"})
	})
	only := peculiar{server}
	t.Run("AccessAsAdministrator", only.accessAsAdministrator)
	t.Run("BadToken", only.badToken)
	t.Run("OrganisationLabels", only.organisationLabels)
	t.Run("LongReview", only.longReview)
	t.Run("DraftByTitle", only.draftByTitle)
	t.Run("Dependencies", only.dependencies)
}

func TestNew(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]gitea.Options{
		"no address":          {Token: "t"},
		"an address of files": {URL: "file:///etc", Token: "t"},
		"no host":             {URL: "http:///x", Token: "t"},
		"no token":            {URL: "https://gitea.example"},
	} {
		if _, err := gitea.New(options); task.CodeOf(err) != task.BadConfig {
			t.Errorf("%s: %v", name, err)
		}
	}
	made, err := gitea.New(gitea.Options{URL: "https://example.com/git/", Token: "t"})
	if err != nil || made.Name() != task.Gitea {
		t.Fatalf("%v, %v", made, err)
	}
	remote, err := made.Remote(t.Context(), "owner/name")
	if err != nil || remote.URL != "https://example.com/git/owner/name.git" {
		t.Errorf("remote %v, %v", remote, err)
	}
}
