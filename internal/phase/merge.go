package phase

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/phase/tool"
	"github.com/toryo-dev/toryo/internal/task"
)

// merge brings what others have done into the work, and saves both. Conflicts are in the
// journal before that: a run that goes on finds the merge done, and could not find them again.
func (r *run) merge(ctx context.Context, do func(context.Context) ([]string, error)) error {
	conflicts, err := do(ctx)
	if err != nil {
		return fmt.Errorf("merge what others have done: %w", err)
	}
	if err := r.giveToSandbox(r.Repository.Workspace()); err != nil {
		return fmt.Errorf("give the merged files to the sandbox: %w", err)
	}
	if err := r.noteConflicts(ctx, conflicts); err != nil {
		return err
	}
	return r.save(ctx)
}

// MostConflicts is in how many files there may be conflicts. With more the run fails: the
// journal does not name them all, so nobody would see whether each was resolved.
const MostConflicts = mostNamed

// noteConflicts writes down the files in which there are conflicts.
func (r *run) noteConflicts(ctx context.Context, names []string) error {
	if len(names) == 0 {
		return nil
	}
	if len(names) > MostConflicts {
		return &overError{reason: task.ReasonMergeConflict, text: r.fileNames(names)}
	}
	return r.append(ctx, task.NoteTaken, Entry{Text: "Conflicts: " + r.fileNames(names), Conflicts: names})
}

// mergesAgain reports whether a run that is to resolve conflicts with the base finds none. The
// conflicts that it does find are noted: they are what the run is about.
func (r *run) mergesAgain(ctx context.Context) (bool, error) {
	if r.Work.Cause != task.ReasonBaseConflict || r.state.conflicts != nil {
		return false, nil
	}
	conflicts, err := r.Repository.Conflicts(ctx)
	if err != nil {
		return false, fmt.Errorf("look for conflicts with the base: %w", err)
	}
	if len(conflicts) == 0 && r.Work.Names(r.Repository.Tips()) {
		return false, &overError{reason: task.ReasonMergeConflict, text: r.text("run.merges_here", r.Work.Base)}
	}
	return len(conflicts) == 0, r.noteConflicts(ctx, conflicts)
}

// Names reports whether a task to merge the base is for just these commits. If a run finds no
// conflict in them, the forge does nevertheless: by the history, which a run does not have.
func (w Work) Names(base, branch string) bool {
	return w.Cause == task.ReasonBaseConflict && strings.Contains(w.Occasion+" ", " base "+base+" head "+branch+" ")
}

// mergeFirst merges the base before the model begins, if that is what the run is about. It
// comes after set-up, which files with marks in them would make fail.
func (r *run) mergeFirst(ctx context.Context) error {
	if r.Work.Cause != task.ReasonBaseConflict || r.state.timesEnded(task.Execution) > 0 || r.state.turns(string(task.Execution)) > 0 {
		return nil
	}
	if err := r.begin(ctx, task.Execution); err != nil { // before that nothing is saved
		return err
	}
	return r.merge(ctx, r.Repository.Merge)
}

// Of is the part of it that counts for a task: one that is to merge the base changes nothing
// else, and others change what they are asked to.
func (l Lost) Of(work Work) Lost {
	if work.Cause != task.ReasonBaseConflict {
		l.Merge, l.Dropped = nil, nil
	}
	return l
}

// Refused names what is not published as it is. A file that was changed besides a merge is: it
// may have to be, for both sides to work. That a request asks to remove tests is for the one to
// say who compares the work with it.
func (l Lost) Refused() []string { return slices.Concat(l.Dropped, l.Pushed, l.Tests) }

// lookForLosses finds what others have done and the work has not: nothing of theirs must be lost
// without a word.
func (r *run) lookForLosses(ctx context.Context, verdict *Verdict) error {
	lost, err := r.Repository.Lost(ctx, verdict.Commit)
	if err != nil {
		return fmt.Errorf("compare with the work of others: %w", err)
	}
	lost = lost.Of(r.Work)
	for _, one := range []struct {
		kind  string
		names []string
	}{{beyondMerge, lost.Merge}, {branchLost, lost.Dropped}, {pushLost, lost.Pushed}, {testsLost, lost.Tests}} {
		if len(one.names) > 0 {
			verdict.finding(one.kind, "", "", one.names)
		}
	}
	return nil
}

// loses names what of the work of others is not in the work, and nothing explains.
func (v *Verdict) loses() (names []string) {
	for _, finding := range v.Findings {
		if finding.Because == "" && (finding.Kind == branchLost || finding.Kind == pushLost || finding.Kind == testsLost) {
			names = append(names, finding.Names...)
		}
	}
	return names
}

// MostMoved is how often the work is put on top of what others have pushed.
const MostMoved = 3

