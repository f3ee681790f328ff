package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/lifecycle"
	"github.com/toryo-dev/toryo/internal/sandbox/guest"
)

const (
	// memoryRuns are the runs that one agent does at the same time.
	memoryRuns = 4
	// memorySettles is how long a server, or an agent whose runs all wait for a command, has
	// nothing to do before its memory is looked at.
	memorySettles = 5 * time.Second
)

// measureMemory looks at a server that has nothing to do, at an agent with its sandboxes while
// none to four runs are in the middle of a command, and at the guest in one sandbox. What
// processes share is counted once.
func measureMemory(ctx context.Context, folder string) (rows []row, err error) {
	s, err := newSite(ctx, folder, "memory", longCommand)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := lifecycle.Sleep(ctx, memorySettles); err != nil {
		return nil, err
	}
	rows = append(rows, row{"memory of a server that has nothing to do", megabytes(proportionalOf(s.server.Process.Pid)), "under 45 MB"})
	s.tasks = memoryRuns
	if s.program, err = copyPrograms(folder, filepath.Join(s.dir, "programs")); err != nil {
		return nil, err
	}
	if err := s.startAgent(ctx); err != nil {
		return nil, err
	}
	seen, guests, err := s.memoryOfRuns(ctx)
	if err != nil {
		return nil, err
	}
	further := make([]string, 0, memoryRuns-1)
	for n := 2; n <= memoryRuns; n++ {
		further = append(further, megabytes(seen[n]-seen[n-1]))
	}
	return append(rows,
		row{"memory of an agent without a run", megabytes(seen[0]), ""},
		row{"the same with one run in the middle of a command, and its sandbox", megabytes(seen[1]), "under 70 MB"},
		row{fmt.Sprintf("what each further run adds, second to %dth", memoryRuns), strings.Join(further, ", "), "under 15 MB each"},
		row{"memory of the guest in a sandbox, the largest", megabytes(guests), "under 10 MB"}), nil
}

// memoryOfRuns is the memory of the agent and of what it started with none to [memoryRuns]
// runs, and that of the largest guest, in kilobytes.
func (s *site) memoryOfRuns(ctx context.Context) (seen []int, largest int, err error) {
	inside, err := os.Stat(filepath.Join(filepath.Dir(s.program), guest.LinuxProgram))
	if err != nil {
		return nil, 0, err
	}
	for n := range memoryRuns + 1 {
		if n > 0 {
			if _, err := s.begin(ctx, fmt.Sprint("Wait ", n)); err != nil {
				return nil, 0, err
			}
		}
		if err := sleepers(ctx, n); err != nil {
			return nil, 0, err
		}
		if err := lifecycle.Sleep(ctx, memorySettles); err != nil {
			return nil, 0, err
		}
		sum := 0
		for _, pid := range descendants(s.agent.Process.Pid) {
			kilobytes := proportionalOf(pid)
			sum += kilobytes
			if runs, err := os.Stat(fmt.Sprintf("/proc/%d/exe", pid)); err == nil && os.SameFile(runs, inside) {
				largest = max(largest, kilobytes)
			}
		}
		seen = append(seen, sum)
	}
	return seen, largest, nil
}

// copyPrograms copies the programs, so that the agent has nothing in common with the server,
// and returns the path of the agent's.
func copyPrograms(from, to string) (string, error) {
	if err := os.MkdirAll(to, 0o700); err != nil {
		return "", err
	}
	for _, name := range []string{"toryo", guest.LinuxProgram} {
		data, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(to, name), data, 0o755); err != nil { //nolint:gosec // a program that other users run too: those of sandboxes
			return "", err
		}
	}
	return filepath.Join(to, "toryo"), nil
}

func megabytes(kilobytes int) string { return fmt.Sprintf("%.1f MB", float64(kilobytes)*1024/1e6) }
