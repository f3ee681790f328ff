package github_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/forgetest"
	"github.com/toryo-dev/toryo/internal/forge/github"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
)

// GitHub tells how the last delivery went.
func TestLastDelivery(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	f := newSetupFixture(t)
	repository := f.Repository(t)
	admin, _ := f.As(t, repository, forge.AdminAccess)
	var answer atomic.Int64
	answer.Store(http.StatusNoContent)
	listener := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(int(answer.Load())) }))
	hook, err := admin.CreateHook(ctx, repository, forge.HookPost{URL: listener.URL, Secret: "secret", Insecure: true})
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
	test := func() {
		t.Helper()
		if err := admin.TestHook(ctx, repository, hook.ID); err != nil {
			t.Fatal(err)
		}
	}
	last(0, false)
	test()
	last(http.StatusNoContent, true)
	answer.Store(http.StatusUnauthorized)
	test()
	last(http.StatusUnauthorized, true)
	listener.Close()
	test()
	last(0, true) // nobody was there
	f.World.Lock()
	if made := f.World.Repo(repository).Hooks[0]; made.Secret != "secret" || !made.Insecure {
		t.Errorf("the webhook is %+v", made)
	}
	f.World.Unlock()
	again := forge.HookPost{URL: listener.URL, Secret: "secret"}
	if _, err := admin.CreateHook(ctx, repository, again); task.CodeOf(err) != task.Conflict {
		t.Errorf("the same webhook again: %v", err)
	}
}

// What is read of webhooks is not kept in the database.
func TestHooksAreNotKept(t *testing.T) {
	t.Parallel()
	f := newSetupFixture(t)
	repository := f.Repository(t)
	admin := f.Person(t, repository, forge.AdminAccess)
	f.with(t, admin, "ghp_of_the_test", "repo", nil)
	kept := &forgetest.Kept{}
	adapter, err := github.New(github.Options{URL: f.server.URL + apiPrefix, Token: "ghp_of_the_test", HTTP: kept.Client()})
	if err != nil {
		t.Fatal(err)
	}
	forgetest.HooksAreNotKept(t, adapter, kept, repository)
}

// Listings that never end are not read for ever, whether their pages are empty or full of what is left
// out.
func TestListingsWithoutEnd(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{"empty pages": `[]`, "services": `[{"id": 1, "name": "irc", "config": {}}]`} {
		var asked atomic.Int64
		endless := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next := asked.Add(1) + 1
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Link", fmt.Sprintf(`<http://%s%s?page=%d>; rel="next"`, r.Host, r.URL.Path, next))
			_, _ = io.WriteString(w, body)
		}))
		t.Cleanup(endless.Close)
		adapter, err := github.New(github.Options{URL: endless.URL, Token: "ghp_of_the_test"})
		if err != nil {
			t.Fatal(err)
		}
		if hooks, err := adapter.Hooks(t.Context(), "o/n"); task.CodeOf(err) != task.TooLarge {
			t.Errorf("%s: webhooks %+v, %v", name, hooks, err)
		}
		if labels, err := adapter.Labels(t.Context(), "o/n"); task.CodeOf(err) != task.TooLarge {
			t.Errorf("%s: labels %q, %v", name, labels, err)
		}
		if got := asked.Load(); got > (forge.MaxHooks+forge.MaxLabels)/forge.FewestPerPage {
			t.Errorf("%s: it was asked %d times", name, got)
		}
	}
}

// A webhook's secret is in no error, also if GitHub repeats what it was sent.
func TestErrorsHaveNoSecretOfAWebhook(t *testing.T) {
	t.Parallel()
	f := newSetupFixture(t)
	repository := f.Repository(t)
	admin := f.Person(t, repository, forge.AdminAccess)
	f.with(t, admin, "ghp_of_the_test", "repo", nil)
	proxy := testkit.Faults(t, f.server.URL)
	adapter, err := github.New(github.Options{URL: proxy.URL + apiPrefix, Token: "ghp_of_the_test"})
	if err != nil {
		t.Fatal(err)
	}
	post := forge.HookPost{URL: "https://me:correct-horse@toryo.example/x", Secret: "very-secret"}
	refuse := testkit.Respond(422, map[string]string{"Content-Type": "application/json"}, `{"message": "Validation Failed", "errors": [{"message": "very-secret is not good for https://me:correct-horse@toryo.example/x"}]}`)
	proxy.Next(http.MethodPost, "/hooks", refuse)
	proxy.Next(http.MethodPatch, "/hooks", refuse)
	_, created := adapter.CreateHook(t.Context(), repository, post)
	_, edited := adapter.EditHook(t.Context(), repository, "1", post)
	for _, err := range []error{created, edited} {
		if task.CodeOf(err) != task.Invalid || !strings.Contains(err.Error(), "is not good for") || strings.Contains(err.Error(), post.Secret) || strings.Contains(err.Error(), "correct-horse") {
			t.Errorf("refused: %v", err)
		}
	}
}

// A label is there whatever letters are small in its name.
func TestLabelsInOtherLetters(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	f := newSetupFixture(t)
	repository := f.Repository(t)
	writer, _ := f.As(t, repository, forge.WriteAccess)
	if created, err := writer.CreateLabel(ctx, repository, forge.Label{Name: "Toryo"}); !created || err != nil {
		t.Fatalf("created: %v, %v", created, err)
	}
	if created, err := writer.CreateLabel(ctx, repository, forge.Label{Name: "toryo"}); created || err != nil {
		t.Errorf("it was created again: %v, %v", created, err)
	}
	if labels, err := writer.Labels(ctx, repository); err != nil || len(labels) != 1 || !forge.SameLabel(task.GitHub, labels[0], "toryo") {
		t.Errorf("labels %q, %v", labels, err)
	}
}
