package forgetest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

// SetupFixture is a fixture in which adapters can act as others than the bot.
type SetupFixture interface {
	Fixture
	// As returns an adapter that acts as a new account with that access to the repository, and
	// the login of the account. Its credential may do whatever the account may do.
	As(t testing.TB, repository string, access forge.Access) (adapter forge.Setup, login string)
}

// Hooks says what an adapter knows of webhooks.
type Hooks struct {
	Events forge.WebhookEvents
	Parse  forge.WebhookParser
}

// RunSetup runs the suite of [forge.Setup].
func RunSetup(t *testing.T, fixture SetupFixture, hooks Hooks) {
	all := &setupSuite{fixture, hooks}
	t.Run("Rights", all.rights)
	t.Run("NoRepository", all.noRepository)
	t.Run("Labels", all.labels)
	t.Run("BadLabels", all.badLabels)
	t.Run("Hooks", all.hooks)
	t.Run("HooksAreForAdministrators", all.hooksAreForAdministrators)
	t.Run("BadHooks", all.badHooks)
	t.Run("TestHook", all.testHook)
	t.Run("Issue", all.issue)
	t.Run("IssueForStrangers", all.issueForStrangers)
}

type setupSuite struct {
	SetupFixture
	about Hooks
}

// rights looks as accounts that may do more and less. What is not named may be either.
func (s *setupSuite) rights(t *testing.T) {
	t.Parallel()
	name := s.Repository(t)
	admin, _ := s.As(t, name, forge.AdminAccess)
	reads := []forge.Right{forge.ReadSelf, forge.ReadCode, forge.ReadItems, forge.CommentOn}
	writes := []forge.Right{forge.Push, forge.OpenPulls, forge.SetStatuses, forge.LabelItems}
	for _, c := range []struct {
		access         forge.Access
		given, missing []forge.Right
	}{
		{forge.ReadAccess, reads, []forge.Right{forge.Push, forge.SetStatuses, forge.ManageHooks}},
		{forge.WriteAccess, slices.Concat(reads, writes), []forge.Right{forge.ManageHooks}},
		{forge.AdminAccess, slices.Concat(reads, writes, []forge.Right{forge.ManageHooks}), nil},
	} {
		adapter, _ := s.As(t, name, c.access)
		checks := must[[]forge.RightCheck](t)(adapter.CheckRights(t.Context(), name))
		for _, right := range c.given {
			WantRight(t, checks, right, forge.RightGiven)
		}
		for _, right := range c.missing {
			WantRight(t, checks, right, forge.RightMissing)
		}
		wantWhole(t, c.access, checks)
	}
	// Nothing was changed by it.
	items := must[[]forge.Item](t)(s.Forge().List(t.Context(), forge.Query{Repository: name}))
	labels := must[[]string](t)(admin.Labels(t.Context(), name))
	hooks := must[[]forge.Hook](t)(admin.Hooks(t.Context(), name))
	if len(items)+len(labels)+len(hooks) != 0 {
		t.Errorf("looking has made %v, %v, %v", items, labels, hooks)
	}
}

// wantWhole fails the test if rights are missing in a look, are not in their order, or lack what is told
// of them. Not every forge has a right for workflows.
func wantWhole(t testing.TB, access forge.Access, checks []forge.RightCheck) {
	t.Helper()
	var want, got []forge.Right
	for _, needed := range forge.NeededRights {
		want = append(want, needed.Right)
	}
	for _, check := range checks {
		got = append(got, check.Right)
		if check.Given == "" || check.State != forge.RightGiven && check.Found == "" {
			t.Errorf("%s: it is not said what gives %s, or what was found: %+v", access, check.Right, check)
		}
	}
	without := slices.DeleteFunc(slices.Clone(want), func(right forge.Right) bool { return right == forge.PushWorkflows })
	if !slices.Equal(got, want) && !slices.Equal(got, without) {
		t.Errorf("%s: checked were %q, want %q", access, got, want)
	}
}

// WantRight fails the test if a right is not in the state.
func WantRight(t testing.TB, checks []forge.RightCheck, right forge.Right, state forge.RightState) forge.RightCheck {
	t.Helper()
	at := slices.IndexFunc(checks, func(check forge.RightCheck) bool { return check.Right == right })
	if at < 0 {
		t.Fatalf("the right %s was not checked: %+v", right, checks)
	}
	if checks[at].State != state {
		t.Errorf("want %s: %+v", state, checks[at])
	}
	return checks[at]
}

