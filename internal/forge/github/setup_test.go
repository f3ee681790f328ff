package github_test

import (
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/forgetest"
	"github.com/toryo-dev/toryo/internal/forge/github"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
	"github.com/toryo-dev/toryo/internal/testkit/forgeworld"
)

// setupFixture is a fixture in which adapters can act as others than the bot, with classic tokens.
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
	return f.with(t, login, "ghp_of_"+login, "repo", nil), login
}

// with returns an adapter with a token of an account: a classic one with scopes, or a fine-grained one
// with permissions.
func (f setupFixture) with(t testing.TB, login, token, scopes string, permissions map[string]string) *github.Forge {
	t.Helper()
	f.World.Lock()
	defer f.World.Unlock()
	f.World.Tokens[token] = f.World.User(login)
	if permissions != nil {
		f.server.fine[token] = permissions
	} else {
		f.server.scopes[token] = scopes
	}
	made, err := github.New(github.Options{URL: f.server.URL + apiPrefix, Token: token})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestSetup(t *testing.T) {
	t.Parallel()
	forgetest.RunSetup(t, newSetupFixture(t), forgetest.Hooks{Events: github.WebhookEvents, Parse: github.ParseWebhook})
}

// wantRights fails the test if other rights are missing than those.
func wantRights(t testing.TB, name string, checks []forge.RightCheck, missing map[forge.Right]string) {
	t.Helper()
	for _, check := range checks {
		given, is := missing[check.Right]
		switch {
		case is != (check.State == forge.RightMissing):
			t.Errorf("%s: %+v", name, check)
		case is && !strings.Contains(check.Given, given):
			t.Errorf("%s: %s is said to be given by %q, want %q", name, check.Right, check.Given, given)
		}
	}
}

// The scopes of a classic token say what it may do.
func TestRightsOfAClassicToken(t *testing.T) {
	t.Parallel()
	f := newSetupFixture(t)
	repository := f.Repository(t)
	admin := f.Person(t, repository, forge.AdminAccess)
	const hooks = "admin:repo_hook"
	all := map[forge.Right]string{
		forge.ReadCode: "repo", forge.Push: "repo", forge.ReadItems: "repo", forge.CommentOn: "repo", forge.LabelItems: "repo",
		forge.OpenPulls: "repo", forge.SetStatuses: "repo:status", forge.ReadChecks: "repo", forge.ManageHooks: hooks,
		forge.PushWorkflows: "the scope workflow",
	}
	without := func(rights ...forge.Right) map[forge.Right]string {
		left := maps.Clone(all)
		for _, right := range rights {
			delete(left, right)
		}
		return left
	}
	for scopes, missing := range map[string]map[forge.Right]string{
		"repo":                         {forge.PushWorkflows: "the scope workflow"},
		"gist, repo, workflow":         {},
		"":                             all,
		"public_repo":                  all,
		"read:user, repo:status":       without(forge.SetStatuses),
		"admin:repo_hook, repo:status": without(forge.SetStatuses, forge.ManageHooks),
		"write:repo_hook":              all, // with which webhooks cannot be deleted
	} {
		adapter := f.with(t, admin, "ghp_"+scopes, scopes, nil)
		checks, err := adapter.CheckRights(t.Context(), repository)
		if err != nil {
			t.Fatal(err)
		}
		wantRights(t, scopes, checks, missing)
	}
}

// In a public repository everybody reads, and less is enough of a token, for webhooks too.
func TestRightsInAPublicRepository(t *testing.T) {
	t.Parallel()
	f := newSetupFixture(t)
	f.server.public = true
	repository := f.Repository(t)
	admin := f.Person(t, repository, forge.AdminAccess)
	writes := map[forge.Right]string{
		forge.Push: "public_repo", forge.CommentOn: "public_repo", forge.LabelItems: "public_repo",
		forge.OpenPulls: "public_repo", forge.SetStatuses: "public_repo", forge.ManageHooks: "public_repo",
		forge.PushWorkflows: "the scope workflow",
	}
	withoutHooks := maps.Clone(writes)
	delete(withoutHooks, forge.ManageHooks)
	for scopes, missing := range map[string]map[forge.Right]string{
		"public_repo, workflow": {}, "": writes, "write:repo_hook": writes, "admin:repo_hook": withoutHooks,
	} {
		adapter := f.with(t, admin, "ghp_"+scopes, scopes, nil)
		checks, err := adapter.CheckRights(t.Context(), repository)
		if err != nil {
			t.Fatal(err)
		}
		wantRights(t, scopes, checks, missing)
	}
}

// What a fine-grained token may do is tried, and nothing is written by it.
func TestRightsOfAFineGrainedToken(t *testing.T) {
	t.Parallel()
	f := newSetupFixture(t)
	repository := f.Repository(t)
	admin := f.Person(t, repository, forge.AdminAccess)
	all := map[string]string{
		"contents": "write", "issues": "write", "pull_requests": "write", "statuses": "write", "checks": "read", "actions": "read", "repository_hooks": "write",
	}
	const readsAndWrites = ": read and write"
	for permission, missing := range map[string]map[forge.Right]string{
		"":                    {},
		"contents: ":          {forge.ReadCode: "Contents: read", forge.Push: "Contents" + readsAndWrites},
		"contents:read":       {forge.Push: "Contents" + readsAndWrites},
		"issues: ":            {forge.ReadItems: "Issues: read", forge.CommentOn: "Issues" + readsAndWrites, forge.LabelItems: "Issues" + readsAndWrites},
		"issues:read":         {forge.CommentOn: "Issues" + readsAndWrites, forge.LabelItems: "Issues" + readsAndWrites},
		"pull_requests: ":     {forge.ReadItems: "Pull requests: read", forge.OpenPulls: "Pull requests" + readsAndWrites},
		"pull_requests:read":  {forge.OpenPulls: "Pull requests" + readsAndWrites},
		"statuses:read":       {forge.SetStatuses: "Commit statuses" + readsAndWrites},
		"checks: ":            {forge.ReadChecks: "Checks: read"},
		"actions: ":           {forge.ReadChecks: "Actions: read"},
		"repository_hooks: ":  {forge.ManageHooks: "Webhooks" + readsAndWrites},
		"repository_hooks:no": {forge.ManageHooks: "Webhooks" + readsAndWrites},
	} {
		given := maps.Clone(all)
		if name, level, found := strings.Cut(permission, ":"); found {
			given[name] = strings.TrimSpace(level)
		}
		token := "github_pat_" + strings.NewReplacer(":", "_", " ", "none").Replace(permission)
		adapter := f.with(t, admin, token, "", given)
		checks, err := adapter.CheckRights(t.Context(), repository)
		if err != nil {
			t.Fatal(err)
		}
		wantRights(t, permission, checks, missing)
		forgetest.WantRight(t, checks, forge.PushWorkflows, forge.RightUnknown) // it cannot be tried
		for _, check := range checks {
			if check.State == forge.RightMissing && check.Found != "Resource not accessible by personal access token" {
				t.Errorf("%s: GitHub is said to have said %q", permission, check.Found)
			}
		}
	}
	f.World.Lock()
	defer f.World.Unlock()
	if repo := f.World.Repo(repository); len(repo.Items)+len(repo.Hooks)+len(repo.Labels)+len(repo.Statuses) != 0 {
		t.Errorf("looking has written: %+v", repo)
	}
}

// An App may what its installation was given.
func TestRightsOfAnInstallation(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	proxy := testkit.Faults(t, s.URL)
	fixture := newApp(t, s, proxy.URL, time.Hour)
	repository := fixture.Repository(t)
	setup := fixture.Forge().(forge.Setup)
	installed := func(token, permissions string) {
		fixture.World.Lock()
		defer fixture.World.Unlock()
		fixture.World.Tokens[token] = fixture.Bot
		body := `{"token": "` + token + `", "expires_at": "` + time.Now().Add(time.Hour).UTC().Format(time.RFC3339) + `", "permissions": ` + permissions + `}`
		proxy.Next(http.MethodPost, "/access_tokens", testkit.Respond(201, map[string]string{"Content-Type": "application/json"}, body))
	}
	installed("ghs_of_the_app", `{"metadata": "read", "contents": "write", "issues": "read", "pull_requests": "write", "statuses": "write", "checks": "read"}`)
	checks, err := setup.CheckRights(t.Context(), repository)
	if err != nil {
		t.Fatal(err)
	}
	wantRights(t, "the App", checks, map[forge.Right]string{
		forge.CommentOn: "Issues: read and write", forge.LabelItems: "Issues: read and write",
		forge.ReadChecks: "Actions: read", forge.ManageHooks: "Webhooks: read and write", forge.PushWorkflows: "Workflows: read and write",
	})
	for _, request := range proxy.Requests() {
		if strings.Contains(request, "/hooks") || strings.Contains(request, "/git/refs") {
			t.Errorf("it was tried although it was told: %s", request)
		}
	}
	// Somebody gives it more, and it is seen while the token is still good.
	installed("ghs_with_more", `{"metadata": "read", "contents": "write", "issues": "write", "pull_requests": "write", "statuses": "write", "checks": "read", "actions": "read", "workflows": "write"}`)
	if checks, err = setup.CheckRights(t.Context(), repository); err != nil {
		t.Fatal(err)
	}
	wantRights(t, "the App with more", checks, map[forge.Right]string{forge.ManageHooks: "Webhooks: read and write"})
	if _, err := setup.CheckRights(t.Context(), repository+"-not"); task.CodeOf(err) != task.NotFound || !strings.Contains(hintOf(err), "installed") {
		t.Errorf("a repository without the App: %v", err)
	}
}

func hintOf(err error) string {
	if coded, found := task.AsError(err); found {
		return coded.Hint
	}
	return ""
}

func TestRightsWithABadToken(t *testing.T) {
	t.Parallel()
	f := newSetupFixture(t)
	repository := f.Repository(t)
	stranger, err := github.New(github.Options{URL: f.server.URL + apiPrefix, Token: "ghp_of_nobody"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stranger.CheckRights(t.Context(), repository); task.CodeOf(err) != task.Unauthorized {
		t.Errorf("a bad token: %v", err)
	}
	if _, err := stranger.Hooks(t.Context(), repository); task.CodeOf(err) != task.Unauthorized {
		t.Errorf("a bad token: %v", err)
	}
}

// A limit that is reached is no missing right.
func TestRightsWhileGitHubLimits(t *testing.T) {
	t.Parallel()
	f := newSetupFixture(t)
	repository := f.Repository(t)
	login := f.Person(t, repository, forge.AdminAccess)
	f.with(t, login, "github_pat_x", "", map[string]string{})
	proxy := testkit.Faults(t, f.server.URL)
	adapter, err := github.New(github.Options{URL: proxy.URL + apiPrefix, Token: "github_pat_x"})
	if err != nil {
		t.Fatal(err)
	}
	proxy.Next(http.MethodPost, "/git/refs", testkit.Respond(403, map[string]string{"Retry-After": "5"}, `{"message": "You have exceeded a secondary rate limit"}`))
	if _, err := adapter.CheckRights(t.Context(), repository); !forge.Temporary(err) || forge.RetryAfter(err) != 5*time.Second {
		t.Errorf("limited: %v", err)
	}
}

// Where the scopes of a classic token are not told, it is tried. That issues are switched off says
// nothing of the token.
func TestRightsThatAreNotTold(t *testing.T) {
	t.Parallel()
	f := newSetupFixture(t)
	repository := f.Repository(t)
	admin := f.Person(t, repository, forge.AdminAccess)
	f.World.Lock()
	f.World.Tokens["ghp_not_told"] = f.World.User(admin)
	f.World.Unlock()
	proxy := testkit.Faults(t, f.server.URL)
	adapter, err := github.New(github.Options{URL: proxy.URL + apiPrefix, Token: "ghp_not_told"})
	if err != nil {
		t.Fatal(err)
	}
	proxy.Next(http.MethodPost, "/issues", testkit.Respond(410, map[string]string{"Content-Type": "application/json"}, `{"message": "Issues has been disabled in this repository."}`))
	checks, err := adapter.CheckRights(t.Context(), repository)
	if err != nil {
		t.Fatal(err)
	}
	forgetest.WantRight(t, checks, forge.Push, forge.RightGiven)
	if comment := forgetest.WantRight(t, checks, forge.CommentOn, forge.RightUnknown); !strings.Contains(comment.Found, "disabled") {
		t.Errorf("%+v", comment)
	}
}

// Issues that are switched off can be neither read nor commented on, whatever the token may do.
func TestRightsWithoutIssues(t *testing.T) {
	t.Parallel()
	f := newSetupFixture(t)
	f.server.noIssues = true
	repository := f.Repository(t)
	admin := f.Person(t, repository, forge.AdminAccess)
	every := map[string]string{
		"contents": "write", "issues": "write", "pull_requests": "write", "statuses": "write", "checks": "read", "actions": "read", "repository_hooks": "write",
	}
	for name, adapter := range map[string]*github.Forge{
		"a classic token":      f.with(t, admin, "ghp_of_the_test", "repo, workflow", nil),
		"a fine-grained token": f.with(t, admin, "github_pat_of_the_test", "", every),
	} {
		checks, err := adapter.CheckRights(t.Context(), repository)
		if err != nil {
			t.Fatal(err)
		}
		const on = "issues that are switched on"
		wantRights(t, name, checks, map[forge.Right]string{forge.ReadItems: on, forge.CommentOn: on})
	}
}

// What cannot be given to a fine-grained token is not asked for without a word, and who may not see
// webhooks is told what is missing.
func TestWhatAFineGrainedTokenLacks(t *testing.T) {
	t.Parallel()
	f := newSetupFixture(t)
	repository := f.Repository(t)
	admin := f.Person(t, repository, forge.AdminAccess)
	adapter := f.with(t, admin, "github_pat_of_the_test", "", map[string]string{"actions": "read"})
	checks, err := adapter.CheckRights(t.Context(), repository)
	if err != nil {
		t.Fatal(err)
	}
	if runs := forgetest.WantRight(t, checks, forge.ReadChecks, forge.RightMissing); !strings.Contains(runs.Given, "only an App") {
		t.Errorf("%+v", runs)
	}
	_, err = adapter.CreateHook(t.Context(), repository, forge.HookPost{URL: "https://toryo.example/x", Secret: "the secret"})
	if task.CodeOf(err) != task.Forbidden || !strings.Contains(hintOf(err), "Webhooks: read and write") {
		t.Errorf("a webhook without the permission: %v", err)
	}
	if last, err := adapter.LastDelivery(t.Context(), repository, "1"); err != nil || last != (forge.HookDelivery{}) {
		t.Errorf("the last delivery without the permission: %+v, %v", last, err)
	}
}

// What a forge says of a token is short, and one line.
func TestScopesAreShown(t *testing.T) {
	t.Parallel()
	f := newSetupFixture(t)
	repository := f.Repository(t)
	admin := f.Person(t, repository, forge.AdminAccess)
	adapter := f.with(t, admin, "ghp_of_the_test", strings.Repeat("gist, ", 10_000)+"user", nil)
	checks, err := adapter.CheckRights(t.Context(), repository)
	if err != nil {
		t.Fatal(err)
	}
	if push := forgetest.WantRight(t, checks, forge.Push, forge.RightMissing); len(push.Found) > 400 || !strings.HasPrefix(push.Found, "the token has the scopes gist, ") {
		t.Errorf("GitHub is said to have said %d bytes: %.100s", len(push.Found), push.Found)
	}
}
