package gitea_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	sdk "code.gitea.io/sdk/gitea"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/forgetest"
	"github.com/toryo-dev/toryo/internal/forge/gitea"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
)

// documented are the scopes that docs/forges.md asks for.
var documented = []string{"read:user", "write:repository", "write:issue"}

func (f *fixture) As(t testing.TB, repository string, access forge.Access) (adapter forge.Setup, login string) {
	t.Helper()
	login = f.Person(t, repository, access)
	return f.with(t, f.server.ScopedToken(t, login, documented...)), login
}

// with returns an adapter that acts with a token.
func (f *fixture) with(t testing.TB, token string) *gitea.Forge {
	t.Helper()
	made, err := gitea.New(gitea.Options{URL: f.server.URL, Token: token})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// TestOnGiteaSetup sets up repositories on a real Gitea.
func TestOnGiteaSetup(t *testing.T) {
	t.Parallel()
	server := testkit.Gitea(t)
	t.Run("Conformance", func(t *testing.T) {
		t.Parallel()
		forgetest.RunSetup(t, newFixture(t, server, server.URL), forgetest.Hooks{Events: gitea.WebhookEvents, Parse: gitea.ParseWebhook})
	})
	only := setup{server}
	t.Run("DocumentedScopesAreEnough", only.documentedScopesAreEnough)
	t.Run("MissingScopes", only.missingScopes)
	t.Run("PublicOnly", only.publicOnly)
	t.Run("Archived", only.archived)
	t.Run("UnitsOff", only.unitsOff)
	t.Run("EmptyRepository", only.emptyRepository)
	t.Run("BadToken", only.badToken)
	t.Run("LabelStaysAsItIs", only.labelStaysAsItIs)
	t.Run("LabelsOfAnOrganisation", only.labelsOfAnOrganisation)
	t.Run("OtherHooks", only.otherHooks)
	t.Run("EditedHooks", only.editedHooks)
	t.Run("HooksAreNotKept", only.hooksAreNotKept)
}

// setup has tests of what only Gitea does.
type setup struct{ server *testkit.GiteaServer }

// documentedScopesAreEnough runs the suite of tasks with the scopes that the documentation asks for.
func (s setup) documentedScopesAreEnough(t *testing.T) {
	t.Parallel()
	f := newFixture(t, s.server, s.server.URL)
	f.forge = f.with(t, s.server.ScopedToken(t, f.bot, documented...))
	forgetest.Run(t, f, forgetest.Options{Only: []string{
		"Repositories", "Access", "Item", "List", "Comments", "CreateComment", "EditComment", "Labels", "Assignees", "Remote",
		"OpenPull", "EditPull", "Diff", "Reviews", "SubmitReview", "Reply", "Reactions", "Statuses", "Checks", "ResolveThread", "MergePull",
	}})
}

// missingScopes looks with tokens of an account that may do everything, which lack a scope each.
func (s setup) missingScopes(t *testing.T) {
	t.Parallel()
	f := newFixture(t, s.server, s.server.URL)
	name := f.Repository(t)
	admin := f.Person(t, name, forge.AdminAccess)
	writeCode := []forge.Right{forge.Push, forge.OpenPulls, forge.SetStatuses, forge.ManageHooks}
	for _, c := range []struct {
		scopes  string
		missing []forge.Right
		given   string // part of what is said to give it
	}{
		{"read:user write:repository write:issue", nil, ""},
		{"write:user write:repository write:issue", nil, ""},
		{"write:repository write:issue", []forge.Right{forge.ReadSelf}, "read:user"},
		{"read:user read:repository write:issue", writeCode, "write:repository"},
		{"read:user write:issue", slices.Concat(writeCode, []forge.Right{forge.ReadCode, forge.ReadChecks}), ":repository"},
		{"read:user write:repository read:issue", []forge.Right{forge.CommentOn, forge.LabelItems}, "write:issue"},
		{"read:user write:repository", []forge.Right{forge.ReadItems, forge.CommentOn, forge.LabelItems}, ":issue"},
	} {
		adapter := f.with(t, s.server.ScopedToken(t, admin, strings.Fields(c.scopes)...))
		checks, err := adapter.CheckRights(t.Context(), name)
		if err != nil {
			t.Fatalf("%s: %v", c.scopes, err)
		}
		for _, check := range checks {
			if !slices.Contains(c.missing, check.Right) {
				if check.State != forge.RightGiven {
					t.Errorf("%s: %+v", c.scopes, check)
				}
				continue
			}
			if check.State != forge.RightMissing || !strings.HasPrefix(check.Given, "the scope ") || !strings.Contains(check.Given, c.given) || !strings.Contains(check.Found, "scope") {
				t.Errorf("%s: %+v", c.scopes, check)
			}
		}
	}
}

func (s setup) publicOnly(t *testing.T) {
	t.Parallel()
	f := newFixture(t, s.server, s.server.URL)
	name := f.Repository(t) // which is private
	adapter := f.with(t, s.server.ScopedToken(t, f.owner, append([]string{"public-only"}, documented...)...))
	checks, err := adapter.CheckRights(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	if code := forgetest.WantRight(t, checks, forge.ReadCode, forge.RightMissing); code.Given != "a token that is not limited to what is public" {
		t.Errorf("%+v", code)
	}
}

func (s setup) archived(t *testing.T) {
	t.Parallel()
	f := newFixture(t, s.server, s.server.URL)
	name := f.Repository(t)
	admin, _ := f.As(t, name, forge.AdminAccess)
	owner, short, _ := strings.Cut(name, "/")
	yes := true
	check[*sdk.Repository](t)(s.server.Client(t, owner).EditRepo(owner, short, sdk.EditRepoOption{Archived: &yes}))
	checks, err := admin.CheckRights(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	for _, right := range []forge.Right{forge.Push, forge.CommentOn, forge.OpenPulls} {
		if got := forgetest.WantRight(t, checks, right, forge.RightMissing); got.Given != "a repository that is not archived" {
			t.Errorf("%+v", got)
		}
	}
	forgetest.WantRight(t, checks, forge.ReadCode, forge.RightGiven)
}

func (s setup) unitsOff(t *testing.T) {
	t.Parallel()
	f := newFixture(t, s.server, s.server.URL)
	name := f.Repository(t)
	admin, _ := f.As(t, name, forge.AdminAccess)
	owner, short, _ := strings.Cut(name, "/")
	no := false
	check[*sdk.Repository](t)(s.server.Client(t, owner).EditRepo(owner, short, sdk.EditRepoOption{HasIssues: &no}))
	checks, err := admin.CheckRights(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	for _, right := range []forge.Right{forge.ReadItems, forge.CommentOn} {
		if got := forgetest.WantRight(t, checks, right, forge.RightMissing); !strings.Contains(got.Given, "switched on in the repository") {
			t.Errorf("%+v", got)
		}
	}
	forgetest.WantRight(t, checks, forge.OpenPulls, forge.RightGiven)
	check[*sdk.Repository](t)(s.server.Client(t, owner).EditRepo(owner, short, sdk.EditRepoOption{HasPullRequests: &no}))
	checks, err = admin.CheckRights(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	for _, right := range []forge.Right{forge.ReadItems, forge.CommentOn, forge.OpenPulls} {
		if got := forgetest.WantRight(t, checks, right, forge.RightMissing); !strings.Contains(got.Given, "switched on") {
			t.Errorf("%+v", got)
		}
	}
	forgetest.WantRight(t, checks, forge.Push, forge.RightGiven)
}

// emptyRepository looks at a repository without a commit. A look makes none, and a test needs one.
func (s setup) emptyRepository(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	f := newFixture(t, s.server, s.server.URL)
	made := check[*sdk.Repository](t)(s.server.Client(t, f.owner).CreateRepo(sdk.CreateRepoOption{Name: "empty", Private: true}))
	adapter := f.with(t, s.server.ScopedToken(t, f.owner, documented...))
	checks, err := adapter.CheckRights(ctx, made.FullName)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range checks {
		// Nothing can be pulled into a branch that is not there.
		lacksCommit := one.State == forge.RightMissing && one.Given == "a first commit in the repository"
		if one.State != forge.RightGiven && one.Right != forge.OpenPulls || one.Right == forge.OpenPulls && !lacksCommit {
			t.Errorf("%+v", one)
		}
	}
	if now := check[*sdk.Repository](t)(s.server.Client(t, f.owner).GetRepo(f.owner, "empty")); !now.Empty {
		t.Error("looking has made a commit")
	}
	hook, err := adapter.CreateHook(ctx, made.FullName, forge.HookPost{URL: "https://toryo.example/x", Secret: "x"})
	if err != nil {
		t.Fatal(err)
	}
	if err := adapter.TestHook(ctx, made.FullName, hook.ID); task.CodeOf(err) != task.Conflict {
		t.Errorf("a test without a commit: %v", err)
	}
}

func (s setup) badToken(t *testing.T) {
	t.Parallel()
	f := newFixture(t, s.server, s.server.URL)
	name := f.Repository(t)
	stranger := f.with(t, "0123456789012345678901234567890123456789")
	if _, err := stranger.CheckRights(t.Context(), name); task.CodeOf(err) != task.Unauthorized {
		t.Errorf("a bad token: %v", err)
	}
	if _, err := stranger.CreateHook(t.Context(), name, forge.HookPost{URL: "https://toryo.example/x", Secret: "x"}); task.CodeOf(err) != task.Unauthorized {
		t.Errorf("a webhook with a bad token: %v", err)
	}
}

func (s setup) labelStaysAsItIs(t *testing.T) {
	t.Parallel()
	f := newFixture(t, s.server, s.server.URL)
	name := f.Repository(t)
	writer, _ := f.As(t, name, forge.WriteAccess)
	owner, short, _ := strings.Cut(name, "/")
	for _, wanted := range []forge.Label{{Name: "toryo", Color: "112233", Description: "One"}, {Name: "toryo", Color: "445566", Description: "Two"}} {
		if _, err := writer.CreateLabel(t.Context(), name, wanted); err != nil {
			t.Fatal(err)
		}
	}
	labels := check[[]*sdk.Label](t)(s.server.Client(t, owner).ListRepoLabels(owner, short, sdk.ListLabelsOptions{}))
	if len(labels) != 1 || labels[0].Color != "112233" || labels[0].Description != "One" {
		t.Errorf("labels %+v", labels)
	}
}

// labelsOfAnOrganisation sees labels of the organisation if the token may read it.
func (s setup) labelsOfAnOrganisation(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	f := newFixture(t, s.server, s.server.URL)
	client := s.server.Client(t, f.owner)
	organisation := "labels-of-" + f.owner
	check[*sdk.Organization](t)(client.CreateOrg(sdk.CreateOrgOption{Name: organisation}))
	check[*sdk.Label](t)(client.CreateOrgLabel(organisation, sdk.CreateOrgLabelOption{Name: "toryo", Color: "#ff0000"}))
	name := check[*sdk.Repository](t)(client.CreateOrgRepo(organisation, sdk.CreateRepoOption{Name: "app", AutoInit: true})).FullName
	reads := f.with(t, s.server.ScopedToken(t, f.owner, append([]string{"read:organization"}, documented...)...))
	if created, err := reads.CreateLabel(ctx, name, forge.Label{Name: "toryo"}); err != nil || created {
		t.Errorf("the label of the organisation was created again: %v, %v", created, err)
	}
	if labels, err := reads.Labels(ctx, name); err != nil || !slices.Equal(labels, []string{"toryo"}) {
		t.Errorf("labels %q, %v", labels, err)
	}
	item, err := reads.CreateIssue(ctx, name, forge.IssuePost{Title: "An issue", Labels: []string{"toryo"}})
	if err != nil || !item.HasLabel("toryo") {
		t.Errorf("opened %+v, %v", item, err)
	}
	reader := f.with(t, s.server.ScopedToken(t, f.owner, documented...))
	if labels, err := reader.Labels(ctx, name); err != nil || len(labels) != 0 {
		t.Errorf("without the scope for organisations the labels are %q, %v", labels, err)
	}
}

// hooksAreNotKept reads webhooks as the server would, behind a proxy that gives answers an ETag.
func (s setup) hooksAreNotKept(t *testing.T) {
	t.Parallel()
	f := newFixture(t, s.server, s.server.URL)
	name := f.Repository(t)
	kept := &forgetest.Kept{}
	adapter, err := gitea.New(gitea.Options{URL: s.server.URL, Token: s.server.ScopedToken(t, f.owner, documented...), HTTP: kept.Client()})
	if err != nil {
		t.Fatal(err)
	}
	forgetest.HooksAreNotKept(t, adapter, kept, name)
}

// otherHooks leaves out what is sent to a chat: its address is a secret.
func (s setup) otherHooks(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	f := newFixture(t, s.server, s.server.URL)
	name := f.Repository(t)
	admin, _ := f.As(t, name, forge.AdminAccess)
	owner, short, _ := strings.Cut(name, "/")
	chat := check[*sdk.Hook](t)(s.server.Client(t, owner).CreateRepoHook(owner, short, sdk.CreateHookOption{
		Type: sdk.HookTypeSlack, Active: true, Events: []string{"push"},
		Config: map[string]string{"url": "https://chat.example/secret", "content_type": "json", "channel": "#team"},
	}))
	quiet := check[*sdk.Hook](t)(s.server.Client(t, owner).CreateRepoHook(owner, short, sdk.CreateHookOption{
		Type: sdk.HookTypeGitea, Events: []string{"issues"}, Config: map[string]string{"url": "https://toryo.example/x", "content_type": "json"},
	}))
	hooks, err := admin.Hooks(ctx, name)
	if err != nil || len(hooks) != 1 || hooks[0].Active || hooks[0].URL != "https://toryo.example/x" {
		t.Fatalf("webhooks %+v, %v", hooks, err)
	}
	// Its name for all events of issues, and none of the others.
	if want := []string{"issues", "issue_assign", "issue_label", "issue_comment"}; !slices.Equal(hooks[0].Events, want) {
		t.Errorf("it is enabled for %q", hooks[0].Events)
	}
	if err := admin.TestHook(ctx, name, hooks[0].ID); task.CodeOf(err) != task.Invalid {
		t.Errorf("a test of a webhook %d that is not enabled for pushes: %v", quiet.ID, err)
	}
	post := forge.HookPost{URL: "https://toryo.example/x", Secret: "x"}
	if _, err := admin.EditHook(ctx, name, strconv.FormatInt(chat.ID, 10), post); task.CodeOf(err) != task.NotFound {
		t.Errorf("the webhook of a chat was changed: %v", err)
	}
	if err := admin.DeleteHook(ctx, name, strconv.FormatInt(chat.ID, 10)); err != nil {
		t.Error(err)
	}
	check[*sdk.Hook](t)(s.server.Client(t, owner).GetRepoHook(owner, short, chat.ID))
	insecure := forge.HookPost{URL: "https://toryo.example/x", Secret: "x", Insecure: true}
	if _, err := admin.CreateHook(ctx, name, insecure); task.CodeOf(err) != task.Unsupported {
		t.Errorf("a webhook without a check of the certificate: %v", err)
	}
}

// editedHooks keep what people have set on them, although another webhook takes their place.
func (s setup) editedHooks(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	f := newFixture(t, s.server, s.server.URL)
	name := f.Repository(t)
	admin, _ := f.As(t, name, forge.AdminAccess)
	owner, short, _ := strings.Cut(name, "/")
	filtered := check[*sdk.Hook](t)(s.server.Client(t, owner).CreateRepoHook(owner, short, sdk.CreateHookOption{
		Type: sdk.HookTypeGitea, Events: []string{"issues"}, BranchFilter: "main", AuthorizationHeader: "Bearer of-the-test",
		Config: map[string]string{"url": "https://toryo.example/y", "content_type": "json"},
	}))
	edited, err := admin.EditHook(ctx, name, strconv.FormatInt(filtered.ID, 10), forge.HookPost{URL: "https://toryo.example/x", Secret: "x"})
	if err != nil {
		t.Fatal(err)
	}
	id, err := strconv.ParseInt(edited.ID, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	if now := check[*sdk.Hook](t)(s.server.Client(t, owner).GetRepoHook(owner, short, id)); now.BranchFilter != "main" || now.AuthorizationHeader != "Bearer of-the-test" {
		t.Errorf("the webhook has become %+v", now)
	}
}