func (s *setupSuite) noRepository(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	name := s.Repository(t)
	admin, _ := s.As(t, name, forge.AdminAccess)
	outsider, _ := s.As(t, name, forge.NoAccess)
	_, err := admin.CheckRights(ctx, name+"-not")
	wantCode(t, err, task.NotFound)
	if failed, coded := task.AsError(err); !coded || failed.Hint == "" {
		t.Errorf("it is not said what to do: %v", err)
	}
	_, err = outsider.CheckRights(ctx, name)
	wantCode(t, err, task.NotFound)
	for _, name := range []string{"", "one", "../..", "a b/c", "owner/"} {
		_, err := admin.CheckRights(ctx, name)
		wantCode(t, err, task.Invalid, task.NotFound)
		_, err = admin.Hooks(ctx, name)
		wantCode(t, err, task.Invalid, task.NotFound)
	}
	_, err = admin.Labels(ctx, name+"-not")
	wantCode(t, err, task.NotFound)
	_, err = admin.CreateLabel(ctx, name+"-not", forge.Label{Name: "x"})
	wantCode(t, err, task.NotFound)
	wantCode(t, admin.DeleteLabel(ctx, name+"-not", "x"), task.NotFound)
	_, err = admin.Hooks(ctx, name+"-not")
	wantCode(t, err, task.NotFound)
	wantCode(t, admin.DeleteHook(ctx, name+"-not", "1"), task.NotFound)
	_, err = admin.CreateIssue(ctx, name+"-not", forge.IssuePost{Title: "x"})
	wantCode(t, err, task.NotFound)
}

func (s *setupSuite) labels(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	name := s.Repository(t)
	writer, _ := s.As(t, name, forge.WriteAccess)
	names := []string{"toryo", "toryo:in-progress", "needs review", "größe/läuft", "100%", "12", "a?b=c&d#e"}
	for _, label := range names {
		wanted := forge.Label{Name: label, Color: "1D76DB", Description: "What it is for"}
		if created := must[bool](t)(writer.CreateLabel(ctx, name, wanted)); !created {
			t.Errorf("%q is said to be there", label)
		}
		wanted.Color = "#ff0000"
		if created := must[bool](t)(writer.CreateLabel(ctx, name, wanted)); created {
			t.Errorf("%q was created again", label)
		}
	}
	found := must[[]string](t)(writer.Labels(ctx, name))
	slices.Sort(found)
	slices.Sort(names)
	if diff := difference(names, found); diff != "" {
		t.Error("labels", diff)
	}
	for _, label := range names {
		try(t, writer.DeleteLabel(ctx, name, label))
		try(t, writer.DeleteLabel(ctx, name, label))
	}
	for _, label := range []string{"", ".", "..", "never there", "a,b"} {
		try(t, writer.DeleteLabel(ctx, name, label))
	}
	if left := must[[]string](t)(writer.Labels(ctx, name)); len(left) != 0 {
		t.Errorf("left are %q", left)
	}
}

func (s *setupSuite) badLabels(t *testing.T) {
	t.Parallel()
	name := s.Repository(t)
	writer, _ := s.As(t, name, forge.WriteAccess)
	for _, bad := range []forge.Label{
		{}, {Name: " "}, {Name: "two\nlines"}, {Name: "x", Color: "red"}, {Name: "x", Color: "12345"}, {Name: "x", Color: "1d76db; x"},
	} {
		_, err := writer.CreateLabel(t.Context(), name, bad)
		wantCode(t, err, task.Invalid)
	}
	if left := must[[]string](t)(writer.Labels(t.Context(), name)); len(left) != 0 {
		t.Errorf("made were %q", left)
	}
}

