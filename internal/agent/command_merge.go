package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/toryo-dev/toryo/internal/messages"
	"github.com/toryo-dev/toryo/internal/notice"
	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

// movedError says that others have pushed to the branch, and that nothing was published.
type movedError struct{}

func (*movedError) Error() string { return "others have pushed to the branch" }

// unmergedError says why work cannot be published together with that of others.
type unmergedError struct {
	reason task.Reason
	files  []string // with conflicts, or what is lost
}

func (e *unmergedError) Error() string { return messages.Reason(task.English, e.reason) }

// comment is what people are told.
func (e *unmergedError) comment(in task.Language, run Run) string {
	said := notice.Notice{Reason: e.reason}
	detail := quoted(ending(textfmt.Plain(strings.Join(e.files, "\n"))))
	if e.reason == task.ReasonBranchMoved {
		detail = messages.Text(in, "run.branch_moved", run.Work.Branch)
	}
	return said.Failed(in) + "\n\n" + detail + "\n\n" + said.Next(in)
}

// mergeFirst merges the base if that is what the task is about, and tells the command where
// there are conflicts. It reports whether there are none: then there is nothing to do. A run
// that goes on has merged it before.
func (c Command) mergeFirst(ctx context.Context, run *Run) (merges bool, err error) {
	if run.Work.Cause != task.ReasonBaseConflict {
		return false, nil
	}
	conflicts, err := run.Repository.Merge(ctx)
	if err != nil {
		return false, fmt.Errorf("merge the base: %w", err)
	}
	if err := run.found(conflicts); err != nil {
		return false, err
	}
	if len(conflicts) > 0 {
		run.Assignment.Prompt += "\n\n" + phase.ConflictsText(conflicts)
	}
	merges = len(conflicts) == 0 && run.Assignment.Resume == nil
	if merges && run.Work.Names(run.Repository.Tips()) {
		return false, &unmergedError{reason: task.ReasonMergeConflict}
	}
	return merges, nil
}

// takeBranch puts the work on top of what others have pushed, and tells the command.
func (c Command) takeBranch(ctx context.Context, run *Run, times int) error {
	conflicts, err := run.Repository.TakeBranch(ctx)
	if err != nil {
		return fmt.Errorf("put the work on top of what others have pushed: %w", err)
	}
	if err := run.found(conflicts); err != nil {
		return err
	}
	run.Assignment.Prompt += "\n\n" + phase.MovedText(times, conflicts)
	return nil
}

// found notes conflicts that a merge has found. It fails if there are too many.
func (r *Run) found(conflicts []string) error {
	r.conflicts = append(r.conflicts, conflicts...)
	if len(conflicts) > phase.MostConflicts {
		return &unmergedError{task.ReasonMergeConflict, conflicts}
	}
	return nil
}

// checkMarks refuses work that still has marks of conflicts in it. Without a merge that has
// found some, such lines are part of the work. What an earlier run has merged is not known.
func checkMarks(ctx context.Context, run Run) error {
	if len(run.conflicts) == 0 && run.Assignment.Resume == nil {
		return nil
	}
	diff, err := run.Repository.Diff(ctx, "")
	if err != nil {
		return fmt.Errorf("look for marks of conflicts: %w", err)
	}
	if files := phase.Unresolved(diff, run.conflicts); len(files) > 0 {
		return &unmergedError{task.ReasonMergeConflict, files}
	}
	return nil
}

// checkLost refuses work in which that of others is lost, and more changes than a merge needs:
// there is nobody who could say why they are there.
func checkLost(ctx context.Context, run Run) error {
	lost, err := run.Repository.Lost(ctx, "")
	if err != nil {
		return fmt.Errorf("compare with the work of others: %w", err)
	}
	lost = lost.Of(run.Work)
	if names := slices.Concat(lost.Merge, lost.Refused()); len(names) > 0 {
		return &unmergedError{task.ReasonWorkLost, names}
	}
	return nil
}