// branchMoved ends the last phase because others have pushed to the branch. Execution continues
// on top of that, unless it happens too often.
func (r *run) branchMoved(ctx context.Context, text pullRequestText) (Outcome, error) {
	if r.state.moved >= MostMoved {
		return r.fail(ctx, givenUp{Reason: task.ReasonBranchMoved, Detail: r.text("run.branch_moved", r.Work.Branch)})
	}
	return Outcome{}, r.end(ctx, task.Complete, PhaseFailed, completion{Text: text, Moved: true})
}

// takeBranch puts the work on top of what others have pushed to the branch, and tells the
// model.
func (r *run) takeBranch(ctx context.Context, t *chat) error {
	if !r.state.onTop {
		return nil
	}
	if err := r.merge(ctx, r.Repository.TakeBranch); err != nil {
		return err
	}
	return t.send(ctx, MovedText(r.state.moved, r.state.untold))
}

// MovedText is what a model is told when others have pushed to the branch, for the time with
// the number. Conflicts are files.
func MovedText(time int, conflicts []string) string {
	text := fmt.Sprintf("Push %d of others to the branch: somebody has pushed to it while you worked. Their commits are kept, and your work was put on top of them; in a shell, HEAD is what they pushed. Look at what they did, keep their lines, and see to it that your work still fits.", time)
	if len(conflicts) > 0 {
		text += "\n\n" + ConflictsText(conflicts)
	}
	return text + "\n\nThen call finish again."
}

// Unresolved names the files that have marks of a conflict in the added lines of a diff. Of one
// that is cut nothing is known: then it names those in which there were conflicts.
func Unresolved(diff Diff, conflicts []string) []string {
	marked, _ := inspect(diff.Text)
	if diff.Cut {
		marked = append(marked, conflicts...)
		slices.Sort(marked)
	}
	return slices.Compact(marked)
}

// unresolved names the files that have marks of a conflict. In those that a diff does not show
// whole, and in which there were conflicts, it looks for them.
func (r *run) unresolved(ctx context.Context, commit string, diff Diff, marked []string) ([]string, error) {
	if !diff.Cut {
		return marked, nil
	}
	for _, name := range r.state.conflicts {
		data, err := r.Repository.File(ctx, commit, name)
		switch code := task.CodeOf(err); {
		case err == nil && !hasMarks(string(data)), code == task.NotFound, slices.Contains(marked, name):
		case err != nil && code != task.TooLarge:
			return nil, fmt.Errorf("look for marks of conflicts: %w", err)
		default:
			marked = append(marked, name)
		}
	}
	return marked, nil
}

// hasMarks reports whether a line is the mark of a conflict.
func hasMarks(text string) bool {
	for line := range strings.SplitSeq(text, "\n") {
		if isMark(line) {
			return true
		}
	}
	return false
}

// baseConflictText is what a model is to do about a pull request that no longer merges.
func baseConflictText(base string, conflicts []string) string {
	text := fmt.Sprintf("It no longer merges into %s, which has changed since. That is what you are to resolve, and nothing else: "+
		"what the pull request does and what the base has got since both have to work. The base is merged into your files before you begin to change them; "+
		"in a shell, origin/%[1]s is the base and HEAD the branch without it. Do not run git merge or git rebase.", plainName(base))
	if len(conflicts) > 0 {
		text += "\n" + ConflictsText(conflicts)
	}
	return text
}

// ConflictsText names files with conflicts, for a model. The names are those of others.
func ConflictsText(names []string) string {
	var lines []string
	for _, name := range names[:min(len(names), shownConflicts)] {
		lines = append(lines, "- "+tool.Shorten(plainName(name), 300))
	}
	if more := len(names) - shownConflicts; more > 0 {
		lines = append(lines, fmt.Sprintf("and at least %d more; search for <<<<<<< at the beginning of lines", more))
	}
	return "There are conflicts in these files:\n" + llm.Quote(llm.Origin{Source: "names of files with conflicts"}, strings.Join(lines, "\n")) +
		"\nWhere both sides changed the same lines, the lines have marks: bring both sides together and remove the marks. " +
		"A file without marks is binary, a submodule, or was removed or renamed by one side: it is there as one side has it, and you decide how it has to be."
}

// shownConflicts is how many files with conflicts a model is told by name.
const shownConflicts = 100

// unmarkedText tells a model of a conflict that is not marked in the file.
func unmarkedText(name string) string {
	return fmt.Sprintf("%s was changed on both sides in a way that cannot be marked in the file: it is binary, a submodule, or was removed or renamed by one side. It is there as one side has it. Decide how it has to be.",
		llm.QuoteLine(tool.Shorten(plainName(name), 300)))
}

// fileNames are the first names of files, for people.
func (r *run) fileNames(names []string) string {
	shown := slices.Clone(names[:min(len(names), 20)])
	for i, name := range shown {
		shown[i] = tool.Shorten(plainName(name), 200)
	}
	if more := len(names) - len(shown); more > 0 {
		shown = append(shown, fmt.Sprintf("… (+%d)", more))
	}
	return strings.Join(shown, ", ")
}
