package gitlab_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/forgetest"
	"github.com/toryo-dev/toryo/internal/forge/gitlab"
	"github.com/toryo-dev/toryo/internal/task"
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
	if hooks, err := admin.Hooks(ctx, repository); err != nil || len(hooks) != 1 || !hooks[0].LastAt.IsZero() {
		t.Errorf("webhooks %+v, %v", hooks, err)
	}
}

// A label of a group is there for every project below it, and is not the project's to delete.
func TestLabelsOfAGroup(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	f := newSetupFixture(t)
	repository := f.Repository(t)
	f.World.Lock()
	f.World.Repo(repository).GroupLabels = []string{"toryo"}
	f.World.Unlock()
	writer, _ := f.As(t, repository, forge.WriteAccess)
	if created, err := writer.CreateLabel(ctx, repository, forge.Label{Name: "toryo"}); created || err != nil {
		t.Errorf("the label of the group was created again: %v, %v", created, err)
	}
	if err := writer.DeleteLabel(ctx, repository, "toryo"); err != nil {
		t.Error(err)
	}
	if labels, err := writer.Labels(ctx, repository); err != nil || !slices.Equal(labels, []string{"toryo"}) {
		t.Errorf("labels %q, %v", labels, err)
	}
}

// Confidential issues and comments are told as well, the certificate is checked, and the secret is sent.
func TestHookSettings(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	f := newSetupFixture(t)
	repository := f.Repository(t)
	admin, _ := f.As(t, repository, forge.AdminAccess)
	made := func() forgeworld.Hook {
		f.World.Lock()
		defer f.World.Unlock()
		return *f.World.Repo(repository).Hooks[0]
	}
	hook, err := admin.CreateHook(ctx, repository, forge.HookPost{URL: "https://toryo.example/x", Secret: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	now := made()
	for _, event := range []string{"push_events", "issues_events", "confidential_issues_events", "note_events", "confidential_note_events", "merge_requests_events", "pipeline_events", "job_events"} {
		if !slices.Contains(now.Events, event) {
			t.Errorf("%s is not enabled: %q", event, now.Events)
		}
	}
	if now.Secret != "secret" || now.Insecure {
		t.Errorf("made was %+v", now)
	}
	if _, err := admin.EditHook(ctx, repository, hook.ID, forge.HookPost{URL: "https://toryo.example/x", Secret: "other", Events: []string{"note_events"}, Insecure: true}); err != nil {
		t.Fatal(err)
	}
	if now := made(); len(now.Events) != 2 || now.Secret != "other" || !now.Insecure {
		t.Errorf("changed to %+v", now)
	}
	_, err = admin.CreateHook(ctx, repository, forge.HookPost{URL: "http://localhost/x", Secret: "secret"})
	if coded, found := task.AsError(err); !found || coded.Code != task.Invalid || !strings.Contains(coded.Hint, "Outbound requests") {
		t.Errorf("an address in GitLab's own network: %v", err)
	}
}

// GitLab tells how the last delivery went, and waits for the one that it makes for a test.
func TestLastDelivery(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	f := newSetupFixture(t)
	repository := f.Repository(t)
	admin, _ := f.As(t, repository, forge.AdminAccess)
	var answer atomic.Int64
	answer.Store(http.StatusNoContent)
	listener := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(int(answer.Load())) }))
	hook, err := admin.CreateHook(ctx, repository, forge.HookPost{URL: listener.URL, Secret: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	last := func(want int, delivered bool) {
		t.Helper()
		hooks, err := admin.Hooks(ctx, repository)
		if err != nil || len(hooks) != 1 || hooks[0].LastAt.IsZero() == delivered || hooks[0].LastStatus != want {
			t.Errorf("webhooks %+v, %v, want the status %d", hooks, err, want)
		}
	}
	last(0, false)
	if err := admin.TestHook(ctx, repository, hook.ID); err != nil {
		t.Error(err)
	}
	last(http.StatusNoContent, true)
	answer.Store(http.StatusUnauthorized)
	if err := admin.TestHook(ctx, repository, hook.ID); task.CodeOf(err) != task.Invalid || !strings.Contains(err.Error(), "401") {
		t.Errorf("a test that we refuse: %v", err)
	}
	last(http.StatusUnauthorized, true)
	listener.Close()
	if err := admin.TestHook(ctx, repository, hook.ID); task.CodeOf(err) != task.Invalid {
		t.Errorf("a test that does not reach us: %v", err)
	}
	last(0, true)
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
	for _, check := range checks {
		if check.State != forge.RightUnknown || check.Found != "GitLab does not tell what the token may do" {
			t.Errorf("%+v", check)
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
