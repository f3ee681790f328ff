package gitea_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "code.gitea.io/sdk/gitea"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/gitea"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
)

// as returns an adapter that acts with a token.
func as(t *testing.T, server *testkit.GiteaServer, token string) *gitea.Forge {
	t.Helper()
	made, err := gitea.New(gitea.Options{URL: server.URL, Token: token})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// peculiar has tests of what only Gitea does.
type peculiar struct{ server *testkit.GiteaServer }

// accessAsAdministrator asks as someone whom Gitea tells everything.
func (p peculiar) accessAsAdministrator(t *testing.T) {
	t.Parallel()
	f := newFixture(t, p.server, p.server.URL)
	name := f.Repository(t)
	owner := as(t, p.server, p.server.Token(t, f.owner))
	for _, want := range []forge.Access{forge.NoAccess, forge.ReadAccess, forge.WriteAccess, forge.AdminAccess} {
		login := f.Person(t, name, want)
		if got, err := owner.Access(t.Context(), name, strings.ToUpper(login)); err != nil || got != want {
			t.Errorf("access of %s is %s, %v, want %s", login, got, err, want)
		}
	}
	if got, err := owner.Access(t.Context(), name, "no-such-person-here"); err != nil || got != forge.NoAccess {
		t.Errorf("access of nobody is %s, %v", got, err)
	}
	if _, err := owner.Access(t.Context(), name+"-not", f.bot); task.CodeOf(err) != task.NotFound {
		t.Errorf("access to nothing: %v", err)
	}
}

// accessInAnOrganisation asks about members of teams. Gitea lets those be assigned who can
// read pull requests, and they are no writers for that.
func (p peculiar) accessInAnOrganisation(t *testing.T) {
	t.Parallel()
	f := newFixture(t, p.server, p.server.URL)
	owner := p.server.Client(t, f.owner)
	org := check[*sdk.Organization](t)(owner.CreateOrg(sdk.CreateOrgOption{Name: "company-of-" + f.owner}))
	made := check[*sdk.Repository](t)(owner.CreateOrgRepo(org.Name, sdk.CreateRepoOption{Name: "app", Private: true, AutoInit: true}))
	f.allow(t, made.FullName, f.bot, sdk.AccessModeWrite)
	teams := map[string]int64{}
	member := func(team string, units map[string]string) string {
		t.Helper()
		created := check[*sdk.Team](t)(owner.CreateTeam(org.Name, sdk.CreateTeamOption{
			Name: team, Permission: sdk.AccessModeRead, UnitsMap: units, IncludesAllRepositories: true,
		}))
		teams[team] = created.ID
		login := p.server.User(t, "Person")
		if _, err := owner.AddTeamMember(created.ID, login); err != nil {
			t.Fatal(err)
		}
		return login
	}
	want := func(login string, want forge.Access) {
		t.Helper()
		if got, err := f.forge.Access(t.Context(), made.FullName, login); err != nil || got != want {
			t.Errorf("access of %s is %s, %v, want %s", login, got, err, want)
		}
	}
	writer := member("writers", map[string]string{"repo.code": "write", "repo.issues": "write", "repo.pulls": "write"})
	want(writer, forge.WriteAccess)
	reader := member("readers", map[string]string{"repo.code": "read", "repo.issues": "read", "repo.pulls": "read"})
	want(reader, forge.ReadAccess)
	want(writer, forge.ReadAccess) // who is in which team we are not shown
	f.allow(t, made.FullName, f.bot, sdk.AccessModeAdmin)
	want(reader, forge.ReadAccess) // nor as an administrator of the repository
	want(writer, forge.ReadAccess)
	if _, err := owner.AddTeamMember(teams["writers"], f.bot); err != nil {
		t.Fatal(err)
	}
	want(reader, forge.ReadAccess)
	want(writer, forge.WriteAccess)
	f.allow(t, made.FullName, f.bot, sdk.AccessModeWrite)
	want(reader, forge.ReadAccess)
	want(writer, forge.WriteAccess)
	want(p.server.User(t, "Outsider"), forge.NoAccess)
}

func (p peculiar) badToken(t *testing.T) {
	t.Parallel()
	f := newFixture(t, p.server, p.server.URL)
	key := f.Issue(t, f.Repository(t), f.owner, "An issue", "")
	stranger := as(t, p.server, "0123456789012345678901234567890123456789")
	if _, err := stranger.Self(t.Context()); task.CodeOf(err) != task.Unauthorized {
		t.Errorf("a bad token: %v", err)
	}
	if _, err := stranger.CreateComment(t.Context(), key, forge.Post{Text: forge.Neutraliser{}.Text("x")}); task.CodeOf(err) != task.Unauthorized {
		t.Errorf("a write with a bad token: %v", err)
	}
	reader := as(t, p.server, p.server.Token(t, f.Person(t, key.Repository, forge.ReadAccess)))
	if err := reader.AddLabel(t.Context(), key, "x"); task.CodeOf(err) != task.Forbidden {
		t.Errorf("a label by someone who may only read: %v", err)
	}
	outsider := as(t, p.server, p.server.Token(t, p.server.User(t, "Outsider")))
	if _, err := outsider.Item(t.Context(), key); task.CodeOf(err) != task.NotFound {
		t.Errorf("an item that we may not know of: %v", err)
	}
}

// organisationLabels uses labels that belong to the organisation.
func (p peculiar) organisationLabels(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	f := newFixture(t, p.server, p.server.URL)
	client := p.server.Client(t, f.owner)
	organisation := p.server.User(t, "Org") + "-org"
	check[*sdk.Organization](t)(client.CreateOrg(sdk.CreateOrgOption{Name: organisation}))
	check[*sdk.Label](t)(client.CreateOrgLabel(organisation, sdk.CreateOrgLabelOption{Name: "needs-review", Color: "#ff0000"}))
	repository := check[*sdk.Repository](t)(client.CreateOrgRepo(organisation, sdk.CreateRepoOption{Name: "name", AutoInit: true}))
	write := sdk.AccessModeWrite
	if _, err := client.AddCollaborator(organisation, "name", f.bot, sdk.AddCollaboratorOption{Permission: &write}); err != nil {
		t.Fatal(err)
	}
	name := repository.FullName
	key := f.Issue(t, name, f.owner, "An issue", "")
	f.Issue(t, name, f.owner, "Another", "")
	if err := f.forge.AddLabel(ctx, key, "needs-review"); err != nil {
		t.Fatal(err)
	}
	if own := check[[]*sdk.Label](t)(client.ListRepoLabels(organisation, "name", sdk.ListLabelsOptions{})); len(own) != 0 {
		t.Errorf("the organisation's label was made again: %v", own)
	}
	items, err := f.forge.List(ctx, forge.Query{Repository: name, Labels: []string{"needs-review"}})
	if err != nil || len(items) != 1 || items[0].Key != key {
		t.Errorf("listed %+v, %v", items, err)
	}
	if err := f.forge.RemoveLabel(ctx, key, "needs-review"); err != nil {
		t.Fatal(err)
	}
	if item, err := f.forge.Item(ctx, key); err != nil || len(item.Labels) != 0 {
		t.Errorf("labels %q, %v", item.Labels, err)
	}
}

// longReview has a review of several pages between two labels: Gitea takes
// its comments out of the timeline after it has cut it into pages, which leaves
// empty ones.
func (p peculiar) longReview(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	f := newFixture(t, p.server, p.server.URL)
	name := f.Repository(t)
	const lines = 120
	var content strings.Builder
	comments := map[forge.Anchor]string{}
	for line := 1; line <= lines; line++ {
		fmt.Fprintln(&content, "line", line)
		comments[forge.Anchor{Path: "long.txt", Side: forge.NewSide, Line: line}] = fmt.Sprint("About ", line)
	}
	f.Commit(t, name, "topic", map[string]string{"long.txt": content.String()})
	author := f.Person(t, name, forge.WriteAccess)
	key := f.Pull(t, name, author, "topic", "main", "Long", "")
	f.Label(t, key, author, true, "before")
	f.Review(t, key, f.owner, forge.Remark, "At length.", comments)
	f.Label(t, key, author, true, "after")

	events, err := f.forge.LabelEvents(ctx, key)
	if err != nil || len(events) != 2 || events[1].Label != "after" {
		t.Errorf("label events %+v, %v", events, err)
	}
	threads, err := f.forge.ReviewThreads(ctx, key)
	if err != nil || len(threads) != lines {
		t.Errorf("%d threads, %v, want %d", len(threads), err, lines)
	}
	if reviews, err := f.forge.Reviews(ctx, key); err != nil || len(reviews) != 1 || reviews[0].Body != "At length." {
		t.Errorf("reviews %+v, %v", reviews, err)
	}
	ids := make([]string, 0, lines)
	for _, comment := range forge.ReviewComments(threads) {
		ids = append(ids, comment.ID)
	}
	if slices.Sort(ids); len(slices.Compact(ids)) != lines {
		t.Errorf("%d different comments, want %d", len(slices.Compact(ids)), lines)
	}
}

// deletedTexts has the texts of reviews deleted, and a whole review: what is left of a
// review without its text is the verdict.
func (p peculiar) deletedTexts(t *testing.T) {
	t.Parallel()
	f := newFixture(t, p.server, p.server.URL)
	name := f.Repository(t)
	f.Commit(t, name, "topic", map[string]string{"x": "x\n"})
	key := f.Pull(t, name, f.owner, "topic", "main", "A change", "")
	reviewer, other := f.Person(t, name, forge.WriteAccess), f.Person(t, name, forge.WriteAccess)
	f.Review(t, key, reviewer, forge.RequestChanges, "Not yet.", nil)
	f.Review(t, key, other, forge.Remark, "By the way.", nil)
	f.Review(t, key, other, forge.Remark, "One more thing.", nil)
	before, err := f.forge.Reviews(t.Context(), key)
	if err != nil || len(before) != 3 {
		t.Fatalf("reviews %+v, %v", before, err)
	}
	f.RemoveComment(t, key, reviewer, f.textOf(t, key, before[0].ID))
	f.RemoveComment(t, key, other, f.textOf(t, key, before[1].ID))
	owner, repository, index := split(key)
	if _, err := f.server.Client(t, other).DeletePullReview(owner, repository, index, number(t, before[2].ID)); err != nil {
		t.Fatal(err)
	}
	after, err := f.forge.Reviews(t.Context(), key)
	if err != nil || len(after) != 1 || after[0].ID != before[0].ID || after[0].Body != "" || after[0].Verdict != forge.RequestChanges {
		t.Errorf("reviews %+v, %v", after, err)
	}
}

// draftByTitle opens a pull request whose title says that it is a draft.
func (p peculiar) draftByTitle(t *testing.T) {
	t.Parallel()
	f := newFixture(t, p.server, p.server.URL)
	name := f.Repository(t)
	f.Commit(t, name, "topic", map[string]string{"x": "x\n"})
	item, opened, err := f.forge.OpenPull(t.Context(), name, forge.PullPost{
		Title: forge.Neutraliser{}.Title("wip: [WIP] WIP: A change"), Head: "topic", Base: "main",
	})
	if err != nil || !opened || item.Draft || item.Title != "A change" {
		t.Errorf("opened %+v, %v, %v", item, opened, err)
	}
}

// dependencies are what people have said that an issue waits for.
func (p peculiar) dependencies(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	f := newFixture(t, p.server, p.server.URL)
	name := f.Repository(t)
	f.Commit(t, name, "topic", map[string]string{"x": "x\n"})
	waits := f.Issue(t, name, f.owner, "Third", "")
	first, second := f.Issue(t, name, f.owner, "First", ""), f.Issue(t, name, f.owner, "Second", "")
	pull := f.Pull(t, name, f.owner, "topic", "main", "A change", "")
	if found, err := f.forge.Dependencies(ctx, waits); err != nil || len(found) != 0 {
		t.Errorf("an issue that waits for nothing waits for %v, %v", found, err)
	}
	owner, short, _ := strings.Cut(name, "/")
	client := p.server.Client(t, f.owner)
	depend := func(key task.Key, on task.Key) {
		t.Helper()
		// The client's method leaves out the repository, which Gitea wants.
		body := fmt.Sprintf(`{"owner":%q,"repo":%q,"index":%d}`, owner, short, on.Number)
		request, err := http.NewRequestWithContext(ctx, http.MethodPost,
			fmt.Sprintf("%s/api/v1/repos/%s/issues/%d/dependencies", p.server.URL, name, key.Number), strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "token "+p.server.Admin)
		request.Header.Set("Content-Type", "application/json")
		answer, err := (&http.Client{Timeout: time.Minute}).Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusCreated {
			t.Fatalf("%s is made to wait for %s: %s", key, on, answer.Status)
		}
	}
	depend(waits, first)
	depend(waits, second)
	depend(waits, pull)
	closed := sdk.StateClosed
	if _, _, err := client.EditIssue(owner, short, first.Number, sdk.EditIssueOption{State: &closed}); err != nil {
		t.Fatal(err)
	}
	found, err := f.forge.Dependencies(ctx, waits)
	if err != nil || !slices.Equal(found, []task.Key{first, second, pull}) {
		t.Errorf("it waits for %v, %v", found, err)
	}
	off := false
	if _, _, err := client.EditRepo(owner, short, sdk.EditRepoOption{InternalTracker: &sdk.InternalTracker{EnableIssueDependencies: off}}); err != nil {
		t.Fatal(err)
	}
	if found, err := f.forge.Dependencies(ctx, waits); err != nil || len(found) > 3 {
		t.Errorf("with dependencies switched off it waits for %v, %v", found, err)
	}
	waits.Number = 99
	if found, err := f.forge.Dependencies(ctx, waits); err != nil || len(found) != 0 {
		t.Errorf("an issue that is not there waits for %v, %v", found, err)
	}
}
