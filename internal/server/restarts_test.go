package server_test

import (
	"context"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// An agent that was started again says which of its processes has ended: that one has no
// lease any more and is given nothing, and another process of the same name and token
// keeps what it has.
func TestRestartedAgent(t *testing.T) {
	t.Parallel()
	c, ann := boardCounter(t)
	given := func(process string) *wire.Assignment {
		_, err := ann.CreateIssue(t.Context(), "team/app", forge.NewIssue{Title: "x", Assignees: []string{"toryo"}})
		must(t, err)
		made, err := c.agent().RequestTaskAs(t.Context(), wire.TaskRequest{AgentID: "smith", Process: process}, time.Minute)
		must(t, err)
		if made == nil {
			t.Fatal("given nothing")
		}
		return made
	}
	dead, living, old := given("dead"), given("living"), given("") // of an agent that does not name its process
	leaving, leave := context.WithCancel(t.Context())
	waited := make(chan *wire.Assignment, 1)
	go func() {
		made, _ := c.agent().RequestTaskAs(leaving, wire.TaskRequest{AgentID: "smith", Process: "dead"}, time.Minute) // it is ended
		waited <- made
	}()
	eventually(t, func() bool { return c.hands.Waiting() == 1 })
	must(t, c.agent().Restarted(t.Context(), []string{"dead", "", "unheard of"}))
	holds := func(a *wire.Assignment) error {
		return c.store.Holds(t.Context(), task.ID(a.TaskID), a.Generation, access.Hash(a.Lease.Token))
	}
	if err := holds(dead); task.CodeOf(err) != task.LeaseLost {
		t.Errorf("the process that has ended has its lease: %v", err)
	}
	for _, a := range []*wire.Assignment{living, old} {
		if err := holds(a); err != nil {
			t.Errorf("another process has lost its lease: %v", err)
		}
	}
	given("next") // not to the one that waits through a connection that is left over
	leave()
	if made := <-waited; made != nil {
		t.Errorf("the process that has ended is given %s", made.TaskID)
	}
	over, err := c.store.Expired(t.Context(), time.Now(), 0)
	must(t, err)
	if len(over) != 1 {
		t.Errorf("%d leases are over, want 1", len(over))
	}
	viewer := wire.Client{Server: c.url, Token: "toryo_nobody", HTTP: patient}
	if err := viewer.Restarted(t.Context(), []string{"living"}); task.CodeOf(err) != task.Unauthorized {
		t.Errorf("who has no token is told %v", err)
	}
}
