package site

import (
	"context"
	"encoding/json"

	"github.com/toryo-dev/toryo/internal/mirror"
	"github.com/toryo-dev/toryo/internal/outbox"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/web"
)

// work tells the pages what tasks have changed and which pull requests they have opened.
type work struct {
	mirrors *mirror.Mirrors
	store   store.Runs
}

// Changes implements [web.Work].
func (w work) Changes(ctx context.Context, t task.Task) (web.Changes, error) {
	found, err := w.mirrors.Changes(ctx, t.Key, t.ID)
	if err != nil {
		return web.Changes{}, err
	}
	changes := web.Changes{Base: found.Base, Head: found.Head, More: found.More}
	for _, file := range found.Files {
		changes.Files = append(changes.Files, web.ChangedFile(file))
	}
	return changes, nil
}

// FileDiff implements [web.Work].
func (w work) FileDiff(ctx context.Context, t task.Task, between web.Changes, file web.ChangedFile, most int) (string, error) {
	return w.mirrors.FileDiff(ctx, t.Key.Repo(), mirror.Changes{Base: between.Base, Head: between.Head}, mirror.ChangedFile(file), most)
}

// Pulls implements [web.Work].
func (w work) Pulls(ctx context.Context, t task.Task) (pulls []web.OpenedPull, err error) {
	actions, err := w.store.RunActions(ctx, t.ID, t.FirstGeneration, t.Generation, outbox.OpenPull{}.Kind())
	if err != nil {
		return nil, err
	}
	seen := map[int64]bool{}
	for _, action := range actions {
		if action.Status != store.Delivered {
			continue
		}
		var pulled outbox.Pulled
		if err := json.Unmarshal(action.Result, &pulled); err != nil {
			return nil, task.Wrap(task.Internal, err, "what the forge said of the pull request cannot be read")
		}
		if !seen[pulled.Number] {
			seen[pulled.Number] = true
			pulls = append(pulls, web.OpenedPull{Number: pulled.Number, URL: pulled.URL})
		}
	}
	return pulls, nil
}
