package server

import (
	"slices"
	"testing"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/items"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// Commits name who asked: the author of an issue, and those whose comments and reviews
// the run was given; never the bot, nobody without an address, and nobody who may not
// steer.
func TestWhoIsNamedInCommits(t *testing.T) {
	t.Parallel()
	w := onSQLite(t, setting{accept: items.FromWriters})
	for _, login := range []string{"alice", "bob", "eve", "ill"} {
		w.forge.SetAccess(repository, login, forge.WriteAccess)
	}
	w.forge.SetAccess(repository, "mallory", forge.ReadAccess)
	named := func(commit string) []string {
		of, _ := w.coAuthors.Load(commit)
		names, _ := of.([]string)
		return names
	}
	made := w.issue(t, "Fix the sum")
	for _, login := range []string{"ill", "eve", "mallory", "bob", "Bob", bot, "dave"} {
		w.forge.AddComment(made.Key, login, "Mind the zero.")
	}
	held, _ := w.claim(t, made.ID)
	answer, err := offer(t, held, made.Branch, "c1", false)
	if err != nil || answer.Commit != "made-of-c1" {
		t.Fatalf("the answer is %+v, %v", answer, err)
	}
	if want := []string{"Alice AX-By: x <1+alice@users.example.org>", "bob <bob@example.org>"}; !slices.Equal(named("c1"), want) {
		t.Errorf("the commit names %q, want %q", named("c1"), want)
	}

	// Who opened a pull request did not ask for what a reviewer wants.
	key := w.forge.AddItem(repository, task.Pull, "alice", "Fix")
	w.forge.Change(key, func(item *forge.Item) { item.Head, item.Base = "feature", "main" })
	w.forge.SetBranch(repository, "feature", "c0")
	w.judge(key, "bob", "Change it.")
	w.judge(key, "mallory", "Change it.")
	onPull, _, err := w.store.Assign(t.Context(), store.NewTask{Key: key, Type: task.Development, Branch: "feature", Reason: task.ReasonChangesRequested}, nil)
	if err != nil {
		t.Fatal(err)
	}
	held, _ = w.claim(t, onPull.ID)
	if _, err := offer(t, held, "feature", "c2", false); err != nil {
		t.Fatal(err)
	}
	if want := []string{"bob <bob@example.org>"}; !slices.Equal(named("c2"), want) {
		t.Errorf("the fix-up names %q, want %q", named("c2"), want)
	}
}
