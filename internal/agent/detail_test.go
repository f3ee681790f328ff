package agent_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/agent"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// The server is told what went wrong and what can be done about it, without what only a terminal
// needs. One of an older version, which does not know that, gets the rest.
func TestFailureIsExplained(t *testing.T) {
	t.Parallel()
	for name, older := range map[string]bool{"this version": false, "an older server": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := newHouse(t, assignment())
			server.older = older
			s := newShop(t, server.URL, busy...)
			s.with(func(context.Context, agent.Run) (wire.Result, error) {
				said := errors.New("exit status 128: \x1b[31mfatal\x1b[0m: no space")
				return wire.Result{}, task.Wrap(task.Invalid, said, "the work cannot be committed").WithHint("make room")
			})
			closing := s.open(t)
			server.await(t, "a result", func() bool { return len(server.results) == 1 })
			if err := closing(); err != nil {
				t.Errorf("at its end: %v", err)
			}
			got := server.results[0]
			if got.Outcome != task.OutcomeFailed || !strings.Contains(got.Comment, "the work cannot be committed") {
				t.Errorf("the result is %+v", got)
			}
			want := wire.Result{Detail: "the work cannot be committed: exit status 128: fatal: no space", Hint: "make room"}
			if older {
				want = wire.Result{}
			}
			if got.Detail != want.Detail || got.Hint != want.Hint {
				t.Errorf("what went wrong is %q, and %q can be done", got.Detail, got.Hint)
			}
		})
	}
}
