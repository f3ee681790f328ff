package broker

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/toryo-dev/toryo/internal/items"
	"github.com/toryo-dev/toryo/internal/messages"
	"github.com/toryo-dev/toryo/internal/outbox"
	"github.com/toryo-dev/toryo/internal/receipt"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

// PullWish is a pull request that a run wants to be there.
type PullWish struct {
	Branch string
	Commit string // that the branch has in the task's namespace
	Base   string
	Title  string
	Text   string
	Draft  bool
	// Again says that the model was told of what the server found in this work.
	Again bool
	// Verdict is what verification found, for the receipt; nil if there was none.
	Verdict *receipt.Verdict

	unasked bool // it has something in it that nobody asked for
}

// PullAnswer is what became of a [PullWish].
type PullAnswer struct {
	outbox.Pulled
	Commit string // that was published
	// Withheld says that nothing was published: the model is to be told of the
	// findings, once. Otherwise it was published as a draft that lists them.
	Withheld bool
	Findings []task.Finding
	// Moved is a commit that others have pushed to the branch. Nothing was published: the
	// work has to be put on top of it.
	Moved string
}

// OpenPull publishes the task's branch and opens a pull request for it, or brings
// the one that is there up to date, and returns when that has happened. The
// author of the item is asked to look at it. Asking again is safe.
//
// Which branch that is, and into which it is to be merged, the server knows from what
// it handed out. A wish that names others is Forbidden, and so is every wish of a
// review.
//
// What the work has in it that nobody asked for is withheld once, then published as a
// draft that says so; what is never published is Unsafe then. See [Gate].
//
// While a stop is pending it is refused with Conflict, unless the pull request is
// being opened already: then it is told how that went. When the forge takes its
// time it fails with Unavailable and has to be asked again; when the forge will
// not have it, with Conflict.
func (r *Runs) OpenPull(ctx context.Context, held Lease, wish PullWish) (PullAnswer, error) {
	base, err := r.checkWish(ctx, held, wish)
	if err != nil {
		return PullAnswer{}, err
	}
	open := held.write("open_pull/" + wish.Branch + "/" + wish.Commit)
	if err := r.refuseWhenStopping(ctx, held, open); err != nil {
		return PullAnswer{}, err
	}
	passed, err := r.pass(ctx, held, wish)
	if moved, is := errors.AsType[*task.MovedError](err); is {
		return PullAnswer{Moved: moved.Commit}, nil
	}
	if err != nil || passed.Outcome == task.Withheld {
		return PullAnswer{Withheld: err == nil, Findings: passed.Findings}, err
	}
	if len(passed.Findings) > 0 {
		wish = r.asDraft(ctx, held, wish, passed.Findings)
	}
	answer, err := r.publish(ctx, held, wish, base, open)
	if err == nil && answer.Moved == "" && len(passed.Findings) > 0 {
		err = r.explainDraft(ctx, held, wish, answer.Pulled, passed.Findings)
	}
	answer.Findings = passed.Findings
	return answer, err
}

// publish publishes the branch and opens the pull request.
func (r *Runs) publish(ctx context.Context, held Lease, wish PullWish, base string, open outbox.Write) (PullAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, r.options.PullWait)
	defer cancel()
	publish := outbox.PublishBranch{Branch: held.Branch, Commit: wish.Commit, Draft: wish.unasked, CoAuthors: r.coAuthors(ctx, held)}
	sent, err := r.deliver(ctx, held.write("publish/"+wish.Branch+"/"+wish.Commit), publish)
	if err != nil {
		return PullAnswer{}, err
	}
	var published outbox.Published
	if err := json.Unmarshal(sent.Result, &published); err != nil {
		return PullAnswer{}, task.Wrap(task.Internal, err, "what was published cannot be read")
	}
	if published.Moved != "" {
		r.options.Log.InfoContext(ctx, "others have pushed to the branch of a task", "task", held.ID, "branch", held.Branch, "commit", published.Moved)
		return PullAnswer{Moved: published.Moved}, nil
	}
	if err := r.refuseWhenStopping(ctx, held, open); err != nil {
		return PullAnswer{}, err
	}
	if wish.Text, err = r.attest(ctx, held, wish, base, published); err != nil {
		return PullAnswer{}, err
	}
	done, err := r.deliver(ctx, open, outbox.OpenPull{Title: wish.Title, Text: wish.Text, Head: held.Branch, Base: base, Draft: wish.Draft})
	if err != nil {
		return PullAnswer{}, err
	}
	var pulled outbox.Pulled
	if err := json.Unmarshal(done.Result, &pulled); err != nil {
		return PullAnswer{}, task.Wrap(task.Internal, err, "what the forge said of the pull request cannot be read")
	}
	pull := task.Key{Forge: held.Key.Forge, Repository: held.Key.Repository, Kind: task.Pull, Number: pulled.Number}
	if r.options.Watch != nil && held.Key.Kind == task.Issue { // who asks again because this failed is told of the same pull request
		if err := r.options.Watch(ctx, pull); err != nil {
			return PullAnswer{}, err
		}
	}
	if err := r.putVerification(ctx, held, wish, base, published, pull); err != nil {
		return PullAnswer{}, err
	}
	return PullAnswer{Pulled: pulled, Commit: published.Commit}, r.follow(ctx, held, wish, pull, pulled)
}

