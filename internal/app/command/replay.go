package command

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/agent/contexts"
	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

type replay struct {
	operate
	step bool
	full bool
}

// Replay is the command toryo replay.
func Replay(p site.Program) *cobra.Command {
	o := replay{operate: operate{Program: p}}
	c := &cobra.Command{
		Use:   "replay RUN|TASK",
		Short: "Replay a run or a task, entry by entry",
		Long: `Show what was done, from the journal. Nothing is run, asked or sent. On a terminal it
waits after each entry: Enter goes on, a shows the rest at once, q ends.

RUN is the uuid of a run in the context files of this machine, or the start of it. TASK is
named in any of the ways of toryo help task-names: all of its runs are shown, from the
server that runs or that --server names, or from the database, and on the machine of an agent
its last run there, from the context files.`,
		Example: `  toryo replay 0199c2a4
  toryo replay team/app#3`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return o.run(c.Context(), args[0]) },
	}
	o.bind(c)
	o.completeTasks(c)
	c.Flags().Lookup("json").Usage = "print the entries as they are in the journal, one to a line"
	c.Flags().BoolVar(&o.step, "step", false, "wait after each entry also without a terminal")
	c.Flags().BoolVar(&o.full, "full", false, "print long texts whole")
	return c
}

// run looks for a run of this machine, and else for a task.
func (o replay) run(ctx context.Context, name string) error {
	load := o.settings.LoadData
	if o.server != "" {
		load = o.settings.LoadRemote
	}
	loaded, err := load(o.Program)
	if err != nil {
		return err
	}
	if o.server == "" {
		recording, err := contexts.Read(loaded.ContextsPath(), name)
		if err == nil {
			return o.replayRun(recording)
		}
		if task.CodeOf(err) != task.NotFound {
			return err
		}
	}
	return o.replayTask(ctx, loaded, name)
}

// replayTask shows a task as the server or the database has it. Where there is neither, the
// context files are looked through.
func (o replay) replayTask(ctx context.Context, loaded config.Config, name string) error {
	parsed, err := task.ParseName(name)
	if err != nil {
		return task.Errorf(task.NotFound, "%q names neither a run in %s nor a task", name, loaded.ContextsPath()).
			WithHint("give the start of the uuid of a run; or of a task, %s", task.NameHint)
	}
	if o.server == "" && o.settings.CheckDatabase() == nil {
		there, err := site.HasDatabase(ctx, loaded)
		if err != nil {
			return err
		}
		if _, err := os.Stat(loaded.ContextsPath()); !there && err == nil {
			recording, err := contexts.ReadLast(loaded.ContextsPath(), parsed)
			if err != nil {
				return err
			}
			return o.replayRun(recording)
		}
	}
	return o.withTasks(ctx, access.Viewer, func(tasks taskSource) error {
		entries := &taskEntries{journalPrinter: journalPrinter{out: o.Stdout, full: o.full}, json: o.json}
		if !o.json {
			entries.between = o.waiting()
		}
		return printJournal(ctx, entries, tasks, name)
	})
}

// replayRun shows a run from its files.
func (o replay) replayRun(recording contexts.Recording) error {
	if o.json {
		encoder := json.NewEncoder(o.Stdout)
		for _, line := range recording.Lines {
			event := wire.Event{Position: line.Sequence, Generation: line.Generation, Source: string(task.FromAgent), Kind: string(line.Kind), At: line.At, Data: line.Data}
			if err := encoder.Encode(event); err != nil {
				return err
			}
		}
		return nil
	}
	printer := &journalPrinter{out: o.Stdout, full: o.full}
	err := printer.heading([2]string{"run", recording.UUID}, [2]string{"task", string(recording.Task) + "  " + recording.Item}, [2]string{"title", recording.Title},
		[2]string{"type", string(recording.Type) + "  " + string(recording.Role)}, [2]string{"began", recording.BeganAt.Format(time.RFC3339)})
	if err != nil {
		return err
	}
	wait := o.waiting()
	for i, line := range recording.Lines {
		if i > 0 {
			if err := wait(); errors.Is(err, errEnough) {
				return nil
			}
		}
		if err := printer.show(line.Sequence, task.Event{Kind: line.Kind, At: line.At, Data: line.Data}); err != nil {
			return err
		}
	}
	if err := printer.ending(recording.State, recording.Reason); err != nil || recording.Torn == 0 {
		return err
	}
	_, err = fmt.Fprintf(o.Stdout, "the last %d bytes of the journal were torn by a crash and are left out\n", recording.Torn)
	return err
}

// waiting waits between entries if somebody is there, and ends with errEnough if that
// person has seen enough.
func (o replay) waiting() func() error {
	waits := o.step || interactive(o.Stdin) && interactive(o.Stdout)
	keys := bufio.NewReader(o.Stdin)
	return func() error {
		if !waits {
			return nil
		}
		answer, err := keys.ReadString('\n')
		switch strings.TrimSpace(answer) {
		case "q":
			return errEnough
		case "a":
			waits = false
		}
		waits = waits && err == nil // without input the rest is shown at once
		return nil
	}
}

// interactive reports whether a person sits at the other end.
func interactive(end any) bool {
	file, is := end.(*os.File)
	if !is {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
