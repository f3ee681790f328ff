package broker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/toryo-dev/toryo/internal/broker/assignment"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/messages"
	"github.com/toryo-dev/toryo/internal/notice"
	"github.com/toryo-dev/toryo/internal/outbox"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

const (
	// longestPreparation bounds what the first clone of a large repository takes.
	longestPreparation = 10 * time.Minute
	// soonAgain and laterAgain are how long a task waits that could not be
	// prepared: because the forge was not to be had, and at most for a reason that a person
	// may have to do something about.
	soonAgain  = 30 * time.Second
	laterAgain = 5 * time.Minute
	// longestForRight is the longest pause before it is asked again whether the bot was given a
	// right, and before a task is tried again that was handed back again and again. Each time the task is claimed and put back, which the journal keeps.
	longestForRight = time.Hour
	// nearlyWhole is which part of a lease a preparation may use up.
	nearlyWhole = 10
	// longestTidying bounds what is done for a caller who is gone.
	longestTidying = 30 * time.Second
)

// Request waits until there is a task for the agent, for as long as wait, and
// prepares it; without one found is false. The context is the caller's: when it
// ends before the agent has the task, the task goes back. A task that cannot be
// prepared goes back too, and the agent waits on.
func (h *HandOut) Request(ctx context.Context, asker Asker, wait time.Duration) (made *assignment.Assignment, found bool, err error) {
	over := make(chan struct{}) // a context with a deadline for each agent that waits takes more memory
	defer time.AfterFunc(wait, func() { close(over) }).Stop()
	for {
		given, found := h.next(ctx, over, asker)
		if !found {
			return nil, false, nil
		}
		if made := h.ready(ctx, given); made != nil {
			return made, true, nil
		}
	}
}

// ready prepares and shows a task. It returns nil for one that was put back. It is not a part of
// Request: agents wait there, and an assignment on the stack of each of them would double it.
//
//go:noinline
func (h *HandOut) ready(ctx context.Context, given *assignment.Assignment) *assignment.Assignment {
	made, err := h.prepare(ctx, *given)
	if err == nil {
		err = h.show(ctx, *given)
	}
	if err == nil {
		return &made
	}
	h.unprepared(ctx, given.Task, err)
	return nil
}

// show has the label of the item say that an agent has the task. It is not done before the task is
// prepared: one that goes back, again and again while something is missing, keeps its label. A server
// that ends before it has shown it has not answered the agent either. It fails if the task was taken
// from the agent meanwhile.
func (h *HandOut) show(ctx context.Context, given assignment.Assignment) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), longestTidying)
	defer cancel()
	t, before := given.Task, given.Task
	before.State = task.Queued
	held := store.Held{Task: t.ID, Generation: t.Generation, TokenHash: h.options.Hash(given.Token), Actions: h.options.Labels.Effects(before, t)}
	if len(held.Actions) == 0 {
		return h.options.Leases.Holds(ctx, held.Task, held.Generation, held.TokenHash)
	}
	if err := h.options.Leases.PutHeld(ctx, held); err != nil {
		return err
	}
	h.options.OutboxChanged()
	return nil
}

// unprepared puts a task back into the queue that could not be prepared, or lets it fail if
// nobody could ever begin it. A commit that is missing may come: forges show some things
// late. It is asked for less and less often, and MaxAttempts bounds it.
func (h *HandOut) unprepared(ctx context.Context, t task.Task, err error) {
	reason, after, final := task.ReasonNotPrepared, time.Duration(0), false
	if over, is := errors.AsType[*assignment.NotNeededError](err); is {
		h.notNeeded(ctx, t, over)
		return
	}
	if lacking, is := errors.AsType[*assignment.NoRightError](err); is && ctx.Err() == nil {
		h.noRight(ctx, t, lacking)
		return
	}
	missing, noCommit := errors.AsType[*task.NoCommitError](err)
	_, noBase := errors.AsType[*assignment.NoBaseError](err)
	said := notice.Notice{Review: t.Type == task.Review}
	switch {
	case ctx.Err() != nil, task.CodeOf(err) == task.LeaseLost, task.CodeOf(err) == task.StaleGeneration:
		reason, after = task.ReasonAgentGone, 0
	case noBase:
		reason, final = task.ReasonNoBase, true
	case noCommit:
		times := 1 + h.putBackBefore(ctx, t.ID, task.ReasonNoCommit)
		reason, after, final = task.ReasonNoCommit, laterEachTime(times, laterAgain), times >= h.options.MaxAttempts
		said.Commit = missing.Commit
	case forge.Temporary(err), task.CodeOf(err) == task.DatabaseDown:
		after = soonAgain
	default:
		// It may be this server that cannot, as when its disk is full.
		after = laterEachTime(1+h.putBackBefore(ctx, t.ID, reason), laterAgain)
	}
	log := h.options.Log.With("task", t.ID, "item", t.Key.String(), "agent", t.Lease.Agent, "attempt", t.Attempts, "error", err)
	if final {
		log.WarnContext(ctx, "failed to prepare a task; it has failed", "reason", reason)
		said.Reason = reason
		h.giveUp(ctx, t, said, forPeople(err))
		return
	}
	log.WarnContext(ctx, "failed to prepare a task", "again", after)
	h.putBack(ctx, t, returning{reason: reason, after: after, detail: forPeople(err)})
}