func (s *setupSuite) hooks(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	name := s.Repository(t)
	admin, _ := s.As(t, name, forge.AdminAccess)
	const first, second = "https://toryo.example/webhooks/x?a=b", "http://other.example:8080/webhooks/x"
	made := must[forge.Hook](t)(admin.CreateHook(ctx, name, forge.HookPost{URL: first, Secret: "secret of the test"}))
	hooks := must[[]forge.Hook](t)(admin.Hooks(ctx, name))
	if len(hooks) != 1 || hooks[0].ID != made.ID || hooks[0].URL != first || !hooks[0].Active {
		t.Fatalf("webhooks %+v, made was %+v", hooks, made)
	}
	for _, event := range s.about.Events.Names() {
		if !slices.Contains(hooks[0].Events, event) {
			t.Errorf("it is not enabled for %s: %+v", event, hooks[0])
		}
	}
	if missing := hooks[0].MissingEvents(s.about.Events); len(missing) != 0 {
		t.Errorf("missing are %q: %+v", missing, hooks[0])
	}
	// Each event is enabled by its own name, and no other one with it.
	for _, event := range s.about.Events.Names() {
		made = must[forge.Hook](t)(admin.EditHook(ctx, name, made.ID, forge.HookPost{URL: second, Secret: "another one", Events: []string{event}}))
		hooks := must[[]forge.Hook](t)(admin.Hooks(ctx, name))
		if len(hooks) != 1 || hooks[0].ID != made.ID || hooks[0].URL != second || !hooks[0].Active || !slices.Equal(hooks[0].Events, []string{event}) {
			t.Fatalf("changed to %s: webhooks %+v, made was %+v", event, hooks, made)
		}
	}
	_, err := admin.EditHook(ctx, name, "999999", forge.HookPost{URL: second, Secret: "x"})
	wantCode(t, err, task.NotFound)
	_, err = admin.EditHook(ctx, name, "not-a-number", forge.HookPost{URL: second, Secret: "x"})
	wantCode(t, err, task.NotFound)
	wantCode(t, admin.TestHook(ctx, name, "999999"), task.NotFound)
	for _, id := range []string{made.ID, "999999", "not-a-number"} {
		if last := must[forge.HookDelivery](t)(admin.LastDelivery(ctx, name, id)); last != (forge.HookDelivery{}) {
			t.Errorf("of the last delivery of %s, of which there is none, is told %+v", id, last)
		}
	}
	for _, id := range []string{made.ID, made.ID, "999999", "../1"} {
		try(t, admin.DeleteHook(ctx, name, id))
	}
	if hooks := must[[]forge.Hook](t)(admin.Hooks(ctx, name)); len(hooks) != 0 {
		t.Errorf("left are %+v", hooks)
	}
}

func (s *setupSuite) hooksAreForAdministrators(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	name := s.Repository(t)
	admin, _ := s.As(t, name, forge.AdminAccess)
	writer, _ := s.As(t, name, forge.WriteAccess)
	post := forge.HookPost{URL: "https://toryo.example/webhooks/x", Secret: "secret of the test"}
	made := must[forge.Hook](t)(admin.CreateHook(ctx, name, post))
	_, err := writer.Hooks(ctx, name)
	wantCode(t, err, task.Forbidden)
	_, err = writer.CreateHook(ctx, name, post)
	wantCode(t, err, task.Forbidden)
	_, err = writer.EditHook(ctx, name, made.ID, post)
	wantCode(t, err, task.Forbidden)
	wantCode(t, writer.TestHook(ctx, name, made.ID), task.Forbidden)
	must[forge.HookDelivery](t)(writer.LastDelivery(ctx, name, made.ID)) // nothing is told, which is no error
	wantCode(t, writer.DeleteHook(ctx, name, made.ID), task.Forbidden)
	if hooks := must[[]forge.Hook](t)(admin.Hooks(ctx, name)); len(hooks) != 1 {
		t.Errorf("webhooks %+v", hooks)
	}
}

func (s *setupSuite) badHooks(t *testing.T) {
	t.Parallel()
	name := s.Repository(t)
	admin, _ := s.As(t, name, forge.AdminAccess)
	for _, bad := range []forge.HookPost{
		{}, {URL: "https://toryo.example/x"}, {Secret: "x"}, {URL: "toryo.example/x", Secret: "x"}, {URL: "file:///etc/passwd", Secret: "x"},
		{URL: "https://toryo.example/x", Secret: "x", Events: []string{"everything"}},
	} {
		_, err := admin.CreateHook(t.Context(), name, bad)
		wantCode(t, err, task.Invalid)
	}
	if hooks := must[[]forge.Hook](t)(admin.Hooks(t.Context(), name)); len(hooks) != 0 {
		t.Errorf("made were %+v", hooks)
	}
}

