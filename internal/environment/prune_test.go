package environment_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/environment"
	"github.com/toryo-dev/toryo/internal/sandbox"
)

// stuck is an engine with a snapshot that cannot be removed.
type stuck struct {
	engine
	key string
	err error
}

func (s *stuck) RemoveSnapshot(ctx context.Context, key string) error {
	if key == s.key {
		return s.err
	}
	return s.engine.RemoveSnapshot(ctx, key)
}

// Nor does it keep the others from making room for a new one.
func TestOneSnapshotStaysAndOthersMakeRoom(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.engine.results["check"] = []any{printed("OK")}
	e := &stuck{engine: *b.engine, key: "a", err: errors.New("it is in use")}
	for _, key := range []string{"a", "b", "c"} {
		e.snapshots = append(e.snapshots, sandbox.Snapshot{Key: key, Bytes: 10})
	}
	b.Engine, b.Snapshots = e, 15
	got, err := b.Run(t.Context(), environment.Request{Plan: plan, Source: environment.Source{Project: "p"}, Spec: sandbox.Spec{Owner: "test", Workspace: b.dir}})
	if err != nil || fmt.Sprint(e.removed) != "[b c]" || !strings.Contains(fmt.Sprint(got.Result.Warnings), "it is in use") {
		t.Errorf("%v went, %v: %v", e.removed, got.Result.Warnings, err)
	}
}

// A snapshot that cannot be removed does not keep the others that nothing is started from.
func TestOneSnapshotStays(t *testing.T) {
	t.Parallel()
	now := time.Now()
	busy := errors.New("it is in use")
	e := &stuck{key: "a", err: busy}
	for i, key := range []string{"a", "b", "c", "new"} {
		e.snapshots = append(e.snapshots, sandbox.Snapshot{Key: key, Used: now.Add(time.Duration(i-3) * time.Hour)})
	}
	removed, err := environment.PruneUnused(t.Context(), e, now)
	if removed != 2 || fmt.Sprint(e.removed) != "[b c]" || !errors.Is(err, busy) {
		t.Errorf("%d went, %v: %v", removed, e.removed, err)
	}
}
