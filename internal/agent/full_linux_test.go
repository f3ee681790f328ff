package agent_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/agent"
	"github.com/toryo-dev/toryo/internal/agent/contexts"
	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
	"github.com/toryo-dev/toryo/internal/wire"
	"github.com/toryo-dev/toryo/internal/workdir"
)

// spoilt are the ways in which a disk cannot be written, each with how to repair it.
var spoilt = map[string]func(*testing.T, *testkit.Disk) (repair func()){
	"full": func(t *testing.T, disk *testkit.Disk) func() {
		t.Helper()
		disk.Fill(t)
		return func() { disk.Free(t) }
	},
	"no file left": func(t *testing.T, disk *testkit.Disk) func() {
		t.Helper()
		return disk.FillFiles(t)
	},
	"read-only": func(t *testing.T, disk *testkit.Disk) func() {
		t.Helper()
		disk.ReadOnly(t, true)
		return func() { disk.ReadOnly(t, false) }
	},
}

// onDisk is an agent that keeps its context files on a disk.
func onDisk(t *testing.T, disk *testkit.Disk) *faulty {
	t.Helper()
	f := newFaulty(t, nil, assignment(), second())
	files, err := contexts.Open(filepath.Join(disk.Dir, "contexts"), contexts.Options{})
	if err != nil {
		t.Fatal(err)
	}
	f.Contexts = files
	f.Check = func(context.Context, *agent.UnableError) error {
		if err := workdir.TestWrite(disk.Dir); err != nil {
			return &agent.UnableError{Reason: task.ReasonDiskNotWritable, Err: err}
		}
		return nil
	}
	return f
}

// An agent that cannot begin a run because its disk cannot be written hands the task back
// without a word to people, tells the server, and takes the next when the disk can be written.
func TestAgentWhoseDiskCannotBeWritten(t *testing.T) {
	t.Parallel()
	for what, spoil := range spoilt {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			disk := testkit.NewDisk(t, 1<<20, 200)
			if disk == nil {
				return
			}
			f := onDisk(t, disk)
			repair := spoil(t, disk)
			closing := f.open(t)
			f.server.await(t, "the task to come back", func() bool { return len(f.server.results) == 1 })
			results, conditions, said := f.server.soFar()
			if got := results[0]; got.Outcome != task.OutcomeReturned || got.Reason != string(task.ReasonDiskNotWritable) || got.Comment != "" {
				t.Errorf("the result is %+v", got)
			}
			if got := conditions; len(got) == 0 || got[0].Unable != string(task.ReasonDiskNotWritable) || got[0].Detail == "" {
				t.Errorf("the server was told %+v before the result", got)
			}
			if len(said) > 0 || f.runs.Load() != 0 {
				t.Errorf("after %d runs, people were told %+v", f.runs.Load(), said)
			}
			repair()
			f.server.await(t, "the second task to be done, and the server to be told", func() bool {
				last := len(f.server.conditions) - 1
				return len(f.server.results) == 2 && last >= 0 && f.server.conditions[last].Unable == ""
			})
			if err := closing(); err != nil {
				t.Errorf("at its end: %v", err)
			}
			if got := f.server.results[1]; got.Outcome != task.OutcomeDone {
				t.Errorf("the second result is %+v", got)
			}
		})
	}
}

// A workspace for which the disk is too small, while it can be written otherwise, does not take
// the agent out. The attempt counts, for it would be so each time.
func TestTaskThatNeedsMoreRoomThanThereIs(t *testing.T) {
	t.Parallel()
	disk := testkit.NewDisk(t, 1<<20, 200)
	if disk == nil {
		return
	}
	f := onDisk(t, disk)
	f.Prepare = func(context.Context, wire.Assignment) (phase.Repository, func() error, error) {
		return nil, nil, task.Errorf(task.DataDir, "the workspace cannot be written")
	}
	closing := f.open(t)
	f.server.await(t, "a task to come back", func() bool { return len(f.server.results) >= 1 })
	if err := closing(); err != nil {
		t.Errorf("at its end: %v", err)
	}
	got := f.server.results[0]
	if got.Outcome != task.OutcomeReturned || got.Reason != string(task.ReasonTooLittleSpace) || !task.Reason(got.Reason).UsesAttempt() || !strings.Contains(got.Comment, "the workspace cannot be written") {
		t.Errorf("the result is %+v", got)
	}
	f.staysIn(t)
}

