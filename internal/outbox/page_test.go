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

// sendWithPages starts a sender that knows where the pages are.
func (d *fixture) sendWithPages(address string) {
	d.t.Helper()
	d.Sender = outbox.NewSender(outbox.SenderOptions{
		Outbox: d.store, Tasks: d.store, Forges: map[task.Forge]forge.Forge{task.Gitea: d.forge}, Pages: address,
	})
	d.send(d.t)
}

// Every comment about a task links to its page, also one that is not of a run.
func TestCommentsLinkToThePage(t *testing.T) {
	t.Parallel()
	withFixture(t, func(d *fixture) {
		t := d.t
		d.sendWithPages("http://127.0.0.1:8750")
		d.put(t, "done", outbox.Comment{Text: "**完了しました。**"})
		waits, err := outbox.NewAction(outbox.Write{Item: d.item, What: "waits"}, outbox.Comment{Text: "It waits.", About: d.task.ID})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.Put(t.Context(), waits); err != nil {
			t.Fatal(err)
		}
		last := d.put(t, "end", outbox.Comment{Text: "**Failed.**"})
		if action := d.after(t, time.Minute, last); action.Status != store.Delivered {
			t.Fatalf("%+v", action)
		}
		bodies := strings.Join(d.bodies(t), "\n")
		for _, want := range []string{"[このタスクのページ]", "[The task page]"} {
			if !strings.Contains(bodies, want) {
				t.Errorf("%q is missing in %q", want, bodies)
			}
		}
		if link := "(http://127.0.0.1:8750/tasks/" + string(d.task.ID) + ")"; strings.Count(bodies, link) != 3 {
			t.Errorf("the comments are %q", bodies)
		}
	})
}

// The progress comment links to the page of the task, if people can reach it, and keeps the
// link when its state changes.
func TestProgressLinksToThePage(t *testing.T) {
	t.Parallel()
	withFixture(t, func(d *fixture) {
		t := d.t
		d.sendWithPages("https://toryo.example.com")
		link := "(https://toryo.example.com/tasks/" + string(d.task.ID) + ")"
		for _, payload := range []outbox.Payload{
			outbox.Progress{Name: "run", Text: "## Toryo is working\n\none\n"}, outbox.Progress{Name: "run", Text: "## Toryo is working\n\ntwo\n"},
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
