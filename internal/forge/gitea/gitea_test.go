package gitea_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/toryo-dev/toryo/internal/forge"
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
		forgetest.Run(t, newFixture(t, server, server.URL), forgetest.Options{
			Without: map[string]string{"CheckLog": "jobs need a runner, which the server of the tests does not have"},
		})
	})
	t.Run("Faults", func(t *testing.T) {
		t.Parallel()
		proxy := testkit.Faults(t, server.URL)
		forgetest.RunFaults(t, newFixture(t, server, proxy.URL), proxy, forgetest.Faults{
			Answer: testkit.Respond, FailAfter: testkit.FailAfter, CutBefore: testkit.CutBefore, CutAfter: testkit.CutAfter,
			CutWithin: testkit.CutWithin, HalfJSON: testkit.HalfJSON, Hang: testkit.Hang,
		}, forgetest.Paths{Item: "/issues/", Comments: "/comments", Pulls: "/pulls"})
	})
	only := peculiar{server}
	t.Run("AccessAsAdministrator", only.accessAsAdministrator)
	t.Run("AccessInAnOrganisation", only.accessInAnOrganisation)
	t.Run("BadToken", only.badToken)
	t.Run("OrganisationLabels", only.organisationLabels)
	t.Run("LongReview", only.longReview)
	t.Run("DeletedTexts", only.deletedTexts)
	t.Run("DraftByTitle", only.draftByTitle)
	t.Run("Dependencies", only.dependencies)
	t.Run("MergeFollowsTheRules", only.mergeFollowsTheRules)
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

// TestWhoCanBeAssigned is not always who can write: it follows what Gitea 1.26 answers to
// somebody who is no administrator.
func TestWhoCanBeAssigned(t *testing.T) {
	t.Parallel()
	const owners = `{"id": 1, "name": "Owners", "permission": "owner", "units_map": {"repo.code": "owner"}}`
	for name, c := range map[string]struct {
		status int
		teams  string
		want   forge.Access
	}{
		"of a person":              {http.StatusMethodNotAllowed, `{"message": "repo is not owned by an organization"}`, forge.WriteAccess},
		"owners only":              {http.StatusOK, `[` + owners + `]`, forge.WriteAccess},
		"teams that write":         {http.StatusOK, `[` + owners + `, {"id": 2, "permission": "write", "units_map": {"repo.code": "write", "repo.pulls": "read"}}]`, forge.WriteAccess},
		"a team that reads":        {http.StatusOK, `[` + owners + `, {"id": 2, "permission": "read", "units_map": {"repo.code": "read", "repo.pulls": "read"}}]`, forge.ReadAccess},
		"a team that labels":       {http.StatusOK, `[{"id": 2, "permission": "write", "units_map": {"repo.code": "read", "repo.issues": "write"}}]`, forge.ReadAccess},
		"a team of nobody knows":   {http.StatusOK, `[{"id": 2, "permission": "none", "units_map": {"repo.pulls": "read"}}]`, forge.ReadAccess},
		"in a team that writes":    {http.StatusOK, `[{"id": 2, "permission": "read"}, {"id": 7, "permission": "write"}]`, forge.WriteAccess},
		"teams that are not known": {http.StatusInternalServerError, `{}`, forge.NoAccess},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				status, text := http.StatusNotFound, `{}`
				switch r.URL.Path {
				case "/api/v1/repos/company/app/collaborators/Ann/permission":
					status = http.StatusForbidden
				case "/api/v1/repos/company/app/assignees":
					status, text = http.StatusOK, `[{"login": "ann"}]`
				case "/api/v1/teams/2/members/Ann":
					status, text = http.StatusOK, `{"login": "ann"}` // which has to count for nothing
				case "/api/v1/teams/7/members/Ann":
					status, text = http.StatusOK, `{"login": "ann"}`
				case "/api/v1/repos/company/app/teams":
					status, text = c.status, c.teams
				}
				w.WriteHeader(status)
				_, _ = w.Write([]byte(text))
			}))
			defer server.Close()
			made, err := gitea.New(gitea.Options{URL: server.URL, Token: "t"})
			if err != nil {
				t.Fatal(err)
			}
			got, err := made.Access(t.Context(), "company/app", "Ann")
			if failed := c.status == http.StatusInternalServerError; got != c.want || (err != nil) != failed {
				t.Errorf("%s, %v; want %s", got, err, c.want)
			}
		})
	}
}
