package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/lifecycle"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// The load: issues on repositories, and runs in the hands of fake agents at the pace of
// docs/scale.md.
const (
	loadRepositories = 200
	loadIssues       = 5000
	loadRunning      = 500
	loadWhile        = 60 * time.Second
	// reportEvery is how often an agent sends what is in its journal, of loadEntries entries;
	// progressEvery how often its comment changes; signalsWait how long it waits for signals;
	// askAgain how long after an answer, or after a request that failed, it asks again.
	reportEvery   = 12 * time.Second
	loadEntries   = 2
	progressEvery = time.Minute
	signalsWait   = 30 * time.Second
	askAgain      = time.Second
	pageLooks     = 20
)

// measureLoad looks at a server with many issues and many runs.
func measureLoad(ctx context.Context, folder string) (rows []row, err error) {
	c, err := newBoardServer(ctx, filepath.Join(folder, "load"), "", loadRepositories, loadIssues)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.close(ctx)) }()
	begun := time.Now()
	if err := c.start(ctx, filepath.Join(folder, "toryo"), "serve", loadIssues); err != nil {
		return nil, err
	}
	taken := time.Since(begun)
	token, err := access.Tokens{Store: c.database, Now: time.Now}.Create(ctx, access.Agent, "fake agents")
	if err != nil {
		return nil, err
	}
	working, stop := context.WithCancel(ctx)
	var agents sync.WaitGroup
	defer agents.Wait()
	defer stop()
	fakes := &fakeAgents{client: &wire.Client{
		Server: c.url, Token: token,
		HTTP: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 4 * loadRunning}},
	}}
	begun = time.Now()
	for n := range loadRunning {
		agents.Go(func() { fakes.work(working, n) })
	}
	if err := c.await(ctx, loadRunning, task.Running); err != nil {
		return nil, errors.Join(err, fakes.err())
	}
	handedOut := time.Since(begun)
	if err := lifecycle.Sleep(ctx, idleFirst); err != nil {
		return nil, err
	}
	measured, err := c.measureUnderLoad(ctx)
	if err != nil {
		return nil, errors.Join(err, fakes.err())
	}
	failed := fmt.Sprintf("%d, %d", fakes.lost.Load(), fakes.failed.Load())
	if err := fakes.err(); err != nil {
		failed += "; the first: " + err.Error()
	}
	return append([]row{
		{fmt.Sprintf("%d issues on %d repositories of the board, until all are tasks", loadIssues, loadRepositories), taken.Round(time.Second).String(), ""},
		{fmt.Sprintf("then %d agents ask, until all have a task and a clone to fetch from", loadRunning), handedOut.Round(time.Second).String(), ""},
		{"leases that agents lost, other requests of theirs that failed, from first to last", failed, ""},
	}, measured...), nil
}

// measureUnderLoad looks at processor, memory and database, and then at pages.
func (c *boardServer) measureUnderLoad(ctx context.Context) ([]row, error) {
	names := []string{"toryo_database_statements_total", "toryo_database_rows_total"}
	var before, after [2]float64
	for n, name := range names {
		var err error
		if before[n], err = c.metric(ctx, name); err != nil {
			return nil, err
		}
	}
	used, err := c.used(ctx, loadWhile)
	if err != nil {
		return nil, err
	}
	for n, name := range names {
		if after[n], err = c.metric(ctx, name); err != nil {
			return nil, err
		}
	}
	kilobytes, err := residentOf(c.process.Process.Pid)
	if err != nil {
		return nil, err
	}
	rate := func(n int) float64 { return (after[n] - before[n]) / loadWhile.Seconds() }
	rows := []row{
		{fmt.Sprintf("processor with %d running and %d queued", loadRunning, loadIssues-loadRunning), percent(used, loadWhile), ""},
		{"resident memory", fmt.Sprintf("%.0f MB", float64(kilobytes)*1024/1e6), ""},
		{"statements to the database, rows read", fmt.Sprintf("%.0f/s, %.0f/s", rate(0), rate(1)), ""},
	}
	running, err := c.database.ListTasks(ctx, store.TaskFilter{States: []task.State{task.Running}, Limit: 1})
	if err != nil || len(running) == 0 {
		return nil, errors.Join(err, errors.New("no task is running any more"))
	}
	for _, page := range []struct{ name, path string }{
		{"home", "/"}, {"list of tasks", "/queue"}, {"one task", "/tasks/" + string(running[0].ID)},
	} {
		took, err := c.pageTimes(ctx, page.path)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row{"page meanwhile: " + page.name, took, ""})
	}
	return rows, nil
}

