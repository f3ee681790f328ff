package agent

import (
	"context"
	"time"

	"github.com/toryo-dev/toryo/internal/environment"
)

// tidy removes what this agent has kept on its disk for long enough. Runs that have not
// ended, and snapshots that are in use, are none of it.
func (a *Agent) tidy(ctx context.Context) {
	now := time.Now()
	failed := func(what string, err error) {
		if err != nil && ctx.Err() == nil {
			a.Log.WarnContext(ctx, "failed to remove what was kept for long enough; retrying later", "what", what, "error", err)
		}
	}
	if a.Contexts != nil && a.KeepContexts > 0 {
		count, err := a.Contexts.Prune(ctx, now.Add(-a.KeepContexts))
		failed("context files", err)
		if count > 0 {
			a.Log.InfoContext(ctx, "removed the context files of ended runs", "runs", count)
		}
	}
	if a.Sandboxes == nil {
		return
	}
	failed("leftovers of sandboxes", a.Sandboxes.Sweep(ctx))
	if a.KeepSnapshots > 0 {
		count, err := environment.PruneUnused(ctx, a.Sandboxes, now.Add(-a.KeepSnapshots))
		failed("snapshots", err)
		if count > 0 {
			a.Log.InfoContext(ctx, "removed snapshots that nothing is started from", "snapshots", count)
		}
	}
}