// forPeople is what an error says to people; "" for one of ours that is for the log only.
func forPeople(err error) string {
	coded, found := task.AsError(err)
	if !found || coded.Code == task.Internal {
		return ""
	}
	return coded.Message
}

// noRight puts a task back into the queue for which our account lacks a right. It is tried again
// now and then, and people are told once for each assignment, where we may comment.
func (h *HandOut) noRight(ctx context.Context, t task.Task, lacking *assignment.NoRightError) {
	after := laterEachTime(1+h.putBackBefore(ctx, t.ID, lacking.Reason), longestForRight)
	h.options.Log.WarnContext(ctx, "the bot lacks a right that a task needs; the task waits", "task", t.ID, "item", t.Key.String(), "error", lacking, "again", after)
	var said []store.Action
	if lacking.MayComment {
		in := h.language(ctx, t)
		waits := notice.Notice{Reason: lacking.Reason, Detail: messages.Fix(in, lacking.Reason)}
		text := waits.Waits(in)
		if h.begun(ctx, t) {
			text = waits.WaitsAgain(in)
		}
		what := fmt.Sprintf("right/%s/%s/%d", t.ID, lacking.Reason, t.FirstGeneration)
		action, err := outbox.NewAction(outbox.Write{Item: t.Key, What: what}, outbox.Comment{Text: text, About: t.ID})
		if err == nil { // a text can always be written
			said = append(said, action)
		}
	}
	h.putBack(ctx, t, returning{reason: lacking.Reason, after: after}, said...)
}

// begun reports whether a run has worked on the task since it was assigned. If that cannot be
// read, it has not.
func (h *HandOut) begun(ctx context.Context, t task.Task) bool {
	last, found, err := store.Optional(h.options.Events.LastFrom(ctx, t.ID, task.FromAgent))
	if err != nil {
		h.options.Log.WarnContext(ctx, "failed to read whether a task has begun", "task", t.ID, "error", err)
	}
	return err == nil && found && last.Generation >= t.FirstGeneration
}

// laterEachTime is how long a task waits that was put back so many times in a row: longer each
// time, up to a bound.
func laterEachTime(times int, longest time.Duration) time.Duration {
	times = min(times, int(longest/soonAgain)) // the square of which fits
	return min(longest, soonAgain*time.Duration(times*times))
}

// putBackBefore is how many times in a row before this the task could not be prepared for the
// reason. These are no attempts of the task: when the reason is gone, it has all of them.
func (h *HandOut) putBackBefore(ctx context.Context, id task.ID, reason task.Reason) int {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), longestTidying)
	defer cancel()
	times, err := inARow(ctx, h.options.Events, id, reason)
	if err != nil {
		h.options.Log.WarnContext(ctx, "failed to read how often a task was put back", "task", id, "error", err)
	}
	return times
}

// inARow is how many times in a row, up to now, the task was put back into the queue for the reason.
func inARow(ctx context.Context, from Events, id task.ID, reason task.Reason) (int, error) {
	moves, err := from.EventsOf(ctx, id, task.StateChanged)
	if err != nil {
		return 0, err
	}
	times := 0
	for _, event := range slices.Backward(moves) {
		var move task.StateChange
		if err := json.Unmarshal(event.Data, &move); err != nil || move.Trigger != task.Claimed && move.Reason != reason {
			break
		}
		if move.Trigger != task.Claimed {
			times++
		}
	}
	return times, nil
}

// prepare prepares a task, and keeps its lease meanwhile. The agent gets the whole
// of a lease, or nearly: what a preparation that was quick has used of it is not
// worth another write.
func (h *HandOut) prepare(ctx context.Context, given assignment.Assignment) (assignment.Assignment, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, longestPreparation, task.Errorf(task.Unavailable, "the preparation took too long"))
	defer cancel()
	lost := make(chan error, 1)
	go func() { lost <- h.keep(ctx, given, cancel) }()
	made, err := h.options.Prepare(ctx, given)
	if ctx.Err() != nil {
		err = errors.Join(err, context.Cause(ctx))
	}
	cancel()
	if failed := <-lost; failed != nil {
		return assignment.Assignment{}, failed
	}
	if err != nil {
		return assignment.Assignment{}, err
	}
	until := h.options.Now().Add(h.options.Lease)
	if held := given.Task.Lease.ExpiresAt; until.Sub(held) < h.options.Lease/nearlyWhole {
		made.Task.Lease.ExpiresAt = held
		return made, nil
	}
	renewing, done := context.WithTimeout(context.WithoutCancel(ctx), longestTidying)
	defer done()
	if err := h.renew(renewing, given, until); err != nil {
		return assignment.Assignment{}, err
	}
	made.Task.Lease.ExpiresAt = until
	return made, nil
}

