package workspace

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"time"

	"github.com/toryo-dev/toryo/internal/phase/ignore"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/workdir"
)

const (
	// ignoreFile has the patterns of what is ignored in a folder and below.
	ignoreFile = ".gitignore"
	// longestPatterns is how long one such file may be, and mostPatterns all.
	longestPatterns = 1 << 20
	mostPatterns    = 8 << 20
	// mostRules is how many patterns there may be in all of them.
	mostRules = 200_000
	// listTime is how long the workspace may take to list.
	listTime = 2 * time.Minute
	// mostListed is how many bytes the names may have.
	mostListed = 16 << 20
)

// others lists what is not ignored and was not checked out, as git does. A repository in the
// workspace is taken for the folder that it is, without its .git; what is above it ignores
// nothing in it. It is not git that lists: starting it would take longer than all else of a
// step.
func (w *Workspace) others(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	l := &lister{of: w}
	err := l.list(ctx, w.root, ".", nil)
	if errors.Is(err, context.DeadlineExceeded) {
		err = task.Wrap(task.TooLarge, err, "the files of the workspace cannot be listed in time").WithHint("name what is no part of the work in .gitignore")
	}
	return l.names, err
}

// lister lists the workspace. What it holds is bounded, whatever code in the sandbox makes.
type lister struct {
	of       *Workspace
	patterns int // bytes of all files with patterns
	rules    int // in them
	names    []string
	length   int             // of the names
	folders  map[string]bool // with files that were checked out; nil until it is asked
}

// patterns are the rules of a folder, and those of the folders above, over which they go.
type patterns struct {
	rules ignore.Rules
	above *patterns
}

func (p *patterns) ignored(name string, isDir bool) bool {
	for ; p != nil; p = p.above {
		if ignored, said := p.rules.Say(name, isDir); said {
			return ignored
		}
	}
	return false
}

// list lists a folder, whose name is at. What cannot be read is passed over, for it may have
// gone in the meantime.
func (l *lister) list(ctx context.Context, in *workdir.Dir, at string, above *patterns) error {
	inner, err := l.isRepository(in, at)
	if err != nil {
		return err
	}
	if inner {
		l.of.remark("workspace.inner_repository", quote(at))
		above = nil
	}
	known, err := l.read(in, at, above)
	if err != nil {
		return err
	}
	var stop error
	err = in.Each(func(entry fs.DirEntry) error {
		name := path.Join(at, entry.Name())
		switch {
		case ctx.Err() != nil:
			stop = ctx.Err()
		case entry.Name() == ".git" || len(name) > workdir.Deepest:
		case entry.IsDir():
			stop = l.below(ctx, in, name, known)
		case entry.Type() == 0 || entry.Type() == fs.ModeSymlink:
			stop = l.add(name, known)
		}
		return stop
	})
	if stop == nil {
		stop = ofSystem(err)
	}
	return stop
}

// below lists a folder in the folder that is listed.
func (l *lister) below(ctx context.Context, in *workdir.Dir, name string, known *patterns) error {
	if l.of.tracked[name].mode == submodule || known.ignored(name, true) {
		return nil
	}
	below, err := in.Sub(path.Base(name))
	if err != nil {
		return ofSystem(err) // else it went, or may not be entered
	}
	defer func() { _ = below.Close() }() // it was only read
	return l.list(ctx, below, name, known)
}

// add adds a file, unless it is ignored or was checked out.
func (l *lister) add(name string, known *patterns) error {
	if _, tracked := l.of.tracked[name]; tracked || known.ignored(name, false) {
		return nil
	}
	if reserved(name) {
		l.of.remark("workspace.reserved_name", quote(name))
		return nil
	}
	if l.length += len(name); l.length > mostListed {
		return task.Errorf(task.TooLarge, "the workspace has too many files that are not ignored").WithHint("name what is no part of the work in .gitignore")
	}
	l.names = append(l.names, name)
	return nil
}

// read reads the patterns of a folder. A file that is none, that is too long or that went has
// no patterns, as a link has none for git.
func (l *lister) read(in *workdir.Dir, at string, above *patterns) (*patterns, error) {
	if info, err := in.Lstat(ignoreFile); err != nil || !info.Mode().IsRegular() {
		return above, ofSystem(err) // else there is none
	}
	text, err := in.ReadFile(ignoreFile, longestPatterns)
	if err != nil {
		return above, ofSystem(err)
	}
	own := ignore.Rules(nil).Add(at, string(text))
	l.patterns, l.rules = l.patterns+len(text), l.rules+len(own)
	if l.patterns > mostPatterns || l.rules > mostRules {
		return nil, task.Errorf(task.TooLarge, "the .gitignore files of the workspace have more than %d MB or %d patterns", mostPatterns>>20, mostRules)
	}
	return &patterns{own, above}, nil
}

// isRepository reports whether a folder below the top is a repository of its own, of which
// nothing was checked out.
func (l *lister) isRepository(in *workdir.Dir, at string) (bool, error) {
	info, err := in.Lstat(".git")
	if err != nil || at == "." {
		return false, ofSystem(err)
	}
	if info.IsDir() {
		if _, err := in.Lstat(".git/HEAD"); err != nil {
			return false, ofSystem(err)
		}
	}
	if l.folders == nil {
		l.folders = map[string]bool{"": true}
		for name := range l.of.tracked {
			markFolders(l.folders, name)
		}
	}
	return !l.folders[at], nil
}
