package outbox_test

import (
	"slices"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/outbox"
	"github.com/toryo-dev/toryo/internal/store"
)

// What was posted between a backup and its restore is found on the forge, and not posted a second
// time: what waited in the outbox when the backup was made, and what the run says again since.
func TestRestoredWritesAreNotMadeTwice(t *testing.T) {
	t.Parallel()
	withFixture(t, func(d *fixture) {
		t := d.t
		run := func(what string) store.Action {
			write := d.write(what)
			write.Began, write.Lasting = 1, true
			action, err := outbox.NewAction(write, outbox.Comment{Text: what})
			if err != nil {
				t.Fatal(err)
			}
			return action
		}
		waited, said := run("waited"), run("said")
		// The server of before has posted both; of that the database knows nothing.
		for _, action := range []store.Action{waited, said} {
			post := forge.Post{Text: forge.Neutraliser{}.Text(action.IdempotencyKey), Marker: forge.MarkerOf(action.IdempotencyKey)}
			if _, err := d.forge.CreateComment(t.Context(), d.item, post); err != nil {
				t.Fatal(err)
			}
		}
		if _, _, err := d.store.Put(t.Context(), waited); err != nil {
			t.Fatal(err)
		}
		done, err := d.store.Fence(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if d.task, err = d.store.Task(t.Context(), d.task.ID); err != nil || d.task.Generation != done.Generation {
			t.Fatalf("the task is in generation %d, %v", d.task.Generation, err)
		}
		again := run("said")
		if again.IdempotencyKey != said.IdempotencyKey {
			t.Fatalf("the key is %s, and was %s", again.IdempotencyKey, said.IdempotencyKey)
		}
		d.send(t)
		if _, err := d.Put(t.Context(), again); err != nil {
			t.Fatal(err)
		}
		d.put(t, "new", outbox.Comment{Text: "new"})
		for _, action := range []store.Action{waited, again} {
			if is := d.after(t, time.Second, action.IdempotencyKey); is.Status != store.Delivered {
				t.Errorf("%s is %s: %s", action.IdempotencyKey, is.Status, is.LastError)
			}
		}
		if want := []string{waited.IdempotencyKey, said.IdempotencyKey, "new"}; !slices.Equal(d.bodies(t), want) {
			t.Errorf("the comments are %q, want %q", d.bodies(t), want)
		}
	})
}
