package environment

import (
	"context"
	"errors"
	"fmt"

	"github.com/toryo-dev/toryo/internal/sandbox"
)

// keep makes a snapshot of an environment that was set up and prunes old ones. That it
// fails is no failure of the set-up. What was repaired is not kept: commands ran in it
// that the key does not name. It is verified after that, and whenever something starts from it.
// It reports whether the sandbox is as good as before. One that is lost is given up.
func (r *setupRun) keep(ctx context.Context) bool {
	if r.keepAs == "" || r.noKeeping || r.result.SetupResult.Regenerations > 0 {
		return true
	}
	if !r.noCaches && !r.fillCaches(ctx) {
		r.noCaches = true
		return false
	}
	if ctx.Err() != nil {
		return true
	}
	r.reportStep(Step{Kind: KeepingSnapshot})
	made, err := r.box.Snapshot(ctx, r.keepAs, r.before)
	lost := err != nil && !r.runs(ctx)
	switch {
	case err != nil:
	case made.Bytes > r.Snapshots: // all others would have to go for it, and then it too
		err = errors.Join(fmt.Errorf("it takes %d bytes, more than all snapshots may", made.Bytes), r.Engine.RemoveSnapshot(ctx, r.keepAs))
	default:
		r.result.SetupResult.SnapshotKey, r.kept = r.keepAs, made.Kept
		err = prune(ctx, r.Engine, r.Snapshots)
	}
	if err != nil {
		r.result.Warnings = append(r.result.Warnings, "no snapshot could be kept: "+err.Error())
		r.Log.WarnContext(ctx, "environment set-up: failed to save a snapshot", "error", err)
	}
	if lost {
		r.noKeeping = true
		r.giveUp(ctx)
	}
	return !lost
}

// runs reports whether commands still run in the sandbox.
func (r *setupRun) runs(ctx context.Context) bool {
	_, err := r.box.Run(ctx, sandbox.Command{Text: "true", Timeout: r.CommandTimeout, Fresh: true})
	return err == nil || ctx.Err() != nil
}

// fillCaches has compilers fill their caches, which the snapshot then has: every sandbox
// that starts from it would compile the same. That a command fails or takes too long does not
// matter. It reports whether the sandbox is as good as before: not if it is lost, nor if there was no
// room for that, after which it lives.
func (r *setupRun) fillCaches(ctx context.Context) bool {
	for _, p := range r.inOrder() {
		entry, _ := r.Table.Find(p.EnvironmentType)
		for _, text := range entry.Caches {
			r.reportStep(Step{Kind: CommandStarted, Command: text, Directory: p.Directory})
			command := p.Command(text)
			command.Timeout = r.CommandTimeout
			ran, err := r.box.Run(ctx, command)
			if ctx.Err() != nil {
				return true
			}
			if err != nil {
				r.giveUp(ctx)
			}
			if err != nil || ran.Exceeded != sandbox.NoLimit && ran.Exceeded != sandbox.TimeLimit {
				r.Log.WarnContext(ctx, "environment set-up: failed to fill the caches", "command", text, "limit", ran.Exceeded, "error", err)
				return false
			}
			r.reportStep(Step{Kind: CommandEnded, Command: text, Message: fmt.Sprintf("exit code %d", ran.ExitCode)})
		}
	}
	return true
}
