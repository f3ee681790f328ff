package broker

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/items"
	"github.com/toryo-dev/toryo/internal/outbox"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// ThreadReply is what a run answers in a review thread.
type ThreadReply struct {
	Name     string // the same name is the same reply
	Text     string
	Thread   string
	Resolved bool // the thread is dealt with
}

// Reply answers in a review thread, like [Runs.AddComment], and marks it as resolved after
// that if it is dealt with.
//
// A thread is resolved only by a run that has published something to the pull request of the
// thread, and only if the run may have been given it: we opened it, or somebody who may steer
// wrote there. What a run says of other threads is not believed. For example, a reviewer asks in
// thread 7 for another name; the run publishes the commit with it, replies "Renamed." and says
// that this is dealt with: the reply is posted, and then thread 7 is resolved.
func (r *Runs) Reply(ctx context.Context, held Lease, reply ThreadReply) error {
	answer := held.lasting("reply/" + reply.Name)
	if err := r.put(ctx, answer, outbox.Reply{Thread: reply.Thread, Text: reply.Text}); err != nil || !reply.Resolved {
		return err
	}
	may, err := r.mayResolve(ctx, held, reply.Thread)
	if err != nil || !may {
		return err
	}
	return r.put(ctx, held.lasting("resolve/"+reply.Name), outbox.ResolveThread{Thread: reply.Thread, Reply: answer.IdempotencyKey()})
}

// mayResolve reports whether a run may mark a thread as resolved.
func (r *Runs) mayResolve(ctx context.Context, held Lease, id string) (bool, error) {
	if held.Key.Kind != task.Pull || held.Type != task.Development {
		return false, nil
	}
	if published, err := r.hasPublished(ctx, held); err != nil || !published {
		return false, err
	}
	snapshot, err := r.options.Snapshots.Get(ctx, held.Key, items.ParticipantsAge)
	if err != nil {
		return false, err
	}
	at := slices.IndexFunc(snapshot.Threads, func(t forge.ReviewThread) bool { return t.ID == id })
	if at < 0 {
		return false, nil
	}
	for n, comment := range snapshot.Threads[at].Comments {
		if r.options.Own(held.Key.Forge, comment.Author) {
			if n == 0 {
				return true, nil
			}
			continue // our reply, maybe the one of this run, says nothing about whose thread it is
		}
		standing, err := r.options.Steering.Of(ctx, snapshot.Item, comment.Author, nil)
		if err != nil || standing.MaySteer() {
			return err == nil, err
		}
	}
	return false, nil
}

// published reports whether the forge has what an action was to publish. It has not if others
// had pushed to the branch.
func published(a store.Action) bool {
	var made outbox.Published
	_ = json.Unmarshal(a.Result, &made) // that it cannot be read does not say that others had pushed
	return a.Status == store.Delivered && made.Moved == ""
}

// hasPublished reports whether a run has published something, also before an agent was lost or
// it was paused.
func (r *Runs) hasPublished(ctx context.Context, held Lease) (bool, error) {
	actions, err := r.options.Store.RunActions(ctx, held.ID, held.FirstGeneration, held.Generation, outbox.PublishBranch{}.Kind())
	return slices.ContainsFunc(actions, published), err
}
