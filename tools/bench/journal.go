package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/agent/contexts"
	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/phase/conversation"
	"github.com/toryo-dev/toryo/internal/task"
)

// journalEntries is how many entries are written, and journalText how long the
// text in each is.
const (
	journalEntries = 300
	journalText    = 2000
)

// measureJournal writes entries as a run does, and the same bytes to a plain file,
// so that our own part can be told from the disk's.
func measureJournal(ctx context.Context, folder string) ([]row, error) {
	kept, err := contexts.Open(filepath.Join(folder, "contexts"), contexts.Options{})
	if err != nil {
		return nil, err
	}
	work := phase.Work{Task: "bench", Generation: 1, Type: task.Development, Item: task.Key{Forge: task.Board, Repository: "a/b", Kind: task.Issue, Number: 1}}
	journal, err := kept.Begin(ctx, work, 0, nil)
	if err != nil {
		return nil, err
	}
	said := llm.UserText(strings.Repeat("x", journalText))
	entry := phase.Entry{Phase: task.Execution, Conversation: "execution", Message: &conversation.Entry{Kind: conversation.MessageEntry, Message: &said}}
	write := func() error { return journal.Append(ctx, task.MessageSent, entry) }
	plain, err := os.Create(filepath.Join(folder, "plain"))
	if err != nil {
		return nil, err
	}
	bytes := []byte(strings.Repeat("x", journalText+300) + "\n")
	bare := func() error {
		_, err := plain.Write(bytes)
		return errors.Join(err, plain.Sync())
	}
	ours, disk, own, err := timeBoth(journalEntries, write, bare)
	if err := errors.Join(err, plain.Close(), journal.End(task.Done, task.ReasonCompleted)); err != nil {
		return nil, err
	}
	begun := time.Now()
	again, err := kept.Begin(ctx, work, 1, nil)
	took := time.Since(begun)
	if err != nil {
		return nil, err
	}
	return []row{
		{fmt.Sprintf("journal entry of %d bytes, written and synced, median and p99", journalText), fmt.Sprintf("%s, %s", show(ours[journalEntries/2]), show(ours[journalEntries*99/100])), ""},
		{"of which the disk needs (the same bytes, plain), median and p99", fmt.Sprintf("%s, %s", show(disk[journalEntries/2]), show(disk[journalEntries*99/100])), ""},
		{"own time per journal entry (processor, with the system calls)", show(own), ""},
		{fmt.Sprintf("journal of %d entries opened again, all files made anew", journalEntries), show(took), ""},
	}, again.Leave()
}

// timeBoth does two things by turns, so that both see the same disk. It returns
// how long each time took, sorted, and what the first needs of the processor.
func timeBoth(times int, first, second func() error) (one, two []time.Duration, own time.Duration, err error) {
	for range times {
		used, begun := processorTime(), time.Now()
		if err := first(); err != nil {
			return nil, nil, 0, err
		}
		one = append(one, time.Since(begun))
		own += processorTime() - used
		begun = time.Now()
		if err := second(); err != nil {
			return nil, nil, 0, err
		}
		two = append(two, time.Since(begun))
	}
	slices.Sort(one)
	slices.Sort(two)
	return one, two, own / time.Duration(times), nil
}

func show(d time.Duration) string { return d.Round(time.Microsecond).String() }