// pageTimes looks at a page several times.
func (c *boardServer) pageTimes(ctx context.Context, path string) (string, error) {
	var took []time.Duration
	var size int64
	for range pageLooks {
		begun := time.Now()
		answer, err := c.page(ctx, path)
		if err != nil {
			return "", err
		}
		size, err = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
		if err != nil {
			return "", err
		}
		took = append(took, time.Since(begun))
	}
	slices.Sort(took)
	return fmt.Sprintf("median %s, p95 %s, %d kB", took[pageLooks/2].Round(time.Millisecond), took[pageLooks*95/100].Round(time.Millisecond), size/1000), nil
}

// fakeAgents hold tasks, say so, wait for signals and report, and do nothing.
type fakeAgents struct {
	client *wire.Client
	lost   atomic.Int64 // leases
	failed atomic.Int64 // other requests
	first  atomic.Pointer[error]
}

// err is the first request that failed.
func (f *fakeAgents) err() error {
	if err := f.first.Load(); err != nil {
		return *err
	}
	return nil
}

func (f *fakeAgents) note(ctx context.Context, err error) {
	if err != nil && ctx.Err() == nil {
		f.failed.Add(1)
		f.first.CompareAndSwap(nil, &err)
	}
}

// work holds a task until the context ends. When its lease is lost it asks for another one.
func (f *fakeAgents) work(ctx context.Context, n int) {
	for ctx.Err() == nil {
		given, err := f.client.RequestTask(ctx, fmt.Sprint("fake ", n+1), signalsWait)
		switch {
		case err != nil:
			f.note(ctx, fmt.Errorf("ask for a task: %w", err))
			_ = lifecycle.Sleep(ctx, askAgain) // it fails when the context ends
		case given != nil:
			f.hold(ctx, given)
		}
	}
}

// hold does what the agent of a run does besides working, until the lease is lost.
func (f *fakeAgents) hold(ctx context.Context, given *wire.Assignment) {
	held, end := context.WithCancel(ctx)
	defer end()
	var group sync.WaitGroup
	defer group.Wait()
	var lost sync.Once // several requests may find out
	ask := func(do func(context.Context) error) {
		err := do(held)
		if code := task.CodeOf(err); code == task.LeaseLost || code == task.StaleGeneration {
			lost.Do(func() { f.lost.Add(1) })
			end()
			return
		}
		f.note(held, err)
	}
	keepUp(f.client.Run(given), given, func(pause time.Duration, do func(context.Context) error) {
		group.Go(func() {
			// They do not all begin at the same moment.
			for wait := rand.N(pause + 1); lifecycle.Sleep(held, wait) == nil; wait = pause { //nolint:gosec // not for secrets
				ask(do)
			}
		})
	})
}

// keepUp gives every what a run asks for, and how often.
func keepUp(run *wire.RunClient, given *wire.Assignment, every func(time.Duration, func(context.Context) error)) {
	every(time.Duration(given.Lease.Every)*time.Millisecond, func(ctx context.Context) error {
		_, err := run.Renew(ctx)
		return err
	})
	every(askAgain, func(ctx context.Context) error {
		_, err := run.Signals(ctx, 0, signalsWait)
		return err
	})
	sent, text := int64(0), strings.Repeat("x", journalText)
	every(reportEvery, func(ctx context.Context) error {
		var entries []wire.Entry
		for range loadEntries {
			sent++
			data, err := json.Marshal(map[string]string{"text": text})
			if err != nil {
				return err
			}
			entries = append(entries, wire.Entry{Sequence: sent, Kind: string(task.NoteTaken), At: time.Now(), Data: data})
		}
		_, err := run.Report(ctx, entries)
		return err
	})
	steps := 0
	every(progressEvery, func(ctx context.Context) error {
		steps++
		return run.Progress(ctx, fmt.Sprintf("%d steps done", steps))
	})
}
