package access_test

import (
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/store/sqlite"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
)

// A lease's token opens its run, while the lease lasts, and nothing else.
func TestLeaseTokens(t *testing.T) {
	t.Parallel()
	database, err := sqlite.Open(t.Context(), testkit.SQLite(t, sqlite.Open))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = database.Close() }()
	queued, _, err := database.Assign(t.Context(), store.NewTask{
		Key:  task.Key{Forge: task.Board, Repository: "team/app", Kind: task.Issue, Number: 1},
		Type: task.Development, Reason: task.ReasonAssigned,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	token := access.NewLeaseToken(queued.ID, queued.Generation)
	held, err := database.Claim(t.Context(), []store.Claim{{
		Task: queued.ID, Generation: queued.Generation, Agent: "a", TokenHash: access.Hash(token), ExpiresAt: now.Add(time.Minute),
	}}, nil)
	if err != nil || len(held) != 1 {
		t.Fatalf("claimed %v, %v", held, err)
	}

	leases := access.Leases{Store: database}
	if got, err := leases.Check(t.Context(), token); err != nil || got.ID != queued.ID || got.Generation != queued.Generation {
		t.Errorf("the token is for %+v, %v", got, err)
	}
	for _, wrong := range []string{
		"", "lease.", "lease..1.x", token + "x", access.NewLeaseToken(queued.ID, queued.Generation),
		access.NewLeaseToken(queued.ID, queued.Generation+1), access.NewLeaseToken("other", 1), access.NewSecret(),
	} {
		if _, err := leases.Check(t.Context(), wrong); task.CodeOf(err) != task.LeaseLost {
			t.Errorf("%q gives %v", wrong, err)
		}
	}
	if _, err := access.CheckToken(t.Context(), database, token); task.CodeOf(err) != task.Unauthorized {
		t.Errorf("as a token of the API it gives %v", err)
	}

	if _, err := database.Move(t.Context(), store.Change{Task: queued.ID, Trigger: task.Withdrawn, Reason: task.ReasonUnassigned}); err != nil {
		t.Fatal(err)
	}
	if _, err := leases.Check(t.Context(), token); task.CodeOf(err) != task.LeaseLost {
		t.Errorf("after the stop: %v", err)
	}
}
