package gitlab_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/forgetest"
	"github.com/toryo-dev/toryo/internal/forge/gitlab"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
	"github.com/toryo-dev/toryo/internal/testkit/forgeworld"
)

// setupFixture is a fixture in which adapters can act as others than the bot.
type setupFixture struct {
	*forgeworld.Fixture
	server *server
}

func newSetupFixture(t testing.TB) setupFixture {
	t.Helper()
	s := newServer(t)
	return setupFixture{newFixture(t, s, s.URL), s}
}

func (f setupFixture) As(t testing.TB, repository string, access forge.Access) (adapter forge.Setup, login string) {
	t.Helper()
	login = f.Person(t, repository, access)
	return f.with(t, login, "glpat-of-"+login, "api"), login
}

// with returns an adapter with a token of an account.
func (f setupFixture) with(t testing.TB, login, token string, scopes ...string) *gitlab.Forge {
	t.Helper()
	f.World.Lock()
	defer f.World.Unlock()
	f.World.Tokens[token] = f.World.User(login)
	f.server.scopes[token] = scopes
	made, err := gitlab.New(gitlab.Options{URL: f.server.URL, Token: token})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestSetup(t *testing.T) {
	t.Parallel()
	forgetest.RunSetup(t, newSetupFixture(t), forgetest.Hooks{Events: gitlab.WebhookEvents, Parse: gitlab.ParseWebhook})
}

// A token without a scope lacks what the scope gives, whatever the account may do.
func TestRightsByScope(t *testing.T) {
	t.Parallel()
	f := newSetupFixture(t)
	repository := f.Repository(t)
	admin := f.Person(t, repository, forge.AdminAccess)
	writes := []forge.Right{forge.CommentOn, forge.LabelItems, forge.OpenPulls, forge.SetStatuses, forge.ManageHooks}
	for scopes, missing := range map[string][]forge.Right{
		"api":                       nil,
		"read_api":                  slices.Concat(writes, []forge.Right{forge.ReadCode, forge.Push}),
		"read_api write_repository": writes,
		"read_user":                 slices.Concat(writes, []forge.Right{forge.ReadCode, forge.Push, forge.ReadItems, forge.ReadChecks}),
		"write_repository":          slices.Concat(writes, []forge.Right{forge.ReadSelf, forge.ReadItems, forge.ReadChecks}),
	} {
		adapter := f.with(t, admin, "glpat-"+strings.ReplaceAll(scopes, " ", "-"), strings.Fields(scopes)...)
		checks, err := adapter.CheckRights(t.Context(), repository)
		if err != nil {
			t.Fatal(err)
		}
		for _, check := range checks {
			if is := check.State == forge.RightMissing; is != slices.Contains(missing, check.Right) {
				t.Errorf("%s: %+v", scopes, check)
			} else if is && (!strings.HasPrefix(check.Given, "the scope api") || !strings.Contains(check.Found, scopes[:4])) {
				t.Errorf("%s: it is not said which scope is missing: %+v", scopes, check)
			}
		}
	}
}

// The role in the project says what an account may do.
func TestRightsByRole(t *testing.T) {
	t.Parallel()
	f := newSetupFixture(t)
	repository := f.Repository(t)
	guest, login := f.As(t, repository, forge.ReadAccess)
	f.World.Lock()
	f.server.guest = login
	f.World.Unlock()
	checks, err := guest.CheckRights(t.Context(), repository)
	if err != nil {
		t.Fatal(err)
	}
	for _, check := range checks {
		if is := check.State == forge.RightMissing; is != (check.Right != forge.ReadSelf) {
			t.Errorf("a guest: %+v", check)
		} else if is && (!strings.HasPrefix(check.Given, "the role ") || check.Found != "the account has the role Guest") {
			t.Errorf("a guest: %+v", check)
		}
	}
	writer, _ := f.As(t, repository, forge.WriteAccess)
	if checks, err = writer.CheckRights(t.Context(), repository); err != nil {
		t.Fatal(err)
	}
	if hooks := forgetest.WantRight(t, checks, forge.ManageHooks, forge.RightMissing); hooks.Given != "the role Maintainer in the project" {
		t.Errorf("a developer: %+v", hooks)
	}
}

// GitLab says why it does not take a token.
func TestRightsWithABadToken(t *testing.T) {
	t.Parallel()
	f := newSetupFixture(t)
	repository := f.Repository(t)
	adapter, login := f.As(t, repository, forge.AdminAccess)
	for reason, want := range map[string]string{
		"Token is expired. You can either do re-authorization or token refresh.": "expired",
		"Token was revoked. You have to re-authorize from the user.":             "revoked",
	} {
		f.World.Lock()
		f.server.refused["glpat-of-"+login] = reason
		f.World.Unlock()
		if _, err := adapter.CheckRights(t.Context(), repository); task.CodeOf(err) != task.Unauthorized || !strings.Contains(err.Error(), "the token for GitLab ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	stranger, err := gitlab.New(gitlab.Options{URL: f.server.URL, Token: "glpat-of-nobody"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stranger.CheckRights(t.Context(), repository); task.CodeOf(err) != task.Unauthorized {
		t.Errorf("a bad token: %v", err)
	}
}

// An old server does not tell scopes: what the role gives is not certain.
func TestSetupOnAnOldServer(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	f := newSetupFixture(t)
	f.server.oldServer = true
	repository := f.Repository(t)
	admin, _ := f.As(t, repository, forge.AdminAccess)
	checks, err := admin.CheckRights(ctx, repository)
	if err != nil {
		t.Fatal(err)
	}
	forgetest.WantRight(t, checks, forge.ReadSelf, forge.RightGiven)
	forgetest.WantRight(t, checks, forge.ReadItems, forge.RightGiven)
	forgetest.WantRight(t, checks, forge.Push, forge.RightUnknown)
	hook, err := admin.CreateHook(ctx, repository, forge.HookPost{URL: "https://toryo.example/x", Secret: "x"})
	if err != nil {
		t.Fatal(err)
	}
	if err := admin.TestHook(ctx, repository, hook.ID); task.CodeOf(err) != task.Unsupported {
		t.Errorf("a test: %v", err)
	}
	if last, err := admin.LastDelivery(ctx, repository, hook.ID); err != nil || last != (forge.HookDelivery{}) {
		t.Errorf("the last delivery is %+v, %v", last, err)
	}
}

// The scope of a fine-grained token says nothing of what it may do, and a project that it may not read
// is no error.
func TestRightsOfAFineGrainedToken(t *testing.T) {
	t.Parallel()
	f := newSetupFixture(t)
	repository := f.Repository(t)
	admin := f.Person(t, repository, forge.AdminAccess)
	checks, err := f.with(t, admin, "glpat-granular", "granular").CheckRights(t.Context(), repository)
	if err != nil {
		t.Fatal(err)
	}
	for _, check := range checks[1:] {
		if check.State != forge.RightUnknown || check.Found != "GitLab does not tell what the token may do" {
			t.Errorf("%+v", check)
		}
	}
	if self := forgetest.WantRight(t, checks, forge.ReadSelf, forge.RightMissing); !strings.Contains(self.Found, "higher privileges") {
		t.Errorf("%+v", self)
	}
}

// A fine-grained token need not be allowed to read whose it is. The rest is looked at all the same.
func TestRightsOfATokenThatDoesNotReadItsUser(t *testing.T) {
	t.Parallel()
	f := newSetupFixture(t)
	repository := f.Repository(t)
	admin := f.Person(t, repository, forge.AdminAccess)
	f.with(t, admin, "glpat-of-the-test", "api")
	proxy := testkit.Faults(t, f.server.URL)
	adapter, err := gitlab.New(gitlab.Options{URL: proxy.URL, Token: "glpat-of-the-test"})
	if err != nil {
		t.Fatal(err)
	}
	asJSON := map[string]string{"Content-Type": "application/json"}
	for _, token := range []string{
		`{"id": 1, "scopes": ["granular"]}`,
		`{"id": 1, "scopes": ["granular"], "granular": true, "granular_scopes": [{"access": "user", "permissions": ["read_project"]}]}`,
		`{"id": 1, "scopes": ["api"], "granular": true}`,
		`{"id": 1, "scopes": [], "granular_scopes": [{"access": "selected_memberships"}]}`,
	} {
		proxy.Next(http.MethodGet, "/personal_access_tokens/self", testkit.Respond(200, asJSON, token))
		proxy.Next(http.MethodGet, "/user", testkit.Respond(403, asJSON, `{"error": "insufficient_granular_scope", "error_description": "Your token lacks the permission to read the user"}`))
		checks, err := adapter.CheckRights(t.Context(), repository)
		if err != nil {
			t.Fatalf("%s: %v", token, err)
		}
		self := forgetest.WantRight(t, checks, forge.ReadSelf, forge.RightMissing)
		if !strings.Contains(self.Found, "lacks the permission to read the user") || !strings.Contains(self.Given, "fine-grained") {
			t.Errorf("%s: %+v", token, self)
		}
		for _, check := range checks[1:] {
			if check.State != forge.RightUnknown || check.Found == "" {
				t.Errorf("%s: %+v", token, check)
			}
		}
	}
}

// Reporters label issues, but no merge requests.
func TestReportersDoNotLabel(t *testing.T) {
	t.Parallel()
	f := newSetupFixture(t)
	repository := f.Repository(t)
	reader, _ := f.As(t, repository, forge.ReadAccess)
	checks, err := reader.CheckRights(t.Context(), repository)
	if err != nil {
		t.Fatal(err)
	}
	label := forgetest.WantRight(t, checks, forge.LabelItems, forge.RightMissing)
	if label.Given != "the role Developer in the project" || label.Found != "the account has the role Reporter" {
		t.Errorf("%+v", label)
	}
	forgetest.WantRight(t, checks, forge.CommentOn, forge.RightGiven)
}

// What is switched off in a project nobody may do.
func TestRightsWhatIsSwitchedOff(t *testing.T) {
	t.Parallel()
	for off, rights := range map[string][]forge.Right{
		"issues": {forge.ReadItems, forge.CommentOn}, "merge_requests": {forge.OpenPulls},
	} {
		f := newSetupFixture(t)
		f.server.switchedOff = off
		repository := f.Repository(t)
		admin, _ := f.As(t, repository, forge.AdminAccess)
		checks, err := admin.CheckRights(t.Context(), repository)
		if err != nil {
			t.Fatal(err)
		}
		for _, check := range checks {
			if is := check.State == forge.RightMissing; is != slices.Contains(rights, check.Right) {
				t.Errorf("%s: %+v", off, check)
			} else if is && !strings.HasSuffix(check.Given, "that are switched on in the project") {
				t.Errorf("%s: %+v", off, check)
			}
		}
	}
}

// An administrator needs no role, but with admin mode the token has to have a scope for that. Where a
// private project is shown to an administrator who is no member, it is the administrator's power that
// counts.
func TestRightsOfAnAdministrator(t *testing.T) {
	t.Parallel()
	f := newSetupFixture(t)
	repository := f.Repository(t)
	login := f.Person(t, repository, forge.WriteAccess)
	proxy := testkit.Faults(t, f.server.URL)
	asJSON := map[string]string{"Content-Type": "application/json"}
	for _, c := range []struct {
		name, scopes string
		member       bool
		hooks        forge.RightState
	}{
		{"a member", "api", true, forge.RightUnknown},
		{"a member with the scope", "api admin_mode", true, forge.RightGiven},
		{"no member", "api", false, forge.RightGiven},
	} {
		f.with(t, login, "glpat-of-the-test", strings.Fields(c.scopes)...)
		adapter, err := gitlab.New(gitlab.Options{URL: proxy.URL, Token: "glpat-of-the-test"})
		if err != nil {
			t.Fatal(err)
		}
		f.World.Lock()
		user := fmt.Sprintf(`{"id": %d, "username": %q, "is_admin": true}`, f.World.User(login).ID, login)
		f.World.Unlock()
		proxy.Next(http.MethodGet, "/user", testkit.Respond(200, asJSON, user))
		if !c.member {
			proxy.Next(http.MethodGet, "/members/all/", testkit.Respond(404, asJSON, `{"message": "404 Not found"}`))
		}
		checks, err := adapter.CheckRights(t.Context(), repository)
		if err != nil {
			t.Fatal(err)
		}
		forgetest.WantRight(t, checks, forge.Push, forge.RightGiven) // a role that is enough, or none is needed
		if hooks := forgetest.WantRight(t, checks, forge.ManageHooks, c.hooks); proxy.Left() != 0 {
			t.Errorf("%s: %+v, and %d answers were not asked for", c.name, hooks, proxy.Left())
		}
	}
}
