package harbor_test

import (
	"context"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/toryo-dev/toryo/internal/sandbox/docker"
)

// connections pass an engine on until all of them are cut, as when a program is killed.
type connections struct {
	listener net.Listener
	mu       sync.Mutex
	open     []net.Conn
}

func (c *connections) keep(one net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open = append(c.open, one)
}

func (c *connections) cut() {
	_ = c.listener.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range c.open {
		_ = one.Close()
	}
}

// through passes an engine on.
func through(t *testing.T, host string) *connections {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	made := &connections{listener: listener}
	network, address, _ := strings.Cut(host, "://")
	go func() { // ends with the listener
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			to, err := new(net.Dialer).DialContext(context.WithoutCancel(t.Context()), network, address)
			if err != nil {
				_ = from.Close()
				continue
			}
			made.keep(from)
			made.keep(to)
			go func() { _, _ = io.Copy(to, from) }()
			go func() { _, _ = io.Copy(from, to) }()
		}
	}()
	t.Cleanup(made.cut)
	return made
}

// The container of a score ends when the evaluation is killed.
//
//nolint:paralleltest // it lists the containers of all
func TestScoreOfAKilledEvaluation(t *testing.T) {
	runner, engine := newRunner(t)
	made, from := prepare(t, runner, folder(t, map[string]string{"tests/test.sh": "#!/bin/bash\nread -r line && exit 1\nsleep 100000\nsleep 100000\n"}))
	host := os.Getenv("TORYO_TEST_DOCKER")
	api, err := client.New(client.WithHost(host))
	if err != nil {
		t.Fatal(err)
	}
	events := api.Events(t.Context(), client.EventsListOptions{Filters: client.Filters{}.Add("label", "dev.toryo.owner="+owner).Add("event", "start")})
	between := through(t, host)
	if runner.Engine, err = docker.New(docker.Config{Host: "tcp://" + between.listener.Addr().String(), Dir: t.TempDir(), Guest: "/none", Log: discard, NewGate: noGate}); err != nil {
		t.Fatal(err)
	}
	var scoring sync.WaitGroup
	scoring.Go(func() {
		if result, err := runner.Score(t.Context(), made, from, from.Base); err == nil {
			t.Errorf("it has a score: %+v", result)
		}
	})
	var id string
	select {
	case started := <-events.Messages:
		id = started.Actor.ID
	case err := <-events.Err:
		t.Fatal(err)
	}
	between.cut()
	scoring.Wait()
	limited, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ended := api.ContainerWait(limited, id, client.ContainerWaitOptions{Condition: container.WaitConditionNotRunning})
	select {
	case <-ended.Result:
	case err := <-ended.Error:
		t.Errorf("it goes on: %v", err)
	}
	if _, err := engine.Reap(t.Context(), owner, keepNone); err != nil {
		t.Error(err)
	}
	noContainers(t, engine)
}
