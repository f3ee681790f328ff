package mirror

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	program "github.com/toryo-dev/toryo/internal/git"
	"github.com/toryo-dev/toryo/internal/task"
)

// ChangedFile is a file that a task has changed.
type ChangedFile struct {
	Path    string
	Before  string // its name before, if that was another
	Kind    string // added, deleted, renamed, changed
	Added   int64
	Removed int64
	Binary  bool
	Version string // names what the file was and is; it changes with either
}

// Changes is what a task has changed, against what it began with.
type Changes struct {
	Base, Head string // a commit, or the files of a merge, and a commit
	Files      []ChangedFile
	More       bool // there are more files than are named
}

const (
	// longestChanges bounds how long a page waits for what a task has changed.
	longestChanges = 20 * time.Second
	// mostChanges is how many bytes git may write about the names of files.
	mostChanges = 4 << 20
)

// Changes tells what a task has pushed so far: its work in progress, or its branch if that is newer.
// For a task on an issue it is compared with where it left the base branch, and for one on a pull
// request with what the pull request had, and what was merged into it. What the task was given does
// not count. It fails with NotFound if the task has pushed nothing.
func (m *Mirrors) Changes(ctx context.Context, item task.Key, id task.ID) (Changes, error) {
	ctx, cancel := context.WithTimeout(ctx, longestChanges)
	defer cancel()
	release := m.use(item.Repo())
	defer release()
	at, err := m.placeOf(ctx, item.Repo(), id)
	if err != nil {
		return Changes{}, err
	}
	if err := m.bringIn(ctx, at); err != nil {
		return Changes{}, err
	}
	return m.changesAt(ctx, at, item.Kind)
}

func (m *Mirrors) changesAt(ctx context.Context, at place, kind task.ItemKind) (found Changes, err error) {
	if found.Base, found.Head, err = m.compared(ctx, at, kind); err != nil {
		return found, err
	}
	kinds, cut, err := m.compare(ctx, at, found, "--raw")
	if err != nil {
		return found, err
	}
	found.Files, found.More = readKinds(kinds), cut
	sums, cut, err := m.compare(ctx, at, found, "--numstat")
	found.More = found.More || cut
	readSums(found.Files, sums)
	return found, err
}

// compared are the commits between which the changes of a task are.
func (m *Mirrors) compared(ctx context.Context, at place, kind task.ItemKind) (base, head string, err error) {
	if head, err = m.newestWork(ctx, at); err != nil {
		return "", "", err
	}
	if kind == task.Issue {
		base, err = m.forkOf(ctx, at, head)
		return base, head, err
	}
	base, err = m.below(ctx, at, head)
	return base, head, err
}

// below is what work on a pull request is on top of: the commit that it had. Work that has merged
// something is on top of what git makes of the merge, so that only what was done besides counts.
func (m *Mirrors) below(ctx context.Context, at place, head string) (string, error) {
	output, err := m.git.run(ctx, command{dir: at.dir, args: []string{"rev-list", "--parents", "--max-count=1", "--end-of-options", head}})
	if err != nil {
		return "", internal(err, "cannot read what the task began with")
	}
	parents := strings.Fields(output)
	switch len(parents) {
	case 0, 1:
		return "", task.Errorf(task.NotFound, "the work of task %s is on top of nothing", at.id)
	case 3:
		if merged := m.merged(ctx, at, parents[1], parents[2]); merged != "" {
			return merged, nil
		}
		return parents[1], ctx.Err()
	default:
		return parents[1], nil
	}
}

// merged are the files that merging two commits comes to, with the conflicts in them; empty if they
// cannot be merged. Git writes them into the mirror, where nothing leads to them.
func (m *Mirrors) merged(ctx context.Context, at place, one, other string) string {
	said := &beginning{room: mostChanges}
	_, err := m.git.Run(ctx, program.Command{
		Dir: at.dir, Memory: mergeMemory, Output: said, Args: []string{"merge-tree", "--write-tree", "--no-messages", "--name-only", one, other},
	})
	exit, ended := errors.AsType[*exec.ExitError](err)
	if err != nil && !said.full && (!ended || exit.ExitCode() != 1) {
		return ""
	}
	tree, _, _ := strings.Cut(string(said.data), "\n")
	return strings.TrimSpace(tree)
}

