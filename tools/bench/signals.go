package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

const (
	stopsTold   = 20 // that the server is told of
	stopsPolled = 5  // that it has to find
	commented   = 20
	paused      = 5
	lostAtOnce  = 3
)

// measureSignals looks at how soon a run follows what people do, with a server and
// an agent as processes and a run in the middle of a command. What is done through
// the server is heard of at once, as from a webhook; what another process does on
// the board has to be found, as on a forge without webhooks.
func measureSignals(ctx context.Context, folder string) (rows []row, err error) {
	s, err := newSite(ctx, folder, "signals", longCommand)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.startAgent(ctx); err != nil {
		return nil, err
	}
	for _, measure := range []func(context.Context) ([]row, error){s.measureStops, s.measureFoundStops, s.measurePauses, s.measureCrashes} {
		measured, err := measure(ctx)
		if err != nil {
			return nil, err
		}
		rows = append(rows, measured...)
	}
	heard, err := measureComments(ctx, folder)
	return append(rows, heard...), err
}

// spread is the middle and the end of several times.
func spread(times []time.Duration) string {
	slices.Sort(times)
	at := func(share float64) time.Duration { return times[int(share*float64(len(times)-1)+0.5)] }
	return fmt.Sprintf("p50 %s, p99 %s, n %d", at(0.5).Round(time.Millisecond), at(0.99).Round(time.Millisecond), len(times))
}

const inTheMiddle = "in the middle of sleep 600"

func (s *site) measureStops(ctx context.Context) ([]row, error) {
	cut, labelled, err := s.stops(ctx, stopsTold, func(j job) (time.Time, error) {
		begun := time.Now()
		return begun, s.board(ctx, http.MethodDelete, j.path()+"/assignees?login=toryo", nil, nil)
	})
	if err != nil {
		return nil, fmt.Errorf("stop: %w", err)
	}
	return []row{
		{"unassign to work cut, told, " + inTheMiddle, spread(cut), "p99 under 2 s"},
		{"unassign to label stopped, told, " + inTheMiddle, spread(labelled), "p99 under 2 s"},
	}, nil
}

func (s *site) measureFoundStops(ctx context.Context) ([]row, error) {
	cut, labelled, err := s.stops(ctx, stopsPolled, func(j job) (time.Time, error) {
		_, err := s.toryo(ctx, "board", "issue", "unassign", fmt.Sprintf("%s#%d", siteRepository, j.number), "toryo", "--as", "bench")
		return time.Now(), err
	})
	if err != nil {
		return nil, fmt.Errorf("stop that has to be found: %w", err)
	}
	return []row{
		{"unassign to work cut, found by looking, " + inTheMiddle, spread(cut), ""},
		{"unassign to label stopped, found by looking, " + inTheMiddle, spread(labelled), ""},
	}, nil
}

// stops lets runs be stopped one after the other, and returns how long it was until
// the command was gone, and until the issue said so.
func (s *site) stops(ctx context.Context, count int, unassign func(job) (time.Time, error)) (cut, labelled []time.Duration, err error) {
	for i := range count {
		j, err := s.begin(ctx, fmt.Sprint("Wait ", i))
		if err != nil {
			return nil, nil, err
		}
		if err := sleepers(ctx, 1); err != nil {
			return nil, nil, err
		}
		begun, err := unassign(j)
		if err != nil {
			return nil, nil, err
		}
		if err := sleepers(ctx, 0); err != nil {
			return nil, nil, err
		}
		cut = append(cut, time.Since(begun))
		if err := until(ctx, func() (bool, error) { return s.shows(ctx, j, "coding agent stopped") }); err != nil {
			return nil, nil, err
		}
		labelled = append(labelled, time.Since(begun))
	}
	return cut, labelled, nil
}

// measurePauses pauses and resumes a run that is in the middle of a command.
func (s *site) measurePauses(ctx context.Context) ([]row, error) {
	j, err := s.begin(ctx, "Wait and rest")
	if err != nil {
		return nil, err
	}
	var stopped, shown, going []time.Duration
	for range paused {
		if err := sleepers(ctx, 1); err != nil {
			return nil, err
		}
		begun := time.Now()
		if _, err := s.client.PauseTask(ctx, j.id); err != nil {
			return nil, err
		}
		if err := sleepers(ctx, 0); err != nil {
			return nil, err
		}
		stopped = append(stopped, time.Since(begun))
		if err := until(ctx, func() (bool, error) { return s.shows(ctx, j, "coding agent paused") }); err != nil {
			return nil, err
		}
		shown = append(shown, time.Since(begun))
		begun = time.Now()
		if _, err := s.client.ResumeTask(ctx, j.id); err != nil {
			return nil, err
		}
		if err := sleepers(ctx, 1); err != nil {
			return nil, err
		}
		going = append(going, time.Since(begun))
	}
	return []row{
		{"pause to work cut, " + inTheMiddle, spread(stopped), ""},
		{"pause to label paused", spread(shown), ""},
		{"resume to the next command in a new sandbox", spread(going), ""},
	}, s.end(ctx, j)
}

