package command

import (
	"context"
	"errors"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/lifecycle"
	"github.com/toryo-dev/toryo/internal/messages"
	"github.com/toryo-dev/toryo/internal/server"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// pullReader finds the pull requests of an issue.
type pullReader interface {
	LinkedPulls(ctx context.Context, key task.Key) ([]forge.LinkedPull, error)
}

// startAndFollow runs server and agent as toryo up does, and shows how the first issue gets
// on. With --start=once it ends with the pull request, else with the context.
func (o *setup) startAndFollow(ctx context.Context, c config.Config, i *interview, issue forge.Item, result summary) error {
	if i.begin != answerOnce {
		if err := o.print(result); err != nil {
			return err
		}
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	p := o.Program
	p.Stdout = o.shown()
	p.Started = startedWith(site.Started{File: i.at.file, Given: i.at.file, Overrides: i.at.over}, "up", false)
	if o.terminal != nil && !o.json {
		c.Log.Level = "error" // what happens is shown in words; toryo up shows the log
	}
	err := o.serve(ctx, p, c, "up", func(ctx context.Context, running site.Instance) error {
		if err := invite(ctx, p.Stdout, running); err != nil {
			return err
		}
		working, rest := context.WithCancel(ctx)
		defer rest()
		group, working := errgroup.WithContext(working)
		group.Go(func() error { return site.RunAgent(working, p, running, nil) })
		group.Go(func() error { return printWaits(working, p.Stdout, running) })
		group.Go(func() error {
			pull, err := o.followIssue(working, running, i, issue)
			result.Pull = pull.URL
			if i.begin == answerOnce {
				err = errors.Join(err, o.awaitWrites(working, running.Store, issue.Key, pull.Key))
				rest()
				stop() // the server as well
				return err
			}
			if working.Err() != nil {
				return nil //nolint:nilerr // interrupted: nothing runs any more
			}
			if err != nil {
				o.say("! %s", oneLineOf(err))
			}
			o.sayHowToGoOn(running, i)
			return nil
		})
		return group.Wait()
	})
	if i.begin != answerOnce {
		return err
	}
	if err == nil {
		o.say("\nThe server has stopped. To start it with an agent: %s", i.howToStart())
	}
	return errors.Join(err, o.print(result))
}

// pendingWrites are the writes to an item that the forge does not have yet.
type pendingWrites interface {
	PendingActions(ctx context.Context, item task.Key) ([]store.Action, error)
}

// awaitWrites waits until comments and labels of the first issue, and what belongs to its pull request,
// are on the forge: the server ends after that, and without them the issue would say that the work goes
// on. A forge that does not answer is not waited for any longer; what is missing there is written when
// the server runs again.
func (o *setup) awaitWrites(ctx context.Context, writes pendingWrites, items ...task.Key) error {
	items = slices.DeleteFunc(items, func(one task.Key) bool { return one.Number == 0 }) // was not opened
	if errors.Is(ctx.Err(), context.Canceled) {
		return nil
	}
	for range writesLooks {
		pending := false
		for _, item := range items {
			left, err := writes.PendingActions(ctx, item)
			if err != nil {
				return err
			}
			pending = pending || len(left) > 0
		}
		if !pending {
			return nil
		}
		if err := lifecycle.Sleep(ctx, writesPause); err != nil {
			return err
		}
	}
	o.say("! the forge does not have all comments and labels of the issue yet; they are written when the server runs again")
	return nil
}

// How often, and at which interval, is looked whether everything was written.
const (
	writesLooks = 150
	writesPause = 200 * time.Millisecond
)

// sayHowToGoOn says what runs, once nothing is left to follow.
func (o *setup) sayHowToGoOn(running site.Instance, i *interview) {
	o.say("\nThe server and an agent run at %s until Ctrl-C.\nTo start them again: %s\nAssign an issue to %s to start a task, unassign it to stop. %s says what is missing.", running.URL, i.howToStart(), i.answers.Bot, i.command("doctor"))
}

// following is one issue that is followed to its pull request.
type following struct {
	*interview
	running site.Instance
	issue   forge.Item

	told   string // what was shown last
	linked bool   // the page of the task was named
	late   bool   // the server should know the issue by now
}

// followIssue shows the states and phases of the task of an issue until it has ended, and
// returns the address of its pull request.
func (o *setup) followIssue(ctx context.Context, running site.Instance, i *interview, issue forge.Item) (forge.LinkedPull, error) {
	if issue.Key.Number == 0 {
		return forge.LinkedPull{}, nil
	}
	changed, stop := running.ListenAll()
	defer stop()
	again := time.NewTicker(waitsEvery)
	defer again.Stop()
	unseen := time.NewTimer(seenAfter * running.Config.SyncInterval)
	defer unseen.Stop()
	o.say("Following %s", issue.URL)
	if i.kind.Forge != "" && !i.answers.Webhook {
		o.say("  Without a webhook the forge is polled every %s, so the first step can take that long.", running.Config.SyncInterval)
	}
	f := &following{interview: i, running: running, issue: issue}
	for {
		current, err := running.Store.TaskOf(ctx, issue.Key, task.Development)
		if err != nil && task.CodeOf(err) != task.NotFound {
			return forge.LinkedPull{}, err
		}
		f.show(current)
		if current.State.Terminal() {
			return o.pullOf(ctx, running, i, issue, current)
		}
		if err := f.inVain(ctx, current); err != nil {
			return forge.LinkedPull{}, err
		}
		select {
		case <-ctx.Done():
			return forge.LinkedPull{}, ctx.Err()
		case <-unseen.C:
			f.late = true
		case <-changed:
		case <-again.C:
		}
	}
}

// seenAfter is after how many rounds of polling an issue has to be known to the server.
const seenAfter = 5

// show says where the task is, if that is another place than before.
func (f *following) show(current task.Task) {
	if current.ID != "" && !f.linked {
		f.linked = true
		f.say("  every step is shown at %s/tasks/%s", f.running.URL, current.ID)
	}
	if text := progressText(current); text != f.told {
		f.told = text
		f.say("  %s", text)
	}
}

// inVain is the error of a task that waits for something which only a person can bring: where
// the pull request alone is waited for, or nobody can be asked, nobody may be there.
func (f *following) inVain(ctx context.Context, current task.Task) error {
	once := f.begin == answerOnce
	switch {
	case current.State == task.Paused && (once || !f.canAsk()):
		return task.Errorf(task.Conflict, "the task is %s", progressText(current)).WithHint("see %s", f.issue.URL)
	case current.ID == "" && once && f.late:
		return task.Errorf(task.NotReady, "the server has not seen %s", f.issue.URL).WithHint("%s says what is missing", f.command("doctor"))
	case current.State != task.Queued || !once:
		return nil
	}
	found, err := f.running.Waits(ctx)
	if err != nil {
		return err
	}
	waits := make([]wire.Wait, 0, len(found))
	for _, wait := range found {
		waits = append(waits, server.WaitOf(wait))
	}
	if wait, is := lastingWait(waits, current.ID); is {
		return task.Errorf(task.NotReady, "the task is waiting: %s %s", wait.Text, wait.Detail).WithHint("%s", wait.Fix)
	}
	return nil
}

// lastingWait finds what a task waits for, if the agent of this process does not bring it: that it
// is not known yet passes.
func lastingWait(waits []wire.Wait, id task.ID) (wire.Wait, bool) {
	for _, wait := range waits {
		if wait.Reason == string(task.ReasonNoAgents) || wait.Reason == string(task.ReasonAgentsSilent) {
			continue
		}
		if slices.ContainsFunc(wait.Tasks, func(one wire.WaitTask) bool { return one.Task == string(id) }) {
			return wait, true
		}
	}
	return wire.Wait{}, false
}

// progressText is where a task is, in words.
func progressText(t task.Task) string {
	switch {
	case t.ID == "":
		return "the server has not seen the issue yet"
	case t.State == task.Running && t.Phase != "":
		return "running: " + t.Phase.DisplayName()
	case t.State == task.Paused:
		return "paused: " + messages.Reason(task.English, t.Reason) + "; see the comments on the issue"
	}
	return string(t.State)
}

// pullOf says what came of a task that has ended.
func (o *setup) pullOf(ctx context.Context, running site.Instance, i *interview, issue forge.Item, ended task.Task) (forge.LinkedPull, error) {
	if ended.State != task.Done {
		return forge.LinkedPull{}, task.Errorf(task.Conflict, "the task is %s: %s", ended.State, messages.Reason(task.English, ended.Reason)).
			WithHint("see %s/tasks/%s and the comments on %s", running.URL, ended.ID, issue.URL)
	}
	var reader pullReader = i.forge
	if i.answers.Forge == task.Board {
		reader = running.Board.As(site.BoardBot)
	}
	for range pullLooks { // it is opened by a write that may still be on its way
		pulls, err := reader.LinkedPulls(ctx, issue.Key)
		if err != nil {
			return forge.LinkedPull{}, err
		}
		if len(pulls) > 0 {
			last := pulls[len(pulls)-1]
			o.say("✓ pull request %s", last.URL)
			return last, nil
		}
		if err := lifecycle.Sleep(ctx, pullPause); err != nil {
			return forge.LinkedPull{}, err
		}
	}
	return forge.LinkedPull{}, task.Errorf(task.NotFound, "the task is done, without a pull request").WithHint("the comments on %s say why", issue.URL)
}

// How often, and at which interval, the pull request of a task that is done is looked for.
const (
	pullLooks = 15
	pullPause = 2 * time.Second
)
