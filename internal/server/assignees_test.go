package server_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/dummy"
	"github.com/toryo-dev/toryo/internal/items"
	"github.com/toryo-dev/toryo/internal/mirror"
	"github.com/toryo-dev/toryo/internal/outbox"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// takenOff is how each forge tells that an account was taken off issue 1 of team/app: the
// name of the event, and its body with the account and with those that are left.
var takenOff = map[task.Forge]struct{ event, body string }{
	task.GitHub: {"issues", `{"action":"unassigned","assignee":{"login":%q},"issue":{"number":1,"assignees":%s},
		"repository":{"full_name":"team/app"},"sender":{"login":"ann"}}`},
	task.GitLab: {"Issue Hook", `{"object_kind":"issue","user":{"username":"ann"},"project":{"path_with_namespace":"team/app"},
		"object_attributes":{"iid":1,"action":"update"},"changes":{"assignees":{"previous":[{"username":%q}],"current":%s}}}`},
	task.Gitea: {"issues", `{"action":"unassigned","assignee":{"login":%q},"issue":{"number":1,"assignees":%s},
		"repository":{"full_name":"team/app"},"sender":{"login":"ann"}}`},
}

// A webhook that tells of somebody else who was taken off an item has the item read, and the
// task goes on; one that tells of the bot ends it. What counts is what the forge says then: a
// webhook of the bot that comes late, when the bot is there again, ends nothing either.
func TestWebhooksOfOtherAssignees(t *testing.T) {
	t.Parallel()
	for name, told := range takenOff {
		t.Run(string(name), func(t *testing.T) {
			t.Parallel()
			const bot = "toryo-bot"
			database := openStore(t)
			on := dummy.New(name, bot)
			on.AddRepository("team/app", forge.Remote{})
			on.SetAccess("team/app", "ann", forge.WriteAccess)
			snapshots := items.NewSnapshots(map[task.Forge]forge.Reader{name: on}, items.DefaultAges, nil)
			t.Cleanup(snapshots.Stop)
			changes := items.NewFeed(snapshots)
			forges := map[task.Forge]forge.Forge{name: on}
			sender := outbox.NewSender(outbox.SenderOptions{Outbox: database, Tasks: database, Forges: forges, Snapshots: snapshots})
			mirrors, err := mirror.Open(t.Context(), mirror.Options{Root: t.TempDir(), Remote: func(context.Context, task.Repository) (forge.Remote, error) {
				return forge.Remote{}, task.Errorf(task.Unsupported, "nothing is fetched here")
			}})
			must(t, err)
			t.Cleanup(mirrors.Stop)
			c := newCounter(t, database, on, bot, snapshots, changes, sender, mirrors)
			hooks, handler := newWebhooks(database, new(heard))
			hooks.Changes = changes

			key := on.AddItem("team/app", task.Issue, "ann", "Fix the gate")
			for _, login := range []string{bot, "carol"} {
				must(t, on.Assign(t.Context(), key, login))
			}
			must(t, c.intake.Look(t.Context(), key, 0))
			made, err := database.TaskOf(t.Context(), key, task.Development)
			must(t, err)
			_, err = database.Claim(t.Context(), []store.Claim{{
				Task: made.ID, Generation: made.Generation, Agent: "a", TokenHash: access.Hash("x"), ExpiresAt: c.now().Add(longAge),
			}}, nil)
			must(t, err)
			deliveries := 0
			deliver := func(login, left string) {
				t.Helper()
				reads := on.Count("Item")
				deliveries++
				request := signed(name, fmt.Sprint("d", deliveries), told.event, fmt.Sprintf(told.body, login, left))
				if status := send(handler, request); status != http.StatusNoContent {
					t.Fatalf("the webhook is answered %d", status)
				}
				eventually(t, func() bool { return on.Count("Item") > reads })
			}
			goesOn := func(when string) {
				t.Helper()
				must(t, c.intake.Look(t.Context(), key, 0)) // after whoever has read it because of the webhook
				must(t, c.intake.Sync(t.Context(), []task.Forge{name}, c.now()))
				if is, err := database.Task(t.Context(), made.ID); err != nil || is.State != task.Running || is.Generation != made.Generation {
					t.Errorf("%s the task is %s because of %s, %v", when, is.State, is.Reason, err)
				}
			}

			must(t, on.Unassign(t.Context(), key, "carol"))
			deliver("carol", `[{"login":"toryo-bot","username":"toryo-bot"}]`)
			goesOn("after carol was taken off")
			deliver(bot, `[]`)
			goesOn("after a webhook that is not true any more")
			must(t, on.Unassign(t.Context(), key, bot))
			deliver(bot, `[]`)
			eventually(t, func() bool {
				is, err := database.Task(t.Context(), made.ID)
				return err == nil && is.State == task.Stopped && is.Reason == task.ReasonUnassigned
			})
		})
	}
}

// On the board too, taking somebody else off leaves the task alone, and so does what the bot
// itself does to the assignees.
func TestOtherAssigneesOnTheBoard(t *testing.T) {
	t.Parallel()
	c, ann := boardCounter(t)
	issue, err := ann.CreateIssue(t.Context(), "team/app", forge.NewIssue{Title: "Fix the gate", Assignees: []string{"toryo", "ann"}})
	must(t, err)
	a := c.request(t)
	must(t, ann.Unassign(t.Context(), issue.Key, "ann"))
	write := outbox.Write{Item: issue.Key, Task: task.ID(a.TaskID), Generation: a.Generation, What: "ask"}
	action, err := outbox.NewAction(write, outbox.Assign{Login: "ann"})
	must(t, err)
	_, err = c.sender.Put(t.Context(), action)
	must(t, err)
	eventually(t, func() bool {
		item, err := ann.Item(t.Context(), issue.Key)
		return err == nil && item.AssignedTo("ann")
	})
	must(t, c.intake.Look(t.Context(), issue.Key, 0))
	must(t, c.intake.Sync(t.Context(), []task.Forge{task.Board}, c.now()))
	if is, err := c.store.Task(t.Context(), task.ID(a.TaskID)); err != nil || is.State != task.Running || is.Generation != a.Generation {
		t.Errorf("the task is %s because of %s, %v", is.State, is.Reason, err)
	}
	must(t, ann.Unassign(t.Context(), issue.Key, "toryo"))
	eventually(t, func() bool {
		is, err := c.store.Task(t.Context(), task.ID(a.TaskID))
		return err == nil && is.State == task.Stopped && is.Reason == task.ReasonUnassigned
	})
}
