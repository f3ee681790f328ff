package broker_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/broker"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/store/sqlite"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
)

// Who asks again what tasks wait for is told the truth, and the queue is read only if that
// can have changed.
func TestWaitsReadTheQueueOnce(t *testing.T) {
	t.Parallel()
	database := opened(t, sqlite.Open, testkit.SQLite(t, sqlite.Open))
	var ahead atomic.Int64
	now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	hands, _ := handsOut(t, database, func(o *broker.HandOutOptions) { o.Now = now })
	const many = 50
	all := make([]task.Task, many)
	for n := range all {
		all[n] = assignTask(t, database)
	}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	asked := func(when string, reason task.Reason, tasks int, reads bool) {
		t.Helper()
		before := database.Counts().Rows
		waits, err := hands.Waits(t.Context())
		check(err)
		rows := database.Counts().Rows - before
		if tasks == 0 && len(waits) > 0 || tasks > 0 && (len(waits) != 1 || waits[0].Reason != reason || len(waits[0].Tasks) != tasks) {
			t.Errorf("%s: %+v, want %d tasks that wait because of %s", when, waits, tasks, reason)
		}
		if !reads && rows >= many {
			t.Errorf("%s: %d rows are read", when, rows)
		}
	}
	asked("there is no agent", task.ReasonNoAgents, many, true)
	asked("nothing has happened", task.ReasonNoAgents, many, false)
	_, err := database.Move(t.Context(), store.Change{Task: all[0].ID, Trigger: task.Withdrawn, Reason: task.ReasonUnassigned})
	check(err)
	asked("one is stopped", task.ReasonNoAgents, many-1, true)
	asked("nothing has happened since", task.ReasonNoAgents, many-1, false)
	assignTask(t, database, func(n *store.NewTask) { n.ReadyAt = now().Add(time.Hour) })
	asked("one is for later", task.ReasonNoAgents, many-1, true)
	ahead.Add(int64(2 * time.Hour))
	asked("its time has come", task.ReasonNoAgents, many, true)
	agent, err := database.AddToken(t.Context(), store.Token{Name: "first", Role: "agent", Hash: []byte("first"), CreatedAt: now()})
	check(err)
	asked("there is an agent", "", 0, true)
	check(database.AgentIs(t.Context(), agent.ID, store.Condition{Unable: task.ReasonNoSandbox}, now()))
	asked("it has no sandbox", task.ReasonNoSandbox, many, true)
	check(database.AgentIs(t.Context(), agent.ID, store.Condition{Unable: task.ReasonNoSandbox}, now()))
	asked("it says so again", task.ReasonNoSandbox, many, false)
	ahead.Add(int64(time.Hour))
	asked("it falls silent", task.ReasonAgentsSilent, many, true)
	_, err = database.PauseAll(t.Context(), store.GeneralPause{Source: "operator", At: now()})
	check(err)
	asked("everything is paused", task.ReasonAllPaused, many, true)
}