// keep renews the lease until the context ends. When the lease is lost it ends the
// context.
func (h *HandOut) keep(ctx context.Context, given assignment.Assignment, cancel context.CancelFunc) error {
	ticker := time.NewTicker(h.options.Lease / 3)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		err := h.renew(ctx, given, h.options.Now().Add(h.options.Lease))
		if task.CodeOf(err) == task.LeaseLost {
			cancel()
			return err
		}
	}
}

func (h *HandOut) renew(ctx context.Context, given assignment.Assignment, until time.Time) error {
	return h.options.Leases.Renew(ctx, given.Task.ID, given.Task.Generation, h.options.Hash(given.Token), until)
}

// language is that of what people are told about a task.
func (h *HandOut) language(ctx context.Context, t task.Task) task.Language {
	if h.options.Language == nil {
		return task.Automatic.Of(t.Title)
	}
	return h.options.Language(ctx, t)
}

// giveUp lets a task fail that nobody can begin, and tells people why. Detail is what was said
// when it was tried.
func (h *HandOut) giveUp(ctx context.Context, t task.Task, said notice.Notice, detail string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), longestTidying)
	defer cancel()
	text := said.Unable(h.language(ctx, t))
	_, err := h.options.Tasks.Move(ctx, store.Change{
		Task: t.ID, Generation: t.Generation, Trigger: task.GaveUp, Reason: said.Reason, Detail: detail,
		Effects: func(before, after task.Task) []store.Action {
			return append(h.options.Labels.Effects(before, after), outbox.CommentAction(after, "unable", text))
		},
	})
	h.options.OutboxChanged()
	if err != nil {
		h.options.Log.WarnContext(ctx, "failed to end a task that cannot be started; its lease will expire", "task", t.ID, "error", err)
	}
}

// notNeeded stops a task for which there is nothing to do any more, and tells people if that
// is because failed checks pass now.
func (h *HandOut) notNeeded(ctx context.Context, t task.Task, over *assignment.NotNeededError) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), longestTidying)
	defer cancel()
	h.options.Log.InfoContext(ctx, "task is no longer needed", "task", t.ID, "item", t.Key.String(), "why", over)
	var said []store.Action
	if over.Passed != "" {
		text := notice.Notice{Commit: over.Passed}.ChecksPassed(h.language(ctx, t))
		action, err := outbox.NewAction(outbox.Write{Item: t.Key, What: outbox.ChecksPassed(over.Passed)}, outbox.Comment{Text: text, About: t.ID})
		if err == nil { // a text can always be written
			said = append(said, action)
		}
	}
	_, err := h.options.Tasks.Move(ctx, store.Change{
		Task: t.ID, Generation: t.Generation, Trigger: task.Withdrawn, Reason: task.ReasonChecksPassed,
		Effects: func(before, after task.Task) []store.Action {
			return append(h.options.Labels.Effects(before, after), said...)
		},
	})
	h.options.OutboxChanged()
	if err != nil {
		h.options.Log.WarnContext(ctx, "failed to stop a task that is not needed; its lease will expire", "task", t.ID, "error", err)
	}
}

// returning is why a task goes back into the queue, and how long it waits there at least.
type returning struct {
	reason task.Reason
	after  time.Duration
	detail string
}

// putBack puts a task back into the queue that its agent did not get, with what there is to
// say. If that fails, the lease runs out.
func (h *HandOut) putBack(ctx context.Context, t task.Task, why returning, said ...store.Action) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), longestTidying)
	defer cancel()
	label := h.labelPending(ctx, t)
	_, err := h.options.Tasks.Move(ctx, store.Change{
		Task: t.ID, Generation: t.Generation, Trigger: task.Returned, Reason: why.reason, Detail: why.detail, ReadyAt: h.options.Now().Add(why.after),
		Effects: func(before, after task.Task) []store.Action {
			if label {
				return append(h.options.Labels.Effects(before, after), said...)
			}
			return said
		},
	})
	h.options.OutboxChanged()
	if err != nil {
		h.options.Log.WarnContext(ctx, "failed to return a task to the queue; its lease will expire", "task", t.ID, "error", err)
	}
}

// labelPending reports whether a label of the item has yet to be written. It is of a generation that is
// over when the task goes back, and would never be. Otherwise the item shows that the task is queued.
func (h *HandOut) labelPending(ctx context.Context, t task.Task) bool {
	pending, err := h.options.Outbox.PendingActions(ctx, t.Key)
	if err != nil {
		h.options.Log.WarnContext(ctx, "failed to read which label an item is to have", "task", t.ID, "error", err)
		return true // a label too often does no harm
	}
	return slices.ContainsFunc(pending, func(action store.Action) bool { return action.Kind == outbox.StateLabel{}.Kind() })
}
