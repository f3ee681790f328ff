package endtoend

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
)

// TestTheLoopCloses lets the bot do an issue when there is nobody else: it opens a pull
// request, reviews it and asks for changes, makes them, reviews them and approves. Nobody
// pushes.
func TestTheLoopCloses(t *testing.T) {
	t.Parallel()
	h := build(t, plan{agents: 2, settings: "review: {delay: 0s}\n"})
	board, err := openBoard(t.Context(), h)
	must(t, err)
	theLoopCloses(t, h, board)
}

func TestOnGiteaTheLoopCloses(t *testing.T) {
	t.Parallel()
	server := testkit.Gitea(t)
	giteaPeople(t, server)
	for name, secret := range map[string]string{"webhooks": "hook-secret-of-the-test", "polling": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			owner := map[string]string{"webhooks": "alice", "polling": "erin"}[name]
			h, site := giteaHouse(t, server, owner, secret, plan{agents: 2, settings: "review: {delay: 0s}\npolling: {shortest: 2s}\n"})
			theLoopCloses(t, h, site)
		})
	}
}

func theLoopCloses(t *testing.T, h *house, at site) {
	t.Helper()
	s := h.begin(t, at, load(t, "testdata/loop/review.txtar")[0])
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var pull forge.Item
	var reviews []forge.Review
	for len(reviews) < 2 || pull.HasLabel("needs-review") {
		if !pause(ctx) {
			t.Fatalf("the pull request is %+v, its reviews are %+v\n%s", pull, reviews, s.journal(t))
		}
		listed, err := at.look().List(ctx, forge.Query{Repository: s.item.Repository, Kind: task.Pull})
		must(t, err)
		if len(listed) != 1 {
			continue
		}
		pull, err = at.look().Item(ctx, listed[0].Key)
		must(t, err)
		reviews, err = at.look().Reviews(ctx, pull.Key)
		must(t, err)
	}
	for i, said := range []string{"Verdict: changes requested", "Verdict: approved"} {
		if !strings.Contains(reviews[i].Body, said) || !task.SameLogin(reviews[i].Author, at.bot()) {
			t.Errorf("review %d is %+v", i+1, reviews[i])
		}
	}
	if reviews[0].Commit == reviews[1].Commit || reviews[1].Commit != pull.HeadCommit {
		t.Errorf("the reviews are of %s and %s, the head is %s", reviews[0].Commit, reviews[1].Commit, pull.HeadCommit)
	}
	diff, err := at.look().Diff(ctx, pull.Key)
	must(t, err)
	if !strings.Contains(diff.Patch, "+# Prints the sum.") || !strings.Contains(diff.Patch, "$1 + $2") {
		t.Errorf("the pull request changes:\n%s", diff.Patch)
	}
	threads, err := at.look().ReviewThreads(ctx, pull.Key)
	must(t, err)
	if len(threads) != 1 || !strings.Contains(threads[0].Comments[0].Body, "Say in the file what it prints.") {
		t.Errorf("the conversations on lines are %+v", threads)
	}
	// Nothing follows, also when the forge is looked at again: it is for people to merge.
	for range 50 { // two intervals of polling and more
		if !pause(ctx) {
			t.Fatal("time is up")
		}
	}
	for _, want := range []struct {
		on    task.Key
		kind  task.Type
		times int
	}{{s.item, task.Development, 1}, {pull.Key, task.Development, 1}, {pull.Key, task.Review, 2}} {
		is, err := h.store.TaskOf(ctx, want.on, want.kind)
		if err != nil || is.State != task.Done {
			t.Errorf("the %s of %s is %+v, %v", want.kind, want.on, is, err)
		}
		if times := h.assigned(t, is); times != want.times {
			t.Errorf("the %s of %s was assigned %d times, want %d", want.kind, want.on, times, want.times)
		}
	}
}

// assigned is how often a task was assigned. The generation may be larger: an agent whose request
// ends just when it is given the task does not get it, which is one more.
func (h *house) assigned(t *testing.T, is task.Task) int {
	t.Helper()
	moves, err := h.store.EventsOf(t.Context(), is.ID, task.StateChanged)
	must(t, err)
	moves = slices.DeleteFunc(moves, func(e task.Event) bool { return !strings.Contains(string(e.Data), `"trigger":"assigned"`) })
	return len(moves)
}
