package kubernetes

import (
	"context"
	"time"

	"github.com/toryo-dev/toryo/internal/sandbox"
)

// Expect has the keeper, which may be about to begin, expect a start of such a sandbox, as after
// an earlier one.
func (e *Engine) Expect(ctx context.Context, spec sandbox.Spec) error {
	kind, err := e.kind(ctx, spec)
	for err == nil && !e.keeps() {
		err = pause(ctx)
	}
	if err == nil {
		e.warm.noteUse(kind, e.config.Now())
		e.warm.look()
	}
	return err
}

func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(10 * time.Millisecond):
		return nil
	}
}

func (e *Engine) keeps() bool {
	e.warm.mutex.Lock()
	defer e.warm.mutex.Unlock()
	return e.warm.owner != ""
}

// AwaitWarm waits until so many pods are ready for such a sandbox.
func (e *Engine) AwaitWarm(ctx context.Context, spec sandbox.Spec, count int) error {
	kind, err := e.kind(ctx, spec)
	for err == nil && e.countWarm(kind) < count {
		err = pause(ctx)
	}
	return err
}

// Look has the keeper look at what there is to do.
func (e *Engine) Look() { e.warm.look() }

func (e *Engine) kind(ctx context.Context, spec sandbox.Spec) (warmKind, error) {
	var from record
	if spec.Snapshot != "" {
		var err error
		if from, err = e.record(ctx, spec.Snapshot); err != nil {
			return warmKind{}, err
		}
	}
	spec.Limits = spec.Limits.OrDefaults()
	return kindOf(spec, from), nil
}

func (e *Engine) countWarm(kind warmKind) int {
	e.warm.mutex.Lock()
	defer e.warm.mutex.Unlock()
	if shelf, known := e.warm.shelves[kind]; known {
		return len(shelf.ready)
	}
	return 0
}

// Replace notes a snapshot that a pod has written to its folder.
func (e *Engine) Replace(ctx context.Context, key, folder string) error {
	now := e.config.Now()
	return e.replace(ctx, key, record{Folder: folder, Image: "x", Made: now, Used: now})
}

// Folder is the one that has a snapshot, or empty if there is no such snapshot.
func (e *Engine) Folder(ctx context.Context, key string) (string, error) {
	records, err := e.index(ctx)
	return records[key].Folder, err
}

// NoteUse notes that a sandbox was started from a snapshot in a folder.
func (e *Engine) NoteUse(ctx context.Context, key, folder string) {
	e.noteUse(ctx, key, record{Folder: folder, Image: "x"})
}
