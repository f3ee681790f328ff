package site

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/agent"
	"github.com/toryo-dev/toryo/internal/lifecycle"
	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// embeddedAgent is how the agent in this process reaches its server: over HTTP and
// with a token of its own, as an agent on another machine does.
func embeddedAgent(ctx context.Context, p Program, running Instance) (AgentSettings, error) {
	host, err := os.Hostname()
	if err != nil {
		return AgentSettings{}, fmt.Errorf("name the agent: %w", err)
	}
	name := fmt.Sprintf("embedded agent of %s on %s", running.URL, host)
	token, err := access.Tokens{Store: running.Store, Now: p.Now}.Replace(ctx, access.Agent, name)
	if err != nil {
		return AgentSettings{}, err
	}
	client, err := AgentClient("")
	return AgentSettings{Server: running.local, Token: token, Name: name, HTTP: client, outages: running.outages, Log: running.Report.Log}, err
}

// ReportUnable reports to the server that the agent in this process runs and cannot take
// tasks, and why.
func ReportUnable(ctx context.Context, s AgentSettings, unable *agent.UnableError) error {
	worker := agent.Agent{Client: &wire.Client{Server: s.Server, Token: s.Token, HTTP: s.HTTP}, Log: s.Log}
	if _, err := worker.CheckIn(ctx); err != nil {
		return err
	}
	return worker.Report(ctx, unable.Reason, unable.Detail())
}

// unlessStopped makes nothing of the error of something that was stopped before it had
// begun: a stop is no failure.
func unlessStopped(ctx context.Context, err error) error {
	select {
	case <-ctx.Done():
		return nil
	default:
		return err
	}
}

// lookForSandbox is how often an agent without a sandbox looks for one again.
const lookForSandbox = 10 * time.Second

// RunAgent works until the context ends. An agent that lacks what it needs says so,
// and looks again now and then whether a sandbox works by now. A nil engine stands for the
// one that the configuration names.
func RunAgent(ctx context.Context, p Program, running Instance, engine sandbox.Engine) (err error) {
	process, unlock, err := LockAgent(running.Config.DataDir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	settings, err := embeddedAgent(ctx, p, running)
	if err != nil {
		return unlessStopped(ctx, err)
	}
	settings.engine, settings.Process = engine, process
	worker, err := NewAgent(ctx, p, running.Config, settings)
	told := ""
	for task.CodeOf(err) == task.NotReady {
		unable, is := errors.AsType[*agent.UnableError](err)
		if !is {
			return err
		}
		// Each time, because an agent that is not heard of counts as silent.
		if err := ReportUnable(ctx, settings, unable); err != nil {
			return unlessStopped(ctx, err)
		}
		if text := unable.Error(); text != told {
			if _, err := fmt.Fprintf(p.Stdout, "the agent is connected, but does not accept tasks: %s\n", text); err != nil {
				return err
			}
			told = text
		}
		if lifecycle.Sleep(ctx, lookForSandbox) != nil {
			return nil
		}
		worker, err = NewAgent(ctx, p, running.Config, settings)
	}
	if err != nil {
		return unlessStopped(ctx, err)
	}
	return Work(ctx, worker, func(name string) error {
		_, err := fmt.Fprintf(p.Stdout, "the agent is connected and waiting for tasks as %s\n", name)
		return err
	})
}
