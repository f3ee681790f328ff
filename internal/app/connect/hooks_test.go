package connect_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/app/connect"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
)

// hookURL is where the webhooks of the installation lead.
func (h *installation) hookURL() string { return connect.HookURL("http://"+h.addr, task.Gitea) }

// hadHook lets team/app have a webhook with our address, and a secret that nobody here knows.
func (h *installation) hadHook() {
	h.Helper()
	if _, err := h.forge.As(token).CreateHook(h.Context(), "team/app", forge.HookPost{URL: h.hookURL(), Secret: "of somebody else"}); err != nil {
		h.Fatal(err)
	}
}

// wantSigned makes sure that each repository has one webhook, whose deliveries the server accepts.
func (h *installation) wantSigned() {
	h.Helper()
	want := []string{h.load().Gitea.WebhookSecret.Reveal()}
	for _, repository := range []string{"team/app", "team/web"} {
		if got := h.forge.HookSecrets(repository); !slices.Equal(got, want) {
			h.Errorf("%s has %d webhooks with other secrets", repository, len(got))
		}
		if got := h.forge.HookURLs(repository); !slices.Equal(got, []string{h.hookURL()}) {
			h.Errorf("%s has the webhooks %v", repository, got)
		}
	}
}

// edits counts how often webhooks were changed.
func (h *installation) edits() int {
	count := 0
	for _, what := range h.forge.Written() {
		if strings.HasPrefix(what, "edit webhook") {
			count++
		}
	}
	return count
}

// A webhook that was there gets our secret, wherever the run is killed and however often it is
// repeated; once it has it, it is not changed any more.
func TestAWebhookThatWasThere(t *testing.T) {
	t.Parallel()
	whole := newInstallation(t)
	whole.hadHook()
	before := len(whole.forge.Written())
	whole.apply()
	whole.wantSigned()
	writes := len(whole.forge.Written()) - before
	whole.apply()
	if got := len(whole.forge.Written()) - before; got != writes {
		t.Errorf("the second run wrote %v", whole.forge.Written()[before+writes:])
	}
	for at := range writes {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			t.Parallel()
			h := newInstallation(t)
			h.hadHook()
			ctx, kill := context.WithCancel(t.Context())
			h.forge.After = func(number int, _ string) error {
				if number == before+at+1 {
					kill()
					return task.Wrap(task.Unavailable, context.Canceled, "killed")
				}
				return nil
			}
			if err := h.installer().Apply(ctx, h.answers()); err == nil {
				t.Fatal("it was not killed")
			}
			h.forge.After = nil
			h.apply()
			h.wantSigned()
			if err := h.installer().Remove(t.Context()); err != nil {
				t.Fatal(err)
			}
			if left := h.forge.HookURLs("team/app"); len(left) != 1 {
				t.Errorf("what was there before is now %v", left)
			}
			if left := h.forge.HookURLs("team/web"); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// A webhook that could not be changed is changed by the next run, although the configuration has
// its secret by then.
func TestAWebhookThatCouldNotBeChanged(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	h.hadHook()
	h.forge.After = func(_ int, what string) error {
		if strings.HasPrefix(what, "edit webhook") {
			return &forge.Error{Err: task.Errorf(task.Unavailable, "not now"), Status: 503}
		}
		return nil
	}
	h.apply()
	h.wantStep("webhook of team/app", connect.LeftOut, "polling")
	h.forge.After = nil
	h.apply()
	h.wantStep("webhook of team/app corrected", connect.Done, "")
	h.wantSigned()
	h.apply()
	if got := h.edits(); got != 2 {
		t.Errorf("it was changed %d times", got)
	}
}

// Where the old webhook stays beside the one that took its place, the next run deletes it.
func TestAWebhookThatIsThereTwice(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	h.hadHook()
	h.forge.Stuck = true
	h.apply()
	h.wantStep("webhook of team/app", connect.LeftOut, "cannot be deleted")
	h.forge.Stuck = false
	h.apply()
	h.wantStep("older webhook of team/app removed", connect.Done, "")
	h.wantSigned()
	if got := h.edits(); got != 1 {
		t.Errorf("it was changed %d times", got)
	}
}

// With another address of the server, the webhooks to the former one go. Those of others stay.
func TestAnotherAddressOfTheServer(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	const chat = "https://chat.example.com/hook"
	if _, err := h.forge.As(token).CreateHook(t.Context(), "team/app", forge.HookPost{URL: chat, Secret: "x"}); err != nil {
		t.Fatal(err)
	}
	h.apply()
	former := h.hookURL()
	port, err := testkit.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	h.addr = fmt.Sprint("127.0.0.1:", port)
	dry := h.installer()
	dry.DryRun = true
	if err := dry.Apply(t.Context(), h.answers()); err != nil {
		t.Fatal(err)
	}
	h.wantStep("webhook of team/app to "+former+" removed", connect.Planned, "")
	h.apply()
	if got := h.forge.HookURLs("team/app"); !slices.Equal(got, []string{chat, h.hookURL()}) {
		t.Errorf("the webhooks are %v", got)
	}
	if err := h.installer().Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := h.forge.HookURLs("team/app"); !slices.Equal(got, []string{chat}) {
		t.Errorf("left are the webhooks %v", got)
	}
}

// A test that does not arrive here, and that somebody has answered, was balanced to another
// server if they share a database: the webhooks stay. Else a stranger answers at the address, such
// as the page of a proxy for signing in, and must not get what is in private issues.
func TestAWebhookThatArrivesElsewhere(t *testing.T) {
	t.Parallel()
	answered := func(status int, shared bool) *installation {
		h := newInstallation(t)
		h.forge.Silent, h.forge.Answered = true, status
		impatient := h.installer()
		impatient.Wait, impatient.Shared = time.Millisecond, shared
		if err := impatient.Apply(t.Context(), h.answers()); err != nil {
			t.Fatal(err)
		}
		return h
	}
	h := answered(http.StatusNoContent, true)
	h.wantSigned()
	h.wantStep("delivery", connect.Done, "copy toryo.yaml")
	for _, status := range []int{http.StatusOK, http.StatusNoContent, http.StatusUnauthorized} {
		h := answered(status, false)
		h.wantStep("delivery", connect.LeftOut, "let Gitea reach the address")
		if left := h.forge.HookURLs("team/app"); len(left) > 0 {
			t.Errorf("answered with %d, the webhook stays: %v", status, left)
		}
	}
}

// Of servers that share a database, the second leaves the webhooks of the first as they are: it
// would give them a secret that the first does not know.
func TestTheSecondOfTwoServers(t *testing.T) {
	t.Parallel()
	first := newInstallation(t)
	apply := func(h *installation) {
		h.Helper()
		installer := h.installer()
		installer.Shared = true
		if h != first {
			installer.Random = strings.NewReader(strings.Repeat("another secret, ", 100))
		}
		if err := installer.Apply(t.Context(), h.answers()); err != nil {
			t.Fatal(err)
		}
	}
	apply(first)
	first.wantSigned()
	second := newInstallation(t)
	second.forge, second.addr = first.forge, first.addr
	apply(second)
	second.wantStep("webhook of team/app", connect.LeftOut, "copy toryo.yaml")
	first.wantSigned()
	apply(first)
	first.wantSigned()
	third := newInstallation(t) // the balancer sends the test to another
	third.forge.Silent = true
	installer := third.installer()
	installer.Shared, installer.Wait = true, time.Millisecond
	if err := installer.Apply(t.Context(), third.answers()); err != nil {
		t.Fatal(err)
	}
	third.wantSigned()
	third.wantStep("delivery", connect.LeftOut, "may have come to another server")
}
