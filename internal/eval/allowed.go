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

// needed are files of the change that people made which would be put back in the work of
// others. They stay in both. So do folders, which end with a slash: a program that is about
// tests has its own files in folders that look like those of tests, and the same can be
// changed in another file of them.
func needed(ctx context.Context, from *source.Repository, t taskset.Task, receipt environment.Receipt, tests string) ([]string, error) {
	change, err := from.Apply(ctx, from.Base, t.Patch)
	if err != nil {
		return nil, err
	}
	judge, err := newJudge(ctx, from, t, receipt, nil)
	if err != nil {
		return nil, err
	}
	found, err := judge.judge(ctx, change)
	if err != nil {
		return nil, err
	}
	hidden, err := from.Changes(ctx, from.Base, tests)
	if err != nil {
		return nil, err
	}
	allowed := found.back
	for _, name := range found.back {
		folder := judge.folder(name)
		isOfTests := func(c source.Change) bool { return judge.isBeside(folder, c.Name) }
		if folder != "" && !slices.Contains(allowed, folder) && judge.isPlain(folder, name) && !slices.ContainsFunc(hidden, isOfTests) {
			allowed = append(allowed, folder)
		}
	}
	return allowed, nil
}

// somewhere is a folder of a program whose name says nothing.
const somewhere = "program/"

// folder is the first folder on the way to a file whose name makes it one of tests, or of a
// test runner, with a slash at its end. It is empty if there is none.
func (j judge) folder(name string) string {
	for at, c := range name {
		if c != '/' {
			continue
		}
		switch kind := j.kinds.Kind(name[:at+1] + "file" + path.Ext(name)); {
		case kind == testfiles.Test, kind == testfiles.Configuration && path.Ext(name) == ".py":
			return name[:at+1]
		}
	}
	return ""
}

// isPlain reports whether a file is one of tests by nothing but that it is in the folder.
func (j judge) isPlain(folder, name string) bool {
	inside, is := strings.CutPrefix(name, folder)
	return is && folder != "" && j.kinds.Kind(somewhere+inside) == testfiles.Program
}

// isBeside reports whether a hidden test is in a folder, and not in one of tests within it. Then
// the folder is one of tests itself.
func (j judge) isBeside(folder, test string) bool {
	inside, is := strings.CutPrefix(test, folder)
	return is && j.kinds.Kind(path.Join(somewhere, path.Dir(inside), "file.py")) == testfiles.Program
}

// isAllowed reports whether a file stays as the work has it, since the change of people needs
// it too, or needs others of its folder.
func (j judge) isAllowed(name string) bool {
	return slices.ContainsFunc(j.allowed, func(one string) bool {
		return one == name || strings.HasSuffix(one, "/") && j.isPlain(one, name)
	})
}

// declares reports whether a changed file is one of tests and nothing else: its own name says so,
// and it declares some, before the change and, if it is still there, after it. Helpers of tests,
// what they are compared with, and hooks are not.
func (j judge) declares(ctx context.Context, work string, change source.Change) (bool, error) {
	base := path.Base(change.Name)
	if j.kinds.Kind(somewhere+base) != testfiles.Test || strings.HasPrefix(base, "conftest.") {
		return false, nil
	}
	for _, commit := range []string{j.from.Base, work} {
		content, err := j.file(ctx, commit, change.Name)
		if task.CodeOf(err) == task.TooLarge {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if content != nil && len(testfiles.Declared(change.Name, content)) == 0 {
			return false, nil
		}
	}
	return change.IsRegular() || change.IsGone(), nil
}
