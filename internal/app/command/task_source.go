package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/app/cli"
	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/broker"
	"github.com/toryo-dev/toryo/internal/server"
	"github.com/toryo-dev/toryo/internal/statistics"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// taskSource is where commands read tasks: a server, or the database of this machine. Both
// give the same answers.
type taskSource interface {
	find(ctx context.Context, name string) (wire.Task, error)
	list(ctx context.Context, states []string) (wire.Tasks, error)
	next(ctx context.Context, agent string) (wire.NextTasks, error)
	needs(ctx context.Context) (wire.Needs, error)
	events(ctx context.Context, id task.ID, after int64, limit int) (wire.Events, error)
	receipts(ctx context.Context, id task.ID) (wire.Receipts, error)
	statistics(ctx context.Context, wish statistics.Wish) (wire.Statistics, error)
}

// withTasks gives a command the tasks to read, in a role that is enough for it: those of the server
// that is named, or of the one that runs on the data directory. If none runs, or it does not answer,
// the database is read.
func (o *operate) withTasks(ctx context.Context, role access.Role, do func(taskSource) error) error {
	if o.server != "" {
		return o.connect(ctx, role, func(client *wire.Client) error { return do(serverTasks{client}) })
	}
	loaded, err := o.settings.LoadData(o.Program)
	if err != nil {
		return err
	}
	running, err := site.RunningServer(loaded.DataDir)
	if errors.Is(err, fs.ErrPermission) && loaded.Database.Driver != "postgres" {
		return err // the database beside it cannot be read either
	}
	if err == nil {
		client := o.clientOf(running)
		if _, err = client.Me(ctx); err == nil {
			return do(serverTasks{client})
		}
		err = fmt.Errorf("the server at %s cannot be asked: %w", running.URL, err)
	}
	if !errors.Is(err, site.ErrNoServer) {
		_, _ = fmt.Fprintf(o.Stderr, "toryo: %v; this is what the database has\n", err) // the command goes on all the same
	}
	return cli.WithData(ctx, o.Program, &o.settings, cli.Fail, func(loaded config.Config, database store.Store) error {
		return do(storeTasks{database, broker.Limits(loaded.Limits), site.DayBudget(loaded)})
	})
}

// serverTasks are the tasks of a server.
type serverTasks struct{ *wire.Client }

func (s serverTasks) find(ctx context.Context, name string) (wire.Task, error) {
	return findOn(ctx, s.Client, name)
}

func (s serverTasks) list(ctx context.Context, states []string) (wire.Tasks, error) {
	return s.AllTasks(ctx, states)
}

func (s serverTasks) next(ctx context.Context, agent string) (wire.NextTasks, error) {
	return s.NextTasks(ctx, agent)
}

func (s serverTasks) needs(ctx context.Context) (wire.Needs, error) { return s.Needs(ctx) }

func (s serverTasks) events(ctx context.Context, id task.ID, after int64, limit int) (wire.Events, error) {
	return s.TaskEvents(ctx, id, after, limit)
}

func (s serverTasks) receipts(ctx context.Context, id task.ID) (wire.Receipts, error) {
	return s.ReceiptsOf(ctx, id)
}

func (s serverTasks) statistics(ctx context.Context, wish statistics.Wish) (wire.Statistics, error) {
	return s.Statistics(ctx, wish.Days, wish.Repository)
}

// storeTasks are the tasks of a database.
type storeTasks struct {
	store.Store
	limits broker.Limits
	day    store.Amount // what models may use in a day
}

func (s storeTasks) find(ctx context.Context, name string) (wire.Task, error) {
	found, err := store.FindTask(ctx, s, name)
	if err != nil {
		return wire.Task{}, err
	}
	shown := []wire.Task{wire.TaskOf(found)}
	err = server.AddWaits(ctx, shown, s.turns)
	return shown[0], err
}

// turns says why queued tasks wait.
func (s storeTasks) turns(ctx context.Context) ([]broker.Turn, error) {
	now, err := s.Time(ctx)
	if err != nil {
		return nil, err
	}
	return broker.Turns(ctx, s, s.limits, now)
}

func (s storeTasks) needs(ctx context.Context) (wire.Needs, error) {
	now, err := s.Time(ctx)
	if err != nil {
		return wire.Needs{}, err
	}
	list := broker.Needs{Store: s, Limits: s.limits, Day: s.day, Now: func() time.Time { return now }}
	found, err := list.List(ctx)
	return wire.NeedsOf(found), err
}

