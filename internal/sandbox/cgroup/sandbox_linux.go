package cgroup

import (
	"errors"

	"github.com/toryo-dev/toryo/internal/sandbox"
)

const (
	// spareThreads lets that program see that the processes are too many before the
	// kernel makes every fork fail. The kernel counts threads.
	spareThreads = 256
)

// nameOf is the name of a sandbox's group, by which it is found again.
func nameOf(info sandbox.Info) string { return "toryo-" + info.ID }

// For makes the group of a sandbox; nil where there are none.
func (s *System) For(info sandbox.Info, limits sandbox.Limits) (*Group, error) {
	group, err := s.Make(nameOf(info), Limits{
		Memory: limits.Memory + sandbox.SpareMemory, Threads: int64(2*limits.Processes + spareThreads), CPUs: limits.CPUs,
	})
	if errors.Is(err, ErrNone) {
		return nil, nil
	}
	return group, err
}

// RemoveOf removes the group of a sandbox that another process has left.
func (s *System) RemoveOf(info sandbox.Info) error {
	group := s.Find(nameOf(info))
	if group == nil {
		return nil
	}
	return group.Remove()
}

// KillsOf is [Group.Kills], or nil for no group.
func KillsOf(group *Group) func() int {
	if group == nil {
		return nil
	}
	return group.Kills
}
