package forgetest

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/transport"
	"github.com/toryo-dev/toryo/internal/task"
)

// Kept is a cache that has nothing, and notes what it is given to keep.
type Kept struct {
	mu     sync.Mutex
	bodies []string
}

var _ transport.Cache = (*Kept)(nil)

// Get implements transport.Cache.
func (k *Kept) Get(context.Context, string) (answer transport.CachedResponse, found bool, err error) {
	return transport.CachedResponse{}, false, nil
}

// Put implements transport.Cache.
func (k *Kept) Put(_ context.Context, _ string, answer transport.CachedResponse) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.bodies = append(k.bodies, string(answer.Body))
	return nil
}

// Client is a client as the server has it, to a forge all of whose answers can be kept.
func (k *Kept) Client() *http.Client {
	return forge.HTTPClient(transport.New(transport.Options{Name: "test", Next: tagged{}, Cache: k}))
}

// tagged gives every answer an ETag.
type tagged struct{}

func (tagged) RoundTrip(request *http.Request) (*http.Response, error) {
	answer, err := http.DefaultTransport.RoundTrip(request)
	if err == nil {
		answer.Header.Set("ETag", `"1"`)
	}
	return answer, err
}

// hookSecret is in the address of a webhook of somebody else.
const hookSecret = "secret-of-somebody-else"

// WantNoHooks fails the test if something of the webhooks of [HooksAreNotKept] was kept.
func (k *Kept) WantNoHooks(t testing.TB) {
	t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	if at := slices.IndexFunc(k.bodies, func(body string) bool { return strings.Contains(body, hookSecret) }); at >= 0 {
		t.Errorf("the address of a webhook was kept: %s", k.bodies[at])
	}
}

// HooksAreNotKept reads webhooks in every way with an adapter that has the client of kept: the address
// of a webhook may have a secret in it, and answers are kept in the database. The webhook stays, and
// its id is returned.
func HooksAreNotKept(t *testing.T, adapter forge.Setup, kept *Kept, repository string) string {
	t.Helper()
	ctx := t.Context()
	post := forge.HookPost{URL: "https://chat.example/hooks/" + hookSecret, Secret: "secret of the test"}
	made := must[forge.Hook](t)(adapter.CreateHook(ctx, repository, post))
	made = must[forge.Hook](t)(adapter.EditHook(ctx, repository, made.ID, post))
	if hooks := must[[]forge.Hook](t)(adapter.Hooks(ctx, repository)); len(hooks) != 1 || hooks[0].URL != post.URL {
		t.Fatalf("webhooks %+v", hooks)
	}
	must[forge.HookDelivery](t)(adapter.LastDelivery(ctx, repository, made.ID))
	_, err := adapter.EditHook(ctx, repository, "999999", post) // which looks for the others
	wantCode(t, err, task.NotFound)
	kept.WantNoHooks(t)
	must[[]string](t)(adapter.Labels(ctx, repository))
	kept.mu.Lock()
	defer kept.mu.Unlock()
	if len(kept.bodies) == 0 {
		t.Error("nothing at all was kept")
	}
	return made.ID
}