func (s storeTasks) list(ctx context.Context, states []string) (wire.Tasks, error) {
	var filter store.TaskFilter
	for _, state := range states {
		filter.States = append(filter.States, task.State(state))
	}
	found, err := s.ListTasks(ctx, filter)
	shown := wire.Tasks{Tasks: make([]wire.Task, 0, len(found))}
	for _, t := range found {
		shown.Tasks = append(shown.Tasks, wire.TaskOf(t))
	}
	if err == nil {
		err = server.AddWaits(ctx, shown.Tasks, s.turns)
	}
	return shown, err
}

func (s storeTasks) next(ctx context.Context, agent string) (wire.NextTasks, error) {
	now, err := s.Time(ctx)
	if err != nil {
		return wire.NextTasks{}, err
	}
	verdicts, err := broker.Explain(ctx, s, s.limits, now, agent)
	if err != nil {
		return wire.NextTasks{}, err
	}
	waits, err := broker.Waits(ctx, s, s.limits, now)
	if err != nil {
		return wire.NextTasks{}, err
	}
	return server.NextTasksOf(verdicts, waits), nil
}

func (s storeTasks) events(ctx context.Context, id task.ID, after int64, limit int) (wire.Events, error) {
	found, err := s.EventsAfter(ctx, id, after, limit)
	shown := wire.Events{Events: make([]wire.Event, 0, len(found))}
	for _, event := range found {
		shown.Events = append(shown.Events, wire.EventOf(event))
	}
	return shown, err
}

func (s storeTasks) receipts(ctx context.Context, id task.ID) (wire.Receipts, error) {
	found, err := s.ReceiptsOf(ctx, id)
	return server.ReceiptsOf(found), err
}

func (s storeTasks) statistics(ctx context.Context, wish statistics.Wish) (wire.Statistics, error) {
	now, err := s.Time(ctx)
	if err != nil {
		return wire.Statistics{}, err
	}
	return statistics.Read(ctx, s.Store, wish, now)
}

// mostCompleted is how many tasks are offered where the shell completes a name.
const mostCompleted = 100

// completeTasks lets the shell complete the first argument with the names of the newest
// tasks. It reads a database on this machine; a server elsewhere is not asked, because
// whoever presses a key does not want to wait for a network.
func (o *operate) completeTasks(c *cobra.Command) {
	c.ValidArgsFunction = func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 || o.server != "" {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		loaded, err := o.settings.LoadData(o.Program)
		if err != nil || loaded.Database.Driver == "postgres" {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return newestTasks(c.Context(), loaded), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}

// newestTasks are names of tasks with their titles, as the completion of cobra wants them.
// Where there is nothing to read there are none.
func newestTasks(ctx context.Context, c config.Config) (names []string) {
	database, err := site.OpenExistingStore(ctx, c)
	if err != nil {
		return nil
	}
	defer func() { _ = database.Close() }() // nothing was written
	found, err := database.ListTasks(ctx, store.TaskFilter{Newest: true, Limit: mostCompleted})
	if err != nil {
		return nil
	}
	for name, t := range shortNames(found) {
		names = append(names, cobra.CompletionWithDesc(name, string(t.State)+": "+cli.OneLine(t.Title)))
	}
	return names
}

// shortNames are names of tasks that mean one item each, newest first: with the forge only where
// two forges have such an item.
func shortNames(tasks []task.Task) iter.Seq2[string, task.Task] {
	forges := map[string]task.Key{} // by short name
	several := map[string]bool{}
	for _, t := range tasks {
		_, name, _ := strings.Cut(t.Key.String(), ":")
		if known, is := forges[name]; is && known != t.Key {
			several[name] = true
		}
		forges[name] = t.Key
	}
	return func(yield func(string, task.Task) bool) {
		told := map[task.Key]bool{}
		for _, t := range tasks {
			if told[t.Key] {
				continue // an item can have more than one task
			}
			told[t.Key] = true
			_, name, _ := strings.Cut(t.Key.String(), ":")
			if several[name] {
				name = t.Key.String()
			}
			if !yield(name, t) {
				return
			}
		}
	}
}
