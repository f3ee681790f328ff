package broker_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/broker/intake"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/dummy"
	"github.com/toryo-dev/toryo/internal/task"
)

// named is how often the log names an item that is ignored.
func (o *office) named(key task.Key) int {
	count := 0
	for line := range strings.Lines(o.log.String()) {
		if strings.Contains(line, "which is ignored") && strings.Contains(line, key.String()) {
			count++
		}
	}
	return count
}

func sayOutside(options *intake.Options) {
	options.Outside = func(_ task.Forge, repository string) (why, hint string) {
		return "github.owner is team", "set it to the owner of " + repository
	}
}

// Whoever assigns the bot in a repository that is not worked on finds that in the log, once: by a
// sync, and by a webhook.
func TestIgnoredItemsAreNamed(t *testing.T) {
	t.Parallel()
	o := newOffice(t, sayOutside)
	o.forge.AddRepository("alice/notes", forge.Remote{})
	bySync := o.forge.AddItem("alice/notes", task.Issue, "alice", "by a sync")
	o.check(o.forge.Assign(t.Context(), bySync, bot))
	for range 3 {
		o.check(o.intake.Sync(t.Context(), []task.Forge{task.GitHub}, time.Time{}))
	}
	if got := o.named(bySync); got != 1 {
		t.Errorf("it is named %d times in\n%s", got, o.log)
	}
	if log := o.log.String(); !strings.Contains(log, "github.owner is team") || !strings.Contains(log, "set it to the owner of alice/notes") {
		t.Errorf("the log does not say why, or what to do:\n%s", log)
	}
	byWebhook := o.forge.AddItem("alice/notes", task.Issue, "alice", "by a webhook")
	o.check(o.forge.Assign(t.Context(), byWebhook, bot))
	other := o.forge.AddItem("alice/notes", task.Issue, "alice", "not for the bot")
	for range 3 {
		o.check(o.intake.Look(t.Context(), byWebhook, 0))
		o.check(o.intake.Look(t.Context(), other, 0))
	}
	if o.named(byWebhook) != 1 || o.named(other) != 0 {
		t.Errorf("it is named %d times, and another %d times", o.named(byWebhook), o.named(other))
	}
	if _, err := o.store.TaskOf(t.Context(), byWebhook, task.Development); task.CodeOf(err) != task.NotFound {
		t.Errorf("it has a task: %v", err)
	}
}

// However many items are ignored, a look names some tens and says how many more there are. The next
// one names others, and none is named twice.
func TestIgnoredItemsDoNotFillTheLog(t *testing.T) {
	t.Parallel()
	o := newOffice(t, sayOutside)
	o.forge.AddRepository("alice/notes", forge.Remote{})
	var keys []task.Key
	for range 70 {
		key := o.forge.AddItem("alice/notes", task.Issue, "alice", "x")
		o.check(o.forge.Assign(t.Context(), key, bot))
		keys = append(keys, key)
	}
	for look, want := range []struct {
		named int
		more  string
	}{{30, "more=40"}, {60, "more=10"}, {70, "more=10"}, {70, "more=10"}} {
		o.check(o.intake.Sync(t.Context(), []task.Forge{task.GitHub}, time.Time{}))
		o.later(11 * time.Minute)
		named := strings.Count(o.log.String(), "which is ignored")
		if named != want.named || !strings.Contains(o.log.String(), want.more) {
			t.Errorf("after look %d there are %d named in\n%s", look, named, o.log)
		}
	}
	for _, key := range keys {
		if !strings.Contains(o.log.String(), "item="+key.String()+" ") {
			t.Errorf("%s is not named", key)
		}
	}
	if got := strings.Count(o.log.String(), "ignored too"); got != 2 {
		t.Errorf("it is said %d times that there are more", got)
	}
}

// watched is a forge that says how it is asked about a repository.
type watched struct {
	*dummy.Forge
	repository string
	asked      func(ctx context.Context)
}

func (w watched) List(ctx context.Context, query forge.Query) ([]forge.Item, error) {
	if query.Repository == w.repository {
		w.asked(ctx)
	}
	return w.Forge.List(ctx, query)
}

// What is ignored does not keep a sync from its work: that on every forge is done first, and the
// look at the rest has a time limit.
func TestIgnoredItemsComeLast(t *testing.T) {
	t.Parallel()
	asked := 0
	second := dummy.New(task.Gitea, bot)
	second.AddRepository("team/lib", forge.Remote{})
	o := newOffice(t, sayOutside, func(options *intake.Options) {
		first := watched{options.Forges[task.GitHub].(*dummy.Forge), "alice/notes", func(ctx context.Context) {
			asked++
			if _, limited := ctx.Deadline(); !limited || second.Count("List") == 0 {
				t.Errorf("it is asked for with a limit: %t, after %d lists of the other forge", limited, second.Count("List"))
			}
		}}
		first.AddRepository("alice/notes", forge.Remote{})
		options.Forges = map[task.Forge]forge.Forge{task.GitHub: first, task.Gitea: second}
	})
	o.check(o.intake.Sync(t.Context(), []task.Forge{task.GitHub, task.Gitea}, time.Time{}))
	if asked != 1 {
		t.Errorf("it was asked for %d times", asked)
	}
}

// What is ignored costs the forge little, however much there is of it.
func TestIgnoredItemsCostLittle(t *testing.T) {
	t.Parallel()
	o := newOffice(t, sayOutside)
	for i := range 60 {
		name := fmt.Sprintf("alice/r%d", i)
		o.forge.AddRepository(name, forge.Remote{})
		key := o.forge.AddItem(name, task.Issue, "alice", "x")
		o.check(o.intake.Look(t.Context(), key, 0))
	}
	if got := o.forge.Count("Item"); got == 0 || got > 20 {
		t.Errorf("%d items were read", got)
	}
	if comments, reviews := o.forge.Count("Comments"), o.forge.Count("Reviews"); comments+reviews > 0 {
		t.Errorf("the comments of items that are ignored were read %d times, their reviews %d times", comments, reviews)
	}
	before := o.forge.Count("List")
	for range 5 {
		o.check(o.intake.Sync(t.Context(), []task.Forge{task.GitHub}, time.Time{}))
	}
	const ours = 5 * 3 // what a sync lists of the one repository that is worked on
	if got := o.forge.Count("List") - before; got > 20+ours {
		t.Errorf("%d lists were read", got)
	}
	o.later(11 * time.Minute)
	before = o.forge.Count("List")
	o.check(o.intake.Sync(t.Context(), []task.Forge{task.GitHub}, time.Time{}))
	if got := o.forge.Count("List") - before; got < 20 {
		t.Errorf("later it is not looked at again: %d lists were read", got)
	}
}