// end stops a task and waits for that.
func (s *site) end(ctx context.Context, j job) error {
	if _, err := s.client.StopTask(ctx, j.id); err != nil {
		return err
	}
	return until(ctx, func() (bool, error) { return s.shows(ctx, j, "coding agent stopped") })
}

// measureCrashes kills the agent in the middle of several runs and starts it again
// at once; and then the server.
func (s *site) measureCrashes(ctx context.Context) ([]row, error) {
	if err := kill(s.agent); err != nil {
		return nil, err
	}
	s.tasks = lostAtOnce
	if err := s.startAgent(ctx); err != nil {
		return nil, err
	}
	var jobs []job
	for i := range lostAtOnce {
		j, err := s.begin(ctx, fmt.Sprint("Wait and be lost ", i))
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, j)
	}
	if err := sleepers(ctx, lostAtOnce); err != nil {
		return nil, err
	}
	begun := time.Now()
	if err := errors.Join(kill(s.agent), s.startAgent(ctx)); err != nil {
		return nil, err
	}
	var resumed []time.Duration
	for i := range jobs {
		if err := until(ctx, func() (bool, error) { // what the dead agent had started is gone by then
			count, err := sleeping()
			return count > i && s.generations(ctx, jobs) > i, err
		}); err != nil {
			return nil, err
		}
		resumed = append(resumed, time.Since(begun))
	}
	begun = time.Now()
	if err := errors.Join(kill(s.server), s.startServer(ctx)); err != nil {
		return nil, err
	}
	if err := until(ctx, func() (bool, error) {
		_, err := s.client.PauseTask(ctx, jobs[0].id)
		return err == nil, nil // else it is tried again
	}); err != nil {
		return nil, err
	}
	if err := sleepers(ctx, lostAtOnce-1); err != nil {
		return nil, err
	}
	heard := time.Since(begun)
	for _, j := range jobs {
		if err := s.end(ctx, j); err != nil {
			return nil, err
		}
	}
	return []row{
		{"agent killed and started again, to the run's next command (leases of a minute)", spread(resumed), ""},
		{"server killed and started again, to a pause that cuts the work", heard.Round(time.Millisecond).String(), ""},
	}, nil
}

// generations counts the jobs whose run was begun anew.
func (s *site) generations(ctx context.Context, jobs []job) int {
	count := 0
	for _, j := range jobs {
		if t, err := s.client.Task(ctx, j.id); err == nil && t.State == string(task.Running) && t.Generation > 1 {
			count++
		}
	}
	return count
}

// measureComments comments on an issue whose run takes small steps, and looks when
// the model is told.
func measureComments(ctx context.Context, folder string) (rows []row, err error) {
	s, err := newSite(ctx, folder, "comments", smallSteps)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.startAgent(ctx); err != nil {
		return nil, err
	}
	j, err := s.begin(ctx, "Take small steps")
	if err != nil {
		return nil, err
	}
	if err := until(ctx, func() (bool, error) {
		t, err := s.client.Task(ctx, j.id)
		return t.Phase == string(task.Execution), err
	}); err != nil {
		return nil, err
	}
	var taken []time.Duration
	var position int64
	for i := range commented {
		begun := time.Now()
		if err := s.board(ctx, http.MethodPost, j.path()+"/comments", wire.BoardText{Body: fmt.Sprint("Comment ", i)}, nil); err != nil {
			return nil, err
		}
		var at time.Time
		if err := until(ctx, func() (bool, error) {
			events, err := s.client.TaskEvents(ctx, j.id, position, 500)
			for _, event := range events.Events {
				position = event.Position
				if event.Kind == string(task.SignalTaken) {
					at = event.At
				}
			}
			return !at.IsZero(), err
		}); err != nil {
			return nil, fmt.Errorf("comment %d: %w", i, err)
		}
		taken = append(taken, at.Sub(begun))
	}
	return []row{{"comment to the model's next turn, told, with steps of a tenth of a second", spread(taken), ""}}, nil
}

// demos is how often the demo is played.
const demos = 2

// measureDemo plays the demo.
func measureDemo(ctx context.Context, folder string) ([]row, error) {
	var times []time.Duration
	for range demos {
		took, err := playDemo(ctx, folder)
		if err != nil {
			return nil, fmt.Errorf("demo: %w", err)
		}
		times = append(times, took)
	}
	return []row{{"toryo demo, from start to end (most of it is Go compiling its standard library in the sandbox)", spread(times), "under 1 min"}}, nil
}
