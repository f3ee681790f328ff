package endtoend

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"syscall"
	"time"

	"github.com/toryo-dev/toryo/internal/agent"
	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/phase/phasetest"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// The variables by which an agent knows the house that it is in, and its own name.
const (
	houseVariable = "SCENARIO_HOUSE"
	agentVariable = "SCENARIO_AGENT"
)

// moment is what the house is told: a run begins, or has written an entry.
type moment struct {
	Agent      string
	Task       string
	Repository string
	Generation int64
	Kind       task.EventKind
	Entry      phase.Entry
	Followed   bool // as [phase.Entry.Followed], which is not written down
}

// instruction is the answer to a moment: what the run has to wait for.
type instruction struct {
	Equipment phasetest.Setting
	// Comments is the position up to which the run has to have heard of comments
	// before it goes on.
	Comments int64
	// Halt means that the run goes on when it has heard that it shall end.
	Halt bool
	// Die means that the process does not go on.
	Die bool
}

// leash puts an executor on a leash, if there is a house.
func leash(executor agent.Executor) agent.Executor {
	builtIn, is := executor.(agent.BuiltIn)
	house := os.Getenv(houseVariable)
	if !is || house == "" {
		return executor
	}
	return leashed{builtIn, house, os.Getenv(agentVariable)}
}

// leashed is the built-in executor on a leash.
type leashed struct {
	agent.BuiltIn
	house, name string
}

// Execute implements agent.Executor.
func (l leashed) Execute(ctx context.Context, run agent.Run) (wire.Result, error) {
	at := moment{Agent: l.name, Task: run.Assignment.TaskID, Repository: run.Assignment.Repository, Generation: run.Assignment.Generation}
	journal := watched{Journal: run.Journal, leash: l, at: at, forge: run.Forge, halted: ctx.Done()}
	said, err := l.ask(ctx, at)
	if err != nil {
		return wire.Result{}, err
	}
	if run.Repository, err = said.Equipment.PrepareWorkspace(ctx, run.Repository); err != nil {
		return wire.Result{}, err
	}
	journal.obey(ctx, said)
	usual := l.Options
	l.Options = func(run agent.Run) (phase.Options, error) {
		options, err := usual(run)
		if err != nil {
			return phase.Options{}, err
		}
		err = said.Equipment.Apply(&options)
		return options, err
	}
	run.Journal = journal
	return l.BuiltIn.Execute(ctx, run)
}

// ask tells the house of a moment. The end of the run is no reason not to.
func (l leashed) ask(ctx context.Context, at moment) (said instruction, err error) {
	body, err := json.Marshal(at)
	if err != nil {
		return said, err
	}
	request, err := http.NewRequestWithContext(context.WithoutCancel(ctx), http.MethodPost, l.house, bytes.NewReader(body))
	if err != nil {
		return said, err
	}
	answer, err := new(http.Client).Do(request) // the house answers when it is time
	if err != nil {
		return said, err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		return said, fmt.Errorf("the house says %s: %s: %w", answer.Status, text, err)
	}
	err = json.Unmarshal(text, &said)
	return said, err
}

// watched is a journal of whose entries the house is told.
type watched struct {
	phase.Journal
	leash leashed
	at    moment
	forge phase.Forge
	// halted is closed when the run has to end, which the context of an entry does
	// not always tell.
	halted <-chan struct{}
}

// Append implements phase.Journal.
func (w watched) Append(ctx context.Context, kind task.EventKind, entry phase.Entry) error {
	if err := w.Journal.Append(ctx, kind, entry); err != nil {
		return err
	}
	w.at.Kind, w.at.Entry, w.at.Followed = kind, entry, entry.Followed
	said, err := w.leash.ask(ctx, w.at)
	if err != nil {
		return err
	}
	w.obey(ctx, said)
	return nil
}

// obey does what the house says, or waits until the run has to end.
func (w watched) obey(ctx context.Context, said instruction) {
	if said.Die {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // it is on its way
	}
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for said.Comments > 0 {
		if heard, err := w.forge.Comments(ctx, said.Comments-1); err != nil || len(heard) > 0 {
			break
		}
		select {
		case <-again.C:
		case <-w.halted:
			return
		}
	}
	if said.Halt {
		<-w.halted
	}
}