// testHook lets the forge deliver to a server of ours, with the first secret and with a later one.
func (s *setupSuite) testHook(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	name := s.Repository(t)
	admin, _ := s.As(t, name, forge.AdminAccess)
	type request struct {
		header http.Header
		body   []byte
	}
	requests := make(chan request, 10)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		requests <- request{r.Header, body}
	}))
	t.Cleanup(server.Close)
	// A forge may deliver the push that made the repository as well, at any time and with the secret
	// of then.
	delivered := func(secret string) {
		t.Helper()
		last := "nothing came"
		for {
			select {
			case got := <-requests:
				delivery, err := s.about.Parse(secret, got.header, got.body)
				if err == nil && delivery.Repository == name {
					return
				}
				last = fmt.Sprintf("%+v, %v", delivery, err)
			case <-ctx.Done():
				t.Fatalf("with the secret %q: %s", secret, last)
			}
		}
	}
	hook := must[forge.Hook](t)(admin.CreateHook(ctx, name, forge.HookPost{URL: server.URL, Secret: "first secret"}))
	try(t, admin.TestHook(ctx, name, hook.ID))
	delivered("first secret")
	hook = must[forge.Hook](t)(admin.EditHook(ctx, name, hook.ID, forge.HookPost{URL: server.URL, Secret: "second secret"}))
	try(t, admin.TestHook(ctx, name, hook.ID))
	delivered("second secret")
	// Not every forge tells how it went.
	last := must[forge.HookDelivery](t)(admin.LastDelivery(ctx, name, hook.ID))
	if !last.At.IsZero() && last.Status != http.StatusOK {
		t.Errorf("of the last delivery is told %+v", last)
	}
}

// issue opens an issue for the one who opens it. Its text is no command.
func (s *setupSuite) issue(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	name := s.Repository(t)
	writer, login := s.As(t, name, forge.WriteAccess)
	must[bool](t)(writer.CreateLabel(ctx, name, forge.Label{Name: "there already"}))
	item := must[forge.Item](t)(writer.CreateIssue(ctx, name, forge.IssuePost{
		Title: "A first task\nin this repository", Body: "Text.\n\n/close\n\nFor @" + login + " and @somebody-else.\n",
		Assignees: []string{login}, Labels: []string{"there already", "new here", "new here"},
	}))
	if item.Key.Repository != name || item.Key.Kind != task.Issue || item.Title != "A first task in this repository" || item.URL == "" {
		t.Errorf("opened %+v", item)
	}
	read := must[forge.Item](t)(s.Forge().Item(ctx, item.Key))
	if !read.AssignedTo(login) || !read.HasLabel("there already") || !read.HasLabel("new here") || read.State != forge.Open {
		t.Errorf("it is %+v", read)
	}
	if strings.Contains(read.Body, "\n/close") || strings.Contains(read.Body, "@somebody-else") || !strings.Contains(read.Body, "@"+login) {
		t.Errorf("its text is %q", read.Body)
	}
	labels := must[[]string](t)(writer.Labels(ctx, name))
	slices.Sort(labels)
	if diff := difference([]string{"new here", "there already"}, labels); diff != "" || len(read.Labels) != 2 {
		t.Errorf("the item has the labels %q, and there are %s", read.Labels, diff)
	}
	bare := must[forge.Item](t)(writer.CreateIssue(ctx, name, forge.IssuePost{Title: "Bare"}))
	if len(bare.Assignees)+len(bare.Labels) != 0 || bare.Body != "" {
		t.Errorf("opened %+v", bare)
	}
	_, err := writer.CreateIssue(ctx, name, forge.IssuePost{Title: "  "})
	wantCode(t, err, task.Invalid)
}

// issueForStrangers opens issues for somebody who may not see the repository, and for nobody. They are
// there, and say that nobody is assigned.
func (s *setupSuite) issueForStrangers(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	name := s.Repository(t)
	writer, _ := s.As(t, name, forge.WriteAccess)
	_, stranger := s.As(t, name, forge.NoAccess)
	for _, login := range []string{stranger, "nobody-has-this-name"} {
		item := must[forge.Item](t)(writer.CreateIssue(ctx, name, forge.IssuePost{Title: "Not for everybody", Assignees: []string{login}}))
		read := must[forge.Item](t)(s.Forge().Item(ctx, item.Key))
		if item.AssignedTo(login) || read.AssignedTo(login) || read.Title != "Not for everybody" {
			t.Errorf("for %s was opened %+v, and it is %+v", login, item, read)
		}
	}
	if items := must[[]forge.Item](t)(s.Forge().List(ctx, forge.Query{Repository: name, Kind: task.Issue})); len(items) != 2 {
		t.Errorf("there are %d issues", len(items))
	}
}
