package mirror

import (
	"context"
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
}

// Changes is what a task has changed, against what it began with.
type Changes struct {
	Base, Head string // commits
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
// request with what the pull request had. It fails with NotFound if the task has pushed nothing.
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
	kinds, cut, err := m.compare(ctx, at, found, "--name-status")
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
	parent, err := m.git.run(ctx, command{dir: at.dir, args: []string{"rev-parse", "--verify", "--end-of-options", head + "^1"}})
	return strings.TrimSpace(parent), head, internal(err, "cannot read what the task began with")
}

// newestWork is the newest commit that a task has pushed, in progress or as a branch.
func (m *Mirrors) newestWork(ctx context.Context, at place) (string, error) {
	none := task.Errorf(task.NotFound, "task %s has pushed nothing", at.id)
	base, err := m.base(ctx, at)
	if err != nil {
		return "", none // there is no namespace
	}
	output, err := m.git.run(ctx, command{dir: at.dir, args: []string{
		"for-each-ref", "--sort=-committerdate", "--format=%(objectname) %(refname)", at.space() + "refs/heads/", at.space() + task.WIPRef,
	}})
	if err != nil {
		return "", internal(err, "cannot read the mirror")
	}
	for line := range strings.Lines(output) {
		if hash, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " "); name != at.space()+"refs/heads/"+base {
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

// readKinds reads what happened to each file: a letter, and one name or two.
func readKinds(fields []string) (files []ChangedFile) {
	for i := 0; i+1 < len(fields); i += 2 {
		file := ChangedFile{Path: fields[i+1], Kind: "changed"}
		switch kind := fields[i]; {
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

// FileDiff is what a task has changed in a file so far, as git writes it, so many bytes at most.
func (m *Mirrors) FileDiff(ctx context.Context, item task.Key, id task.ID, file ChangedFile, most int) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, longestChanges)
	defer cancel()
	release := m.use(item.Repo())
	defer release()
	at, err := m.placeOf(ctx, item.Repo(), id)
	if err != nil {
		return "", err
	}
	base, head, err := m.compared(ctx, at, item.Kind)
	if err != nil {
		return "", err
	}
	names := slices.DeleteFunc([]string{file.Path, file.Before}, func(name string) bool { return name == "" })
	said := &beginning{room: most}
	_, err = m.git.Run(ctx, program.Command{Dir: at.dir, Output: said, Args: append([]string{
		"diff-tree", "-r", "-p", "--find-renames", "--no-ext-diff", "--no-textconv", "--no-color", "--src-prefix=a/", "--dst-prefix=b/", base, head, "--",
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
