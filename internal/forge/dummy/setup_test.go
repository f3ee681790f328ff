package dummy_test

import (
	"testing"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/dummy"
	"github.com/toryo-dev/toryo/internal/task"
)

// A right that is set is found, webhooks are kept from those who lack the right, and faults are those
// of every other call.
func TestSetup(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	f := dummy.New(task.Gitea, "toryo")
	f.AddRepository("o/n", forge.Remote{})
	if created, err := f.CreateLabel(ctx, "o/n", forge.Label{Name: "toryo"}); !created || err != nil {
		t.Errorf("a label: %v, %v", created, err)
	}
	if created, err := f.CreateLabel(ctx, "o/n", forge.Label{Name: "toryo"}); created || err != nil {
		t.Errorf("a label that is there: %v, %v", created, err)
	}
	hook, err := f.CreateHook(ctx, "o/n", forge.HookPost{URL: "https://toryo.example/x", Secret: "one"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.EditHook(ctx, "o/n", hook.ID, forge.HookPost{URL: "https://toryo.example/y", Secret: "two", Events: []string{"push"}}); err != nil || f.HookSecret("o/n", hook.ID) != "two" {
		t.Errorf("a changed webhook: %v", err)
	}
	if err := f.TestHook(ctx, "o/n", hook.ID); err != nil {
		t.Error(err)
	}
	if hooks, err := f.Hooks(ctx, "o/n"); err != nil || len(hooks) != 1 || hooks[0].URL != "https://toryo.example/y" {
		t.Errorf("webhooks %+v, %v", hooks, err)
	}
	if last, err := f.LastDelivery(ctx, "o/n", hook.ID); err != nil || last.Status != 200 || last.At.IsZero() {
		t.Errorf("the last delivery is %+v, %v", last, err)
	}
	f.SetDelivery("o/n", hook.ID, forge.HookDelivery{Status: 401})
	if last, err := f.LastDelivery(ctx, "o/n", hook.ID); err != nil || last.Status != 401 {
		t.Errorf("the last delivery is %+v, %v", last, err)
	}
	item, err := f.CreateIssue(ctx, "o/n", forge.IssuePost{Title: "A task", Assignees: []string{"toryo"}, Labels: []string{"toryo"}})
	if err != nil || !item.AssignedTo("toryo") || !item.HasLabel("toryo") {
		t.Errorf("opened %+v, %v", item, err)
	}
	f.SetAccess("o/n", "ann", forge.ReadAccess)
	item, err = f.CreateIssue(ctx, "o/n", forge.IssuePost{Title: "For others", Assignees: []string{"Ann", "stranger"}})
	if err != nil || !item.AssignedTo("ann") || item.AssignedTo("stranger") {
		t.Errorf("opened %+v, %v", item, err)
	}
	f.SetRight("o/n", forge.RightCheck{Right: forge.ManageHooks, State: forge.RightMissing, Given: "the role Admin"})
	if _, err := f.Hooks(ctx, "o/n"); task.CodeOf(err) != task.Forbidden {
		t.Errorf("webhooks without the right: %v", err)
	}
	checks, err := f.CheckRights(ctx, "o/n")
	if err != nil || len(checks) != len(forge.NeededRights)-1 || checks[len(checks)-1].Given != "the role Admin" {
		t.Errorf("rights %+v, %v", checks, err)
	}
	f.SetFaults(func(dummy.Call) dummy.Fault { return dummy.Refuse })
	if _, err := f.CheckRights(ctx, "o/n"); task.CodeOf(err) != task.Unavailable {
		t.Errorf("a forge that does not answer: %v", err)
	}
}