// checkWish refuses what is not the task's own, and returns the branch that the work is
// to be merged into.
func (r *Runs) checkWish(ctx context.Context, held Lease, wish PullWish) (base string, err error) {
	if err := held.CheckBranch(wish.Branch); err != nil {
		return "", err
	}
	if wish.Verdict != nil {
		if err := wish.Verdict.Check(); err != nil {
			return "", err
		}
	}
	base, err = r.options.Base(ctx, held.Task)
	if err == nil && wish.Base != base {
		err = task.Errorf(task.Forbidden, "the work of the task is to be merged into %q, not into %q", base, wish.Base)
	}
	return base, err
}

// refuseWhenStopping refuses what a pending stop prevents.
func (r *Runs) refuseWhenStopping(ctx context.Context, held Lease, open outbox.Write) error {
	halts, err := r.options.Store.HaltsOf(ctx, held.ID)
	if err != nil || len(halts) == 0 || halts[0].Signal != task.SignalStop {
		return err
	}
	opening, err := r.options.Store.Action(ctx, open.IdempotencyKey())
	if task.CodeOf(err) == task.NotFound || err == nil && opening.Attempts == 0 {
		return errStopPending()
	}
	return err
}

func errStopPending() error {
	return task.Errorf(task.Conflict, "the task is being stopped").WithHint("save the work and end the run as stopped")
}

// follow does what comes after a pull request is there: one that was there before
// is given the new text, one that is ready is labelled as waiting for a review, and
// the author of the item is made its assignee, which is how every forge can ask
// someone to look. None of it holds up the run.
func (r *Runs) follow(ctx context.Context, held Lease, wish PullWish, pull task.Key, pulled outbox.Pulled) error {
	write := outbox.Write{Item: pull, Task: held.ID, Generation: held.Generation}
	if !pulled.Opened && held.Key.Kind == task.Issue {
		write.What = "edit_pull/" + wish.Commit
		if err := r.put(ctx, write, outbox.EditPull{Title: &wish.Title, Text: &wish.Text}); err != nil {
			return err
		}
	}
	if r.options.ReviewLabel != "" && !wish.Draft {
		write.What = "wait_for_review/" + wish.Commit
		if err := r.put(ctx, write, outbox.AddLabel{Label: r.options.ReviewLabel}); err != nil {
			return err
		}
	}
	snapshot, err := r.options.Snapshots.Get(ctx, held.Key, items.ParticipantsAge)
	if err != nil {
		r.options.Log.WarnContext(ctx, "who to ask for a review is not known", "task", held.ID, "error", err)
		return nil
	}
	author := snapshot.Item.Author
	if held.Key.Kind != task.Issue || author == "" || r.options.Own(held.Key.Forge, author) {
		return nil
	}
	write.What = "ask_for_review/" + strconv.FormatInt(pulled.Number, 10)
	return r.put(ctx, write, outbox.Assign{Login: author})
}

// deliver puts an action into the outbox and waits until it is delivered.
func (r *Runs) deliver(ctx context.Context, write outbox.Write, payload outbox.Payload) (store.Action, error) {
	rung, stop := r.options.Notifier.Listen(write.Task)
	defer stop()
	if err := r.put(ctx, write, payload); err != nil {
		return store.Action{}, err
	}
	// Another server may deliver it, and its ring may get lost.
	look := time.NewTicker(time.Second)
	defer look.Stop()
	for {
		action, err := r.options.Store.Action(ctx, write.IdempotencyKey())
		if err != nil {
			return store.Action{}, err
		}
		switch action.Status {
		case store.Delivered:
			return action, nil
		case store.Refused:
			return store.Action{}, refusal(action)
		}
		select {
		case <-ctx.Done():
			text := fmt.Sprintf("the forge has not taken the write %s yet, after %d attempts", action.Kind, action.Attempts)
			return store.Action{}, task.Wrap(task.Unavailable, ctx.Err(), text).WithHint("ask again")
		case <-rung:
		case <-look.C:
		}
	}
}

// refusal is why an action will never be delivered.
func refusal(action store.Action) error {
	if action.Reason == task.ReasonStaleGeneration {
		return task.Errorf(task.StaleGeneration, "the run is over: a newer one has begun")
	}
	if action.Reason != task.ReasonRejectedByForge {
		return task.Errorf(task.Conflict, "the server could not write %s: %s", written(action), messages.Reason(task.English, action.Reason)).
			WithHint("%s", cmp.Or(messages.Fix(task.English, action.Reason), "the log of the server has more"))
	}
	return task.Errorf(task.Conflict, "the forge did not accept %s: %s", written(action), textfmt.Shorten(textfmt.OneLine(action.LastError), longestSaid)).
		WithHint("%s", cmp.Or(messages.Fix(task.English, action.Reason), messages.Reason(task.English, action.Reason)))
}