// newestWork is the newest commit that a task has pushed, in progress or as a branch. A branch that
// it was given is not its work, however new the commit says that it is.
func (m *Mirrors) newestWork(ctx context.Context, at place) (string, error) {
	none := task.Errorf(task.NotFound, "task %s has pushed nothing", at.id)
	base, err := m.base(ctx, at)
	if err != nil {
		return "", none // there is no namespace
	}
	output, err := m.git.run(ctx, command{dir: at.dir, args: []string{
		"for-each-ref", "--sort=-committerdate", "--format=%(objectname) %(refname)", at.space() + "refs/heads/", at.space() + task.WIPRef, seededRef(at.id, ""),
	}})
	if err != nil {
		return "", internal(err, "cannot read the mirror")
	}
	given := map[string]bool{}
	var pushed []string
	for line := range strings.Lines(output) {
		switch hash, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " "); {
		case strings.HasPrefix(name, seededRef(at.id, "")):
			given[hash] = true
		case name != at.space()+"refs/heads/"+base:
			pushed = append(pushed, hash)
		}
	}
	for _, hash := range pushed {
		if !given[hash] {
			return hash, nil
		}
	}
	return "", none
}

// compare has git compare the commits, and returns what it says up to a bound.
func (m *Mirrors) compare(ctx context.Context, at place, between Changes, how string) (fields []string, cut bool, err error) {
	said := &beginning{room: mostChanges}
	_, err = m.git.Run(ctx, program.Command{Dir: at.dir, Output: said, Args: []string{
		"diff-tree", "-r", "-z", "--find-renames", "--no-ext-diff", "--no-textconv", how, between.Base, between.Head, "--",
	}})
	if err != nil && !said.full {
		return nil, false, internal(err, "cannot compare what the task has pushed")
	}
	fields = strings.Split(string(said.data), "\x00")
	return fields[:len(fields)-1], said.full, nil
}

// readKinds reads what happened to each file: modes, contents and a letter, and one name or two.
func readKinds(fields []string) (files []ChangedFile) {
	for i := 0; i+1 < len(fields); i += 2 {
		facts := strings.Fields(fields[i])
		if len(facts) != 5 {
			return files
		}
		file := ChangedFile{Path: fields[i+1], Kind: "changed", Version: fmt.Sprintf("%.12s-%.12s", facts[2], facts[3])}
		switch kind := facts[4]; {
		case kind == "A":
			file.Kind = "added"
		case kind == "D":
			file.Kind = "deleted"
		case strings.HasPrefix(kind, "R") || strings.HasPrefix(kind, "C"):
			if i+2 >= len(fields) {
				return files
			}
			file.Kind, file.Before, file.Path = "renamed", fields[i+1], fields[i+2]
			i++
		}
		files = append(files, file)
	}
	return files
}

// readSums adds how many lines each file has more and less. A file that was renamed has its names in
// fields of their own.
func readSums(files []ChangedFile, fields []string) {
	places := make(map[string]int, len(files))
	for i, file := range files {
		places[file.Path] = i
	}
	for i := 0; i < len(fields); i++ {
		added, rest, _ := strings.Cut(fields[i], "\t")
		removed, name, _ := strings.Cut(rest, "\t")
		if name == "" && i+2 < len(fields) {
			name = fields[i+2]
			i += 2
		}
		at, known := places[name]
		if !known {
			continue
		}
		files[at].Binary = added == "-"
		files[at].Added, _ = strconv.ParseInt(added, 10, 64)
		files[at].Removed, _ = strconv.ParseInt(removed, 10, 64)
	}
}

// FileDiff is what is different in a file of changes that [Mirrors.Changes] told of, as git writes it,
// so many bytes at most.
func (m *Mirrors) FileDiff(ctx context.Context, r task.Repository, between Changes, file ChangedFile, most int) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, longestChanges)
	defer cancel()
	release := m.use(r)
	defer release()
	dir, err := m.ensure(ctx, r)
	if err != nil {
		return "", err
	}
	names := slices.DeleteFunc([]string{file.Path, file.Before}, func(name string) bool { return name == "" })
	said := &beginning{room: most}
	_, err = m.git.Run(ctx, program.Command{Dir: dir, Output: said, Args: append([]string{
		"diff-tree", "-r", "-p", "--find-renames", "--no-ext-diff", "--no-textconv", "--no-color", "--src-prefix=a/", "--dst-prefix=b/", between.Base, between.Head, "--",
	}, names...)})
	if err != nil && !said.full {
		return "", internal(err, "cannot compare what the task has pushed")
	}
	return string(said.data), nil
}

// beginning keeps the beginning of what is written to it, and ends the program that writes more.
type beginning struct {
	data []byte
	room int
	full bool
}

func (b *beginning) Write(more []byte) (int, error) {
	if len(b.data)+len(more) > b.room {
		b.data = append(b.data, more[:b.room-len(b.data)]...)
		b.full = true
		return 0, task.Errorf(task.TooLarge, "there is no more room")
	}
	b.data = append(b.data, more...)
	return len(more), nil
}
