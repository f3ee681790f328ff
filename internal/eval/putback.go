package eval

import (
	"context"
	"path"
	"slices"
	"strings"

	"github.com/toryo-dev/toryo/internal/environment"
	"github.com/toryo-dev/toryo/internal/eval/source"
	"github.com/toryo-dev/toryo/internal/eval/taskset"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testfiles"
)

// judge puts tests, and what says how they are run, back to what they are in the base, as the
// program does for its own verdict. Hidden tests must not run over an assertion library, a
// configuration or a hook that the work has made, and tests that the work adds must not keep
// the hidden ones from being compiled.
type judge struct {
	from  *source.Repository
	kinds testfiles.Set
	// allowed are files and folders that the change of people needs too, so that they stay as
	// the work has them.
	allowed []string
}

// newJudge makes a judge for a task, whose environment was set up as the receipt says.
func newJudge(ctx context.Context, from *source.Repository, t taskset.Task, receipt environment.Receipt, allowed []string) (judge, error) {
	files, err := from.Files(ctx, from.Base)
	if err != nil {
		return judge{}, err
	}
	var projects []testfiles.Project
	if t.TestCommand != "" {
		projects = append(projects, testfiles.Project{Folder: ".", Command: t.TestCommand})
	}
	for _, project := range receipt.Projects {
		projects = append(projects, testfiles.Project{Folder: project.Directory, Command: project.TestCommand})
	}
	kinds := testfiles.New(projects, files, func(name string) []byte {
		data, _ := from.File(ctx, from.Base, name) // one that is too long names no files
		return data
	})
	return judge{from: from, kinds: kinds, allowed: allowed}, nil
}

// judged is work without what it does to tests.
type judged struct {
	commit string
	back   []string // files that are as in the base, in whole or in part
	flags  []string
	tests  []string // those of back that are tests by themselves, which the work adjusts
}

// judge makes a commit of the work that hidden tests may be put over.
func (j judge) judge(ctx context.Context, work string) (judged, error) {
	changes, err := j.from.Changes(ctx, j.from.Base, work)
	if err != nil {
		return judged{}, err
	}
	names := make([]string, len(changes))
	for i, change := range changes {
		names[i] = change.Name
	}
	var made judged
	var kept []source.Change
	for _, change := range changes {
		found, err := j.look(ctx, work, change, names)
		if err != nil {
			return judged{}, err
		}
		made.flag(found.flag)
		if !found.back || j.isAllowed(change.Name) {
			kept = append(kept, change)
			continue
		}
		made.back = append(made.back, change.Name)
		if is, err := j.declares(ctx, work, change); err != nil {
			return judged{}, err
		} else if is && found.flag == FlagTests {
			made.tests = append(made.tests, change.Name)
		}
		if found.spliced != nil {
			if change.Hash, err = j.from.Blob(ctx, found.spliced); err != nil {
				return judged{}, err
			}
			kept = append(kept, change)
		}
	}
	kept = made.withoutOverlap(kept)
	made.commit, err = j.from.Put(ctx, j.from.Base, kept)
	return made, err
}

// withoutOverlap leaves out what cannot be there besides what is put back: a link in place of a
// folder with tests or libraries, or a folder in place of such a file.
func (j *judged) withoutOverlap(kept []source.Change) []source.Change {
	back := slices.Clone(j.back)
	return slices.DeleteFunc(kept, func(change source.Change) bool {
		overlaps := change.Added && slices.ContainsFunc(back, func(name string) bool {
			return strings.HasPrefix(name, change.Name+"/") || strings.HasPrefix(change.Name, name+"/")
		})
		if overlaps {
			j.back = append(j.back, change.Name)
			j.flag(FlagRunner)
		}
		return overlaps
	})
}

func (j *judged) flag(flag string) {
	if flag != "" && !slices.Contains(j.flags, flag) {
		j.flags = append(j.flags, flag)
	}
}

// seen is what a changed file is to the tests.
type seen struct {
	back    bool
	spliced []byte // what the file is then, if only parts of it are put back
	flag    string
}

// look looks at one changed file.
func (j judge) look(ctx context.Context, work string, change source.Change, names []string) (seen, error) {
	switch j.kinds.Kind(change.Name) {
	case testfiles.Test:
		switch {
		case !change.Added:
			return seen{back: true, flag: FlagTests}, nil
		case j.kinds.Certain(change.Name):
			return seen{back: true}, nil // who writes tests of their own does nothing wrong
		}
		return seen{}, nil // perhaps a part of the program
	case testfiles.Configuration:
		return seen{back: true, flag: FlagRunner}, nil
	case testfiles.Library:
		if j.kinds.Stays(change.Name, names) { // new packages stay, and their list goes with them
			return seen{}, nil
		}
		return seen{back: true, flag: FlagRunner}, nil
	case testfiles.Shared, testfiles.Program:
	}
	if j.kinds.Kind(change.Name) == testfiles.Program && !testfiles.IsBuildFile(change.Name) {
		return seen{}, nil
	}
	found, err := j.inside(ctx, work, change)
	if task.CodeOf(err) == task.TooLarge { // what it says about tests cannot be compared
		return seen{back: true, flag: FlagRunner}, nil
	}
	return found, err
}

// inside looks at a file of several purposes.
func (j judge) inside(ctx context.Context, work string, change source.Change) (seen, error) {
	if !change.IsRegular() && !change.IsGone() { // a link: what it says is in another file
		return seen{back: true, flag: FlagRunner}, nil
	}
	was, err := j.file(ctx, j.from.Base, change.Name)
	if err != nil {
		return seen{}, err
	}
	if change.Added && strings.HasPrefix(path.Ext(change.Name), ".json") {
		was = []byte("{}") // which says nothing about tests
	}
	is, err := j.file(ctx, work, change.Name)
	if err != nil {
		return seen{}, err
	}
	return lookInside(j.kinds.Kind(change.Name), change, was, is), nil
}

// lookInside looks at what a file of several purposes says about tests.
func lookInside(kind testfiles.Kind, change source.Change, was, is []byte) seen {
	if testfiles.IsBuildFile(change.Name) && len(testfiles.ChangedBuildLines(change.Name, was, is)) > 0 {
		return seen{back: true, flag: FlagRunner}
	}
	if kind == testfiles.Shared && (is == nil || testfiles.Differs(change.Name, was, is)) {
		found := seen{back: true, flag: FlagRunner}
		if content, ok := testfiles.Spliced(change.Name, was, is); ok && is != nil {
			found.spliced = content
		}
		return found
	}
	return seen{}
}

// file is a file of a commit, or nil if there is none.
func (j judge) file(ctx context.Context, commit, name string) ([]byte, error) {
	data, err := j.from.File(ctx, commit, name)
	if task.CodeOf(err) == task.NotFound {
		return nil, nil
	}
	if data == nil {
		data = []byte{}
	}
	return data, err
}
