package gitlab_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/forgetest"
	"github.com/toryo-dev/toryo/internal/forge/gitlab"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
	"github.com/toryo-dev/toryo/internal/testkit/forgeworld"
)

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
		got, err := admin.LastDelivery(ctx, repository, hook.ID)
		if err != nil || got.At.IsZero() == delivered || got.Status != want {
			t.Errorf("the last delivery is %+v, %v, want the status %d", got, err, want)
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

// What is read of webhooks is not kept in the database, also when a test of one fails.
func TestHooksAreNotKept(t *testing.T) {
	t.Parallel()
	f := newSetupFixture(t)
	repository := f.Repository(t)
	admin := f.Person(t, repository, forge.AdminAccess)
	f.with(t, admin, "glpat-of-the-test", "api")
	kept := &forgetest.Kept{}
	adapter, err := gitlab.New(gitlab.Options{URL: f.server.URL, Token: "glpat-of-the-test", HTTP: kept.Client()})
	if err != nil {
		t.Fatal(err)
	}
	id := forgetest.HooksAreNotKept(t, adapter, kept, repository)
	f.World.Lock()
	f.server.oldServer = true
	f.World.Unlock()
	if err := adapter.TestHook(t.Context(), repository, id); task.CodeOf(err) != task.Unsupported {
		t.Errorf("a test: %v", err)
	}
	kept.WantNoHooks(t)
}

// Listings whose pages are empty and never end are not read for ever.
func TestListingsWithoutEnd(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	endless := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Next-Page", strconv.FormatInt(asked.Add(1)+1, 10))
		_, _ = io.WriteString(w, `[]`)
	}))
	t.Cleanup(endless.Close)
	adapter, err := gitlab.New(gitlab.Options{URL: endless.URL, Token: "glpat-of-the-test"})
	if err != nil {
		t.Fatal(err)
	}
	if hooks, err := adapter.Hooks(t.Context(), "o/n"); task.CodeOf(err) != task.TooLarge {
		t.Errorf("webhooks %+v, %v", hooks, err)
	}
	if labels, err := adapter.Labels(t.Context(), "o/n"); task.CodeOf(err) != task.TooLarge {
		t.Errorf("labels %q, %v", labels, err)
	}
	if got := asked.Load(); got > (forge.MaxHooks+forge.MaxLabels)/forge.FewestPerPage {
		t.Errorf("it was asked %d times", got)
	}
}

// A webhook's secret is in no error, also if GitLab repeats what it was sent.
func TestErrorsHaveNoSecretOfAWebhook(t *testing.T) {
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
	post := forge.HookPost{URL: "https://me:correct-horse@toryo.example/x", Secret: "very-secret"}
	asJSON := map[string]string{"Content-Type": "application/json"}
	proxy.Next(http.MethodPost, "/hooks", testkit.Respond(422, asJSON, `{"error": "Invalid url given: https://me:correct-horse@toryo.example/x with very-secret"}`))
	proxy.Next(http.MethodPut, "/hooks", testkit.Respond(400, asJSON, `{"message": {"token": ["very-secret is not good for https://me:correct-horse@toryo.example/x"]}}`))
	_, created := adapter.CreateHook(t.Context(), repository, post)
	_, edited := adapter.EditHook(t.Context(), repository, "1", post)
	for _, err := range []error{created, edited} {
		if task.CodeOf(err) != task.Invalid || !strings.Contains(err.Error(), "toryo.example") || strings.Contains(err.Error(), post.Secret) || strings.Contains(err.Error(), "correct-horse") {
			t.Errorf("refused: %v", err)
		}
	}
}
