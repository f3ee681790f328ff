package server_test

import (
	"testing"

	"github.com/toryo-dev/toryo/internal/forge/gitea"
	"github.com/toryo-dev/toryo/internal/server"
	"github.com/toryo-dev/toryo/internal/task"
)

// Whoever sets up a webhook is told when a delivery with its secret has arrived, also by a
// server that takes no webhooks of the forge yet: it takes them only as long, and does nothing
// else with them.
func TestExpectedWebhooks(t *testing.T) {
	t.Parallel()
	const push = `{"ref":"refs/heads/main","repository":{"full_name":"o/n"}}`
	expected := server.Webhook{Signed: gitea.SignedWebhook, Parse: gitea.ParseWebhook, Secret: secret}
	for name, taken := range map[string]bool{"taken already": true, "not taken yet": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			changes := &heard{}
			hooks, _ := newWebhooks(openStore(t), changes)
			if !taken {
				delete(hooks.Forges, task.Gitea)
			}
			handler := muxOf(hooks)
			arrived, stop, err := hooks.Expect(task.Gitea, expected)
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := hooks.Expect(task.Gitea, expected); task.CodeOf(err) != task.Conflict {
				t.Errorf("a second one who waits: %v", err)
			}
			unsigned := signed(task.Gitea, "1", "push", push)
			unsigned.Header.Set("X-Gitea-Signature", signature("another body"))
			if got := send(handler, unsigned); got != 401 {
				t.Errorf("a delivery with another secret answers %d", got)
			}
			select {
			case <-arrived:
				t.Error("a delivery with another secret counts as arrived")
			default:
			}
			for range 2 { // the second does no harm
				if got := send(handler, signed(task.Gitea, "", "push", push)); got != 204 {
					t.Errorf("the delivery answers %d", got)
				}
			}
			<-arrived
			if heard := changes.take(); (len(heard) > 0) != taken {
				t.Errorf("the server has heard %v", heard)
			}
			stop()
			want := map[bool]int{true: 204, false: 404}[taken]
			if got := send(handler, signed(task.Gitea, "2", "push", push)); got != want {
				t.Errorf("afterwards a delivery answers %d, want %d", got, want)
			}
			other := expected
			other.Secret = "another"
			if _, stop, err := hooks.Expect(task.Gitea, other); (task.CodeOf(err) == task.Conflict) != taken {
				t.Errorf("another secret than that of the running server: %v", err)
			} else if err == nil {
				stop()
			}
		})
	}
}
