package command

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/lifecycle"
	"github.com/toryo-dev/toryo/internal/messages"
	"github.com/toryo-dev/toryo/internal/task"
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
	var err error
	if p.Started, err = startedBy(&o.settings, "up"); err != nil {
		return err
	}
	p.Started.Given = p.Started.File // as init reads it
	if o.terminal != nil && !o.json {
		c.Log.Level = "error" // what happens is shown in words; toryo up shows the log
	}
	err = o.serve(ctx, p, c, "up", func(ctx context.Context, running site.Instance) error {
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
			result.Pull = pull
			if i.begin == answerOnce {
				rest()
				stop() // the server as well
				return err
			}
			if working.Err() != nil { // interrupted: nothing runs any more
				return nil
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
	return errors.Join(err, o.print(result))
}

// sayHowToGoOn says what runs, once nothing is left to follow.
func (o *setup) sayHowToGoOn(running site.Instance, i *interview) {
	o.say("\nThe server and an agent run at %s until Ctrl-C; toryo up%s starts them again.\nAssign an issue to %s to start a task, unassign it to stop. toryo doctor says what is missing.", running.URL, o.placeFlags(i), i.answers.Bot)
}

// followIssue shows the states and phases of the task of an issue until it has ended, and
// returns the address of its pull request.
func (o *setup) followIssue(ctx context.Context, running site.Instance, i *interview, issue forge.Item) (string, error) {
	if issue.Key.Number == 0 {
		return "", nil
	}
	changed, stop := running.ListenAll()
	defer stop()
	again := time.NewTicker(waitsEvery)
	defer again.Stop()
	o.say("Following %s", issue.URL)
	if i.kind.Forge != "" {
		o.say("  Without a webhook the forge is asked every %s, so that the first step may take that long.", running.Config.SyncInterval)
	}
	told, linked := "", false
	for {
		current, err := running.Store.TaskOf(ctx, issue.Key, task.Development)
		if err != nil && task.CodeOf(err) != task.NotFound {
			return "", err
		}
		if current.ID != "" && !linked {
			linked = true
			o.say("  every step is shown at %s/tasks/%s", running.URL, current.ID)
		}
		text := progressText(current)
		if text != told {
			told = text
			o.say("  %s", text)
		}
		if current.State == task.Paused && !o.canAsk() {
			return "", task.Errorf(task.Conflict, "the task is %s", text).WithHint("see %s", issue.URL)
		}
		if current.State.Terminal() {
			return o.pullOf(ctx, running, i, issue, current)
		}
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-changed:
		case <-again.C:
		}
	}
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
func (o *setup) pullOf(ctx context.Context, running site.Instance, i *interview, issue forge.Item, ended task.Task) (string, error) {
	if ended.State != task.Done {
		return "", task.Errorf(task.Conflict, "the task is %s: %s", ended.State, messages.Reason(task.English, ended.Reason)).
			WithHint("see %s/tasks/%s and the comments on %s", running.URL, ended.ID, issue.URL)
	}
	var reader pullReader = i.forge
	if i.answers.Forge == task.Board {
		reader = running.Board.As(site.BoardBot)
	}
	for range pullLooks { // it is opened by a write that may still be on its way
		pulls, err := reader.LinkedPulls(ctx, issue.Key)
		if err != nil {
			return "", err
		}
		if len(pulls) > 0 {
			last := pulls[len(pulls)-1]
			o.say("✓ pull request %s", last.URL)
			return last.URL, nil
		}
		if err := lifecycle.Sleep(ctx, pullPause); err != nil {
			return "", err
		}
	}
	return "", task.Errorf(task.NotFound, "the task is done, without a pull request").WithHint("the comments on %s say why", issue.URL)
}

// How often, and at which interval, the pull request of a task that is done is looked for.
const (
	pullLooks = 15
	pullPause = 2 * time.Second
)