// aProgram is an agent that does its tasks with a program in a workspace on a disk.
func aProgram(t *testing.T, server *house, disk *testkit.Disk, text string) *shop {
	t.Helper()
	s := newShop(t, server.URL, "sh", "-c", text)
	s.folder.dir = filepath.Join(disk.Dir, "work")
	if err := os.Mkdir(s.folder.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	s.CheckAgain = 10 * time.Millisecond
	s.Check = func(context.Context, *agent.UnableError) error {
		if err := workdir.TestWrite(disk.Dir); err != nil {
			return &agent.UnableError{Reason: task.ReasonDiskNotWritable, Err: err}
		}
		return nil
	}
	return s
}

// A program that fails while the disk cannot be written does not fail the task: the task goes
// back, and the agent takes the next when there is room.
func TestProgramThatFailsOnAFullDisk(t *testing.T) {
	t.Parallel()
	disk := testkit.NewDisk(t, 1<<20, 200)
	if disk == nil {
		return
	}
	server := newHouse(t, assignment(), second())
	s := aProgram(t, server, disk, `[ -e enough ] || head -c 2000000 /dev/zero >big && echo hello >README`)
	closing := s.open(t)
	server.await(t, "the task to come back", func() bool { return len(server.results) == 1 })
	results, _, _ := server.soFar()
	if got := results[0]; got.Outcome != task.OutcomeReturned || got.Reason != string(task.ReasonDiskNotWritable) || got.Comment != "" {
		t.Errorf("the result is %+v", got)
	}
	if err := errors.Join(os.Remove(filepath.Join(s.folder.dir, "big")), os.WriteFile(filepath.Join(s.folder.dir, "enough"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	server.await(t, "the second task to be done", func() bool { return len(server.results) == 2 })
	if err := closing(); err != nil {
		t.Errorf("at its end: %v", err)
	}
	if got := server.results[1]; got.Outcome != task.OutcomeDone {
		t.Errorf("the second result is %+v", got)
	}
}

// awaited is a log that tells when a line is written for the first time.
type awaited struct {
	line string
	once sync.Once
	said func()
}

func (a *awaited) Write(text []byte) (int, error) {
	if bytes.Contains(text, []byte(a.line)) {
		a.once.Do(a.said)
	}
	return len(text), nil
}

// The context files of a run are on the same disk, as a rule: then the run waits for room. When
// there is room again, the program has failed because there was none, all the same. That uses up
// an attempt, and people are not told paths of the machine.
func TestProgramThatFailedBeforeThereWasRoomAgain(t *testing.T) {
	t.Parallel()
	disk := testkit.NewDisk(t, 1<<20, 200)
	if disk == nil {
		return
	}
	server := newHouse(t, assignment())
	s := aProgram(t, server, disk, `head -c 2000000 /dev/zero >big || { seq 5000; exit 1; }`)
	log := &awaited{line: "the run waits", said: func() {
		if err := os.Remove(filepath.Join(s.folder.dir, "big")); err != nil {
			t.Error(err)
		}
	}}
	files, err := contexts.Open(filepath.Join(disk.Dir, "contexts"), contexts.Options{Log: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	s.Contexts = files
	closing := s.open(t)
	server.await(t, "the task to come back", func() bool { return len(server.results) == 1 })
	if err := closing(); err != nil {
		t.Errorf("at its end: %v", err)
	}
	got := server.results[0]
	if got.Outcome != task.OutcomeReturned || got.Reason != string(task.ReasonTooLittleSpace) || !task.Reason(got.Reason).UsesAttempt() ||
		!strings.Contains(got.Comment, "disk of the agent was full") || strings.Contains(got.Comment, disk.Dir) {
		t.Errorf("the result is %+v", got)
	}
}

// A run that has filled the disk itself uses up an attempt, also if the agent is out already
// because of it: without its workspace there is room.
func TestRunThatFilledTheDiskUsesAnAttempt(t *testing.T) {
	t.Parallel()
	full := task.Errorf(task.DataDir, "the workspace cannot be written")
	f := newFaulty(t, full, assignment())
	f.CheckAgain = time.Hour
	f.Executors[task.Development] = executing(func() (wire.Result, error) {
		f.Examine(t.Context())
		room := error(nil)
		f.broken.Store(&room) // its workspace is removed
		return wire.Result{}, full
	})
	closing := f.open(t)
	f.server.await(t, "the task to come back", func() bool { return len(f.server.results) == 1 })
	if err := closing(); err != nil {
		t.Errorf("at its end: %v", err)
	}
	if got := f.server.results[0]; got.Outcome != task.OutcomeReturned || got.Reason != string(task.ReasonTooLittleSpace) {
		t.Errorf("the result is %+v", got)
	}
	if told := f.server.conditions; len(told) == 0 || told[0].Unable != string(task.ReasonDiskNotWritable) {
		t.Errorf("the server was told %+v", told)
	}
}
