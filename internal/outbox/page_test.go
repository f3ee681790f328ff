package outbox_test

import (
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/outbox"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// The progress comment links to the page of the task, if people can reach it, and keeps the
// link when its state changes.
func TestProgressLinksToThePage(t *testing.T) {
	t.Parallel()
	withFixture(t, func(d *fixture) {
		t := d.t
		d.Sender = outbox.NewSender(outbox.SenderOptions{
			Outbox: d.store, Tasks: d.store, Forges: map[task.Forge]forge.Forge{task.Gitea: d.forge}, Pages: "https://toryo.example.com",
		})
		d.send(t)
		link := "(https://toryo.example.com/tasks/" + string(d.task.ID) + ")"
		for _, payload := range []outbox.Payload{
			outbox.Progress{Name: "run", Text: "## Toryo is at work\n\none\n"}, outbox.Progress{Name: "run", Text: "## Toryo is at work\n\ntwo\n"},
			outbox.ProgressState{Name: "run", State: task.Stopped},
		} {
			last := d.put(t, payload.Kind()+time.Now().String(), payload)
			if action := d.after(t, time.Minute, last); action.Status != store.Delivered {
				t.Fatalf("%+v", action)
			}
			if bodies := d.bodies(t); len(bodies) != 1 || strings.Count(bodies[0], link) != 1 {
				t.Errorf("the comments are %q", bodies)
			}
		}
	})
}
