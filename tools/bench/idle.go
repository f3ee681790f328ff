package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/toryo-dev/toryo/internal/lifecycle"
)

// What a server is measured with that has nothing to do: tasks that are queued, and that
// nobody takes.
var idleTasks = []int{0, 100, 1000, 5000}

const (
	idlePostgres = 1000 // tasks on PostgreSQL
	// idleFirst is how long after the last task was made the measure begins: what there is
	// to do every minute because of the tasks has been done then.
	idleFirst    = 75 * time.Second
	idleWhile    = 60 * time.Second
	idleWithPage = 30 * time.Second
)

// idleServer is a server that has nothing to do.
type idleServer struct {
	*boardServer
	what      string
	tasks     int
	used      time.Duration
	withPage  time.Duration
	kilobytes int
}

// measureIdle runs servers with an agent that can take no tasks, beside each other, and
// looks at what each uses of the processors; then once more while someone has the home page open.
func measureIdle(ctx context.Context, folder string) (rows []row, err error) {
	servers, err := startIdleServers(ctx, folder)
	defer func() {
		for _, one := range servers {
			err = errors.Join(err, one.close(ctx))
		}
	}()
	if err != nil {
		return nil, err
	}
	if err := lifecycle.Sleep(ctx, idleFirst); err != nil {
		return nil, err
	}
	if err := eachServer(servers, func(one *idleServer) (err error) {
		one.used, err = one.boardServer.used(ctx, idleWhile)
		return err
	}); err != nil {
		return nil, err
	}
	err = eachServer(servers, func(one *idleServer) error { return one.watchPage(ctx) })
	for _, one := range servers {
		rows = append(rows,
			row{"processor while idle, " + one.what, percent(one.used, idleWhile), "under 1 %"},
			row{"the same with the home page open", percent(one.withPage, idleWithPage), ""},
			row{"resident memory then", fmt.Sprintf("%.0f MB", float64(one.kilobytes)*1024/1e6), ""})
	}
	return rows, err
}

func percent(used, while time.Duration) string {
	return fmt.Sprintf("%.2f %% of a core", 100*used.Seconds()/while.Seconds())
}

func startIdleServers(ctx context.Context, folder string) (servers []*idleServer, err error) {
	add := func(name, postgresServer string, tasks int) error {
		made, err := newBoardServer(ctx, filepath.Join(folder, "idle-"+name+fmt.Sprint(tasks)), postgresServer, 10, tasks)
		if err != nil {
			return err
		}
		servers = append(servers, &idleServer{boardServer: made, tasks: tasks, what: fmt.Sprintf("%d tasks queued on %s", tasks, name)})
		return nil
	}
	for _, tasks := range idleTasks {
		if err := add("SQLite", "", tasks); err != nil {
			return servers, err
		}
	}
	if server := os.Getenv("TORYO_TEST_POSTGRES"); server != "" {
		if err := add("PostgreSQL", server, idlePostgres); err != nil {
			return servers, err
		}
	}
	return servers, eachServer(servers, func(one *idleServer) error { return one.start(ctx, filepath.Join(folder, "toryo"), "up", one.tasks) })
}

// eachServer does something with all of them at the same time.
func eachServer(servers []*idleServer, do func(*idleServer) error) error {
	failed := make([]error, len(servers))
	var group sync.WaitGroup
	for n, one := range servers {
		group.Go(func() { failed[n] = do(one) })
	}
	group.Wait()
	return errors.Join(failed...)
}

// watchPage looks at what a live page costs.
func (i *idleServer) watchPage(ctx context.Context) error {
	watching, leave := context.WithCancel(ctx)
	defer leave()
	answer, err := i.page(watching, "/live/tasks")
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	go func() { _, _ = io.Copy(io.Discard, answer.Body) }() // it ends when we leave
	if i.withPage, err = i.boardServer.used(ctx, idleWithPage); err != nil {
		return err
	}
	i.kilobytes, err = residentOf(i.process.Process.Pid)
	return err
}
