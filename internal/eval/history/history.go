// Package history makes tasks of the pull requests that a team has merged: the commit before
// the merge, what was asked for, and the tests of the pull request as the hidden ones.
package history

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/toryo-dev/toryo/internal/eval"
	"github.com/toryo-dev/toryo/internal/eval/source"
	"github.com/toryo-dev/toryo/internal/eval/taskset"
	"github.com/toryo-dev/toryo/internal/lazyregexp"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testfiles"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

// Options say which pull requests are taken.
type Options struct {
	Repository string // a clone on this machine
	Most       int    // how many tasks
	Dir        string // for folders that go again
	// Text is what was asked for by a pull request, from the forge. Nil means that the messages
	// of the commits are all there is.
	Text func(ctx context.Context, number int64) (Asked, error)
	// Skipped is told of pull requests that make no task; may be nil.
	Skipped func(what, why string)
}

// Asked is what was asked for.
type Asked struct {
	Text string
	// AfterWork says that it is the text of the pull request and not that of an issue: who
	// wrote it knew the change.
	AfterWork bool
}

// looked is how many commits are looked at for each task that is wanted.
const looked = 50

// Tasks reads the last merged pull requests of the branch that is checked out.
func Tasks(ctx context.Context, o Options) (taskset.Set, error) {
	head, dir, err := source.Head(ctx, o.Repository)
	if err != nil {
		return taskset.Set{}, err
	}
	from, err := source.Strip(ctx, dir, head, filepath.Join(o.Dir, "history.git"))
	if err != nil {
		return taskset.Set{}, err
	}
	commits, err := from.Merged(ctx, o.Most*looked)
	if err != nil {
		return taskset.Set{}, err
	}
	name := nameOf(dir)
	set := taskset.Set{Name: "history of " + name}
	for _, commit := range commits {
		if len(set.Tasks) >= o.Most {
			break
		}
		number, merged := pullOf(commit)
		if !merged {
			continue
		}
		one, why, err := o.task(ctx, from, commit, number)
		if err != nil {
			return taskset.Set{}, err
		}
		if why != "" {
			o.skip(commit, why)
			continue
		}
		one.Repo, one.Repository = name, dir
		one.ID = idOf(name, commit, number)
		set.Tasks = append(set.Tasks, one)
	}
	if len(set.Tasks) == 0 {
		return taskset.Set{}, task.Errorf(task.NotFound, "none of the last %d commits merges a pull request with tests and something else", len(commits))
	}
	return set, set.Check()
}

// Save writes the tasks to a file. The history and the texts of a forge change, so that an
// evaluation that goes on needs them as they were.
func Save(file string, set taskset.Set) error {
	var rows bytes.Buffer
	encoder := json.NewEncoder(&rows)
	encoder.SetEscapeHTML(false)
	for _, one := range set.Tasks {
		if err := encoder.Encode(one); err != nil {
			return task.Wrap(task.Internal, err, "the tasks cannot be written")
		}
	}
	return eval.WriteFile(file, rows.Bytes())
}

// Load reads tasks that were saved. Their repository is the one that is named now.
func Load(ctx context.Context, file, repository string) (taskset.Set, error) {
	_, dir, err := source.Head(ctx, repository)
	if err != nil {
		return taskset.Set{}, err
	}
	set, err := taskset.Load(file, taskset.Options{})
	if err != nil {
		return taskset.Set{}, err
	}
	set.Name = "history of " + nameOf(dir)
	for i := range set.Tasks {
		set.Tasks[i].Repository, set.Tasks[i].Missing = dir, ""
	}
	return set, nil
}

// nameOf is the name of a repository, by git's directory.
func nameOf(dir string) string {
	return filepath.Base(strings.TrimSuffix(strings.TrimSuffix(dir, string(filepath.Separator)+".git"), ".git"))
}

func (o Options) skip(commit source.Commit, why string) {
	if o.Skipped != nil {
		o.Skipped(textfmt.ShortCommit(commit.Hash)+" "+textfmt.Shorten(textfmt.FirstLine(commit.Message), 80), why)
	}
}

var notName = lazyregexp.New(`[^A-Za-z0-9_-]+`)

// idOf names a task by its pull request, or by its commit where there is no number.
func idOf(name string, commit source.Commit, number int64) string {
	id := strings.Trim(notName.ReplaceAllString(textfmt.Clip(name, 60), "-"), "-_")
	if number > 0 {
		return id + "-" + strconv.FormatInt(number, 10) + "-" + commit.Hash[:7]
	}
	return id + "-" + commit.Hash[:12]
}

// How forges write the number of a pull request into the commit that merges it.
var (
	mergeLine  = lazyregexp.New(`(?m)^Merge pull request (?:'.*' \()?#(\d+)|^See merge request \S*!(\d+)$`)
	squashLine = lazyregexp.New(`\((?:#|!)(\d+)\)\s*$`)
)

// pullOf is the number of the pull request that a commit has merged; 0 if that is not known.
func pullOf(commit source.Commit) (number int64, merged bool) {
	found := mergeLine.FindStringSubmatch(commit.Message)
	if found == nil {
		found = squashLine.FindStringSubmatch(textfmt.FirstLine(commit.Message))
	}
	for _, group := range slices.Backward(found) {
		if number, err := strconv.ParseInt(group, 10, 64); err == nil {
			return number, len(commit.Parents) > 0
		}
	}
	return 0, len(commit.Parents) > 1
}

// task makes a task of a merged pull request, or says why it makes none.
func (o Options) task(ctx context.Context, from *source.Repository, commit source.Commit, number int64) (made taskset.Task, why string, err error) {
	base := commit.Parents[0]
	files, err := from.Files(ctx, base)
	if err != nil {
		return made, "", err
	}
	kinds := testfiles.New(nil, files, func(string) []byte { return nil })
	patch, tests, err := from.Split(ctx, base, commit.Hash, func(name string) bool { return kinds.Kind(name) == testfiles.Test })
	switch {
	case task.CodeOf(err) == task.TooLarge:
		return made, "its patch is too large", nil
	case err != nil:
		return made, "", err
	case tests == "":
		return made, "it changes no tests", nil
	case patch == "":
		return made, "it changes nothing but tests", nil
	}
	statement := Asked{statementOf(commit.Message), true}
	if o.Text != nil && number > 0 {
		asked, err := o.Text(ctx, number)
		if err != nil && task.CodeOf(err) != task.NotFound {
			return made, "", fmt.Errorf("read what pull request %d was for: %w", number, err)
		}
		if strings.TrimSpace(asked.Text) != "" {
			statement = asked
		}
	}
	if strings.TrimSpace(statement.Text) == "" {
		return made, "nothing says what it was for", nil
	}
	return taskset.Task{Base: base, Patch: patch, TestPatch: tests, Statement: statement.Text, AfterWork: statement.AfterWork}, "", nil
}

// statementOf is the message of a commit without the line that a forge writes about the merge.
func statementOf(message string) string {
	first, rest, _ := strings.Cut(message, "\n")
	if strings.HasPrefix(first, "Merge ") {
		first, rest, _ = strings.Cut(strings.TrimSpace(rest), "\n")
	}
	return strings.TrimSpace(strings.TrimSpace(squashLine.ReplaceAllString(strings.TrimSpace(first), "")) + "\n" + rest)
}
